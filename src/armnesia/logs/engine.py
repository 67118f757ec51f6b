"""DuckDB behind two functions: one runs a statement, one streams its rows; errors are one sentence.

All readings of a process share one database in memory.
"""

import atexit
import importlib
import json
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.core.urls import is_remote, may_hold_password, redacted
from armnesia.logs.sql import literal

PIECE = 256
"""How many rows become Python values at a time."""
_SETTINGS = {
    # Reading a file must never reach for the network to fetch an extension.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Rows of people must not stay in memory, and a file that has changed must be read again.
    "enable_external_file_cache": "false",
    "temp_file_encryption": "true",
    # A column of Python objects is of texts; no type is guessed from the first thousand.
    "pandas_analyze_sample": "0",
}
PARAMETERS = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')|\$([a-z_0-9]+)""")
"""A quoted name or text, in which a mark means nothing, or the name of a parameter."""
Row = tuple[Any, ...]
_SCHEMES = ("s3", "s3a", "s3n", "http", "https")
_OPTIONS = {
    "KEY_ID": "AWS_ACCESS_KEY_ID",
    "SECRET": "AWS_SECRET_ACCESS_KEY",
    "SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "REGION": "AWS_REGION",
}


class Connection(ABC):
    """What runs the statements of a reading."""

    server = ""
    """By which name a server is attached, if one is."""

    def rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Run a statement and give all rows; it may use fewer parameters than there are."""
        return [row for piece in self.stream(sql, parameters) for row in piece]

    @abstractmethod
    def stream(self, sql: str, parameters: dict[str, Any] | None = None) -> Iterator[list[Row]]:
        """Run a statement and give its rows in pieces, in constant memory."""


@dataclass
class DuckDBConnection(Connection):
    """A connection to the database of this process; see `connected`."""

    cursor: Any
    source: str

    def stream(self, sql: str, parameters: dict[str, Any] | None = None) -> Iterator[list[Row]]:
        """Run a statement and give its rows in pieces.

        `$name` stands for a number, a list of numbers, or a list of texts. Texts become variables of the
        connection, by way of an array. As parameters of DuckDB's own, they would make it import pandas first,
        if that is installed, which takes longer than most statements.
        """
        with _in_words(self.source):
            names = {name for _, name in PARAMETERS.findall(sql) if name}
            written = {name: self._written(name, (parameters or {})[name]) for name in names}
            self.cursor.execute(PARAMETERS.sub(lambda found: found[1] or written[found[2]], sql))
            while piece := self.cursor.fetchmany(PIECE):
                yield piece

    def _written(self, name: str, value: Any) -> str:
        """A parameter in SQL."""
        if isinstance(value, float):  # a number with a point would be a decimal
            return f"CAST('{value!r}' AS DOUBLE)"
        if isinstance(value, int):
            return repr(value)
        if value and not isinstance(value[0], str):
            return f"[{', '.join(self._written(name, each) for each in value)}]"
        self.cursor.register(f"parameter_{name}", {"texts": np.array([json.dumps(value)])})
        listed = f"SELECT texts::VARCHAR::JSON::VARCHAR[] FROM parameter_{name}"
        self.cursor.execute(f"SET VARIABLE {name} = ({listed})")
        return f"getvariable('{name}')"

    def register(self, name: str, frame: Any) -> None:
        """Give a name to columns in memory."""
        with _in_words(self.source):
            self.cursor.register(name, frame)

    def load(self, extension: str) -> None:
        """Load an extension, from a wheel or from where DuckDB has installed it."""
        with _in_words(self.source):
            _load(self.cursor, extension)

    def reach(self, place: str) -> None:
        """Make it read what is at a URL; a path needs nothing."""
        if not is_remote(place):
            return
        check_scheme(place)
        parts = urlsplit(place)
        if may_hold_password(f"{parts.netloc}{parts.path}"):
            raise InvalidInputError(
                f"a URL must have no credentials, which belong into the environment; got {redacted(place)!r}"
            )
        self.load("httpfs")
        if parts.scheme.startswith("s3"):
            given = {option: os.environ.get(variable) for option, variable in _OPTIONS.items()}
            options = [f"{option} {literal(value)}" for option, value in given.items() if value]
            endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
            if endpoint:
                url = urlsplit(endpoint)
                secure = str(url.scheme == "https").lower()
                options.append(f"ENDPOINT {literal(url.netloc)}, USE_SSL {secure}, URL_STYLE 'path'")
            self.rows(f"CREATE OR REPLACE SECRET armnesia_s3 ({', '.join(['TYPE s3', *options])})")

    def end(self, sql: str) -> None:
        """End a transaction, if one is open, and run a last statement, whatever has happened."""
        import duckdb  # noqa: PLC0415 (an extra)

        self.cursor.interrupt()  # a statement that was left, by Ctrl-C or because no more of it is needed
        for each in ("ROLLBACK", sql):
            with suppress(duckdb.Error):
                self.cursor.execute(each)


def check_scheme(place: str) -> None:
    """Refuse a URL that is not of an object store, and say what to give instead."""
    if urlsplit(place).scheme not in _SCHEMES:
        raise InvalidInputError(
            f"a URL must begin with one of {', '.join(f'{each}://' for each in _SCHEMES)} for files, or with"
            " sqlite:/// or postgresql:// for tables; a local file is given by its path, and for other"
            f" databases see docs/warehouses.md; got {redacted(place)!r}"
        )


@contextmanager
def connected(source: str) -> Iterator[DuckDBConnection]:
    """Lend a connection; `source` names what is read, for messages.

    >>> with connected("nothing") as connection:
    ...     connection.rows("SELECT sum(n) FROM (SELECT unnest($n) AS n)", {"n": [1, 2]})
    [(3,)]
    """
    with MissingExtraError.unless_installed(f"Reading {source!r}", "engines"):
        cursor = _database_of(os.getpid()).cursor()
    try:
        yield DuckDBConnection(cursor, source)
    finally:
        cursor.close()


@cache
def _database_of(process: int) -> Any:
    """An empty database in memory; a forked process lacks the threads of its parent's, so it has its own."""
    import duckdb  # noqa: PLC0415 (an extra)

    # What does not fit into memory is written, encrypted, to a private folder.
    folder = tempfile.mkdtemp(prefix="armnesia-")
    database = duckdb.connect(config={**_SETTINGS, "temp_directory": folder})
    database.execute("SET enable_progress_bar = false")  # it would be printed into the output
    # Spark writes moments into Parquet files as times without a zone (INT96), which tables say are moments:
    # DuckDB would take them for times of the zone of this machine.
    database.execute("SET GLOBAL TimeZone = 'UTC'")

    def close() -> None:
        # DuckDB's threads need the interpreter to free objects of Python; a fork has no such threads.
        if process == os.getpid():
            database.close()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(close)
    return database


