"""How a vault keeps its records: in its own tables (managed), or at their sources (external).

Both are classes of one base class, chosen once when the vault is opened.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from armnesia.core.arrays import BoolArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.progress import RowCounter
from armnesia.core.urls import redacted
from armnesia.logs import Source
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results.sources import HeldSource
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.owner_tallies import TallyObserver
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import Suppressed
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.digest_arrays import DigestArray
from armnesia.vault.storage.schema import RecordLayout

if TYPE_CHECKING:
    from armnesia.vault.state.source_lookup import SourceLookup

_MOST_PROBLEMS = 20


DecisionSums: TypeAlias = Mapping[int, list[tuple[int, int, int, bool]]]
"""By the number of a decision, what records add up to: (arm, count, units, whether all are 0 or 1)."""


class DeletedRecords(NamedTuple):
    """The rows of a request that were deleted."""

    sums: DecisionSums
    """What they add up to; empty if there were none."""
    rows: list[Row]
    held: set[bytes]
    """The row keys of those names of the request that had records."""
    to_tallies: list[Statement]
    """What stores the tallies of their owners without them."""
    texts: Sequence[bytes] = ()
    """The rows as they are digested, in the same order."""


@dataclass(frozen=True)
class RecordScan:
    """What one pass over all tables found."""

    digests: TableDigests
    needs_recount: bool
    """Whether the statistics may count rows that they must not count; always true of external records."""
    sums: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Per decision and arm, how many records there are and the sum of their units; empty if external."""
    forgotten: tuple[bytes, ...] = ()
    """The identities of records that belong to forgotten people, or were forgotten themselves."""
    tallies: TallyObserver | None = None
    """The tallies of their owners, to be compared with the table once; None if external."""


@dataclass(frozen=True)
class IncomingRows:
    """Rows that may come in, by column."""

    places: IntArray
    """Where each stands in its chunk."""
    identities: DigestArray
    owners: DigestArray
    """`NO_DIGEST` for a row without a user."""
    users: Sequence[str | None]
    """The users of all rows of the chunk."""
    arms: IntArray
    units: IntArray
    decisions: IntArray
    source: int

    def __len__(self) -> int:
        return len(self.places)

    def chosen(self, which: BoolArray | IntArray) -> "IncomingRows":
        """Some of the rows."""
        arrays = {
            name: getattr(self, name)[which]
            for name in ("places", "identities", "owners", "arms", "units", "decisions")
        }
        return replace(self, **arrays)


