"""The sources of an external vault, and what is erased there."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.source_claim import SourceState
from armnesia.vault.results.notes import OPERATOR_ONLY


@dataclass(frozen=True)
class HeldSource:
    """A source of an external vault; how many records come from it is not known.

    `recount` says why all of it has to be counted again, by the next ingest; None if it need not be.
    """

    name: str
    recount: str | None
    columns: Mapping[str, str | None]
    """The column of each role, `action`, `reward`, `user` and `id`."""
    where: tuple[str, ...]
    """The conditions that rows must satisfy to be counted."""
    ingest_command: str
    """The command that ingests it again, as a shell reads it."""


@dataclass(frozen=True)
class SourceErasure:
    """How far rows of forgotten people are erased at a source, by the last ledger entry about it."""

    number: int
    """By which the ledger and certificates name the source."""
    name: str
    state: str
    """`untouched`, `logically deleted` or `purged`."""
    pending: int
    """How many requests were answered since."""
    entry: int | None
    version: int | str | None
    """That of the source, if it has any, at which none of the rows were there."""
    remains: tuple[str, ...]
    due: str | None
    """From when on a purge respects the retention of the table."""
    left_out: bool = False
    """Whether an ingest has left out rows there, of people or records that were forgotten before."""

    @property
    def purge_pending(self) -> bool:
        """Whether readers no longer see the rows, while files or earlier versions still hold them."""
        return self.state == SourceState.LOGICALLY_DELETED


@dataclass(frozen=True)
class DroppedSource:
    """A source that was dropped (`rebuild --without`) before rows of forgotten people were erased there."""

    number: int
    entry: int
    """The ledger entry that dropped it."""
    requests: int
    """How many requests were answered while it was counted, and are not purged there."""


@dataclass(frozen=True)
class RowsAtSource:
    """How many rows of forgotten people or records an erasure deletes at a source; nothing stores this."""

    number: int
    """By which the ledger and certificates name the source."""
    name: str
    rows: int


@dataclass(frozen=True)
class ErasurePreview:
    """What an erasure at the sources would delete, for the operator."""

    sources: tuple[RowsAtSource, ...]

    def to_dict(self) -> dict[str, Any]:
        """The key `sources`, and a note on who may see it."""
        return {"sources": [asdict(each) for each in self.sources], "note": OPERATOR_ONLY}


@dataclass(frozen=True)
class SourceErasures:
    """The sources of an external vault, and whether rows may be erased there."""

    permitted: bool
    sources: tuple[SourceErasure, ...]
    head: Head
    dropped: tuple[DroppedSource, ...] = ()
    deleted: tuple[RowsAtSource, ...] | None = None
    """What an erasure has deleted just now, at the sources where there was something; None without one."""

    @property
    def pending(self) -> int:
        """How many requests are pending at the source where most are."""
        return max((each.pending for each in self.sources), default=0)

    @property
    def purges_pending(self) -> int:
        """At how many sources a purge is left to do."""
        return sum(each.purge_pending for each in self.sources)

    def to_dict(self) -> dict[str, Any]:
        """The keys `permitted`, `pending`, `purges_pending`, `sources`, `dropped`, `deleted` and `head`."""
        sources = [
            {**asdict(each), "remains": list(each.remains), "purge_pending": each.purge_pending}
            for each in self.sources
        ]
        own = {"permitted": self.permitted, "pending": self.pending, "purges_pending": self.purges_pending}
        dropped = [asdict(each) for each in self.dropped]
        deleted = None if self.deleted is None else [asdict(each) for each in self.deleted]
        return {**own, "sources": sources, "dropped": dropped, "deleted": deleted, "head": str(self.head)}
