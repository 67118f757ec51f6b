"""Logs in CSV and Parquet files: bit for bit those of the same rows in memory, and nothing is guessed."""

import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.logs import Log, label_text, open_source, read_log, reopen_source
from armnesia.logs.conditions import Condition
from armnesia.logs.keys import KeyColumn
from tests.logs.conftest import Stored, Table, write_csv, write_parquet
from tests.logs.test_every_source import COLUMNS_OF_ROWS, ROWS, together


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf"), None])
@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()], ids=str)
def test_what_is_no_finite_number_is_refused_whatever_the_statistics_of_the_file_say(
    type_: Any, wrong: float | None, tmp_path: Path
) -> None:
    rewards = pa.array([0.5] * 5000 + [wrong] + [0.5] * 5000, type_)
    table = pa.table({"action": ["A"] * len(rewards), "reward": rewards})
    for dictionary in (True, False):
        pq.write_table(table, tmp_path / "log.parquet", row_group_size=3000, use_dictionary=dictionary)
        with pytest.raises(
            InvalidLogError, match=r"must hold a finite number in every row; got .* at row 5000: "
        ):
            read_log(tmp_path / "log.parquet", actions=["A"])


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.DataFrame, Path]:
    """Enough rows for several threads, in several files and row groups."""
    random = np.random.default_rng(9)
    n = 400_000
    frame = pl.DataFrame(
        {
            "action": random.integers(0, 5, n),
            "reward": random.random(n).round(3),
            "user": random.integers(0, 50_000, n),
        }
    )
    folder = tmp_path_factory.mktemp("many")
    for part in range(4):
        rows = frame[part * n // 4 : (part + 1) * n // 4]
        rows.write_parquet(folder / f"part-{part}.parquet", row_group_size=7_000 + part)
        rows.write_csv(folder / f"part-{part}.csv")
    return frame, folder


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_many_rows_in_many_files(suffix: str, many_rows: tuple[pl.DataFrame, Path]) -> None:
    frame, folder = many_rows
    memory = read_log(frame, user="user", actions=range(5))
    files = read_log(folder / f"part-*.{suffix}", user="user", actions=range(5))
    assert len(files) == len(memory) == 400_000
    assert files.statistics() == memory.statistics()
    rows = np.random.default_rng(10).permutation(400_000)[:50_000]
    assert files.request(rows=rows) == memory.request(rows=rows)
    assert {str(user): n for user, n in memory.users(3).items()} == {
        str(user): n for user, n in files.users(3).items()
    }
    some = list(memory.users())[:300]
    assert files.request(users=some) == memory.request(users=some)


@pytest.mark.parametrize(
    "labels",
    [
        [2, 1, None],
        [True, False, None],
        [0.1, 1e22, None],
        [0.5, float("nan"), 2.0],
        [Decimal("1.50"), Decimal("2.25"), None],
        [date(2024, 2, 29), date(1999, 1, 1), None],
        pa.array([2**63, 1, None], pa.uint64()),
        pa.array([0.1, 0.2, None], pa.float32()),
        pa.array(["b", "a", None]).dictionary_encode(),
    ],
    ids=str,
)
def test_labels_of_parquet_files_keep_their_type_and_match_by_text(labels: Any, tmp_path: Path) -> None:
    column = pa.array(labels)
    known = [label for label in column.to_pylist() if label is not None and label == label]  # noqa: PLR0124
    pq.write_table(
        pa.table({"action": ["A", "B", "A"], "reward": [1, 0, 1], "user": column}), tmp_path / "u.parquet"
    )
    log = read_log(tmp_path / "u.parquet", user="user", actions=["A", "B"])
    assert log.users() == dict.fromkeys(known, 1)
    assert sum(int(log.request(user=label).counts.sum()) for label in known) == 2
    assert sum(int(log.request(user=label_text(label)).counts.sum()) for label in known) == 2
    rows = [row for row, label in enumerate(column.to_pylist()) if label in known]
    acts = column.take(pa.array(rows))
    pq.write_table(pa.table({"action": acts, "reward": [1, 0]}), tmp_path / "a.parquet")
    texts = [str(label_text(label)) for label in acts.to_pylist()]
    as_text = read_log(tmp_path / "a.parquet", actions=texts)
    assert as_text.actions == tuple(texts)
    assert as_text.statistics().sums.tolist() == [10**9, 0]


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite"], indirect=True)
@pytest.mark.parametrize("actions", [[1, "1"], [2.0, "2"]], ids=str)
def test_two_declared_labels_with_the_same_text_are_refused(
    stored: Callable[[Table], Stored], actions: list[Any]
) -> None:
    source = stored({"action": [1], "reward": [1]})
    with pytest.raises(InvalidInputError, match=r"actions must differ in their text, .* got .* and '[12]'"):
        source.log(actions=actions)


def test_globs_are_sorted_and_recursive(tmp_path: Path) -> None:
    for name, action in (("b/2.csv", "B"), ("a/9.csv", "A"), ("a/x=1/1.csv", "C")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"action,reward\n{action},1\n")
    log = read_log(f"{tmp_path}/**/*.csv", actions=["A", "B", "C"])
    assert [log.request(rows=[row]).counts.tolist() for row in range(3)] == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.slow
def test_the_millionth_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    columns = "CASE WHEN i = 1000000 THEN 1.25 ELSE i % 2 END AS won, 'A' AS arm"
    duckdb.execute(f"COPY (SELECT {columns} FROM range(1000100) AS t(i)) TO '{path}'")
    source = open_source(path, action="arm", reward="won")
    rows = source.rows(["A"], (0, 1), chunk=300_000)
    read = [next(rows).positions for _ in range(3)]
    assert read == [range(0, 300_000), range(300_000, 600_000), range(600_000, 900_000)]
    with pytest.raises(InvalidLogError, match=r"\[0.0, 1.0\]; got 1.25 at row 1000000: "):
        next(rows)


def part(first: int, last: int) -> Table:
    return {name: column[first:last] for name, column in ROWS.items()}


def test_people_in_several_parquet_files_are_found_by_position(tmp_path: Path) -> None:
    users = np.random.default_rng(11).integers(0, 40, 1_000)
    for number, (first, last) in enumerate([(0, 10), (10, 10), (10, 700), (700, 1_000)]):
        names = {
            "user": users[first:last],
            "action": ["A"] * (last - first),
            "reward": [1.0] * (last - first),
        }
        columns = pa.table(
            names,
            schema=None
            if last > first
            else pa.schema([("user", pa.int64()), ("action", pa.string()), ("reward", pa.float64())]),
        )
        order = ["user", "action", "reward"] if number % 2 else ["reward", "user", "action"]
        pq.write_table(columns.select(order), tmp_path / f"{number}.parquet", row_group_size=50)
    source = open_source(tmp_path / "*.parquet", action="action", reward="reward", user="user", id=None)
    for wanted in ({0}, {7, 39}, {39, 100}):
        found = source.rows(["A"], (0, 1), users=set(map(str, wanted)), chunk=7)
        positions = [position for rows in found for position in rows.positions]
        assert positions == np.flatnonzero(np.isin(users, list(wanted))).tolist()
    (tmp_path / "2.parquet").unlink()
    with pytest.raises(InvalidLogError, match="No such file"):
        list(source.rows(["A"], (0, 1), users={"7"}))


def test_rows_of_a_glob_follow_each_other(tmp_path: Path) -> None:
    write_csv(tmp_path / "2.csv", ROWS)
    write_csv(tmp_path / "10.csv", part(0, 2))
    source = open_source(tmp_path / "*.csv", **COLUMNS_OF_ROWS)
    assert together(source, 3).arms == [0, 1, 0, 1, 0, 2, 0]
    assert together(source, users={"8"}).positions == [4]
    assert together(reopen_source(source.description)) == together(source)
    write_csv(tmp_path / "3.csv", {"who": ["x"], "arm": ["A"], "won": [2.0], "page": [""], "hour": [""]})
    with pytest.raises(InvalidLogError, match=r"got 2\.0 at row 7: "):
        together(open_source(tmp_path / "*.csv", **COLUMNS_OF_ROWS))


def test_a_glob_without_an_id_needs_the_same_columns_everywhere(tmp_path: Path) -> None:
    write_parquet(tmp_path / "1.parquet", ROWS)
    write_parquet(tmp_path / "2.parquet", {name: v for name, v in ROWS.items() if name != "page"})
    with pytest.raises(InvalidLogError, match="files with the same columns"):
        open_source(tmp_path / "*.parquet", **COLUMNS_OF_ROWS)
    assert open_source(tmp_path / "*.parquet", **COLUMNS_OF_ROWS, id="hour").n_rows() == 10


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = open_source(write_csv(tmp_path / "log.csv", ROWS), **COLUMNS_OF_ROWS)
    rows = source.rows(["A", "B", "C"], (0, 1), chunk=2)
    next(rows)
    write_csv(tmp_path / "log.csv", part(0, 3))
    with pytest.raises(InvalidLogError, match="has changed since the log was read"):
        list(rows)


def test_the_home_directory_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text("\ufeffaction,reward\r\nA,1\r\n")  # as a spreadsheet saves it
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    logs: list[Log] = [read_log("~/log.csv", actions=["A"]), read_log("log.csv", actions=["A"])]
    monkeypatch.chdir("/")
    assert [log.request(rows=[0]).counts.tolist() for log in logs] == [[1], [1]]


def test_a_file_that_changed_is_not_mixed_with_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("action,reward,user\nA,1,ann\n")
    log = read_log(path, user="user", actions=["A"])
    path.write_text("action,reward,user\nA,1,ann\nA,0,ann\n")
    with pytest.raises(InvalidLogError, match=r"log.csv' has changed since the log was read; read it again"):
        log.request(user="ann")
    path.unlink()
    with pytest.raises(InvalidLogError, match=r"log.csv' cannot be read as CSV: No such file"):
        log.users()
    assert log.statistics().counts.tolist() == [1]


def test_reading_files_needs_duckdb_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text("action,reward\nA,1\n")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(
        MissingExtraError, match=r'Reading CSV and Parquet files needs .* "armnesia\[engines\]"'
    ):
        read_log(tmp_path / "log.csv", actions=["A"])


@pytest.mark.parametrize("sizes", [(1, 2041), (2055, 6543), (4097, 100, 2049)])
def test_rows_are_numbered_as_in_the_file_whatever_its_row_groups(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    total = sum(sizes)
    table = pa.table({"action": ["A"] * total, "reward": [row / total for row in range(total)]})
    path = tmp_path / "log.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        for place, size in enumerate(sizes):
            writer.write_table(table.slice(sum(sizes[:place]), size), row_group_size=size)
    log = read_log(path, actions=["A", "B"])
    for row in (0, sizes[0] - 1, sizes[0], 1700, total - 1):
        alone = read_log({"action": ["A"], "reward": [row / total]}, actions=["A", "B"])
        assert log.request(rows=[row]) == alone.request(rows=[0])


def alike(*names: str) -> pa.Table:
    """Rows with columns of these names, besides those that a log needs."""
    columns = {"action": ["A", "B"], "reward": [1, 0]}
    further = [pa.array([f"{at}-ann", "bob"]) for at in range(len(names))]
    arrays = [*map(pa.array, columns.values()), *further]
    return pa.Table.from_arrays(arrays, names=[*columns, *names])


@pytest.mark.parametrize("whole_rows", [False, True])
def test_a_column_that_a_parquet_file_has_twice_is_refused(tmp_path: Path, whole_rows: bool) -> None:
    """Not the first one is taken: names in the other would stay."""
    pq.write_table(alike("user"), tmp_path / "a.parquet")
    pq.write_table(alike("user", "page", "user"), tmp_path / "b.parquet")
    refused = rf"column 'user' of source '{tmp_path}/b.parquet' is there more than once"
    for path in (tmp_path / "b.parquet", *([] if whole_rows else [tmp_path])):
        with pytest.raises(InvalidLogError, match=refused):
            open_source(path, action="action", reward="reward", whole_rows=whole_rows)
    with pytest.raises(InvalidLogError, match=refused):
        open_source(tmp_path / "b.parquet", action="action", reward="reward", user=None, where="user = bob")
    source = open_source(tmp_path, action="action", reward="reward", user=None, whole_rows=False)
    assert source.n_rows() == 4


@pytest.mark.parametrize("others", [("User", "user"), ("user", "User")])
def test_columns_that_differ_in_case_only(tmp_path: Path, others: tuple[str, str]) -> None:
    """The first keeps its name in DuckDB; the refusal of the other names a column that is there."""
    first, second = others
    pq.write_table(alike(first, second), tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", action="action", reward="reward", user=first)
    assert next(iter(source.rows(["A", "B"], (0, 1)))).users == ["0-ann", "bob"]
    pq.write_table(alike(second, first), tmp_path / "b.parquet")
    for path, name in (("a.parquet", second), ("*.parquet", first)):
        with pytest.raises(InvalidLogError, match=rf"column '{name}' .* cannot be told from '\w+', "):
            open_source(tmp_path / path, action="action", reward="reward", user=name, whole_rows=False)
    with pytest.raises(InvalidLogError, match=r"same columns; .*'user \(VARCHAR\)', 'User \(VARCHAR\)'"):
        open_source(tmp_path / "*.parquet", action="action", reward="reward", user=first)


@pytest.mark.parametrize("role", ["action", "user", "id"])
@pytest.mark.parametrize("files", [1, 2])
def test_decimals_that_would_be_read_as_floats_are_no_labels(tmp_path: Path, role: str, files: int) -> None:
    """10²⁰ + 1 and 10²⁰ + 2 would be one person."""
    values = [Decimal(10) ** 20 + 1, Decimal(10) ** 20 + 2]
    for number in range(files):
        wide = pa.array(values, pa.decimal256(50, 2) if number == files - 1 else pa.decimal256(39, 2))
        table = pa.table({"arm": ["A", "B"], "reward": [0, 1], "wide": wide})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    columns: Any = {"action": "arm", "reward": "reward", role: "wide"}
    with pytest.raises(
        InvalidLogError, match=f"{role} column 'wide' must hold decimals of at most 38 digits"
    ):
        open_source(tmp_path, **columns)
    rewards = open_source(tmp_path, action="arm", reward="wide")
    assert rewards.n_rows() == 2 * files


def test_such_decimals_are_neither_keys_nor_conditions(tmp_path: Path) -> None:
    wide = pa.array([Decimal(10) ** 20 + 1, Decimal(10) ** 20 + 2], pa.decimal256(50, 2))
    pq.write_table(pa.table({"arm": ["A", "B"], "reward": [0, 1], "wide": wide}), tmp_path / "log.parquet")
    source = open_source(tmp_path / "log.parquet", action="arm", reward="reward")
    with pytest.raises(InvalidLogError, match="must hold decimals of at most 38 digits"):
        source.filtered((Condition.parse("wide = '100000000000000000001'"),))
    with pytest.raises(InvalidLogError, match="must hold decimals of at most 38 digits"):
        source.keyed_by((KeyColumn("wide"),))
