"""What the vault needs of a database: transactions, rows, and deleted bytes that leave the files.

A new database is one module with classes that derive from `Database` and `Session`, and one entry in the
registry of `opening.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from armnesia.core.errors import (
    ArmnesiaError,
    DamagedDatabaseError,
    DatabaseError,
    InvalidInputError,
    VaultBusyError,
    VaultError,
)
from armnesia.core.messages import any_of, shown
from armnesia.core.urls import redacted
from armnesia.vault.db.digest_arrays import Columns
from armnesia.vault.db.schema import OWNER_INDEX, TABLES

Row: TypeAlias = tuple[Any, ...]
Statement: TypeAlias = tuple[str, tuple[Any, ...]]
"""A statement and its parameters."""
Refusal: TypeAlias = tuple[type[VaultError], str]
"""What an error of a database is called, and what it means."""

IN_USE: Refusal = (VaultBusyError, "is in use by another process; nothing was changed, try again")
FULL: Refusal = (DatabaseError, "cannot grow: the disk is full; nothing was changed")
DAMAGED: Refusal = (
    DamagedDatabaseError,
    "is not a vault, or is damaged: {}; nothing was changed: check the address, then run armnesia restore"
    " --as-it-is, which makes the indexes again, and restore a backup if that is refused",
)


class Session(ABC):
    """One transaction, and where its SQL differs: else it uses `?` and what all databases understand."""

    mark: ClassVar[str]
    """How a parameter is written."""
    types: ClassVar[Mapping[type | str, str]]
    """The type of a column, by that of its values in Python."""
    reindex: ClassVar[str]
    """How the statement begins that makes the indexes of a table again."""
    drop_record_indexes: ClassVar[tuple[str, ...]]
    """The statements that drop the indexes of the records before a first load."""
    create_record_indexes: ClassVar[tuple[str, ...]]
    """The statements that build these indexes after the load."""
    for_columns: ClassVar[str] = ""
    """What a new table is altered by for each of its columns."""
    takes_lists: ClassVar[bool] = False
    """Whether one parameter can be a list."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        """Run a statement; return its cursor. SQL has no other question mark and no percent sign."""
        sql = sql.replace("?", self.mark)
        return self._connection.execute(sql, parameters) if parameters else self._connection.execute(sql)

    def create_tables(self) -> None:
        """Create all tables and their indexes."""
        for table in TABLES.values():
            columns = (f"{each.name} {self.types[each.type]} {each.constraint}" for each in table.columns)
            self.run(f"CREATE TABLE {table.name} ({', '.join(map(str.rstrip, columns))})")
            if self.for_columns:
                actions = (self.for_columns.format(column.name) for column in table.columns)
                self.run(f"ALTER TABLE {table.name} {', '.join(actions)}")
        self.run(OWNER_INDEX)

    def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement and fetch all its rows."""
        return list(self.run(sql, parameters).fetchall())

    def execute(self, sql: str, *parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        return int(self.run(sql, parameters).rowcount)

    def execute_together(self, statements: Iterable[Statement]) -> None:
        """Run statements that return no rows, in as few round trips as possible."""
        for sql, parameters in statements:
            self.run(sql, parameters)

    @abstractmethod
    def stream(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Run a query and yield its rows one by one, in constant memory."""

    @abstractmethod
    def load(self, table: str, columns: Columns, *, nullable: str = "", is_empty: bool = True) -> None:
        """Insert many rows that are given by columns; zero bytes in the column `nullable` are NULL.

        `is_empty` says that the table had no rows before this transaction. None of these may be there
        already: some databases would undo the whole transaction.
        """


class Database(ABC):
    """The database of one vault, through one connection; its constructor takes an address."""

    address: ClassVar[str]
    """The form of its addresses, for messages and help."""

    keys: ClassVar[str]
    """Where the keys are by default, in words."""

    session: ClassVar[type[Session]]

    begin_reading: ClassVar[str]
    """The statement that begins a transaction which sees one snapshot."""

    backup_hint: ClassVar[str] = ""
    """Which tools of the database make a backup, in words that follow a refusal."""

    location: str
    """Where the database is, without a password, for messages."""

    is_closed: bool = False

    _connection: Any
    _errors: tuple[type[Exception], ...]
    """What the database raises."""

    @abstractmethod
    def __init__(self, url: str, *, create: bool, timeout: float) -> None: ...

    @staticmethod
    @abstractmethod
    def default_keys_path(url: str) -> Path:
        """Where the keys of the vault at an address are if nobody says so."""

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Begin a transaction that sees one snapshot of the vault."""
        with self._transaction(self.begin_reading) as session:
            yield session

    @abstractmethod
    def writing(self) -> AbstractContextManager[Session]:
        """Begin the one write transaction at a time: committed at the end, or rolled back as a whole."""

    @contextmanager
    def _transaction(self, begin: str, *, writes: bool = False) -> Iterator[Session]:
        with self._translating_errors():
            try:
                self._connection.execute(begin)
                yield self.session(self._connection)
                self._commit(writes)
            except BaseException:
                with suppress(*self._errors):  # it is rolled back already, or lost with its connection
                    self._connection.execute("ROLLBACK")
                raise

    def _commit(self, writes: bool) -> None:
        self._connection.execute("COMMIT")

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Turn errors of the database into one sentence."""
        if self.is_closed:
            raise database_error(self.location, "is closed; open it again")
        try:
            yield
        except self._errors as error:
            translated = self._translated(error)
            if translated is None:
                raise
            raise translated from None

    @abstractmethod
    def _translated(self, error: Any) -> ArmnesiaError | None:
        """The error that says what one means, without values of rows; None if it is not the database's."""

    def no_vault(self) -> VaultError:
        """The error about a database without a vault."""
        return VaultError(f"there is no vault at {self.location!r}; make one with: armnesia init")

    @abstractmethod
    def has_vault(self) -> bool:
        """Whether the database contains a vault."""

    def schema_problems(self, session: Session) -> list[str]:
        """Where tables, indexes, triggers and the like are not as armnesia creates them; a sentence each."""
        found, expected = self._schema(session), self._new_schema()
        problems = dict.fromkeys(expected.keys() - found.keys(), "is missing")
        problems |= dict.fromkeys(found.keys() - expected.keys(), "was not created by armnesia")
        for part in expected.keys() & found.keys():
            if expected[part] != found[part]:
                problems[part] = "is not as armnesia created it"
        return [f"schema: {shown(part)} {problem}" for part, problem in sorted(problems.items())]

    @abstractmethod
    def _schema(self, session: Session) -> dict[str, Any]:
        """All parts of the vault's schema, by kind and name, each as the database describes it."""

    @abstractmethod
    def _new_schema(self) -> dict[str, Any]:
        """The same of tables that were just created."""

    @abstractmethod
    def integrity_problems(self, session: Session) -> list[str]:
        """What the database's own check of its files and indexes finds; a sentence each."""

    @abstractmethod
    def compact(self) -> None:
        """Make deleted bytes leave the files, however long it takes; refused if they are kept there."""

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        self._connection.close()

    def back_up(self, path: str) -> None:
        """Copy the vault into a new file.

        Refused where the database has tools of its own for that.
        """
        raise VaultError(f"{self.location!r} is backed up by the tools of its database{self.backup_hint}")

    def discard(self) -> None:
        """Close a database in which no vault was created, and remove the file made for it."""
        self.close()


def database_error(location: str, meaning: str, kind: type[VaultError] = DatabaseError) -> VaultError:
    """Say in one sentence what a database refused."""
    return kind(f"the vault {location!r} {meaning}")


def kept_by(location: str, holder: str) -> VaultError:
    """Say what keeps deleted bytes in the files."""
    return VaultError(
        f"deleted bytes are still in the files of the vault {location!r}: {holder}; run armnesia compact"
        " again later"
    )


def invalid_address(url: str, *accepted: str) -> InvalidInputError:
    """Refuse an address that is not of an accepted form."""
    return InvalidInputError(f"url must be {any_of(accepted)}; got {redacted(url)!r}")
