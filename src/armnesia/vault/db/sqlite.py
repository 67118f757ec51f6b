"""SQLite: one file, a write-ahead log, and every commit on disk before it is acknowledged.

Deleted bytes are overwritten in the file (`secure_delete`), and a truncating checkpoint empties the log.
"""

import os
import sqlite3
import stat
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from armnesia.core.errors import (
    ArmnesiaError,
    DamagedDatabaseError,
    DatabaseError,
    InvalidInputError,
    VaultError,
)
from armnesia.core.files import may_write, refuse_null_characters
from armnesia.core.urls import may_hold_password
from armnesia.vault.db.database import (
    DAMAGED,
    FULL,
    IN_USE,
    Database,
    Refusal,
    Row,
    Session,
    database_error,
    invalid_address,
    kept_by,
)
from armnesia.vault.db.digest_arrays import NO_DIGEST, Columns
from armnesia.vault.db.schema import OWNER_INDEX, SHORT
from armnesia.vault.keys import private_files

_SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA cache_size = -65536",  # KiB
)
_OLDEST = (3, 37, 0)
_BRIEFLY = 0.1
"""Seconds for which a commit waits for others, so that its log can be emptied at once."""
_MOST_PROBLEMS = 20


class SqliteSession(Session):
    """A transaction on SQLite."""

    mark = "?"
    types: ClassVar = {int: "INTEGER", SHORT: "INTEGER", str: "TEXT", bytes: "BLOB"}
    reindex = "REINDEX"
    # Not the index of identities, which a first load fills in their order, many at a time.
    drop_record_indexes = ("DROP INDEX record_owner",)
    create_record_indexes = (OWNER_INDEX,)

    def stream(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Run a query and yield its rows one by one."""
        # `yield from` would close the cursor of a stream that is given up, even after its database.
        for row in self.run(sql, parameters):  # noqa: UP028
            yield row

    def load(self, table: str, columns: Columns, *, nullable: str = "", is_empty: bool = True) -> None:
        """Hand over one blob per column, which one statement cuts into values.

        Into a table that has rows, insert one by one: a statement of many rows keeps a copy of every page
        that it changes, and random digests change nearly all pages of an index.
        """
        if not is_empty:
            lists = {name: values.tolist() for name, values in columns.items()}
            if nullable:
                lists[nullable] = [None if value == NO_DIGEST else value for value in lists[nullable]]
            sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            self._connection.executemany(sql, zip(*lists.values(), strict=True))
        elif length := len(next(iter(columns.values()))):
            cuts, blobs = [], []
            for place, (name, values) in enumerate(columns.items(), 2):
                is_number = values.dtype.kind == "i"
                cells = values.astype(bytes) if is_number else values
                cut = f"substr(?{place}, key * {cells.itemsize} + 1, {cells.itemsize})"
                cut = f"CAST({cut} AS INTEGER)" if is_number else cut
                cuts.append(f"nullif({cut}, zeroblob({cells.itemsize}))" if name == nullable else cut)
                blobs.append(cells.tobytes())
            # `json_each` counts, as `generate_series` would, which may be missing. An error undoes the whole
            # transaction in any case.
            self._connection.execute(
                f"INSERT OR ROLLBACK INTO {table} ({', '.join(columns)})"
                f" SELECT {', '.join(cuts)} FROM json_each(?1)",
                (f"[{'0,' * (length - 1)}0]", *blobs),
            )


class SqliteDatabase(Database):
    """A vault in one SQLite file, readable by its owner only."""

    address = "sqlite:///FILE"
    keys = "beside the file"
    session = SqliteSession
    begin_reading = "BEGIN"
    _errors = (sqlite3.Error, OverflowError, UnicodeDecodeError)

    def __init__(self, url: str, *, create: bool, timeout: float) -> None:
        path = url.removeprefix("sqlite:///")
        refuse_null_characters(path)
        is_there = os.path.isfile(path)
        if path in ("", url) or (not is_there and may_hold_password(path)):
            raise invalid_address(url, self.address)
        self.location = path
        self._timeout = timeout
        # Absolute, because the process may change its folder. SQLite puts the write-ahead log and its index
        # beside the file itself, also where a link leads to it.
        itself = os.path.realpath(path)
        self._names = (os.path.abspath(path), f"{itself}-wal", f"{itself}-shm")
        if sqlite3.sqlite_version_info < _OLDEST:
            raise VaultError(f"SQLite 3.37 or newer is needed; this Python has {sqlite3.sqlite_version}")
        if create:
            _create_private(path)
        elif not is_there:
            raise self.no_vault()
        elif not may_write(path):
            # SQLite would open it read-only and leave files beside it that keep it read-only.
            raise VaultError(f"the vault {path!r} cannot be read or written: Permission denied")
        with ExitStack() as undo:
            if create:
                undo.callback(self._remove)
            with self._translating_errors():
                uri = f"file:{urllib.parse.quote(self._names[0])}?mode=rw"
                self._connection = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
                undo.callback(self._connection.close)
                is_vault = self.has_vault()
                if is_vault:
                    self._check_private()
                if is_vault or create:  # a file that is no vault is left as it is
                    self._connection.execute("PRAGMA journal_mode = WAL")
                for setting in _SETTINGS:
                    self._connection.execute(setting)
            undo.pop_all()

    @staticmethod
    def default_keys_path(url: str) -> Path:
        """Beside the file."""
        return Path(f"{url.removeprefix('sqlite:///')}.keys")

    def has_vault(self) -> bool:
        """Whether the file contains a vault."""
        with self._translating_errors():
            tables = self._connection.execute("SELECT name FROM sqlite_master WHERE name = 'vault'")
            return tables.fetchone() is not None

    def no_vault(self) -> VaultError:
        """There is none; if its keys are there, it was lost, or its file was emptied."""
        keys = self.default_keys_path(self.location)
        if not keys.is_file():
            return super().no_vault()
        kind = DamagedDatabaseError if os.path.isfile(self.location) else VaultError
        return kind(
            f"there is no vault at {self.location!r}, but its keys are in {str(keys)!r}: copy a backup back"
            " and run armnesia restore"
        )

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Take the write lock at the start, so that no transaction has to be abandoned later."""
        with self._transaction("BEGIN IMMEDIATE", writes=True) as session:
            yield session
        with suppress(sqlite3.Error):  # the change is committed; the next commit tries again
            self._empty_log(_BRIEFLY)

    def _schema(self, session: Session) -> dict[str, Any]:
        """The statement that created each table, index, trigger and view."""
        return dict(session.query("SELECT type || ' ' || name, sql FROM main.sqlite_master"))

    def _new_schema(self) -> dict[str, Any]:
        """The same of a database in memory."""
        with closing(sqlite3.connect(":memory:")) as connection:
            session = SqliteSession(connection)
            session.create_tables()
            return self._schema(session)

    def integrity_problems(self, session: Session) -> list[str]:
        """Run SQLite's own check: pages, rows, and indexes against their tables."""
        session.query("PRAGMA shrink_memory")  # what is checked is on the disk
        found = [str(text) for (text,) in session.query(f"PRAGMA integrity_check({_MOST_PROBLEMS})")]
        lines = [line for text in found if text != "ok" for line in text.splitlines()]
        return [f"database: {line}" for line in lines if not line.startswith("***")]  # a heading

    def _empty_log(self, patience: float) -> bool:
        """Write the log into the file and truncate it; whether nobody else needed it for so many seconds."""
        self._connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
        try:
            ((busy, _, _),) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {int(self._timeout * 1000)}")
        return not busy

    def compact(self) -> None:
        """Rewrite the whole file, and empty the log."""
        with self._translating_errors():
            self._connection.execute("VACUUM")
            if not self._empty_log(self._timeout):
                raise kept_by(self.location, "another process was using the vault")

    def back_up(self, path: str) -> None:
        """Copy one snapshot of the vault into a new private file, which appears only when it is complete."""
        with private_files.atomic_write(path) as temporary:
            try:
                with closing(sqlite3.connect(temporary)) as copy:
                    copy.execute("PRAGMA journal_mode = OFF")  # a copy that fails is discarded
                    self._connection.backup(copy)
            except sqlite3.Error as error:
                raise VaultError(
                    f"{path} cannot be written: {error} (is there room?); the vault is as it was"
                ) from None

    def discard(self) -> None:
        """Close the connection and remove the new file."""
        self.close()
        self._remove()

    def _check_private(self) -> None:
        """Refuse a vault that others may read or change, as such keys are refused."""
        for name in filter(os.path.exists, self._names):
            mode = stat.S_IMODE(os.stat(name).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise VaultError(
                    f"{name} is accessible to other users (mode {mode:04o}); restrict it with:"
                    f" chmod 600 {name}"
                )

    def _remove(self) -> None:
        """Remove the vault's file and what SQLite has put beside it."""
        for name in self._names:
            Path(name).unlink(missing_ok=True)

    def _translated(self, error: Exception) -> ArmnesiaError | None:
        """SQLite names tables and columns, not values; Python quotes what it cannot decode."""
        text = str(error)
        if isinstance(error, sqlite3.ProgrammingError):
            return None
        if isinstance(error, OverflowError):
            said = "a number of an entry, or how many, must fit into 64 bits"
            return InvalidInputError(said) if "SQLite INTEGER" in text else None
        if isinstance(error, UnicodeDecodeError):
            if not error.object.startswith(b"malformed database schema"):
                return None
            text = "malformed database schema"
        kind, meaning = _REFUSALS.get(_primary_code(error), _UNUSABLE)
        if text.startswith("Could not decode"):
            text = f"column {text.split(chr(39))[1]!r} holds text that is not UTF-8"
        return database_error(self.location, meaning.format(text), kind)


def _create_private(path: str) -> None:
    """Create an empty file of mode 0600; refuse an existing one."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise VaultError(f"there is already a file {path!r}; choose another name") from None
    except OSError as error:
        raise VaultError(f"the file {path!r} cannot be made: {error.strerror}") from None


_UNUSABLE: Refusal = (
    DatabaseError,
    "cannot be read or written: {} (is there room, and do the rights of file and folder allow it?); nothing"
    " was changed",
)
_REFUSALS: dict[int, Refusal] = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), IN_USE),
    **dict.fromkeys((sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT), DAMAGED),
    # A table is missing, or not as armnesia created it.
    **dict.fromkeys((sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT), DAMAGED),
    sqlite3.SQLITE_FULL: FULL,
}
"""What SQLite's primary codes mean."""


def _primary_code(error: Exception) -> int:
    """Python's own errors, about text that it cannot decode, have no code: the file is damaged."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF
