"""CSV and Parquet files beyond what the table of conformance has: many rows, folders, links, the engine."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs import open_source, read_log, reopen
from armnesia.logs.engine import connected
from armnesia.logs.files import FileSource
from tests.unprivileged import unprivileged


def rows(*users: str | None) -> pa.Table:
    return pa.table({"action": ["A"] * len(users), "reward": [0.5] * len(users), "user": list(users)})


def write(path: Path, *users: str | None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(*(users or ("ann",))), path)
    return path


@pytest.mark.parametrize("wrong", [float("nan"), float("-inf"), None])
def test_what_is_no_finite_number_is_found_whatever_the_statistics_of_the_file_say(
    wrong: float | None, tmp_path: Path
) -> None:
    rewards = pa.array([0.5] * 5000 + [wrong] + [0.5] * 5000, pa.float64())
    pq.write_table(
        pa.table({"action": ["A"] * 10_001, "reward": rewards}), tmp_path / "log.parquet", row_group_size=3000
    )
    with pytest.raises(
        InvalidLogError, match=r"must hold a number from 0.0 to 1.0, .* in every row; got .* at row 5001: "
    ):
        read_log(tmp_path / "log.parquet", actions=["A"])


@pytest.mark.slow
def test_many_rows_in_many_files(tmp_path: Path) -> None:
    random, n = np.random.default_rng(9), 40_000
    columns = {
        "action": random.integers(0, 5, n),
        "reward": random.random(n).round(3),
        "user": random.integers(0, 5_000, n),
    }
    frame = pl.DataFrame(columns)
    for part in range(4):
        piece = frame[part * n // 4 : (part + 1) * n // 4]
        piece.write_parquet(tmp_path / f"part-{part}.parquet", row_group_size=3_000 + part)
    files, memory = (read_log(source, actions=range(5)) for source in (tmp_path, columns))
    assert (files.statistics(), files.users(3)) == (memory.statistics(), memory.users(3))
    chosen = random.permutation(np.arange(1, n + 1))[:5_000]
    assert files.request(rows=chosen) == memory.request(rows=chosen)
    some = list(memory.users())[:300]
    assert files.request(users=some) == memory.request(users=some)


def test_rows_are_numbered_through_sorted_files(tmp_path: Path) -> None:
    for name, action in (("b/2.csv", "B"), ("a/9.csv", "A"), ("a/x=1/1.csv", "C")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"action,reward\n{action},1\n")
    log = read_log(f"{tmp_path}/**/*.csv", actions=["A", "B", "C"])
    assert [log.request(rows=[row]).counts.tolist() for row in (1, 2, 3)] == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    with pytest.raises(InvalidLogError, match="'B' at row 3"):
        read_log(f"{tmp_path}/**/*.csv", actions=["A", "C"])


def test_links_are_followed_once(tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "elsewhere" / "x.parquet")
    write(tmp_path / "log" / "a.parquet")
    (tmp_path / "log" / "b.parquet").symlink_to(elsewhere)
    (tmp_path / "log" / "up").symlink_to(tmp_path / "log")
    (tmp_path / "log" / "loose.parquet").symlink_to(tmp_path / "nothing.parquet")
    assert len(read_log(tmp_path / "log", actions=["A"])) == 2
    (tmp_path / "log" / "c.parquet").symlink_to(elsewhere)
    assert len(read_log(tmp_path / "log", actions=["A"])) == 2


@pytest.mark.parametrize(
    ("mark", "instead"),
    [
        ("_delta_log/0.json", "a Delta table: give delta:PATH"),
        ("metadata/0-a.metadata.json", "an Iceberg table: give iceberg:CATALOG"),
        (".hoodie/hoodie.properties", "a Hudi table: give spark: and its name"),
    ],
)
def test_files_of_tables_are_refused_wherever_they_are_named(tmp_path: Path, mark: str, instead: str) -> None:
    path = write(tmp_path / "lake" / "table" / "data" / "day=1" / "x.parquet")
    link = tmp_path / "link"
    link.symlink_to(path.parent)
    sources = [path, tmp_path / "lake", tmp_path / "lake" / "**" / "*.parquet", link]
    assert [len(read_log(source, actions=["A"])) for source in sources] == [1] * 4
    (tmp_path / "lake" / "table" / mark).parent.mkdir()
    (tmp_path / "lake" / "table" / mark).touch()
    for source in sources:
        with pytest.raises(InvalidLogError, match=instead):
            read_log(source, actions=["A"])


def test_new_files_of_a_folder_are_told_from_changed_ones(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        write(tmp_path / name)
    source = open_source(tmp_path, where="reward > 0")
    version = source.version()
    assert version is not None
    assert source.new_since(version) is None
    write(tmp_path / "c.parquet", "bob", "cy")
    again = reopen(source.address())
    new = again.new_since(version)
    assert isinstance(new, FileSource)
    assert [Path(each).name for each in new.paths] == ["c.parquet"]
    assert read_log(tmp_path, actions=["A"]).users() == {"ann": 2, "bob": 1, "cy": 1}
    assert sum(each.number for each in new.tallies((0.0, 1.0))) == 2
    write(tmp_path / "a.parquet", "dora", "eve")
    changed = reopen(source.address())
    assert changed.new_since(version) is None
    assert changed.version() != version


@pytest.mark.slow
def test_a_file_without_permission_is_refused() -> None:
    """As an unprivileged user, because permissions do not bind root, who may run the tests."""
    with unprivileged() as somebody:
        for name in ("log.csv", "log.parquet"):
            path = somebody.folder / name
            (path.write_text("action,reward\nA,1\n") if name == "log.csv" else write(path))
            somebody.give(somebody.folder)
            path.chmod(0)
            closed = somebody.run("decide", name, "--actions", "A", within=somebody.folder)
            assert (closed.code, closed.out) == (2, "")
            assert closed.err.startswith(f"armnesia: source {str(path)!r} cannot be read")
            assert closed.err.count("\n") == 1


USERS = ["zoe", "ömer", "éva", "ann", None]


def write_old_statistics(path: Path, table: pa.Table) -> None:
    """Write a table as one row group; the bounds of its users are as parquet-mr 1.8 wrote them.

    The footer is in Thrift's compact protocol: `max` and `min` are fields 1 and 2 of the statistics of a
    column, `null_count` is 3, `max_value` and `min_value`, which pyarrow writes, are 5 and 6.
    """
    pq.write_table(table, path, compression="none", use_dictionary=False)
    texts = [text.encode() for text in table["user"].to_pylist() if text is not None]
    nulls = bytes([2 * table["user"].null_count])
    new = b"\x36" + nulls + b"\x28" + _sized(max(texts)) + b"\x18" + _sized(min(texts)) + b"\x11\x11"
    low, *_, high = sorted(texts, key=lambda text: [byte - 256 if byte > 127 else byte for byte in text])
    old = b"\x18" + _sized(high) + b"\x18" + _sized(low) + b"\x16" + nulls
    content = path.read_bytes()
    (size,) = struct.unpack("<I", content[-8:-4])
    footer = content[-8 - size : -8]
    assert footer.count(new), "pyarrow writes other statistics"
    footer = footer.replace(new, old)
    path.write_bytes(content[: -8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1")


def _sized(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def test_people_are_found_in_files_with_bounds_of_another_order(tmp_path: Path) -> None:
    write_old_statistics(tmp_path / "old.parquet", rows(*USERS))
    asked = f"SELECT count(*) FROM '{tmp_path}/old.parquet' WHERE \"user\" = 'ömer'"
    assert duckdb.sql(asked).fetchall() == [(0,)], "the trap is there"
    write(tmp_path / "new.parquet", *USERS)
    for path, times in ((tmp_path / "old.parquet", 1), (tmp_path, 2)):
        log = read_log(path, actions=["A"])
        assert [int(log.request(user=name).counts[0]) for name in USERS[:4]] == [times] * 4
        assert len(read_log(path, actions=["A"], where="user = ömer")) == times


def test_a_file_that_has_changed_is_read_again_though_its_stamp_has_not(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    for value in (1, 2):
        duckdb.execute(f"COPY (SELECT {value} AS c) TO '{path}'")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        with connected("log") as connection:
            assert connection.rows("SELECT c FROM read_parquet($path)", {"path": [str(path)]}) == [(value,)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_reads_too(tmp_path: Path) -> None:
    """It has a database of its own: that of its parent would wait for threads that it lacks."""
    log = read_log(write(tmp_path / "log.parquet"), actions=["A"])
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(log.users() != {"ann": 1})
    assert os.waitpid(child, 0)[1] == 0


ENDS = """
import atexit, os, sys
atexit.register(lambda: print(len(os.listdir("/proc/self/task")) - before))  # the first is the last to run
import duckdb
from armnesia.logs.engine import connected
before = len(os.listdir("/proc/self/task"))
with connected("x") as connection:
    connection.rows("SELECT sum(i) FROM range(3000000) AS t(i)")
    print(connection.rows("SELECT current_setting('enable_progress_bar')"))
