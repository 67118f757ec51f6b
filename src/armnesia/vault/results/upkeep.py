"""Keys rotated, files compacted, erasures finished, and vaults written elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armnesia.vault.ledger.certificate import Erasure
from armnesia.vault.ledger.ledger import Head


@dataclass(frozen=True)
class Rotated:
    """Which key is new ("signing" or "digest"), and its version."""

    key: str
    version: int
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """The keys `key`, `version` and `head`."""
        return {**vars(self), "head": str(self.head)}


@dataclass(frozen=True)
class CompactionEstimate:
    """How many bytes `compact` would rewrite, for about how many seconds, and who waits meanwhile.

    The seconds are estimated from a short trial on made-up rows; None if that failed. Waiting for other
    processes is not included.
    """

    bytes: int
    seconds: float | None
    blocks: str

    def to_dict(self) -> dict[str, Any]:
        """The keys `bytes`, `seconds` and `blocks`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Compacted:
    """Whether deleted bytes have left the database's files; if not, why, in words."""

    erasure: Erasure
    pending_because: str | None = None

    @property
    def complete(self) -> bool:
        """Whether they have."""
        return self.erasure == "complete"

    def to_dict(self) -> dict[str, Any]:
        """The keys `erasure` and `pending_because`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Finished:
    """Whether deleted bytes have left the database's files, and whose certificates say so now.

    `reissued` are the ledger entries whose certificates were signed again, with erasure complete; `pending`
    is the number of those that still have to wait, and `pending_because` says for what. `folder` is where
    the certificates that were signed again are written, if that was asked for; None if none was signed.
    `withheld` are the ledger entries whose certificates are not signed, because a search has found something.
    """

    erasure: Erasure
    reissued: tuple[int, ...]
    pending: int
    pending_because: str | None
    head: Head
    folder: Path | None = None
    withheld: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing has to wait."""
        return self.erasure == "complete" and not self.withheld

    def to_dict(self) -> dict[str, Any]:
        """All fields; `head` and `folder` as text."""
        return {
            **vars(self),
            "reissued": list(self.reissued),
            "head": str(self.head),
            "folder": None if self.folder is None else str(self.folder),
            "withheld": list(self.withheld),
        }


@dataclass(frozen=True)
class SavedCertificates:
    """The certificates of many names, one file each in `folder`; the file `index` says whose they are.

    `pending` is the number of those `written` that have erasure pending; `missing` is the number of names
    that have no certificate.
    """

    folder: Path
    index: Path
    written: int
    pending: int
    missing: int

    def to_dict(self) -> dict[str, Any]:
        """All fields; `folder` and `index` as text."""
        return {**vars(self), "folder": str(self.folder), "index": str(self.index)}


@dataclass(frozen=True)
class Rebuilt:
    """Whether computing the statistics again changed anything, and which sources were dropped or moved."""

    changed: bool
    head: Head
    dropped: tuple[str, ...] = ()
    moved: tuple[str, str] | None = None
    """The names of a source before and after it was moved."""
    rows_deleted: int = 0
    """How many rows of forgotten people, or forgotten rows, were in the vault again."""

    def to_dict(self) -> dict[str, Any]:
        """The keys `changed`, `head` and `dropped`; `moved` if a source was, `rows_deleted` if some were."""
        moved = {} if self.moved is None else {"moved": list(self.moved)}
        deleted = {"rows_deleted": self.rows_deleted} if self.rows_deleted else {}
        known = {"changed": self.changed, "head": str(self.head), "dropped": list(self.dropped)}
        return {**known, **moved, **deleted}


@dataclass(frozen=True)
class Exported:
    """An export: the file, the head it reaches, and how many entries and certificates it has."""

    file: Path
    head: Head
    entries: int
    certificates: int
    for_restore: bool

    def to_dict(self) -> dict[str, Any]:
        """The keys `file`, `head`, `entries`, `certificates` and `for_restore`."""
        return {**vars(self), "file": str(self.file), "head": str(self.head)}


@dataclass(frozen=True)
class BackedUp:
    """The file of a backup, and the head of its ledger."""

    file: Path
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """The keys `file` and `head`."""
        return {"file": str(self.file), "head": str(self.head)}


@dataclass(frozen=True)
class Copied:
    """Where the copy of a vault and its keys are, the head of its ledger, and how many records it has."""

    vault: str
    location: str
    keys_path: Path
    head: Head
    records: int

    def to_dict(self) -> dict[str, Any]:
        """The keys `vault`, `location`, `keys`, `head` and `records`."""
        return {
            "vault": self.vault,
            "location": self.location,
            "keys": str(self.keys_path),
            "head": str(self.head),
            "records": self.records,
        }


@dataclass(frozen=True)
class Restored:
    """How many ledger entries were replayed on a backup."""

    replayed: int
    head: Head
    corrections_lost: int = 0
    """How many rows had been corrected since the backup was made: their corrections must come in again."""
    recounted: bool = False
    """Whether the sources were counted again, which an external vault does."""
    lists_repaired: bool = False
    """Whether something else had changed the suppression list, answered requests or commitments."""

    def to_dict(self) -> dict[str, Any]:
        """The keys `replayed`, `corrections_lost`, `recounted` and `head`; `lists_repaired` if they were."""
        written = {**vars(self), "head": str(self.head)}
        if not self.lists_repaired:
            del written["lists_repaired"]
        return written
