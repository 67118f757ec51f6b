"""DuckDB as the engine of files: rows in order for every chunk size, no output, errors in one sentence."""

from pathlib import Path

import duckdb
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs.duckdb_engine import query, stream
from armnesia.logs.file_formats import open_files

NAMED = {"shown": "log.csv", "format_name": "CSV"}


def test_no_progress_bar_is_printed_into_the_output() -> None:
    assert query("SELECT current_setting('enable_progress_bar')", {}, **NAMED) == [(False,)]


@pytest.mark.parametrize("size", [1000, 70_001, 1_000_000])
def test_streamed_rows_come_in_order_and_all_of_them(size: int, tmp_path: Path) -> None:
    for part in range(3):
        rows = f"SELECT i FROM range({part * 70_000}, {(part + 1) * 70_000}) AS t(i)"
        duckdb.execute(f"COPY ({rows}) TO '{tmp_path}/{part}.parquet' (ROW_GROUP_SIZE 5000)")
    files = open_files(tmp_path / "*.parquet", None)
    chunks = list(files.stream(f"SELECT c0 FROM {files.table}", size))
    assert [row for chunk in chunks for (row,) in chunk] == list(range(210_000))
    assert all(len(chunk) == size for chunk in chunks[:-1])


def test_an_error_in_the_middle_of_a_stream_is_one_sentence() -> None:
    sql = "SELECT CASE WHEN i < 300000 THEN i ELSE error('broken') END FROM range(400000) AS t(i)"
    chunks = stream(sql, {}, size=1000, **NAMED)
    assert len(next(chunks)) == 1000
    with pytest.raises(InvalidLogError, match=r"^source 'log.csv' cannot be read as CSV: broken$"):
        list(chunks)
