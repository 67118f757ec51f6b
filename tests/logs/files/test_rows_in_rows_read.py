"""Every row of a file is read, or the file is refused: the rows that DuckDB returns are counted otherwise."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs import open_source, read_log
from tests.logs.conftest import Table, write_csv, write_parquet

NAMES: dict[str, Any] = {"action": "action", "reward": "reward", "user": "user"}


def refused(read: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidLogError, match=message) as caught:
        read()
    assert "\n" not in str(caught.value)


def every_reading(path: Path) -> list[Callable[[], Any]]:
    """A log, all rows, and the rows of a user."""
    return [
        lambda: read_log(path, user="user", actions=["A"]),
        lambda: list(open_source(path, **NAMES).rows(["A"], (0, 1))),
        lambda: list(open_source(path, **NAMES).rows(["A"], (0, 1), users={"u"})),
        lambda: list(open_source(path, **NAMES).rows(["A"], (0, 1), users={"nobody"})),
    ]


@pytest.fixture
def long_last_line(tmp_path: Path) -> Path:
    """A last line that is longer than DuckDB's buffer, which DuckDB drops without a word."""
    path = tmp_path / "log.csv"
    path.write_bytes(b"action,reward,user,page\n" + b"A,1,u,x\n" * 1000 + b"A,1,u," + b"y" * 40_000_000)
    return path


def test_a_last_line_that_exceeds_the_buffer_is_refused(long_last_line: Path) -> None:
    for read in every_reading(long_last_line):
        refused(read, "the record that begins in line 1002 has more than 1,048,576 bytes")


def test_rows_that_duckdb_drops_are_noticed_by_their_number(
    long_last_line: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the limit of the scan, the number of rows alone shows that one is missing."""
    monkeypatch.setattr("armnesia.logs.files.csv_records.LONGEST_LINE", 1 << 30)
    for read in every_reading(long_last_line):
        refused(read, "cannot be read as CSV: 1000 rows were read where there are 1001; write it again, with")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("difference", [-1, 1])
def test_another_number_of_rows_is_refused(suffix: str, difference: int, tmp_path: Path) -> None:
    table: Table = {"action": ["A"] * 5, "reward": [1] * 5, "user": ["u", "v", None, "u", "w"]}
    write = write_parquet if suffix == "parquet" else write_csv
    source: Any = open_source(write(tmp_path / f"log.{suffix}", table), **NAMES)
    assert source.n_rows() == 5
    source._n_rows = 5 + difference
    source._files = replace(source._files, n_rows=source._n_rows)
    for read in (
        lambda: source.read(("A",), (0.0, 1.0)),
        lambda: list(source.rows(["A"], (0, 1))),
        lambda: list(source.rows(["A"], (0, 1), users={"u"})),
        lambda: list(source.rows(["A"], (0, 1), users={"nobody"})),
    ):
        refused(read, f"5 rows were read where there are {5 + difference}; write it again")


def test_several_files_are_counted_together(tmp_path: Path) -> None:
    for number in range(3):
        write_csv(tmp_path / f"{number}.csv", {"action": ["A"] * 2, "reward": [1] * 2, "user": ["u", None]})
    source: Any = open_source(tmp_path / "*.csv", **NAMES)
    assert source.n_rows() == sum(map(len, source.rows(["A"], (0, 1)))) == 6
    assert [rows.positions for rows in source.rows(["A"], (0, 1), users={"u"})] == [[0, 2, 4]]
    source._files = replace(source._files, n_rows=7)
    refused(lambda: list(source.rows(["A"], (0, 1))), "' and 2 more files cannot be read as CSV: 6 rows were")


def test_the_rows_of_a_user_in_the_last_row_are_found_once(tmp_path: Path) -> None:
    table: Table = {"action": ["A"] * 4, "reward": [1] * 4, "user": ["u", "v", None, "u"]}
    for path in (write_csv(tmp_path / "log.csv", table), write_parquet(tmp_path / "log.parquet", table)):
        source = open_source(path, **NAMES)
        (rows,) = source.rows(["A"], (0, 1), users={"u"})
        assert (rows.positions, rows.users) == ([0, 3], ["u", "u"])
        assert list(source.rows(["A"], (0, 1), users={"nobody"})) == []


def test_line_ends_may_differ_between_files(tmp_path: Path) -> None:
    """One lenient reading of all: so a file with even line ends must not have lines of too many fields."""
    (tmp_path / "1.csv").write_bytes(b"action,reward,user\nA,1,u\r\nA,1,v\n")
    (tmp_path / "2.csv").write_bytes(b"action,reward,user\nA,1,w\n")
    source = open_source(tmp_path / "*.csv", **NAMES)
    assert [user for rows in source.rows(["A"], (0, 1)) for user in rows.users] == ["u", "v", "w"]
    (tmp_path / "2.csv").write_bytes(b"action,reward,user\nA,1,w,x\n")
    refused(lambda: open_source(tmp_path / "*.csv", **NAMES), "line 2 has 4 columns where the header has 3")


@pytest.mark.slow
def test_a_parquet_file_that_miscounts_its_rows_is_refused(tmp_path: Path) -> None:
    """The number of rows is twice in the file: for all, and for each row group."""
    path = tmp_path / "log.parquet"
    n = 1_234_567 // 10
    table = pa.table({"action": ["A"] * n, "reward": [1] * n, "user": ["u"] * n})
    pq.write_table(table, path, store_schema=False, row_group_size=n)
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little")
    written = _varint(2 * n)  # Thrift's compact protocol writes zigzag varints
    place = content.find(written, len(content) - 8 - footer)
    assert place > 0
    content[place : place + len(written)] = _varint(2 * (n - 1))
    path.write_bytes(content)
    for read in every_reading(path):
        refused(read, f"{n} rows were read where there are {n - 1}; write it again$")


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
