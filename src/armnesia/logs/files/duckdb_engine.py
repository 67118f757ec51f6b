"""DuckDB behind a few functions: one database in memory for all queries, and errors in one sentence."""

import atexit
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.logs.limits import in_chunks

_SETTINGS = {
    # Reading a file must never reach for the network to fetch an extension.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # By default, what does not fit into memory goes to a folder in the working directory.
    "temp_directory": "",
    # Rows of people must not stay in memory, and a file that has changed must be read again.
    "enable_external_file_cache": "false",
}
_PIECE = 256
"""How many rows become Python values at a time."""
MEMORY_LIMIT = "2GB"
"""How much memory a `ScratchDatabase` uses if nothing else is said."""
_MEMORY = re.compile(r"[0-9]+ ?[MG]B")


def query(sql: str, parameters: dict[str, Any], *, shown: str, format_name: str) -> list[tuple[Any, ...]]:
    """Run one query; `shown` and `format_name` are for messages."""
    with _connected(unreadable(shown, format_name), _shared) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql, parameters).fetchall()
        return rows


def stream(
    sql: str, parameters: dict[str, Any], *, size: int, shown: str, format_name: str, in_order: bool = True
) -> Iterator[list[tuple[Any, ...]]]:
    """Run one query and yield its rows in chunks, in order and in constant memory.

    With `in_order=False`, all processors work on it, and the order is any.
    """
    with _connected(unreadable(shown, format_name), partial(_shared, one_by_one=in_order)) as connection:
        connection.execute(sql, parameters)
        yield from in_chunks(iter(lambda: connection.fetchmany(_PIECE), []), size)


def checked_memory_limit(limit: str) -> str:
    """Refuse what is not a number of megabytes or gigabytes.

    >>> checked_memory_limit("800MB")
    '800MB'
    """
    if not isinstance(limit, str) or not _MEMORY.fullmatch(limit):
        raise InvalidInputError(f"memory_limit must be a size such as 800MB or 4GB; got {limit!r}")
    return limit


class ScratchDatabase:
    """A database in memory for several statements; what does not fit in goes to a private folder.

    The folder is made inside another one, readable by its owner only, and removed at the end.

    >>> with ScratchDatabase.opened(tempfile.gettempdir(), memory_limit="100MB") as database:
    ...     _ = database.run("CREATE TABLE t AS SELECT unnest($n) AS n", {"n": [1, 2]}, failed="no table")
    ...     database.run("SELECT sum(n) FROM t", {}, failed="no sum")
    [(3,)]
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    @contextmanager
    def opened(
        cls, folder: str | os.PathLike[str], *, memory_limit: str, time_zone: str = "UTC"
    ) -> Iterator["ScratchDatabase"]:
        """Open an empty one; `time_zone` is that of times without a zone."""
        with tempfile.TemporaryDirectory(prefix=".armnesia-", dir=folder) as spilled:
            settings = {**_SETTINGS, "temp_directory": spilled, "memory_limit": memory_limit}
            with _connected("the database in memory cannot be used", partial(_new, settings)) as connection:
                connection.execute("SET preserve_insertion_order = false")  # order would cost memory
                connection.execute(f"SET TimeZone = '{time_zone}'")
                yield cls(connection)

    def run(self, sql: str, parameters: dict[str, Any], *, failed: str) -> list[tuple[Any, ...]]:
        """Run a statement; `failed` says what cannot be done if it fails, such as `unreadable` writes it."""
        remedy = "allow more memory, or split the files"
        # In a thread: a statement that runs in the main thread keeps Ctrl-C waiting until it has ended.
        with _errors_in_words(failed, remedy), ThreadPoolExecutor(max_workers=1) as thread:
            running = thread.submit(self._fetch, sql, parameters)
            try:
                return running.result()
            except BaseException:
                self._connection.interrupt()
                raise

    def _fetch(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql, parameters).fetchall()
        return rows


@contextmanager
def _connected(failed: str, connect: Callable[[], Any]) -> Iterator[Any]:
    remedy = "split the file, or write it with smaller row groups and shorter texts"
    with _errors_in_words(failed, remedy), connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # it would be printed into the output
        yield connection


def _shared(*, one_by_one: bool = False) -> Any:
    """A connection to the database of this process: a new database would take as long as twenty queries."""
    return _database_of(os.getpid(), one_by_one).cursor()


@lru_cache
def _database_of(process: int, one_by_one: bool) -> Any:
    """An empty database in memory; a forked process lacks the threads of its parent's, so it has its own."""
    database = _new(_SETTINGS)
    if one_by_one:
        # Each thread reads ahead; the consumer is slower than one thread anyway.
        database.execute("SET threads = 1")
        # Otherwise the columns of a whole row group are in memory, compressed.
        database.execute("SET disable_parquet_prefetching = true")
    atexit.register(_close_database_of, process, database)
    return database