class Records(ABC):
    """All records of a vault."""

    layout: RecordLayout
    erasure_excludes: ClassVar[str] = ""
    """What erasure does not cover, in words that follow the database's own in a certificate."""

    @abstractmethod
    def count(self, session: Session) -> int:
        """How many records there are."""

    @abstractmethod
    def look_up(
        self,
        reading: Callable[[], AbstractContextManager[Transaction]],
        target: ErasureTarget,
        *,
        exactly: bool,
    ) -> "SourceLookup | None":
        """Find what takes long to find of a request, before the write lock is taken; None if nothing does."""

    def current(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup", *, exactly: bool
    ) -> "SourceLookup":
        """What was found before, or what is found now if that may be something else."""
        return lookup

    @abstractmethod
    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> DecisionSums:
        """Add up the records of a request, which is spelled as the vault does; empty if there are none."""

    @abstractmethod
    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> DeletedRecords:
        """Delete the records of a request; refuse if another way than the index finds other rows."""

    @abstractmethod
    def names_held(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> set[bytes]:
        """The row keys of those names in a request that have records."""

    @abstractmethod
    def keys_held(
        self,
        transaction: Transaction,
        target: ErasureTarget,
        keys: Sequence[bytes],
        lookup: "SourceLookup | None",
    ) -> set[bytes]:
        """Which row keys, of names that are spelled nearly as those of a request, have records."""

    @abstractmethod
    def some_without_user(self, session: Session, lookup: "SourceLookup | None") -> bool:
        """Whether there may be records without a user."""

    def confirm_nobody(  # noqa: B027 (at a source no index is relied on)
        self, transaction: Transaction, owners: Sequence[bytes]
    ) -> None:
        """Refuse to say that nothing is held of these people where an index may hide it; after a deletion."""

    @abstractmethod
    def check_source(self, session: Session, source: Source) -> None:
        """Refuse a source that rows of this vault cannot come from."""

    @abstractmethod
    def check_corrections(self, source: Source) -> None:
        """Refuse a source whose rows cannot come in the place of records."""

    def readmit(self, transaction: Transaction, state: State) -> State:
        """The state after people were readmitted, whose records may come in again."""
        return state

    @abstractmethod
    def scan(
        self,
        session: Session,
        keyring: Keyring,
        suppressed: Suppressed,
        *,
        counter: RowCounter | None = None,
        digest_keyring: Keyring | None = None,
    ) -> RecordScan:
        """Read all tables once, compute their digests, and look for records that must not be there.

        The digests in `suppressed` are made with `keyring`. Those of the tables are made with
        `digest_keyring`, by default the same; it is an older one while a backup is brought up to date.
        """

    @abstractmethod
    def problems(
        self,
        session: Session,
        state: State,
        keyring: Keyring,
        scan: RecordScan,
        decisions: Iterable[VaultDecision],
        counter: RowCounter,
    ) -> tuple[list[str], list[str]]:
        """Compare the records with the statistics of all decisions: problems, and notes."""

    @abstractmethod
    def matches(self, scan: RecordScan, state: State) -> bool:
        """Whether the tables are as armnesia left them, as far as a recount depends on it."""

    @abstractmethod
    def recount(
        self,
        transaction: Transaction,
        scan: RecordScan,
        decisions: Sequence[VaultDecision] = (),
        counter: RowCounter | None = None,
    ) -> State:
        """Compute the statistics again from the records, without those of forgotten people.

        `decisions` are all decisions of a vault with key columns, by their numbers; one whose statistics stay
        the same keeps its served arm.
        """

    @abstractmethod
    def sources(self, session: Session) -> tuple[HeldSource, ...]:
        """The sources that records are looked up at."""

    def drop_sources(self, session: Session, names: Sequence[str]) -> list[int]:
        """Forget sources that no longer exist, and return their numbers; refuse names that are none."""
        for name in names:
            raise unknown_source(name, {})
        return []


def unknown_source(name: str, known: Mapping[str, object]) -> InvalidInputError:
    """Refuse the name of a source that the vault does not have."""
    return InvalidInputError(
        f"the vault has no source {redacted(name)!r}; its sources are: {', '.join(known) or 'none'}"
    )


def statistics_problems(
    decisions: Iterable[VaultDecision],
    state: State,
    found: Mapping[tuple[int, int], tuple[int, int]],
    source: str,
) -> list[str]:
    """Where the statistics differ from the sums of the records, (count, units) per decision and arm."""
    problems: list[str] = []
    known: set[tuple[int, int]] = set()
    differing = 0
    for decision in decisions:
        sums = decision.statistics
        keys = zip(state.configuration.key_columns, decision.key, strict=True)
        named = ", ".join(f"{column.name}={value}" for column, value in keys)
        of_key = f" in decision {named}" if named else ""
        for arm, (count, total) in enumerate(zip(sums.counts, sums.units, strict=True)):
            records, units = found.get((decision.number, arm), (0, 0))
            known.add((decision.number, arm))
            if (count, total) != (records, units):
                differing += 1
                if differing <= _MOST_PROBLEMS:
                    problems.append(
                        f"statistics of action {canonical(state.actions[arm])}{of_key}: the vault has {count}"
                        f" records with reward units {total}, {source} give {records} with {units}"
                    )
    if differing > _MOST_PROBLEMS:
        problems.append(f"statistics: {differing - _MOST_PROBLEMS} more differences of the same kind")
    unknown = {place for place, sums in found.items() if sums != (0, 0)} - known
    if unknown:
        problems.append(f"records: rows of {len(unknown)} arms that the vault does not have")
    return problems
