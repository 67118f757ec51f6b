"""DuckDB as the engine of files: rows in order for every chunk size, no output, errors in one sentence."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs.files.duckdb_engine import query, stream
from armnesia.logs.files.formats import open_files

NAMED: dict[str, Any] = {"shown": "log.csv", "format_name": "CSV"}


def test_no_progress_bar_is_printed_into_the_output() -> None:
    assert query("SELECT current_setting('enable_progress_bar')", {}, **NAMED) == [(False,)]


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    """Also if its size and its time are as before."""
    path = tmp_path / "log.parquet"
    for value in (1, 2):
        duckdb.execute(f"COPY (SELECT {value} AS c) TO '{path}'")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert query("SELECT c FROM read_parquet($path)", {"path": str(path)}, **NAMED) == [(value,)]
        (rows,) = stream("SELECT c FROM read_parquet($path)", {"path": str(path)}, size=10, **NAMED)
        assert rows == [(value,)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_reads_too() -> None:
    """It has a database of its own: that of its parent would wait for threads that it lacks."""
    sql = "SELECT sum(i) FROM range(3000000) AS t(i)"
    assert query(sql, {}, **NAMED) == [(4499998500000,)]
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(query(sql, {}, **NAMED) != [(4499998500000,)])
    _, status = os.waitpid(child, 0)
    assert status == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list threads")
def test_no_thread_of_duckdb_outlives_the_interpreter() -> None:
    """A thread that lets go of a file of Python's while the interpreter ends would abort the process."""
    program = """
import atexit, os
atexit.register(lambda: print(len(os.listdir("/proc/self/task")) - before))  # the first is the last to run
from armnesia.logs.files.duckdb_engine import query, stream
import duckdb
before = len(os.listdir("/proc/self/task"))
query("SELECT sum(i) FROM range(3000000) AS t(i)", {}, shown="a", format_name="CSV")
list(stream("SELECT 1", {}, size=1, shown="a", format_name="CSV"))
print(len(os.listdir("/proc/self/task")) > before)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", "0"]


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
