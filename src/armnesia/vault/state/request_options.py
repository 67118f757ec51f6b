"""What a request to forget asks for, and how it is answered within the configuration of a vault."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError, DatabaseError, VaultBusyError
from armnesia.core.request import DeletionRequest
from armnesia.privacy import Budget
from armnesia.unlearners import JointRelease, Release, Unlearner
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration, make_unlearner, meaningful_budget

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """What a request asks for instead of the vault's defaults; None: the default.

    With the vault's unlearner, `unlearner_options` replace the vault's parameters of the same names.
    """

    unlearner: str | None = None
    unlearner_options: Mapping[str, Any] | None = None
    epsilon: float | None = None
    delta: float | None = None
    exactly: bool = False
    """Whether the names are meant as they are, though the vault holds rows of similar ones."""

    def resolve(self, configuration: Configuration) -> "ResolvedRequest":
        """The unlearner and the budget, not yet compared with the policy."""
        name = configuration.unlearner if self.unlearner is None else self.unlearner
        # The vault's parameters stay, except those that are given; another unlearner has its defaults.
        kept = configuration.unlearner_options if name == configuration.unlearner else {}
        options = {**kept, **(self.unlearner_options or {})}
        unlearner = make_unlearner(name, options)
        epsilon = configuration.epsilon if self.epsilon is None else self.epsilon
        delta = configuration.delta if self.delta is None else self.delta
        budget = meaningful_budget(epsilon, delta)
        return ResolvedRequest(unlearner, options, budget, self.exactly)


@dataclass(frozen=True)
class ResolvedRequest:
    """How a request is answered: by which unlearner, with which options and budget, and how names count."""

    unlearner: Unlearner
    options: Mapping[str, Any]
    budget: Budget
    exactly: bool = False
    fallback_because: str | None = None
    """Why exact rollback is in the place of what was asked for."""

    def lines_about(
        self, stream: Stream, request: DeletionRequest, release: Release | JointRelease
    ) -> tuple[str, ...]:
        """The unlearner with its parameters, and what it says about this request."""
        budget = release.each if isinstance(release, JointRelease) else self.budget
        remark = stream.remark(self.unlearner, request, budget)
        return (f"Unlearner: {self.unlearner.described}", *([remark] if remark else []))


@dataclass(frozen=True, kw_only=True)
class ForgetRequest(RequestOptions):
    """One of several requests that are answered together; its fields are the arguments of `Vault.forget`.

    >>> ForgetRequest(users=["ann"]).exactly
    False
    """

    users: Iterable[Any] | None = None
    records: Iterable[Any] | None = None
    case: str | None = None
    """The number of the request in the controller's files; only the certificate shows it."""
    by: str | None = None
    """Who entered it; only the certificate shows it."""


def or_refusal(function: Callable[..., _Made], *arguments: Any) -> _Made | ArmnesiaError:
    """What a function returns, or why it refuses; what the database refuses is no matter of one request."""
    try:
        return function(*arguments)
    except (DatabaseError, VaultBusyError):
        raise
    except ArmnesiaError as error:
        return error.with_traceback(None)  # which would keep the rows that its frames have seen


def unless_refused(
    each: _Given | ArmnesiaError, function: Callable[..., _Made], *arguments: Any
) -> _Made | ArmnesiaError:
    """Go on with a request, unless it was refused before."""
    return each if isinstance(each, ArmnesiaError) else or_refusal(function, *arguments, each)
