"""SQLite: one file, a write-ahead log, and every commit on disk before it is acknowledged.

How deleted bytes leave the files: `sqlite_erasure.py`.
"""

import os
import sqlite3
import stat
import time
import urllib.parse
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from armnesia.core.errors import DamagedDatabaseError, InvalidInputError, VaultError
from armnesia.core.files import refuse_null_characters
from armnesia.core.urls import may_hold_password
from armnesia.vault.keys import private_files
from armnesia.vault.storage.database import (
    EVERY_BYTE,
    IN_USE,
    CompactionCost,
    Database,
    Row,
    SearchOutcome,
    Session,
    Snapshot,
    Statement,
    database_error,
    invalid_address,
)
from armnesia.vault.storage.schema import Table
from armnesia.vault.storage.sqlite_copy import FORMAT_VERSIONS, copy_pages, has_room, private_copy
from armnesia.vault.storage.sqlite_erasure import CLEAN, UNKNOWN, SqliteErasure
from armnesia.vault.storage.sqlite_read_back import are_stored
from armnesia.vault.storage.sqlite_rewriting import rewriting_rate, run_with_temporary_files
from armnesia.vault.storage.sqlite_schema import SCHEMA_OBJECTS, schema_problems
from armnesia.vault.storage.sqlite_search import are_only_listed, find_in_file
from armnesia.vault.storage.sqlite_session import SqliteSession, xor_of_digests
from armnesia.vault.storage.sqlite_unused_space import SharedFile
from armnesia.vault.storage.tables import read_head
from armnesia.vault.storage.writer_queue import WriterQueue

_SMALL_CACHE, _CACHE = 4096, 65_536  # KiB
_ON_DISK_AND_OVERWRITTEN = ("PRAGMA synchronous = FULL", "PRAGMA secure_delete = ON")
_SETTINGS = (
    *_ON_DISK_AND_OVERWRITTEN,
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",  # what a statement sorts must not reach a temporary file
    f"PRAGMA cache_size = -{_CACHE}",
)
_REWRITING = (
    *_ON_DISK_AND_OVERWRITTEN,
    "PRAGMA temp_store = FILE",  # in memory it would hold all rows at once
    f"PRAGMA cache_size = -{_SMALL_CACHE}",
    "VACUUM",
)
_OLDEST = (3, 37, 0)
_SMALL = 1 << 20
"""Bytes: reading a smaller vault takes no longer than copying it."""
_PRIMARY_CODE = 0xFF
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_LONGEST_SEARCH = 5.0
"""Seconds for which other writers may be held up by reading the whole file."""
_PAUSE = 0.05
_MALFORMED = b"malformed database schema"
_USED = "another process was using the vault"
_WRITTEN = "others have written to the vault while it was read, and reading it again would hold them up"
_IN_PLACE = "the vault was read in place, which held back the erasure of people forgotten meanwhile"
_MOST_PROBLEMS = 20
_READ_SCHEMA_AGAIN = "PRAGMA writable_schema = RESET"
_WITH_LOG = bytes([2, 2])
"""The format versions of a file with a write-ahead log, for writing and for reading it."""

ADDRESS = "sqlite:///FILE"


def connect(url: str, *, create: bool, timeout: float) -> "SqliteDatabase":
    """Connect to the address `sqlite:///FILE`."""
    path = url.removeprefix("sqlite:///")
    if path == url or not path:
        raise invalid_address(url, ADDRESS)
    if not os.path.isfile(path):
        if may_hold_password(path):
            raise invalid_address(url, ADDRESS)
        if not create:
            raise _no_vault(path)
    return SqliteDatabase(path, create=create, timeout=timeout)


def default_keys_path(url: str) -> Path:
    """Beside the file."""
    return Path(f"{url.removeprefix('sqlite:///')}.keys")