def _close_database_of(process: int, database: Any) -> None:
    """End the database's threads while there is an interpreter.

    A thread that lets go of a file of Python's needs the interpreter, and where that is ending already, the
    process is aborted. A forked process has no threads to end.
    """
    if process == os.getpid():
        database.close()


def register_filesystem(make: Callable[[], Any]) -> None:
    """Let the databases of this process read through a file system of fsspec, which knows its protocol."""
    for one_by_one in (False, True):
        _register(os.getpid(), one_by_one, make)


@lru_cache
def _register(process: int, one_by_one: bool, make: Callable[[], Any]) -> None:
    _database_of(process, one_by_one).register_filesystem(make())


def _new(settings: dict[str, str]) -> Any:
    import duckdb  # noqa: PLC0415 (an extra)

    return duckdb.connect(config=settings)


def unreadable(shown: str, format_name: str) -> str:
    """Begin a message about a source.

    >>> unreadable("clicks.csv", "CSV")
    "source 'clicks.csv' cannot be read as CSV"
    """
    return f"source {shown!r} cannot be read as {format_name}"


@contextmanager
def _errors_in_words(failed: str, remedy: str) -> Iterator[None]:
    try:
        import duckdb  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Reading CSV and Parquet files", "engines") from error
    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError):
        raise InvalidLogError(f"{failed}: there is not enough memory; {remedy}") from None
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupt" in str(error).lower():  # by Ctrl-C: DuckDB replaces Python's exception
            raise KeyboardInterrupt from None
        raise
    except duckdb.Error as error:
        # Not chained: DuckDB's message quotes the broken line, and a line of a log is personal data.
        raise InvalidLogError(f"{failed}: {_reason(str(error))}") from None


def _reason(message: str) -> str:
    """Reduce DuckDB's message to what is wrong and where, without the content of the line.

    >>> _reason("CSV Error on Line: 3\\nOriginal Line: x\\nExpected Number of Columns: 2 Found: 1")
    'line 3 has 1 columns where the header has 2'
    >>> _reason('Invalid Input Error: Malformed JSON at byte 0 of input: unexpected character.  Input: "ann"')
    'Malformed JSON at byte 0 of input: unexpected character.'
    >>> _reason('Invalid Input Error: Invalid string encoding in "a.parquet": value "ann" is not UTF8!')
    'Invalid string encoding in "a.parquet": a column of text is not UTF-8; write the file again'
    """
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if line is None:
        # After these words, a message quotes the value.
        first_line = re.split('  Input: |: value "', message.splitlines()[0])[0]
        reason = first_line.partition("Error: ")[2] or "DuckDB cannot read it"
        remedy = ": a column of text is not UTF-8; write the file again"
        return reason + remedy if reason.startswith("Invalid string encoding") else reason
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if columns:
        return f"line {line[1]} has {columns[2]} columns where the header has {columns[1]}"
    if "not utf-8" in message:
        return f"line {line[1]} is not UTF-8 text"
    if "unterminated quote" in message:
        return f"line {line[1]} opens a quote that is never closed"
    return f"line {line[1]} does not follow the CSV standard"
