"""What the vault needs of a database: transactions, rows, and deleted bytes that leave the files.

A new database is one module with a class that derives from `Database`, and one entry in the registry of
`opening.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from armnesia.core.errors import (
    DamagedDatabaseError,
    DatabaseError,
    InvalidInputError,
    VaultBusyError,
    VaultError,
)
from armnesia.core.messages import any_of
from armnesia.core.urls import redacted
from armnesia.vault.storage.digest_arrays import Columns, DigestArray
from armnesia.vault.storage.schema import Table

Row: TypeAlias = tuple[Any, ...]
Statement: TypeAlias = tuple[str, tuple[Any, ...]]
"""A statement and its parameters."""

IN_USE = "is in use by another process; nothing was changed, try again"
EVERY_BYTE = "every byte of the database's file"
EVERY_ROW = "every record, and every tally of a person, without an index"


@dataclass(frozen=True)
class Dialect:
    """Where the SQL of the databases differs."""

    blob: str
    """The type of bytes."""
    xor_of_digests: str
    """The exclusive or of two digests."""
    drop_record_indexes: tuple[str, ...] = ()
    """The statements that drop the indexes of the records; none if a first load is not faster without."""
    create_record_indexes: tuple[str, ...] = ()
    """The statements that build these indexes after the load."""
    rows_scanned_per_lookup: int = 1
    """How many records are read one after another in the time of reading one by an index."""
    rebuild_indexes: str = "REINDEX"
    """The statement that makes all indexes again, or those of a table whose name stands for `{}`."""
    rebuild_decision_indexes: str | None = None
    """What they leave out, for each table of decisions: older versions do not have these."""


class Session(Protocol):
    """One transaction. SQL uses `?` for parameters and only what all databases understand."""

    @property
    def dialect(self) -> Dialect:
        """The SQL of this database."""

    def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement and fetch all its rows."""

    def execute(self, sql: str, *parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""

    def execute_together(self, statements: Iterable[Statement]) -> None:
        """Run statements that return no rows, in as few round trips as possible."""

    def stream(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Run a query and yield its rows one by one, in constant memory."""

    def load(self, table: str, columns: str, rows: Iterable[Row]) -> None:
        """Insert many rows by the fastest way the database has."""

    def load_columns(
        self, table: str, columns: Columns, *, nullable: str = "", is_empty: bool = True
    ) -> None:
        """Insert many rows that are given by columns; zero bytes in the column `nullable` are NULL.

        `is_empty` says that the table had no rows before this transaction. None of these may be there
        already: some databases would undo the whole transaction.
        """

    def merge_columns(self, table: Table, columns: Columns, on_conflict: str) -> None:
        """As `load_columns`, where a row may be there already: then `on_conflict` says what is done.

        `columns` are all those of the table, and the rows in the order of its key.
        """

    def identities_of(self, owners: DigestArray) -> Iterator[DigestArray]:
        """The identities of all records of these owners, by the index of owners, in any order and in parts.

        The owners are in order, each once.
        """

    def digest_set(self, digests: DigestArray) -> tuple[str, tuple[Any, ...]]:
        """Many digests as a query in brackets that returns them as `digest`, and its parameters."""

    def without_indexes(self) -> AbstractContextManager[str]:
        """Read tables without indexes; yields what a query writes after the name of a table."""


class Snapshot(NamedTuple):
    """A session that sees one snapshot of the vault, and a remark on it for the operator, if there is one."""

    session: Session
    remark: str | None = None


class CompactionCost(NamedTuple):
    """What `compact` would rewrite, whom it keeps waiting, and for how long."""

    bytes: int
    seconds: float | None
    """By a short trial on made-up rows; None if that failed."""
    blocks: str
    """Who waits, in words."""


class SearchOutcome(NamedTuple):
    """What searching all of a database for digests has come to."""

    found: bool
    not_done_because: str | None = None
    """Why the search was given up; None if all was read."""


class Database(ABC):
    """The database of one vault, through one connection."""

    erasure_covers: ClassVar[str]
    """What "erasure complete" means on this database, in words for the certificate."""

    erasure_steps: ClassVar[str]
    """The commands that make deleted bytes leave the files and certify it, in words."""

    search_covers: ClassVar[str]
    """What `search_for` reads, in words for the certificate: `EVERY_BYTE` or `EVERY_ROW`."""

    erases_at_once: ClassVar[bool] = True
    """Whether `erase` can succeed right after a commit."""

    backup_hint: ClassVar[str] = ""
    """Which tools of the database make a backup, in words that follow a refusal."""

    location: str
    """Where the database is, without a password, for messages."""

    erasure_obstacle: str = ""
    """Why the last `erase` or `compact` left deleted bytes in the files, in words; empty if it left none."""

    is_closed: bool = False

    @abstractmethod
    def reading(self) -> AbstractContextManager[Session]:
        """Begin a transaction that sees one snapshot of the vault."""

    @contextmanager
    def snapshot(self, *, in_place: bool = False) -> Iterator[Snapshot]:
        """As `reading`, for work that takes long: others are held back as little as the database allows.

        `in_place` reads the vault itself, also where a copy would hold others back less.
        """
        with self.reading() as session:
            yield Snapshot(session)

    @abstractmethod
    def writing(self) -> AbstractContextManager[Session]:
        """Begin the one write transaction at a time: committed at the end, or rolled back as a whole."""

    def bulk_loading(self) -> AbstractContextManager[None]:
        """Prepare the connection, within bounds, for a transaction that inserts many rows."""
        return nullcontext()

    def sorting_in_files(self) -> AbstractContextManager[None]:
        """Prepare the connection for a transaction that builds indexes, so that these are not in memory."""
        return nullcontext()

    def no_vault(self) -> VaultError:
        """The error about a database without a vault."""
        return VaultError(f"there is no vault at {self.location!r}; make one with: armnesia init")

    @abstractmethod
    def has_vault(self) -> bool:
        """Whether the database contains a vault."""

    def vault_created(self) -> None:  # noqa: B027 (most databases need not know)
        """Be told that the tables of a vault are there now."""

    @abstractmethod
    def schema_problems(self, session: Session, tables: tuple[Table, ...]) -> list[str]:
        """Where tables, indexes, triggers and the like are not as armnesia creates them; a sentence each."""

    def begin_schema_check(self, session: Session, tables: tuple[Table, ...]) -> Callable[[], list[str]]:
        """Begin what `schema_problems` does; the returned function waits for it, and says what was found.

        A server can check while its client computes. Any other database checks when the function is called.
        """
        return partial(self.schema_problems, session, tables)

    def confirm_stored(self, session: Session, statements: Iterable[Statement]) -> None:  # noqa: B027
        """Refuse to commit if rows are not found as these statements left them.

        For a database in the process itself, whose file may be damaged; a server has checks of its own.
        """

    def header_problems(self) -> list[str]:
        """Where the file, if the database is one, begins with something else than it should."""
        return []

    @abstractmethod
    def integrity_problems(self, session: Session) -> list[str]:
        """What the database's own check of its files and indexes finds; a sentence each."""

    @abstractmethod
    def erase(self, *, wait: bool = False) -> bool:
        """Make deleted bytes leave the files if that is possible at once; return whether they left.

        With `wait`, wait up to the time-out for other processes that keep them there.
        """

    @abstractmethod
    def search_for(self, digests: Collection[bytes], listed: Mapping[bytes, str]) -> SearchOutcome:
        """Look for identities and owners of records that are deleted, in all of the database.

        No index is used: every byte of the files is read, or every row where the files are a server's. Those
        that are `listed` are in the suppression list, with their kind, once each.
        """

    def distrust_unused_space(self) -> None:  # noqa: B027 (most databases need not know)
        """Be told, in a write transaction, that the files are a copy that something else has made."""

    @abstractmethod
    def compact(self) -> bool:
        """Make deleted bytes leave the files, however long it takes; return whether they left."""

    @abstractmethod
    def compaction_cost(self) -> CompactionCost:
        """What `compact` would cost now, without waiting for anybody's lock."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def refuse_closed(self) -> None:
        """Refuse to work on a database that was closed."""
        if self.is_closed:
            raise database_error(self.location, "is closed; open it again")

    def back_up(self, path: str) -> Row:
        """Copy the vault into a new file; return the length and the hash of the copy's ledger.

        Refused where the database has tools of its own for that.
        """
        raise VaultError(f"{self.location!r} is backed up by the tools of its database{self.backup_hint}")

    def discard(self) -> None:
        """Close a database in which no vault was created, and remove the file made for it."""
        self.close()


def database_error(location: str, meaning: str) -> VaultError:
    """Say in one sentence what a database refused."""
    kind = DamagedDatabaseError if "damaged" in meaning else DatabaseError
    if meaning == IN_USE:
        return VaultBusyError(f"the vault {location!r} {meaning}")
    return kind(f"the vault {location!r} {meaning}")


def invalid_address(url: str, *accepted: str) -> InvalidInputError:
    """Refuse an address that is not of an accepted form."""
    return InvalidInputError(f"url must be {any_of(accepted)}; got {redacted(url)!r}")
