"""Tables of plain values in Parquet files, by DuckDB."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from armnesia.core.errors import MissingExtraError
from armnesia.core.files import atomic_write

_SQL_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE"}


def write_table(path: Path, types: Mapping[str, type], rows: Sequence[Sequence[Any]]) -> None:
    """Write rows with these columns (text, whole numbers or floats) to a Parquet file, whole or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "t.parquet", {"name": str, "n": int}, [("a", 1), ("b", None)])
    ...     read_table(Path(folder) / "t.parquet", ["n", "name"])
    [(1, 'a'), (None, 'b')]
    """
    # Columns are passed as parameters: no value becomes a part of the statement.
    columns = {name: [row[place] for row in rows] for place, name in enumerate(types)}
    chosen = ", ".join(f"unnest(${name}::{_SQL_TYPES[kind]}[]) AS {name}" for name, kind in types.items())
    with _database() as connection, atomic_write(path, replace=True) as temporary:
        connection.execute(f"CREATE TABLE written AS SELECT {chosen}", columns)
        # COPY takes no parameter for its target, so a quote in the path is doubled, as in any SQL string.
        target = str(temporary).replace("'", "''")
        connection.execute(f"COPY written TO '{target}' (FORMAT parquet, USE_TMP_FILE false)")


def read_table(path: Path, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Read these columns of a Parquet file."""
    sql = f"SELECT {', '.join(columns)} FROM read_parquet($file)"
    with _database() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql, {"file": glob.escape(str(path))}).fetchall()
    return rows


@contextmanager
def _database() -> Iterator[Any]:
    """A database in memory that loads nothing from the network."""
    try:
        import duckdb  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError.naming("Writing Parquet files", "engines") from None
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(config=settings) as connection:
        yield connection
