"""Tidy results on disk: CSV for people, Parquet for programs; a file is written completely or not at all."""

import csv
import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.core.files import atomic_write
from armnesia.paper.cells import Row

COLUMNS: dict[str, type] = {
    "figure": str,
    "panel": str,
    "model": str,
    "varied": str,
    "x": float,
    "n": int,
    "arms": str,
    "k": int,
    "gamma": float,
    "epsilon": float,
    "c_star": float,
    "method": str,
    "suboptimality": float,
    "standard_error": float,
    "protocol": str,
    "datasets": int,
    "short_share": float,
}
"""The columns, in order. `c_star` is empty under M_f; the rows' `blocks` are not written."""

_NOT_WRITTEN = {"blocks"}
_SQL_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE"}


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Write rows as CSV with a header; numbers keep all digits."""
    lines = [_line(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        atomic_write(path, replace=True) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(lines)


def read_csv(path: Path) -> list[Row]:
    """Read rows from CSV, with their types."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {column: _parsed(row[column], kind) for column, kind in COLUMNS.items()}
            for row in csv.DictReader(file)
        ]


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write rows as Parquet. Needs the extra `engines`."""
    lines = [_line(row) for row in rows]
    # Columns are passed as parameters: no value becomes a part of the statement.
    columns = {column: [line[place] for line in lines] for place, column in enumerate(COLUMNS)}
    chosen = ", ".join(
        f"unnest(${column}::{_SQL_TYPES[kind]}[]) AS {column}" for column, kind in COLUMNS.items()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with _database() as connection, atomic_write(path, replace=True) as temporary:
        connection.execute(f"CREATE TABLE results AS SELECT {chosen}", columns)
        # COPY takes no parameter for its target, so a quote in the path is doubled, as in any SQL string.
        target = str(temporary).replace("'", "''")
        connection.execute(f"COPY results TO '{target}' (FORMAT parquet, USE_TMP_FILE false)")


def read_parquet(path: Path) -> list[Row]:
    """Read rows from Parquet. Needs the extra `engines`."""
    names = ", ".join(COLUMNS)
    with _database() as connection:
        found = connection.execute(
            f"SELECT {names} FROM read_parquet($file)", {"file": glob.escape(str(path))}
        ).fetchall()
    return [dict(zip(COLUMNS, line, strict=True)) for line in found]


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


def _line(row: Mapping[str, Any]) -> list[Any]:
    """The values of a row in the order of the columns; a missing or an additional column is an error."""
    if set(row) - _NOT_WRITTEN != set(COLUMNS):
        wrong = sorted((set(row) - _NOT_WRITTEN) ^ set(COLUMNS))
        raise InvalidInputError(
            f"rows must have the columns {', '.join(COLUMNS)}; differs in {', '.join(wrong)}"
        )
    return [None if row[column] is None else kind(row[column]) for column, kind in COLUMNS.items()]


def _parsed(text: str, kind: type) -> Any:
    return None if text == "" else kind(text)