def _load(cursor: Any, extension: str) -> None:
    import duckdb  # noqa: PLC0415 (an extra)

    package = f"duckdb_extension_{extension}"
    name = extension
    if find_spec(package) is not None:
        # By its path: the package's own function would copy it into the home folder. DuckDB checks who has
        # signed it.
        found = Path(str(importlib.import_module(package).__path__[0]))
        ((version,),) = cursor.execute("SELECT library_version FROM pragma_version()").fetchall()
        name = str(found / "extensions" / version / f"{extension}.duckdb_extension").replace("'", "''")
    try:
        cursor.execute(f"LOAD '{name}'")
    except duckdb.Error:
        extra = "databases" if extension.endswith("_scanner") else "lakes"
        raise MissingExtraError(
            f"DuckDB {duckdb.__version__} has no extension {extension!r} here: pip install"
            f' "armnesia[{extra}]" brings DuckDB {_WITH_WHEELS} with it on Linux, macOS and Windows;'
            f" elsewhere, and with another DuckDB, run INSTALL {extension} in it once, with a network"
        ) from None


_WITH_WHEELS = "1.5.5"
"""The version of DuckDB whose extensions are on the package index."""


@contextmanager
def _in_words(source: str) -> Iterator[None]:
    import duckdb  # noqa: PLC0415 (an extra)

    try:
        yield
    except RuntimeError as error:
        if "interrupt" in str(error).lower():  # by Ctrl-C: DuckDB replaces Python's exception
            raise KeyboardInterrupt from None
        raise
    except (duckdb.Error, MemoryError, UnicodeDecodeError) as error:
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            _database_of.cache_clear()  # after one, DuckDB refuses every statement: the next has a new one
        # Not chained, and not passed on: DuckDB's message quotes lines, values and passwords.
        reason = _reason(f"{type(error).__name__}: {error}")
        raise InvalidLogError(f"source {source!r} cannot be read: {reason}") from None


_REASONS = {
    r"Malformed JSON|JSON transform": "it is damaged, or has something else than JSON objects",
    r"No files found|Cannot open file|No such file": "a file of it is gone, or cannot be opened",
    r"Out ?Of ?Memory|MemoryError": "there is not enough memory",
    r"not utf-?8|Invalid string encoding|Invalid unicode|UnicodeDecodeError": "it has text that is not UTF-8",
    r"invalid state|line terminator|new.?line": "its lines end in different ways; write it with one line end",
    r"No magic bytes|magic|footer|Parquet": "it is damaged, or no Parquet file",
    r"Arrow Type for Decimal": "it has decimals of more than 38 digits; write them as text",
    r"not (yet )?supported|unsupported": "DuckDB does not support a feature of it",
    r"not a database": "it is no SQLite database",
    r"Failed to (execute|fetch|prepare)": "its server refused the query",
    r"Mismatch Type Error": "a column has values of another type than it is declared with: read a view that"
    " has it as CAST(… AS TEXT), or AS REAL for rewards",
    r"could not connect|Unable to connect|connection": "its server does not answer, refuses this user,"
    " or has no such database",
    r"does not exist|not found": "it does not exist, or this user may not read it",
}


def _reason(message: str) -> str:
    r"""What is wrong, and where, by the patterns of DuckDB's messages; nothing of the content of a row.

    >>> _reason("CSV Error on Line: 3\nOriginal Line: x\nExpected Number of Columns: 2 Found: 1")
    'line 3 has 1 columns where the header has 2'
    >>> _reason("Conversion Error: Could not convert string 'ann' to INT64")
    'Conversion Error'
    """
    line = re.search(r"CSV Error on Line: (\d+)", message)
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if line and columns:
        return f"line {line[1]} has {columns[2]} columns where the header has {columns[1]}"
    found = (reason for pattern, reason in _REASONS.items() if re.search(pattern, message, re.IGNORECASE))
    kind = re.search(r"[A-Za-z ]+ Error(?=:)", message)
    reason = next(found, kind[0].strip() if kind else "DuckDB itself failed")
    return f"line {line[1]}: {reason}" if line else reason
