"""A log sorted by person: the same rows, columns and types, and each person in few row groups."""

import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from datetime import time as clock
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia import layout_log, read_log
from armnesia.core.errors import ArmnesiaError, InvalidInputError, InvalidLogError
from armnesia.logs import open_source
from armnesia.logs.files import layout
from armnesia.logs.files.duckdb_engine import ScratchDatabase
from armnesia.logs.files.formats import FORMATS, LogFiles

pytestmark = pytest.mark.slow  # sorting by user is not promised

N = 20_000
OTHERS: dict[str, Any] = {
    "int8": pa.array([1, None, -128] * 2, pa.int8()),
    "uint64": pa.array([2**64 - 1, None, 0] * 2, pa.uint64()),
    "float32": pa.array([0.1, float("nan"), None] * 2, pa.float32()),
    "double": pa.array([0.1 + 0.2, -0.0, float("-inf")] * 2),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-9.99")] * 2, pa.decimal128(9, 2)),
    "wide": pa.array([Decimal(10**37), None, Decimal(-1)] * 2, pa.decimal128(38, 0)),
    "text": pa.array(["", "ä\0b", None] * 2),
    "bytes": pa.array([b"\xff\x00", b"", None] * 2),
    "boolean": pa.array([True, None, False] * 2),
    "date": pa.array([date(2026, 1, 31), None, date(1, 1, 1)] * 2),
    "time": pa.array([clock(23, 59, 59, 999_999), None, clock(0)] * 2),
    "moment": pa.array([datetime(2026, 1, 31, 12, tzinfo=UTC), None, datetime(1970, 1, 1, tzinfo=UTC)] * 2),
    "nanoseconds": pa.array([1, None, 2**60] * 2, pa.timestamp("ns")),
    "uuid": pa.array([UUID(int=2**127), None, UUID(int=1)] * 2, pa.uuid()),
    "list": pa.array([[1, None], None, []] * 2, pa.list_(pa.int64())),
    "none": pa.nulls(6),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}] * 2),
    'it\'s "quoted"': pa.array(list("abcdef")),
}


def many_rows(users: Any = None) -> pa.Table:
    random = np.random.default_rng(14)
    users = random.integers(0, 500, N) if users is None else users
    return pa.table(
        {
            "action": random.integers(0, 3, N),
            "reward": random.random(N),
            "user": users,
            "row": np.arange(N),
        }
    )


def rows_of(table: pa.Table) -> list[str]:
    """All rows as text, in which NaN is equal to itself."""
    return [repr(row) for row in table.to_pylist()]


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(ArmnesiaError) as caught:
        layout_log(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ROWS_PER_GROUP", 2_048)


@pytest.mark.parametrize("files", [1, 3])
def test_the_log_is_the_same_and_sorted(files: int, tmp_path: Path, small_groups: None) -> None:
    table = many_rows()
    for number in range(files):
        part = table[number * N // files : (number + 1) * N // files]
        order = part.column_names if number != 1 else part.column_names[::-1]
        pq.write_table(part.select(order), tmp_path / f"part-{number}.parquet", row_group_size=3_000)
    done = layout_log(tmp_path / "part-*.parquet", tmp_path / "sorted.parquet")
    assert done.to_dict() == {
        "out": str(tmp_path / "sorted.parquet"),
        "user_column": "user",
        "rows": N,
        "files": files,
        "row_groups": 10,
        "bytes": (tmp_path / "sorted.parquet").stat().st_size,
    }
    written = pq.read_table(tmp_path / "sorted.parquet")
    expected = table.sort_by([("user", "ascending"), ("row", "ascending")])
    assert written.schema.types == expected.schema.types
    assert written.to_pydict() == expected.to_pydict()
    before = read_log(tmp_path / "part-*.parquet", actions=range(3))
    after = read_log(tmp_path / "sorted.parquet", actions=range(3))
    assert after.statistics() == before.statistics()
    assert after.users() == before.users()
    for users in ([0], [7, 499], list(range(500))):
        assert after.request(users=users) == before.request(users=users)
    metadata = pq.read_metadata(tmp_path / "sorted.parquet")
    ranges = [metadata.row_group(at).column(2).statistics for at in range(metadata.num_row_groups)]
    assert all(left.max <= right.min for left, right in pairwise(ranges))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*(f"part-{number}.parquet" for number in range(files)), "sorted.parquet"]
    )