def _no_vault(path: str) -> VaultError:
    """There is none; if its keys are there, it was lost, or its file was emptied."""
    keys = default_keys_path(path)
    if not keys.is_file():
        return VaultError(f"there is no vault at {path!r}; make one with: armnesia init")
    kind = DamagedDatabaseError if os.path.isfile(path) else VaultError
    return kind(
        f"there is no vault at {path!r}, but its keys are in {str(keys)!r}: copy a backup back and run"
        " armnesia restore"
    )


class SqliteDatabase(Database):
    """A vault in one SQLite file, readable by its owner only."""

    erasure_steps: ClassVar[str] = "armnesia finish"
    erasure_covers: ClassVar[str] = "the files of the SQLite vault, its write-ahead log included"
    search_covers: ClassVar[str] = EVERY_BYTE

    def __init__(self, path: str, *, create: bool, timeout: float) -> None:
        refuse_null_characters(path)
        self.location = path
        self._timeout = timeout
        self._checked_schema: object = None
        self._queue = WriterQueue(f"{os.path.realpath(path)}-queue")
        # Absolute, because the process may change its folder. SQLite puts the write-ahead log and its index
        # beside the file itself, also where a link leads to it.
        itself = os.path.realpath(path)
        self._path = os.path.abspath(path)
        self._names = (self._path, f"{itself}-wal", f"{itself}-shm")
        if sqlite3.sqlite_version_info < _OLDEST:
            raise VaultError(f"SQLite 3.37 or newer is needed; this Python has {sqlite3.sqlite_version}")
        if create:
            _create_private(path)
        elif not os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            # SQLite would open it read-only and leave files beside it that keep it read-only.
            raise VaultError(f"the vault {path!r} cannot be opened for writing: Permission denied")
        else:
            self._check_one_name()  # before SQLite opens it, and copies a log into it
        with ExitStack() as undo:
            if create:
                undo.callback(self._remove)
            with self._translating_errors():
                self._uri = f"file:{urllib.parse.quote(self._path)}?mode=rw"
                self._connection = sqlite3.connect(self._uri, uri=True, timeout=timeout, isolation_level=None)
                undo.callback(self._connection.close)
                self._connection.create_function("xor_of_digests", 2, xor_of_digests, deterministic=True)
                self._set_up(create)
            undo.pop_all()

    def _set_up(self, create: bool) -> None:
        self._seen = self._stamp()
        """When the file was last written, as far as the pages in the cache are concerned."""
        is_vault = self.has_vault()
        if is_vault:
            self._check_private()
        self._is_own = create or is_vault
        if self._is_own:  # a file that is no vault is left as it is
            self._connection.execute("PRAGMA journal_mode = WAL")
        if create:
            self._connection.execute(f"PRAGMA user_version = {CLEAN}")
        for setting in _SETTINGS:
            self._connection.execute(setting)
        # Reading creates the write-ahead log, which exists from now on.
        self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        self._files = self._present_files()
        self._warned_of = ""
        self._file = SharedFile(self._path, self._files[0] or (0, 0))
        self._erasure = SqliteErasure(self._connection, self._file, self._names[1])

    def has_vault(self) -> bool:
        """Whether the file contains a vault."""
        with self._translating_errors():
            tables = self._connection.execute("SELECT name FROM sqlite_master WHERE name = 'vault'")
            return tables.fetchone() is not None

    def no_vault(self) -> VaultError:
        """Refuse to go on without one."""
        return _no_vault(self.location)

    @contextmanager
    def reading(self) -> Iterator[SqliteSession]:
        """A snapshot: the write-ahead log keeps it as it was when first read."""
        with self._transaction("BEGIN") as session:
            yield session

    @contextmanager
    def snapshot(self, *, in_place: bool = False) -> Iterator[Snapshot]:
        """Read from a private copy: a reader of the vault itself would keep deleted bytes in its log."""
        with self._translating_errors(), ExitStack() as lent:
            # A whole check believes no earlier one; and a copy counts the changes of its schema anew.
            self._checked_schema = None
            lent.callback(setattr, self, "_checked_schema", None)
            copy, reason = (None, "as asked") if in_place else self._copied(lent)
            if copy is None:
                remark = f"{_IN_PLACE}: {reason}" if reason else None
                yield Snapshot(lent.enter_context(self.reading()), remark)
            else:
                yield Snapshot(SqliteSession(copy))
                self._check_same_files()

    def _copied(self, lent: ExitStack) -> tuple[sqlite3.Connection | None, str]:
        """A connection that reads a private copy; or None, and why there is none, empty for a small vault."""
        self._check_same_files()
        size, path = self._size(), os.path.realpath(self._path)
        if size < _SMALL:
            return None, ""
        if os.name != "posix":
            return None, "on this system an open file keeps its name"
        if not has_room(path, size):
            return None, f"there is no room for a copy of {size / 1e6:.0f} MB beside it"
        try:
            return lent.enter_context(private_copy(self._connection, path, self._timeout)), ""
        except (sqlite3.Error, OSError) as error:
            return None, f"a copy could not be made beside it ({error})"

    @contextmanager
    def writing(self) -> Iterator[SqliteSession]:
        """Take the write lock at the start, so that no transaction has to be abandoned later.

        The log is emptied while it is still this writer's turn: then no other writer is in the way.
        """
        with self._queue.turn(self._timeout):
            with self._transaction("BEGIN IMMEDIATE") as session:
                before = self._count_changes()
                if self._is_own:
                    self._erasure.note_leftovers()
                    self._refuse_used_pages()
                yield session
                if self._is_own and self._count_changes() != before:
                    self._erasure.set_own_mark()
            if self._is_own:
                self._warn_of(self._empty_log())

    def _refuse_used_pages(self) -> None:
        try:
            may_overwrite = self._erasure.may_overwrite_pages()
        except OSError as error:
            raise database_error(self.location, f"cannot be read: {error}; nothing was changed") from None
        if may_overwrite:
            raise database_error(
                self.location,
                "is damaged, or was changed by another program: its list of free pages names some that are in"
                " use, or are not overwritten; nothing was changed: run armnesia verify and, if it finds"
                " nothing, armnesia compact; otherwise restore a backup, or run armnesia copy, which checks"
                " every row that it writes to the new place",
            )

    def _count_changes(self) -> tuple[int, Row]:
        """Two numbers that a transaction changes if it changes rows or the schema."""
        return self._connection.total_changes, self._connection.execute("PRAGMA schema_version").fetchone()

    @contextmanager
    def bulk_loading(self) -> Iterator[None]:
        """Build the index of owners in a file (`create_record_indexes`); all else is faster in memory."""
        try:
            yield
        finally:
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA shrink_memory")

    @contextmanager
    def sorting_in_files(self) -> Iterator[None]:
        """Sort in unnamed files; indexes that are built have nothing but keyed digests there."""
        with self.bulk_loading():
            with self._translating_errors():
                self._connection.execute("PRAGMA temp_store = FILE")
            yield

    def schema_problems(self, session: Session, tables: tuple[Table, ...]) -> list[str]:
        """Compare the statements that SQLite keeps with those of armnesia."""
        # By content as well: whoever may write the file may also set the counter of changes back.
        read = (session.query("PRAGMA schema_version"), session.query(SCHEMA_OBJECTS), tables)
        if self._checked_schema == read:
            return []
        # The connection may still use an earlier schema, which was counted alike.
        session.query(_READ_SCHEMA_AGAIN)
        problems = list(schema_problems(read[1], tables))
        self._checked_schema = None if problems else read
        return problems

    def confirm_stored(self, session: Session, statements: Iterable[Statement]) -> None:
        """Read the rows back: a page that they went to may be one of something else."""
        if not are_stored(session, statements):
            raise database_error(
                self.location,
                "is damaged: what was written is not found again; nothing was changed: run armnesia verify,"
                " and restore a backup if it finds something",
            )

    def integrity_problems(self, session: Session) -> list[str]:
        """Run SQLite's own check: pages, rows, and indexes against their tables."""
        session.query(_READ_SCHEMA_AGAIN)
        found = [str(text) for (text,) in session.query(f"PRAGMA integrity_check({_MOST_PROBLEMS})")]
        lines = [line for text in found if text != "ok" for line in text.splitlines()]
        return [f"database: {line}" for line in lines if not line.startswith("***")]  # a heading

    def header_problems(self) -> list[str]:
        """Look at the two bytes by which SQLite takes a file for read-only, as its own check does not."""
        ((mode,),) = self._connection.execute("PRAGMA journal_mode").fetchall()
        try:
            found = self._file.read_at(FORMAT_VERSIONS, 2)
        except OSError as error:
            return [f"database: the header of the file cannot be read: {error}"]
        if mode != "wal" or found == _WITH_LOG:
            return []
        return [
            f"database: the format versions in the header of the file are {tuple(found)}, and must be"
            f" {tuple(_WITH_LOG)}: restore a backup"
        ]

    def erase(self, *, wait: bool = False) -> bool:
        """Empty the log; by default do not wait for a reader that still needs the old pages."""
        end = time.monotonic() + self._timeout * wait
        with self._translating_errors():
            while True:
                self._check_same_files()
                try:
                    is_done = self._erasure.is_done()
                except (sqlite3.Error, OSError) as failure:  # what came before is committed
                    self.erasure_obstacle = f"the disk or the file has an error ({failure})"
                    self._warn_of(failure)
                    return False
                if is_done:
                    self.erasure_obstacle = ""
                    return True
                with self._queue.turn(0) as is_own_turn:
                    error = self._empty_log() if is_own_turn else None
                if not is_own_turn:
                    self.erasure_obstacle = _USED
                self._warn_of(error)
                if self.erasure_obstacle != _USED or time.monotonic() >= end:
                    return not self.erasure_obstacle
                time.sleep(_PAUSE)  # SQLite's own way to wait would keep writers waiting as well

    def search_for(self, digests: Collection[bytes], listed: Mapping[bytes, str]) -> SearchOutcome:
        """Read the whole file; then compare what was found with the suppression list, while nobody writes.

        If somebody has committed meanwhile, pages may have moved, and it is read once more while writers
        wait; but not if that takes long.
        """
        with self._translating_errors():
            version = self._data_version()  # before the log is emptied, by whose pages the file changes
            if not self.erase(wait=True):
                return SearchOutcome(False, self.erasure_obstacle)
            begin = time.monotonic()
            offsets = find_in_file(self._file, digests)
            takes_long = time.monotonic() - begin > _LONGEST_SEARCH
            with self._queue.turn(self._timeout):
                if not self._erasure.is_done():
                    self._warn_of(self._empty_log())
                with self._transaction("BEGIN IMMEDIATE") as session:
                    if not self._erasure.is_done():
                        return SearchOutcome(False, self.erasure_obstacle or _USED)
                    if self._data_version() != version:
                        if takes_long:
                            return SearchOutcome(False, _WRITTEN)
                        offsets = find_in_file(self._file, digests)
                    return SearchOutcome(not are_only_listed(session, self._file, digests, listed, offsets))

    def _data_version(self) -> int:
        """A number that changes if another connection commits."""
        ((number,),) = self._connection.execute("PRAGMA data_version").fetchall()
        return int(number)

    def distrust_unused_space(self) -> None:
        """Look at all pages after this transaction: its mark says that only this connection knows more."""
        self._erasure.leftovers = None

    def _empty_log(self) -> Exception | None:
        """Overwrite the copies of cells in unused space, and empty the log, in this connection's turn.

        Sets the obstacle, if there is one; returns an error of the disk or the file.
        """
        is_own = self._stamp() == self._seen  # whatever is written to the file from here on
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            self.erasure_obstacle = "" if self._erasure.leave_nothing() else _USED
        except (sqlite3.Error, OSError) as error:  # the changes themselves are committed
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _BUSY:
                self.erasure_obstacle = _USED
                return None
            self.erasure_obstacle = f"the disk or the file has an error ({error})"
            return error
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {int(self._timeout * 1000)}")
            if is_own:
                self._seen = self._stamp()
        return None

    def _warn_of(self, error: Exception | None) -> None:
        """That it is the disk, or the file, is worth a warning; one for a transaction and its `erase`."""
        text = "" if error is None else str(error)
        if text in ("", self._warned_of):
            self._warned_of = ""
            return
        self._warned_of = text
        warnings.warn(
            f"deleted bytes could not be removed from the files of the vault {self.location!r}: {error}; all"
            " changes are committed; check the disk, then run armnesia finish",
            stacklevel=3,
        )

    def compact(self) -> bool:
        """Rewrite the whole file, then run the checkpoint."""
        with self._translating_errors():
            with self._queue.turn(self._timeout), self._transaction("BEGIN IMMEDIATE"):
                # Rewriting changes all pages, but not the mark.
                self._connection.execute(f"PRAGMA user_version = {UNKNOWN}")
            if not run_with_temporary_files(self._path, self._uri, _REWRITING, self._timeout):
                self._connection.execute("VACUUM")
        return self.erase(wait=True)

    def compaction_cost(self) -> CompactionCost:
        """Readers see the old pages while the file is rewritten; writers wait."""
        with self._translating_errors():
            size = self._size()
        try:
            rate = rewriting_rate(os.path.dirname(os.path.realpath(self._path)), _REWRITING)
        except (OSError, sqlite3.Error, VaultError):
            return CompactionCost(size, None, "writers")
        return CompactionCost(size, size / rate, "writers")

    def _size(self) -> int:
        """The size of the database in bytes, its write-ahead log included."""
        ((pages,),) = self._connection.execute("PRAGMA page_count").fetchall()
        ((page_size,),) = self._connection.execute("PRAGMA page_size").fetchall()
        return int(pages * page_size)

    def back_up(self, path: str) -> Row:
        """Copy one snapshot of the vault into a new private file, which appears only when it is complete."""
        with private_files.atomic_write(path) as temporary:
            try:
                self._check_same_files()
                with closing(sqlite3.connect(temporary)) as copy:
                    copy.execute("PRAGMA journal_mode = OFF")  # a copy that fails is discarded
                    copy_pages(self._connection, copy, self._timeout)
                    copy.execute(f"PRAGMA user_version = {UNKNOWN}")
                self._check_same_files()
                uri = f"file:{urllib.parse.quote(str(temporary))}?immutable=1"  # no log is made beside it
                with closing(sqlite3.connect(uri, uri=True)) as written:
                    return read_head(SqliteSession(written))
            except sqlite3.Error as error:
                raise VaultError(
                    f"{path} cannot be written: {error} (is there room?); the vault is as it was"
                ) from None

    def close(self) -> None:
        """Close the connection."""
        if self._present_files() != self._files:
            # On close SQLite would write its log into the file at this path; interrupted, it does not.
            with suppress(sqlite3.ProgrammingError):  # it is closed already
                self._connection.interrupt()
        elif self._is_own:
            # On close SQLite empties the log; if its pages are not looked at now, all pages are later.
            with suppress(sqlite3.Error, OSError):  # it is closed already, or is no database any more
                if not self._erasure.is_done():
                    with self._queue.turn(0) as is_own_turn:
                        if is_own_turn:
                            self._empty_log()
        self.is_closed = True
        self._queue.close()
        self._connection.close()
        self._file.close()

    def discard(self) -> None:
        """Close the connection and remove the new file."""
        self.close()
        self._remove()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SqliteSession]:
        with self._translating_errors():
            self._check_same_files()
            self._check_one_name()
            self._connection.execute(begin)
            session = SqliteSession(self._connection)
            try:
                yield session
                self._check_same_files()
                self._check_one_name()
                self._connection.execute("COMMIT")
                self._check_same_files()  # do not acknowledge a commit to a file that lost its name
            except BaseException:
                session.end_streams()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _check_same_files(self) -> None:
        """Refuse to continue if the vault's file was replaced or removed.

        If another process has written to it, nothing is believed of the pages in the cache: SQLite does not
        notice that an older copy was written over the file, whose log stayed.
        """
        if self._present_files() != self._files:
            raise database_error(
                self.location, "was replaced by another file while it was open; open it again"
            )
        stamp = self._stamp()
        if stamp != self._seen:
            self._connection.execute("PRAGMA shrink_memory")
            self._seen = stamp

    def _stamp(self) -> tuple[int, int, int] | None:
        """Changes whenever the file is written to."""
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size

    def _check_one_name(self) -> None:
        """Refuse a file with several hard links, of which each has a log of its own beside it."""
        try:
            names = os.stat(self._path).st_nlink
        except FileNotFoundError:
            return  # it is not the same file
        if names > 1:
            raise database_error(
                self.location,
                f"has {names} names (hard links), and what is written under one is not seen under the others:"
                " keep one name and remove the others, or copy the file instead",
            )

    def _present_files(self) -> list[tuple[int, int] | None]:
        """The identity of each of the vault's files, without opening them.

        Closing a file would release all locks that this process has on it, SQLite's own among them.
        """
        found: list[tuple[int, int] | None] = []
        for name in self._names:
            try:
                status = os.stat(name)
                found.append((status.st_dev, status.st_ino))
            except OSError:
                found.append(None)
        return found

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
        for name in (*self._names, self._queue.path):
            Path(name).unlink(missing_ok=True)

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into one sentence; they name tables and columns, not values."""
        self.refuse_closed()
        try:
            yield
        except sqlite3.Error as error:
            raise database_error(self.location, _meaning(error)) from None
        except OverflowError as error:
            if "SQLite INTEGER" not in str(error):
                raise
            raise InvalidInputError("a number of an entry, or how many, must fit into 64 bits") from None
        except UnicodeDecodeError as error:  # Python could not read what SQLite says, which quotes the file
            if not error.object.startswith(_MALFORMED):
                raise
            text = error.object.decode(errors="backslashreplace")
            raise database_error(self.location, _meaning(sqlite3.DatabaseError(text))) from None


def _create_private(path: str) -> None:
    """Create an empty file of mode 0600; refuse an existing one."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise VaultError(f"there is already a file {path!r}; choose another name") from None
    except OSError as error:
        raise VaultError(f"the file {path!r} cannot be made: {error.strerror}") from None


