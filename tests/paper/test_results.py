"""Results are read as they were written, to the last digit."""

import csv
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.paper.cells import CellStore, Row, run_cells
from armnesia.paper.figures.cells import table_2_cells
from armnesia.paper.plan import Plan
from armnesia.paper.results import COLUMNS, read_csv, read_parquet, write_csv, write_parquet


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    real = run_cells(table_2_cells(Plan(datasets=200)), CellStore())
    odd = {
        "panel": 'it\'s "odd", really\nγ',
        "c_star": None,
        "x": 0.1 + 0.2,
        "suboptimality": 5e-324,
        "standard_error": math.pi,
        "datasets": 2**40,
    }
    return [*real, {**real[0], **odd}]


def without_blocks(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "blocks"} for row in rows]


def test_results_come_back_to_the_last_digit(tmp_path: Path, rows: list[Row]) -> None:
    folder = tmp_path / "it's [a] folder; DROP TABLE results"
    write_csv(rows, folder / "results.csv")
    write_parquet(rows, folder / "results.parquet")
    for read in (read_csv(folder / "results.csv"), read_parquet(folder / "results.parquet")):
        assert read == without_blocks(rows)
        assert [type(value) for value in read[0].values()] == list(COLUMNS.values())
    assert sorted(file.name for file in folder.iterdir()) == ["results.csv", "results.parquet"]


def test_the_csv_has_a_header_and_a_line_for_each_row(tmp_path: Path, rows: list[Row]) -> None:
    write_csv(rows, tmp_path / "results.csv")
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == list(COLUMNS)
    assert len(lines) == 1 + len(rows)


def test_no_rows_give_files_with_columns_only(tmp_path: Path) -> None:
    write_csv([], tmp_path / "none.csv")
    write_parquet([], tmp_path / "none.parquet")
    assert read_csv(tmp_path / "none.csv") == read_parquet(tmp_path / "none.parquet") == []


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_rows_with_other_columns_are_refused_and_the_old_file_stays(
    tmp_path: Path, rows: list[Row], write: Any
) -> None:
    path = tmp_path / "results"
    path.write_text("old")
    for wrong in ({**rows[0], "colour": "red"}, {"figure": "1"}):
        with pytest.raises(InvalidInputError, match=r"differs in .*(colour|gamma)"):
            write([wrong], path)
    assert path.read_text() == "old"


def test_parquet_without_its_engine_names_the_extra(
    tmp_path: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match="engines"):
        write_parquet(rows, tmp_path / "results.parquet")
    assert list(tmp_path.iterdir()) == []
