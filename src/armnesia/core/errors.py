"""The error classes. A message names the parameter, the value it got and what would be accepted."""

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Self, TypeAlias


class Fault(NamedTuple):
    """A place in a log that is not as it must be, without the value there, which may name somebody."""

    role: str
    """What the column is for, such as "reward"; "" if the row as a whole is wrong."""
    row: int
    """Counted from 1."""
    rule: str
    """What holds there, as in "must hold numbers"."""


class ArmnesiaError(Exception):
    """The base class of all errors that armnesia raises."""

    faults: tuple[Fault, ...] = ()
    """The first places in a log that an error is about, as far as they are known."""

    def at(self, *faults: Fault) -> Self:
        """The same error, with places in the log.

        >>> InvalidLogError("reward must hold numbers").at(Fault("reward", 7, "must hold numbers")).faults
        (Fault(role='reward', row=7, rule='must hold numbers'),)
        """
        self.faults = faults
        return self


class InvalidInputError(ArmnesiaError, ValueError):
    """A value outside what a parameter accepts."""


NameReason: TypeAlias = Literal["empty", "long", "type"]
"""Why a name is refused; `type`: the vault's people are named by another one."""


class InvalidNameError(InvalidInputError):
    """A request that names somebody in a way that the vault does not take. Nothing was changed."""

    def __init__(self, message: str, name: str, reason: NameReason) -> None:
        super().__init__(message)
        self.name, self.reason = name, reason


class InvalidLogError(InvalidInputError):
    """A log that cannot be read as logged decisions: wrong columns, types, rewards or actions."""


class UndeclaredActionError(InvalidLogError):
    """A log with an action that is not in the declared set."""


class UnknownCatalogError(InvalidLogError):
    """A table of a catalog that is not configured here: the table itself may be as it was."""


class ImpossibleDeletionError(InvalidInputError):
    """A deletion of records that the statistics cannot contain."""


class UnsupportedError(ArmnesiaError):
    """A combination (unlearner, learner, request, level) for which no guarantee is known."""


class VaultError(ArmnesiaError):
    """A vault that cannot be opened, read or changed as requested."""


class VaultBusyError(VaultError):
    """Another process is changing the vault. Nothing was changed; the operation can be tried again."""


class DatabaseError(VaultError):
    """The database of a vault cannot be reached, or refused an operation of its own."""


class DamagedDatabaseError(DatabaseError):
    """The file of a vault's database is damaged, or is none."""


class UnfinishedError(VaultError):
    """A part of what was asked is done, and stays; the message says what is left."""


class PartlyErasedError(UnfinishedError):
    """Rows were erased at some sources of a vault and not at others; the message says why.

    `erasures` is what the erasure would have returned, with what it has done.
    """

    def __init__(self, message: str, erasures: Any) -> None:
        super().__init__(message)
        self.erasures = erasures


class SourceError(VaultError):
    """A source of an external vault that is in the way of a request. Nothing was changed.

    `source` is the id by which the ledger and certificates name it.
    """

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message)
        self.source = source


class OutdatedSourceError(SourceError):
    """A source that is not as it was when the vault counted it."""


class UnreadableSourceError(SourceError):
    """A source that cannot be read."""


class LostSourceError(UnreadableSourceError):
    """A source that may be gone, or at another place."""


class PolicyError(VaultError):
    """A request that the policy of the vault does not allow. Nothing was changed."""


class OtherColumnsError(VaultError):
    """A source that has a role in another column than the vault. Nothing was changed.

    `known` is the column of the vault; None if it has no ids.
    """

    def __init__(self, message: str, role: str, known: str | None = None) -> None:
        super().__init__(message)
        self.role, self.known = role, known


class ChangedRecordError(VaultError):
    """A row whose id the vault holds with another content. Nothing was changed."""


class RefusedArmError(VaultError):
    """A new row of an arm that its decision does not offer. Nothing was changed."""


class UnknownEntryError(VaultError):
    """A ledger entry that has no certificate, or that does not exist."""


class SimilarNameError(VaultError):
    """A request names somebody whom the vault may hold in another spelling. Nothing was changed.

    `similar` has the spellings that the vault holds, by the name in the request.
    """

    def __init__(self, message: str, similar: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(message)
        self.similar = dict(similar)


class MissingExtraError(ArmnesiaError, ImportError):
    """A feature whose optional dependency is not installed."""

    @classmethod
    def naming(cls, feature: str, extra: str) -> "MissingExtraError":
        """The error for a feature, naming the extra that provides it.

        >>> print(MissingExtraError.naming("Reading files", "engines"))
        Reading files needs an optional dependency: pip install "armnesia[engines]", or in a checkout pip
        install ".[engines]"
        """
        return cls(
            f'{feature} needs an optional dependency: pip install "armnesia[{extra}]", or in a checkout pip'
            f' install ".[{extra}]"'
        )

    @classmethod
    @contextmanager
    def unless_installed(cls, feature: str, extra: str) -> "Iterator[None]":
        """Around imports of a feature: name the extra if one is missing."""
        try:
            yield
        except ImportError as error:
            raise cls.naming(feature, extra) from error


class UndeclaredActionsWarning(UserWarning):
    """The action set was taken from the data. Declare it: deleting rows must not change it."""


class ConfoundedLogWarning(UserWarning):
    """The log has propensities that depend on more than the action, and decisions do not use them."""


class UnprovedCalibrationWarning(UserWarning):
    """The classic Gaussian calibration is used at ε > 1, where its proof does not apply."""


_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def is_exhausted(error: BaseException) -> bool:
    """Whether the system has no open files or no memory left, for a while."""
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def refused_by_system(error: OSError, sentence: str) -> VaultError:
    """The error about a file of a vault that the system does not open: another time it may.

    >>> type(refused_by_system(OSError(errno.EMFILE, "Too many open files"), "keys.json cannot be read"))
    <class 'armnesia.core.errors.DatabaseError'>
    """
    return DatabaseError(sentence) if is_exhausted(error) else VaultError(sentence)


def refuse_first(
    problems: Iterable[str], sentence: str = "{}", error: Callable[[str], Exception] = VaultError
) -> None:
    """Raise an error about the first problem, if there is one; `{}` in the sentence stands for it.

    >>> refuse_first([], "ledger: {}")
    >>> refuse_first(["entry 2 is missing", "entry 3 is missing"], "ledger: {}; restore a backup")
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: ledger: entry 2 is missing; restore a backup
    """
    for problem in problems:
        raise error(sentence.format(problem))