_MEANINGS = {
    "locked": IN_USE,
    "busy": IN_USE,
    "not a database": "is not a vault, or is damaged: {}; check the address, or restore a backup",
    "malformed": "is not a vault, or is damaged: {}; run armnesia rebuild, which makes its indexes again, and"
    " restore a backup if that is refused",
    "no such table": "is damaged: {}; restore a backup",
    "no such column": "is damaged: {}; restore a backup",
    "same text encoding": "is damaged: {}; restore a backup",
    "unsupported file format": "is not a vault, or is damaged: {}; restore a backup",
    "UNIQUE constraint failed": "is damaged: rows are in it twice ({}), which armnesia cannot repair: restore"
    " a backup",
    "full": "cannot grow: the disk is full; nothing was changed",
    "disk I/O error": "cannot be read or written: {} (is there room?); nothing was changed",
    "readonly": "cannot be opened for writing: {}; check the rights of its file and folder, then run armnesia"
    " verify",
    "unable to open": "cannot be opened for writing: {}; check the rights of its file and folder",
}


def _meaning(error: sqlite3.Error) -> str:
    text = str(error)
    if text.startswith("Could not decode"):  # it goes on to quote what it could not decode
        return f"is damaged: column {text.split(chr(39))[1]!r} holds text that is not UTF-8: restore a backup"
    known = (meaning for words, meaning in _MEANINGS.items() if words in text)
    return next(known, "cannot be used: {}").format(text)
