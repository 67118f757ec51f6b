"""Tidy results on disk: CSV for people, Parquet for programs; a file is written completely or not at all."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.files import atomic_write
from armnesia.logs.files import parquet
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
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(path, COLUMNS, [_line(row) for row in rows])


def read_parquet(path: Path) -> list[Row]:
    """Read rows from Parquet. Needs the extra `engines`."""
    return [dict(zip(COLUMNS, line, strict=True)) for line in parquet.read_table(path, list(COLUMNS))]


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
