"""DuckDB behind two functions: a new connection for each query, and errors in one sentence."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armnesia.core.errors import InvalidLogError, MissingExtraError

# Reading a file must never reach for the network to fetch an extension.
_SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


def query(sql: str, parameters: dict[str, Any], *, shown: str, format_name: str) -> list[tuple[Any, ...]]:
    """Run one query in a new database in memory; `shown` and `format_name` are for messages."""
    with _connected(shown, format_name) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql, parameters).fetchall()
        return rows


def stream(
    sql: str, parameters: dict[str, Any], *, size: int, shown: str, format_name: str
) -> Iterator[list[tuple[Any, ...]]]:
    """Run one query and yield its rows in chunks, in order, in constant memory."""
    with _connected(shown, format_name) as connection:
        # Each thread reads ahead, up to a whole row group; the consumer is slower than one thread anyway.
        connection.execute("SET threads = 1")
        connection.execute(sql, parameters)
        while rows := connection.fetchmany(size):
            yield rows


@contextmanager
def _connected(shown: str, format_name: str) -> Iterator[Any]:
    try:
        import duckdb  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Reading CSV and Parquet files", "engines") from error
    try:
        with duckdb.connect(config=_SETTINGS) as connection:
            connection.execute("SET enable_progress_bar = false")  # it would be printed into the output
            yield connection
    except duckdb.Error as error:
        # Not chained: DuckDB's message quotes the broken line, and a line of a log is personal data.
        raise InvalidLogError(
            f"source {shown!r} cannot be read as {format_name}: {_reason(str(error))}"
        ) from None


def _reason(message: str) -> str:
    """Reduce DuckDB's message to what is wrong and where, without the content of the line.

    >>> _reason("CSV Error on Line: 3\\nOriginal Line: x\\nExpected Number of Columns: 2 Found: 1")
    'line 3 has 1 columns where the header has 2'
    """
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if line is None:
        return message.splitlines()[0].partition("Error: ")[2] or "DuckDB cannot read it"
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if columns:
        return f"line {line[1]} has {columns[2]} columns where the header has {columns[1]}"
    if "not utf-8" in message:
        return f"line {line[1]} is not UTF-8 text"
    if "unterminated quote" in message:
        return f"line {line[1]} opens a quote that is never closed"
    return f"line {line[1]} does not follow the CSV standard"
