"""A request to forget: what it asks for, and what the vault holds of those that it names."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError, DatabaseError, VaultBusyError
from armnesia.privacy import Budget
from armnesia.unlearners import Unlearner
from armnesia.vault.configuration import Configuration, make_unlearner, meaningful_budget
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.results import ForgottenBefore
from armnesia.vault.state.certificates import time_of
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.likely_names import refuse_other_spellings
from armnesia.vault.state.records import DeletedRecords, may_be_without_user, refuse_returned
from armnesia.vault.state.suppression import History
from armnesia.vault.state.transaction import Transaction

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Method:
    """How a request is answered: by which unlearner, with which options and budget."""

    unlearner: Unlearner
    options: Mapping[str, Any]
    budget: Budget
    fallback_because: str | None = None
    """Why exact rollback is in the place of what was asked for."""


@dataclass(frozen=True, kw_only=True)
class ForgetRequest:
    """One of several requests that are answered together; its fields are the arguments of `Vault.forget`.

    What is None is as the vault has it. With the vault's unlearner, `unlearner_options` replace the vault's
    parameters of the same names.

    >>> ForgetRequest(users=["ann"]).exactly
    False
    """

    users: Iterable[Any] | None = None
    records: Iterable[Any] | None = None
    unlearner: str | None = None
    unlearner_options: Mapping[str, Any] | None = None
    epsilon: float | None = None
    delta: float | None = None
    exactly: bool = False
    """Whether the names are meant as they are, though the vault holds rows of similar ones."""
    case: str | None = None
    """The number of the request in the controller's files; only the certificate shows it."""
    by: str | None = None
    """Who entered it; only the certificate shows it."""

    def method(self, configuration: Configuration) -> Method:
        """The unlearner and the budget, not yet compared with the policy."""
        name = configuration.unlearner if self.unlearner is None else self.unlearner
        # The vault's parameters stay, except those that are given; another unlearner has its defaults.
        kept = configuration.unlearner_options if name == configuration.unlearner else {}
        options = {**kept, **(self.unlearner_options or {})}
        epsilon = configuration.epsilon if self.epsilon is None else self.epsilon
        delta = configuration.delta if self.delta is None else self.delta
        return Method(make_unlearner(name, options), options, meaningful_budget(epsilon, delta))


@dataclass(frozen=True)
class Found:
    """What the vault knows of the names of a request."""

    named: ErasureTarget
    """All of them, as the vault spells them."""
    forgotten_before: tuple[ForgottenBefore, ...]
    """Those who are forgotten, by their entries."""
    target: ErasureTarget
    """The others."""
    history: History
    """What the suppression list says of the others."""
    rows: DeletedRecords
    not_held: tuple[str, ...] = ()
    """Who of the others has no rows."""
    may_be_without_user: bool = False
    sources: tuple[str, ...] | None = None
    """The sources of an external vault."""
    recounted_because: str | None = None
    rows_gone: int = 0
    """See `Forgotten`."""


def find(
    connection: VaultConnection,
    transaction: Transaction,
    target: ErasureTarget,
    *,
    exactly: bool,
    deletes: bool = False,
) -> Found:
    """Look up who is named, and what the vault holds of those who are not forgotten yet; delete it if told.

    Refused if the vault holds rows of a likely spelling of a name that it holds nothing of, unless `exactly`.
    """
    session, records = transaction.session, connection.records
    named = target.normalised(transaction.state.configuration.user_type)
    history = History.read(transaction, named)
    before = history.forgotten
    target, history = named.without(before), history.without(before)
    entries = _by_entry(transaction, before)
    if not target.names:
        refuse_returned(records.held(transaction, named, named.row_keys(transaction.keyring), None))
        return Found(named, entries, target, history, DeletedRecords({}, [], set()))
    lookup = records.look_up(transaction, target, exactly=exactly)
    because = None if lookup is None else lookup.because
    gone = 0 if lookup is None or not because else records.count(session) - lookup.n_counted
    if deletes:
        rows = records.delete(transaction, target, lookup)
    else:
        sums = records.find(transaction, target, lookup)
        held = records.held(transaction, target, target.row_keys(transaction.keyring), lookup)
        rows = DeletedRecords(sums, [], held)
    keys = zip(target.names, target.row_keys(transaction.keyring), strict=True)
    not_held = tuple(name for name, key in keys if key not in rows.held)
    if not exactly:
        holds = partial(records.held, transaction, target, lookup=lookup)
        refuse_other_spellings(transaction, target, not_held, holds)
    people_not_held = bool(target.kind == "user" and not_held)
    return Found(
        named,
        entries,
        target,
        history,
        rows,
        not_held,
        may_be_without_user=people_not_held and may_be_without_user(session, lookup),
        sources=None if lookup is None else tuple(each.id for each in lookup.before),
        recounted_because=because,
        rows_gone=max(0, gone),
    )


def _by_entry(transaction: Transaction, forgotten: Mapping[str, int]) -> tuple[ForgottenBefore, ...]:
    """Who was forgotten by which entry, in the order of the entries."""
    names = defaultdict[int, list[str]](list)
    for name, number in forgotten.items():
        names[number].append(name)
    return tuple(
        ForgottenBefore(number, time_of(transaction.session, number), tuple(own))
        for number, own in sorted(names.items())
    )


def or_refusal(function: Callable[..., _Made], *arguments: Any) -> _Made | ArmnesiaError:
    """What a function returns, or why it refuses; what the database refuses is no matter of one request."""
    try:
        return function(*arguments)
    except (DatabaseError, VaultBusyError):
        raise
    except ArmnesiaError as error:
        return error.with_traceback(None)  # which would keep the rows that its frames have seen