print(len(os.listdir("/proc/self/task")) > before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list threads")
def test_no_thread_of_duckdb_outlives_the_interpreter_and_nothing_is_printed() -> None:
    """A thread that lets go of an object of Python's while the interpreter ends would abort the process."""
    ended = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, check=True)
    assert (ended.stdout.splitlines(), ended.stderr) == (["[(False,)]", "True", "0"], "")


def pieces(table: str) -> Sequence[list[Any]]:
    with connected("log") as connection:
        return list(connection.stream(f"SELECT i FROM {table}"))


def test_streamed_rows_come_in_order_and_all_of_them(tmp_path: Path) -> None:
    for part in range(3):
        numbers = f"SELECT i FROM range({part * 70_000}, {(part + 1) * 70_000}) AS t(i)"
        duckdb.execute(f"COPY ({numbers}) TO '{tmp_path}/{part}.parquet' (ROW_GROUP_SIZE 5000)")
    found = pieces(f"'{tmp_path}/*.parquet'")
    assert [row for piece in found for (row,) in piece] == list(range(210_000))
    assert max(map(len, found)) < 1000
    with pytest.raises(InvalidLogError, match=r"^source 'log' cannot be read: "):
        pieces(
            "(SELECT CASE WHEN i < 300000 THEN i ELSE error('secret') END AS i FROM range(400000) AS t(i))"
        )