@pytest.mark.parametrize("user", ["uuid", "text", "double", "bytes", "moment", "int8", 'it\'s "quoted"'])
def test_every_type_and_value_stays_what_it_is(user: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(OTHERS), tmp_path / "log.parquet", row_group_size=2)
    layout_log(tmp_path / "log.parquet", tmp_path / "sorted.parquet", user=user)
    before, after = (pq.read_table(tmp_path / name) for name in ("log.parquet", "sorted.parquet"))
    assert after.schema.types == before.schema.types
    assert after.column_names == before.column_names
    assert sorted(rows_of(after)) == sorted(rows_of(before))
    users = [value for value in after[user].to_pylist() if value is not None and value == value]  # noqa: PLR0124
    assert users == sorted(users)


def test_it_sorts_more_than_fits_into_memory(tmp_path: Path) -> None:
    n = 400_000
    random = np.random.default_rng(15)
    users = np.char.add("somebody-with-a-long-name-", random.integers(0, 10**9, n).astype(str))
    columns = {"action": np.zeros(n, int), "reward": np.ones(n), "user": users, "page": users[::-1]}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    done = layout_log(tmp_path / "log.parquet", tmp_path / "sorted.parquet", memory_limit="60MB")
    assert (done.rows, done.row_groups) == (n, 7)
    written = pq.read_table(tmp_path / "sorted.parquet")["user"].to_pylist()
    assert written == sorted(users.tolist())


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (1_000, 3, 65_536),
        (10**7, 3, 65_536),
        (10**8, 3, 75_776),
        (10**8, 30, 751_616),
        (10**9, 3, 751_616),
        (10**9, 50, 1 << 20),
    ],
)
def test_row_groups_are_small_but_not_too_many(rows: int, columns: int, expected: int) -> None:
    files = LogFiles((), FORMATS[".parquet"], (("c", "BIGINT"),) * columns, rows, ())
    assert layout._Layout(files, "c", 0, Path("x"))._rows_per_group() == expected


def test_an_existing_file_is_replaced_only_if_asked(tmp_path: Path) -> None:
    pq.write_table(many_rows(), tmp_path / "log.parquet")
    out = tmp_path / "sorted.parquet"
    out.write_text("precious")
    assert "exists already; choose another file, or replace it with --replace" in refusal(
        tmp_path / "log.parquet", out
    )
    assert out.read_text() == "precious"
    assert layout_log(tmp_path / "log.parquet", out, replace=True).rows == N
    assert pq.read_metadata(out).num_rows == N


def test_what_is_refused(tmp_path: Path) -> None:
    pq.write_table(many_rows(), tmp_path / "log.parquet")
    source, out = tmp_path / "log.parquet", tmp_path / "sorted.parquet"
    (tmp_path / "log.csv").write_text("action,reward,user\nA,1,ann\n")
    pq.write_table(pa.table({"user": [[1]]}), tmp_path / "lists.parquet")
    pq.write_table(pa.table({"user": [1], "Page": [1], "page": [2]}), tmp_path / "case.parquet")
    (tmp_path / "sub").mkdir()
    pq.write_table(many_rows(), tmp_path / "sub" / "log.parquet")
    present = sorted(tmp_path.rglob("*"))
    for given, target, options, expected in (
        (
            tmp_path / "log.csv",
            out,
            {},
            "laid out from Parquet files, whose columns have types; got 'log.csv'",
        ),
        (tmp_path / "nothing.parquet", out, {}, "is not a file and matches none"),
        (
            source,
            tmp_path / "sorted.csv",
            {},
            "out must end in one of '.parquet', '.pq', '.parquet.zst'; got",
        ),
        (source, tmp_path / "no" / "sorted.parquet", {}, "does not exist"),
        (source, out, {"user": "who"}, "user column 'who' is not in the source; it has 'action', 'reward'"),
        (
            source,
            out,
            {"memory_limit": "much"},
            "memory_limit must be a size such as 800MB or 4GB; got 'much'",
        ),
        (source, source, {"replace": True}, "out must not be a file that is read"),
        (
            tmp_path / "log*.parquet",
            tmp_path / "log-by-user.parquet",
            {},
            "out must not be among the files of the source",
        ),
        (f"{tmp_path}/**/log.parquet", tmp_path / "sub" / "x" / "log.parquet", {}, "does not exist"),
        (tmp_path / "lists.parquet", out, {}, "user column 'user' must hold single values"),
        (tmp_path / "case.parquet", out, {}, "the names of two columns differ in case only"),
    ):
        assert expected in refusal(given, target, **options)
        assert sorted(tmp_path.rglob("*")) == present


