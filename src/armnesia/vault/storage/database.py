"""What the vault asks of a database, whichever it is: transactions, rows, and bytes that are really gone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Protocol, TypeAlias

from armnesia.core.errors import InvalidInputError, VaultBusyError, VaultError
from armnesia.logs.urls import may_hold_password, redacted

Row: TypeAlias = tuple[Any, ...]

IN_USE = "is in use by another process; nothing was changed, try again"

_AT_ONCE = 500


class Session(Protocol):
    """One transaction. SQL is written with `?` for parameters, in what both databases understand."""

    def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement and fetch all its rows."""

    def execute(self, sql: str, *parameters: Any) -> int:
        """Run a statement; how many rows it changed."""

    def execute_together(self, statements: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        """Run statements whose results nobody waits for, in as few round trips as possible."""

    def stream(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Run a query and hand out its rows one by one, in constant memory."""

    def load(self, table: str, columns: str, rows: list[Row]) -> None:
        """Insert many rows by the fastest way there is."""


class Database(ABC):
    """One vault's database: a connection of this process to it."""

    kind: ClassVar[str]
    blob: ClassVar[str]
    """The type of bytes, for the schema."""
    empty: ClassVar[str] = "DELETE FROM"
    """How all rows of a table are deleted."""
    insert_all: ClassVar[str] = "INSERT INTO"
    """How many rows are inserted by one statement, of which none is expected to fail."""
    erasure_covers: ClassVar[str]
    """What "erasure complete" means here, in words for the certificate."""

    location: str
    """Where it is, without a password: for messages."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Session]:
        """A transaction that sees one state of the vault, whatever others do meanwhile."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Session]:
        """The one writing transaction at a time: committed at the end, or undone as a whole."""

    def expecting_many_rows(self) -> AbstractContextManager[None]:
        """Make room, within bounds, for a transaction that inserts many rows."""
        return nullcontext()

    @abstractmethod
    def has_tables(self) -> bool:
        """Whether there is a vault in it."""

    @abstractmethod
    def erase(self) -> bool:
        """Make deleted bytes leave the files, if that can be done at once; whether they are gone."""

    @abstractmethod
    def compact(self) -> bool:
        """Make deleted bytes leave the files, however long it takes; whether they are gone."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection."""

    def discard(self) -> None:
        """Let go of a database in which no vault was made after all, and of the file made for it."""
        self.close()


def refusal_by(location: str, meaning: str) -> VaultError:
    """What a database refused, in one sentence."""
    kind = VaultBusyError if meaning == IN_USE else VaultError
    return kind(f"the vault {location!r} {meaning}")


def rows_in(session: Session, sql: str, values: Sequence[Any]) -> Iterator[Row]:
    """Run a query whose `{}` is a list of values, a few hundred of them at a time."""
    for start in range(0, len(values), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        yield from session.query(sql.format(", ".join("?" * len(some))), *some)


def open_database(url: str, *, create: bool = False, timeout: float = 30.0) -> Database:
    """Connect to `sqlite:///file.db` or `postgresql://…`; `create` makes the file of a new SQLite vault.

    A relative file has three slashes and an absolute one four, as in every tool that knows such addresses.
    """
    from armnesia.vault.storage.postgres import PostgresDatabase  # noqa: PLC0415 (they build on this module)
    from armnesia.vault.storage.sqlite import SqliteDatabase  # noqa: PLC0415

    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/") and not may_hold_password(rest):
        return SqliteDatabase(rest[1:], create=create, timeout=timeout)
    if separator and scheme in ("postgresql", "postgres"):
        return PostgresDatabase(url, timeout=timeout)
    raise InvalidInputError(
        f"url must be sqlite:///FILE or postgresql://USER@HOST/DATABASE; got {redacted(url)!r}"
    )