OTHER_ROWS = "it would have other rows than the source; the source may have changed meanwhile"


@pytest.mark.parametrize(
    ("planted", "instead", "noticed"),
    [
        (" ORDER BY c2", " WHERE c3 <> 77 ORDER BY c2", OTHER_ROWS),
        ("c1 AS ", "CASE WHEN c3 = 77 THEN 0.5 ELSE c1 END AS ", OTHER_ROWS),
        ("c1 AS ", "nextafter(c1, 1::DOUBLE) AS ", OTHER_ROWS),
        (
            "c0 AS ",
            "CAST(c0 AS INTEGER) AS ",
            "column 'action' of type BIGINT would become INTEGER; leave it out",
        ),
    ],
)
def test_a_planted_fault_is_noticed_before_the_file_has_its_name(
    planted: str, instead: str, noticed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(many_rows(), tmp_path / "log.parquet")
    run = ScratchDatabase.run

    def faulty(self: ScratchDatabase, sql: str, parameters: Any, *, failed: str) -> Any:
        if sql.startswith("COPY"):
            assert planted in sql
            sql = sql.replace(planted, instead)
        return run(self, sql, parameters, failed=failed)

    monkeypatch.setattr(ScratchDatabase, "run", faulty)
    out = tmp_path / "sorted.parquet"
    assert refusal(tmp_path / "log.parquet", out) == f"{str(out)!r} cannot be written: {noticed}"
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(many_rows(), tmp_path / "log.parquet")
    check = layout._Layout._check_types

    def changing(*arguments: Any) -> None:
        os.utime(tmp_path / "log.parquet", ns=(0, 0))
        check(*arguments)

    monkeypatch.setattr(layout._Layout, "_check_types", changing)
    assert "has changed since the log was read" in refusal(
        tmp_path / "log.parquet", tmp_path / "sorted.parquet"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


KILLED = """
import sys, time
from armnesia import layout_log
from armnesia.logs.files import layout
def wait(*_):
    print("written", flush=True)
    time.sleep(60)
layout._Layout._check_types = wait
layout_log(*sys.argv[1:], replace=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX")
def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    pq.write_table(many_rows(), tmp_path / "log.parquet")
    (tmp_path / "sorted.parquet").write_text("old")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "log.parquet"), str(tmp_path / "sorted.parquet")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert (tmp_path / "sorted.parquet").read_text() == "old"
    assert layout_log(tmp_path / "log.parquet", tmp_path / "sorted.parquet", replace=True).rows == N


def test_to_find_one_person_a_single_row_group_is_read(tmp_path: Path) -> None:
    """The others are destroyed."""
    n = 300_000
    users = np.random.default_rng(16).permutation(n) // 10
    columns = {"action": np.zeros(n, int), "reward": np.ones(n), "user": users}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    out = tmp_path / "sorted.parquet"
    assert layout_log(tmp_path / "log.parquet", out).row_groups == 5
    metadata = pq.read_metadata(out)
    last = metadata.row_group(4).column(0)
    begin = min(filter(None, (last.dictionary_page_offset, last.data_page_offset)))
    content = bytearray(out.read_bytes())
    content[4:begin] = b"\xff" * (begin - 4)
    out.write_bytes(content)
    with pytest.raises(InvalidLogError):
        read_log(out, actions=[0])
    source = open_source(out, action="action", reward="reward", user="user")
    (rows,) = source.rows([0], (0, 1), users={str(n // 10 - 1)})
    assert len(rows) == 10


def test_text_and_numbers_are_not_taken_for_sql(tmp_path: Path) -> None:
    folder = tmp_path / "it's a 'folder'"
    folder.mkdir()
    name = 'user"; DROP TABLE x; --'
    pq.write_table(pa.table({name: ["b", "a"], "action": [1, 2]}), folder / "log[1].parquet")
    layout_log(folder / "log[1].parquet", folder / "so'rted.parquet", user=name)
    assert pq.read_table(folder / "so'rted.parquet")[name].to_pylist() == ["a", "b"]
    with pytest.raises(InvalidInputError, match="out must end in"):
        layout_log(folder / "log[1].parquet", folder)


@pytest.mark.parametrize(
    ("values", "options", "told"),
    [
        (
            pa.array([Decimal(10) ** 40 + 1] * 6, pa.decimal256(50, 2)),
            {},
            "DECIMAL(50,2) would become DOUBLE",
        ),
        (pa.array([1] * 6, pa.duration("ms")), {}, "duration[ms] would become an integer"),
        (
            pa.array([{"a": 1}] * 6, pa.struct({"a": pa.duration("s")})),
            {},
            "struct<a: duration[s]> would become an integer",
        ),
        (
            pa.array([13] * 6, pa.timestamp("ns")),
            {"use_deprecated_int96_timestamps": True},
            "INT96 would become TIMESTAMP_MICROS",
        ),
    ],
)
def test_types_that_only_duckdb_takes_for_the_same_are_refused(
    tmp_path: Path, values: Any, options: dict[str, Any], told: str
) -> None:
    table = pa.table({"user": list("bcabca"), "other": values})
    pq.write_table(table, tmp_path / "b.parquet", **options)
    with pytest.raises(InvalidLogError) as refused:
        layout_log(tmp_path / "b.parquet", tmp_path / "by-user.parquet")
    assert f"column 'other' of type {told}" in str(refused.value)
    assert not (tmp_path / "by-user.parquet").exists()


def test_timestamps_of_other_units_are_written_in_the_finest(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for unit, at in (("us", 1000), ("ms", 2)):
        table = pa.table({"user": ["a"], "at": pa.array([at], pa.timestamp(unit))})
        pq.write_table(table, tmp_path / "log" / f"{unit}.parquet")
    layout_log(tmp_path / "log", tmp_path / "by-user.parquet")
    written = pq.read_table(tmp_path / "by-user.parquet")["at"]
    assert written.type == pa.timestamp("us")
    assert sorted(written.cast(pa.int64()).to_pylist()) == [1000, 2000]


def test_timestamps_of_int96_are_kept_if_they_have_no_nanoseconds(tmp_path: Path) -> None:
    values = pa.array([5_000, None, -7_000], pa.timestamp("ns"))
    pq.write_table(
        pa.table({"user": list("abc"), "other": values}),
        tmp_path / "log.parquet",
        use_deprecated_int96_timestamps=True,
    )
    layout_log(tmp_path / "log.parquet", tmp_path / "by-user.parquet")
    written = pq.read_table(tmp_path / "by-user.parquet")["other"]
    assert written.cast(pa.timestamp("ns")).to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (pa.array([1, None, -1], pa.timestamp("ms")), pa.timestamp("us")),
        (pa.array([1, None, -1], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC")),
        (pa.array([[1], None, []], pa.list_(pa.timestamp("ms"))), pa.list_(pa.timestamp("us"))),
        (pa.array([1, None, 2], pa.time32("ms")), pa.time64("us")),
        (pa.array([np.float16(1.5), None, np.float16(0)], pa.float16()), pa.float32()),
        (pa.array([b"12345678", None, b"87654321"], pa.binary(8)), pa.binary()),
        (pa.array([1, None, -1], pa.timestamp("us", "Europe/Berlin")), pa.timestamp("us", "UTC")),
        (pa.array(["x", None, ""]).dictionary_encode(), pa.string()),
        (pa.array(["x", None, ""], pa.large_string()), pa.string()),
        (pa.array([[1], None, []], pa.large_list(pa.int32())), pa.list_(pa.int32())),
        (pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int8())), pa.map_(pa.string(), pa.int8())),
    ],
)
def test_values_stay_whatever_a_reader_holds_them_in(tmp_path: Path, values: Any, kept: Any) -> None:
    pq.write_table(pa.table({"user": list("abc"), "other": values}), tmp_path / "log.parquet")
    layout_log(tmp_path / "log.parquet", tmp_path / "by-user.parquet")
    written = pq.read_table(tmp_path / "by-user.parquet")["other"]
    assert written.type == kept
    assert written.to_pylist() == values.to_pylist()
