"""Folders as logs, and columns in the names of folders: what pyarrow and Spark read of the same files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from armnesia import join_metrics, layout_log
from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs import open_source, read_log
from armnesia.logs.columns import Columns
from armnesia.logs.counting import LeftOut
from armnesia.logs.erasing import People
from armnesia.logs.erasing.opening import open_eraser
from armnesia.logs.files import folders
from armnesia.logs.files.partitions import MISSING, unescaped
from armnesia.logs.files.source import FileSource
from armnesia.logs.keys import KeyColumn
from tests.conftest import Outcome
from tests.logs.spark import NEEDS_SPARK, spark
from tests.logs.test_every_source import together

Run = Callable[..., Outcome]
ODD = ["a b", "50%", "1/2", "é√", "x=y", "a:b", "{[*?", "it's", '"', "a+b", "%41", "~", None]
ROWS: dict[str, list[Any]] = {
    "day": ["2013-03-05", "2013-03-05", "2013-03-06", "2013-03-06", "2013-03-06", None],
    "age": ["9", "30", "30", "44", "44", "44"],
    "action": ["A", "B", "A", "A", "B", "B"],
    "reward": [1.0, 0.0, 0.5, 1.0, 0.25, 1.0],
    "user": ["ann", "bob", "ann", None, "cy", "ann"],
}
ACTIONS = ["A", "B"]


def written(folder: Path, table: dict[str, list[Any]], by: Sequence[str], format_: str = "parquet") -> Path:
    """Write rows by pyarrow, partitioned by these columns."""
    rows = pa.table({name: pa.array(values) for name, values in table.items()})
    partitioning = ds.partitioning(rows.select(by).schema, flavor="hive")
    options = {"max_partitions": 10_000, "existing_data_behavior": "overwrite_or_ignore"}
    ds.write_dataset(rows, folder, format=format_, partitioning=partitioning, **options)
    return folder


def as_arrow_reads(folder: Path, by: Sequence[str]) -> dict[str, list[Any]]:
    """The rows in the order of the sorted paths, as pyarrow reads them."""
    partitioning = ds.partitioning(pa.schema([(name, pa.string()) for name in by]), flavor="hive")
    paths = sorted(map(str, folder.rglob("*.parquet")))
    read = ds.dataset(paths, partitioning=partitioning).to_table()
    found: dict[str, list[Any]] = read.to_pydict()
    return found


@pytest.mark.parametrize("by", [("day",), ("day", "age"), ("age", "day", "action"), ("user",)])
@pytest.mark.parametrize("whole", ["folder", "glob"])
def test_partitions_are_columns(tmp_path: Path, by: tuple[str, ...], whole: str) -> None:
    folder = written(tmp_path / "lake", ROWS, by)
    rows = as_arrow_reads(folder, by)
    assert sorted(map(str, rows["day"])) == sorted(map(str, ROWS["day"]))
    source = folder if whole == "folder" else folder / "**" / "*.parquet"
    log, expected = (read_log(each, actions=ACTIONS) for each in (source, rows))
    assert log.statistics() == expected.statistics()
    assert log.users() == expected.users()
    for users in (["ann"], ["cy"], ["bob", "ann"]):
        assert log.request(users=users) == expected.request(users=users)
    for where in ("day >= 2013-03-06", "day = 2013-03-05", "age < 40", "age in (9, 44)", "user != ann"):
        chosen, other = (read_log(each, actions=ACTIONS, where=where) for each in (source, rows))
        assert chosen.statistics() == other.statistics()
        assert chosen.request(user="ann" if "!=" not in where else "cy") == other.request(
            user="ann" if "!=" not in where else "cy"
        )


def test_actions_and_ids_may_be_partitions(tmp_path: Path) -> None:
    folder = written(tmp_path / "lake", ROWS, ["action", "age"])
    source = open_source(folder, action="action", reward="reward", id="age")
    expected = open_source(as_arrow_reads(folder, ["action", "age"]), action="action", reward="reward")
    assert source.action_labels() == ACTIONS
    of_44 = [row.ids for row in source.rows(ACTIONS, (0, 1), ids={"9"})]
    assert of_44 == [["9"]]
    assert (
        read_log(folder, actions=ACTIONS).statistics() == expected.read(tuple(ACTIONS), (0, 1)).statistics()
    )


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_odd_values_are_those_that_were_written(tmp_path: Path, format_: str) -> None:
    rows: dict[str, list[Any]] = {"day": ODD, "action": ["A"] * len(ODD), "reward": [1.0] * len(ODD)}
    folder = written(tmp_path / "lake", rows, ["day"], format_)
    log = read_log(folder, user="day", actions=["A"])
    assert log.users() == dict.fromkeys(filter(None, ODD), 1)
    assert len(log) == len(ODD)


@NEEDS_SPARK
@pytest.mark.slow
def test_spark_writes_and_reads_the_same_values(tmp_path: Path) -> None:
    values = [*ODD, "\x01", "a#b", "c^d", "\\"]
    rows = [(value, "A", 1.0) for value in values]
    folder = tmp_path / "lake"
    frame = spark().createDataFrame(rows, "day string, action string, reward double")
    frame.repartition(1).write.partitionBy("day").parquet(str(folder))
    assert (folder / "_SUCCESS").exists()
    session = spark().newSession()
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    read = [row.day for row in session.read.parquet(str(folder)).collect()]
    log = read_log(folder, user="day", actions=["A"])
    assert log.users() == dict.fromkeys(filter(None, read), 1)
    assert sorted(map(str, log.users())) == sorted(filter(None, values))
    assert len(log) == len(read)


def test_names_of_folders_are_unescaped() -> None:
    assert unescaped("a%2Fb%25") == "a/b%"
    assert [unescaped(text) for text in ("%", "%4", "%zz", "a+b")] == ["%", "%4", "%zz", "a+b"]
    assert unescaped("%C3") is None


def one_file(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"action": ["A"], "reward": [1.0], "user": ["ann"], **columns}), path)
    return path


def test_a_column_in_files_and_folders_is_refused_if_it_is_read(tmp_path: Path) -> None:
    one_file(tmp_path / "day=1" / "x.parquet", day=["2"])
    assert len(read_log(tmp_path, actions=["A"])) == 1
    twice = "column 'day' is in the files and in the names of their folders, and the two may differ"
    with pytest.raises(InvalidLogError, match=twice):
        read_log(tmp_path, actions=["A"], where="day = 1")
    with pytest.raises(InvalidLogError, match=twice):
        read_log(tmp_path, actions=["A"]).by("day")
    with pytest.raises(InvalidLogError, match=twice):
        read_log(tmp_path, user="day", actions=["A"])
    with pytest.raises(InvalidLogError, match=twice):
        layout_log(tmp_path, tmp_path.parent / "out.parquet")
    one_file(tmp_path / "user=1" / "x.parquet")
    with pytest.raises(InvalidLogError, match="column 'user' is in the files and in the names"):
        read_log(tmp_path / "user=1", actions=["A"])
    assert len(read_log(tmp_path / "user=1", user=None, actions=["A"])) == 1


@pytest.mark.parametrize("second", ["x.parquet", "day=2/hour=3/x.parquet", "hour=1/x.parquet"])
def test_files_that_are_partitioned_otherwise(tmp_path: Path, second: str) -> None:
    one_file(tmp_path / "day=1" / "x.parquet")
    one_file(tmp_path / second)
    assert len(read_log(tmp_path, actions=["A"])) == 2
    with pytest.raises(InvalidLogError, match="column 'day' is a partition of some files only"):
        read_log(tmp_path, actions=["A"], where="day = 1")


def test_two_partitions_of_one_name_and_empty_values_are_refused(tmp_path: Path) -> None:
    one_file(tmp_path / "a" / "day=1" / "day=2" / "x.parquet")
    one_file(tmp_path / "b" / "day=" / "x.parquet")
    one_file(tmp_path / "c" / "day=%FF" / "x.parquet")
    for name, reason in (("a", "two partitions"), ("b", f"written day={MISSING}"), ("c", "not UTF-8 text")):
        assert len(read_log(tmp_path / name, actions=["A"])) == 1
        with pytest.raises(InvalidLogError, match=f"column 'day' .*{reason}"):
            read_log(tmp_path / name, actions=["A"], where="day = 1")


def test_only_the_lowest_folders_are_partitions(tmp_path: Path) -> None:
    path = one_file(tmp_path / "a=1" / "logs" / "day=2" / "new" / "x.parquet")
    assert len(read_log(path, actions=["A"], where="day = 2")) == 1
    with pytest.raises(InvalidLogError, match=r"column 'a' .*is not in the source"):
        read_log(path, actions=["A"], where="a = 1")


def test_a_missing_partition_satisfies_no_condition_and_is_no_number(tmp_path: Path) -> None:
    one_file(tmp_path / f"day={MISSING}" / "x.parquet")
    one_file(tmp_path / "day=1" / "x.parquet")
    assert len(read_log(tmp_path, actions=["A"], where="day != 2")) == 1
    assert len(read_log(tmp_path, actions=["A"], where="day < 2")) == 1
    one_file(tmp_path / "day=new" / "x.parquet")
    with pytest.raises(InvalidLogError, match=r"'new' at row 2"):
        read_log(tmp_path, actions=["A"], where="day < 2")


def test_a_folder_is_all_its_files_without_those_of_engines(tmp_path: Path) -> None:
    for name in ("b.parquet", "a/c.parquet", "_x=1/d.parquet"):
        one_file(tmp_path / name)
    for name in ("_temporary/0/e.parquet", ".hidden/f.parquet", "_g.parquet", ".h.parquet"):
        one_file(tmp_path / name)
    (tmp_path / "README.txt").write_text("no log")
    source = FileSource(tmp_path, Columns("action", "reward"), table=None, whole_rows=False)
    found = [os.path.relpath(path, tmp_path) for path in source.files.paths]
    assert found == ["_x=1/d.parquet", "a/c.parquet", "b.parquet"]
    assert source.description["location"] == str(tmp_path)
    (tmp_path / "a" / "k.csv").write_text("action,reward\nA,1\n")
    with pytest.raises(InvalidLogError, match="source must match files of one format"):
        read_log(tmp_path, actions=["A"])


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidLogError, match=r"has no files that end in one of '\.csv'"):
        read_log(tmp_path, actions=["A"])
    one_file(tmp_path / "a" / "x.parquet")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(InvalidLogError, match="are the same folder: its rows would be read twice"):
        read_log(tmp_path, actions=["A"])
    (tmp_path / "b").unlink()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    with pytest.raises(InvalidLogError, match="are the same folder"):
        read_log(tmp_path, actions=["A"])


def test_files_that_are_linked_are_read_once(tmp_path: Path) -> None:
    elsewhere = one_file(tmp_path / "elsewhere" / "x.parquet")
    folder = tmp_path / "lake"
    one_file(folder / "a.parquet")
    (folder / "b.parquet").symlink_to(elsewhere)
    (folder / "loose.parquet").symlink_to(tmp_path / "nothing.parquet")
    assert len(read_log(folder, actions=["A"])) == 2
    for target in (elsewhere, folder / "a.parquet"):
        link = folder / "day=1" / "c.parquet"
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(target)
        with pytest.raises(InvalidLogError, match="are the same file: its rows would be read twice"):
            read_log(folder, actions=["A"])
        link.unlink()


@pytest.mark.parametrize(
    ("inside", "instead"),
    [
        ("_delta_log/0.json", "belong to a Delta table, and also hold rows .* give delta:PATH"),
        ("metadata/0-a.metadata.json", r"belong to an Iceberg table, .* give iceberg:CATALOG"),
        (".hoodie/hoodie.properties", "belong to a Hudi table, .* give spark: and"),
    ],
)
def test_files_of_tables_are_refused(tmp_path: Path, inside: str, instead: str) -> None:
    path = one_file(tmp_path / "lake" / "table" / "data" / "day=1" / "x.parquet")
    link, linked_file = tmp_path / "link", tmp_path / "y.parquet"
    link.symlink_to(path.parent)
    linked_file.symlink_to(path)
    sources = [path, tmp_path / "lake", tmp_path / "lake" / "**" / "*.parquet", link, linked_file]
    for source in sources:
        assert len(read_log(source, actions=["A"])) == 1
    mark = tmp_path / "lake" / "table" / inside
    mark.parent.mkdir()
    mark.touch()
    for source in sources:
        with pytest.raises(InvalidLogError, match=instead):
            read_log(source, actions=["A"])
    path.unlink()
    with pytest.raises(InvalidLogError, match=instead):
        read_log(tmp_path / "lake" / "table", actions=["A"])


def test_a_delta_table_is_read_by_its_name_only(tmp_path: Path, run: Run) -> None:
    deltalake = pytest.importorskip("deltalake")
    table, rows = str(tmp_path / "clicks"), pa.table(ROWS)
    deltalake.write_deltalake(table, rows, partition_by=["age"])
    deltalake.write_deltalake(table, rows, partition_by=["age"], mode="overwrite")
    columns = ("--actions", "A,B")
    assert run("decide", f"delta:{table}", *columns).code == 0
    refused = run("decide", table, *columns)
    assert refused.code == 2
    assert "belong to a Delta table" in refused.err
    refused = run("layout", f"delta:{table}", str(tmp_path / "out.parquet"))
    assert refused.code == 2
    assert "give a path, folder or glob of them; got a source that begins with 'delta:'" in refused.err
    assert not (tmp_path / "out.parquet").exists()


def test_names_that_duckdb_knows_are_columns_like_others(tmp_path: Path) -> None:
    for name in ("c0", "c3", "file_index", "file_row_number", "files", "position", "Action"):
        folder = tmp_path / name
        one_file(folder / f"{name}=x" / "a.parquet")
        one_file(folder / f"{name}=y" / "b.parquet")
        (folder / "csv" / f"{name}=z").mkdir(parents=True)
        (folder / "csv" / f"{name}=z" / "c.csv").write_text("action,reward,user\nA,1,ann\n")
        for source, values in ((folder / "*" / "*.parquet", ["x", "y"]), (folder / "csv", ["z"])):
            log = read_log(source, user=name, actions=["A"])
            assert log.users() == dict.fromkeys(values, 1)
            assert log.request(user=values[-1]).counts.tolist() == [1]
            assert read_log(source, actions=["A"]).users() == {"ann": len(values)}


def test_further_columns_of_other_files_are_taken_for_nothing_else(tmp_path: Path) -> None:
    one_file(tmp_path / "day=1" / "a.parquet")
    one_file(tmp_path / "day=2" / "b.parquet", c3=["9"], position=[7])
    log = read_log(tmp_path, actions=["A"], where="day = 2")
    assert len(log) == 1
    source = open_source(tmp_path, action="action", reward="reward", user="day", whole_rows=False)
    assert [rows.positions for rows in source.raw_rows(10, None)] == [range(2)]
    one_file(tmp_path / "day=new" / "b.parquet", position=[7])
    with pytest.raises(InvalidLogError, match="'new' at row 2"):
        read_log(tmp_path, actions=["A"], where="day < 2")


@pytest.mark.parametrize("name", ["file_index", "File_Row_Number", "c0", "C2"])
def test_further_columns_that_hide_the_place_of_a_row_are_refused(tmp_path: Path, name: str) -> None:
    one_file(tmp_path / "a.parquet")
    one_file(tmp_path / "b.parquet", **{name: [0]})
    with pytest.raises(InvalidLogError, match=f"if one is named '{name}'; 'a.parquet' has no such column"):
        read_log(tmp_path, actions=["A"])
    one_file(tmp_path / "a.parquet", **{name: [0]})
    assert read_log(tmp_path, actions=["A"]).users() == {"ann": 2}


def test_folders_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    kind_of_table = folders.kind_of_table

    def noted(folder: str) -> str | None:
        asked.append(folder)
        return kind_of_table(folder)

    monkeypatch.setattr(folders, "kind_of_table", noted)
    paths = [str(tmp_path / f"day={day}" / f"{at}.parquet") for day in range(3) for at in range(1000)]
    folders.refuse_tables(paths)
    assert len(asked) == len(set(asked)) == 3 + len(tmp_path.parents) + 1


def test_whole_rows_do_not_change_when_folders_do(tmp_path: Path) -> None:
    """Vaults know rows by their content: a partition is part of it only if it is named."""
    plain = one_file(tmp_path / "plain" / "x.parquet")
    moved = one_file(tmp_path / "day=1" / "x.parquet")

    def contents(path: Path, **keys: Any) -> list[str] | None:
        source = open_source(path, action="action", reward="reward", **keys)
        return together(source).contents

    assert contents(plain) == contents(moved)
    by_day = open_source(moved, action="action", reward="reward").keyed_by((KeyColumn("day"),))
    own = one_file(tmp_path / "own" / "x.parquet", day=["1"])
    expected = open_source(own, action="action", reward="reward").keyed_by((KeyColumn("day"),))
    assert together(by_day).contents == together(expected).contents != contents(plain)
    assert contents(moved.parent, user="day") == contents(own, user="day")


def test_people_in_names_of_folders_are_not_erased_there(tmp_path: Path) -> None:
    folder = written(tmp_path / "lake", ROWS, ["user"])
    source = open_source(folder, action="action", reward="reward", whole_rows=False)
    with pytest.raises(UnsupportedError, match="partitioned by 'user', so that names of folders name people"):
        open_eraser(source).plan(People.named(["ann"]))


def test_rows_of_partitioned_files_are_erased(tmp_path: Path) -> None:
    folder = written(tmp_path / "lake", ROWS, ["day", "age"])
    before = as_arrow_reads(folder, ["day", "age"])
    source = open_source(folder, action="action", reward="reward", whole_rows=False)
    eraser = open_eraser(source)
    plan = eraser.plan(People.named(["ann"]))
    assert plan is not None
    eraser.apply(plan, People.named(["ann"]))
    after = as_arrow_reads(folder, ["day", "age"])
    left = [at for at, user in enumerate(before["user"]) if user != "ann"]
    assert after == {name: [values[at] for at in left] for name, values in before.items()}


def test_a_layout_has_the_partitions_as_columns(tmp_path: Path) -> None:
    folder = written(tmp_path / "lake", ROWS, ["day", "age"])
    with pytest.raises(InvalidInputError, match="out must not be among the files of the source"):
        layout_log(folder, folder / "out.parquet")
    out = tmp_path / "out.parquet"
    assert layout_log(folder, out).rows == 6
    found = pq.read_table(out).to_pylist()
    expected = pa.table(ROWS).to_pylist()
    assert sorted(found, key=str) == sorted(
        [{name: row[name] for name in found[0]} for row in expected], key=str
    )


@pytest.mark.parametrize("folders_", ["Action=1", "day=1/DAY=2"])
def test_a_layout_refuses_names_that_differ_in_case_only(tmp_path: Path, folders_: str) -> None:
    one_file(tmp_path / "lake" / folders_ / "x.parquet")
    with pytest.raises(InvalidLogError, match="which is in the names of folders, differ in case only"):
        layout_log(tmp_path / "lake", tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_the_command_line_takes_folders(tmp_path: Path, run: Run) -> None:
    rows = {name: values[:5] for name, values in ROWS.items()}
    folder = written(tmp_path / "lake", rows, ["day", "age"])
    done = run("decide", f"{folder}/", "--actions", "A,B", "--by", "age:18,40", "--where", "day = 2013-03-06")
    assert done.code == 0, done.err
    done = run("unlearn", str(folder), "--actions", "A,B", "--user", "ann", "--where", "age >= 30")
    assert done.code == 0, done.err


def test_what_an_external_vault_asks_is_answered_from_the_files_that_were_opened(tmp_path: Path) -> None:
    folder = written(tmp_path / "lake", ROWS, ["user"])
    source = open_source(folder, action="action", reward="reward", whole_rows=False)
    assert source.labels_like("user", {"ann", "zoe"}, UserType.TEXT) == {"ann"}
    assert {name for names in source.distinct_labels("user") for name in names} == {"ann", "bob", "cy"}
    assert isinstance(source, FileSource)
    part = source.without(LeftOut(users=frozenset({"ann"})))
    assert part.n_rows() == 3


def test_lines_of_json_have_no_partitions(tmp_path: Path) -> None:
    """Nor do the folders replace what the lines say."""
    (tmp_path / "action=B").mkdir()
    line = '{"experiment": "e", "action": "A", "user": "ann", "time": "2026-01-01"}'
    (tmp_path / "action=B" / "shown.jsonl").write_text(line)
    (tmp_path / "got.jsonl").write_text('{"user": "ann", "time": "2026-01-02"}')
    out = tmp_path / "log.parquet"
    shown = tmp_path / "*" / "shown.jsonl"
    join_metrics(shown, tmp_path / "got.jsonl", out=out, window="7d", aggregate="any")
    assert pq.read_table(out)["action"].to_pylist() == ["A"]


def test_tables_to_join_have_partitions(tmp_path: Path) -> None:
    exposures = {"day": ["1", "2", "2"], "user": ["ann", "bob", "cy"], "variant": ["A", "B", "A"]}
    exposures |= {"at": ["2026-01-01", "2026-01-02", "2026-01-02"]}
    metric = {"day": ["2", "3"], "user": ["bob", "cy"], "at": ["2026-01-03", "2026-01-03"]}
    both = (
        written(tmp_path / "shown", exposures, ["variant", "day"]),
        written(tmp_path / "got", metric, ["day"]),
    )
    out = tmp_path / "log.parquet"
    options: dict[str, Any] = {
        "action_column": "variant",
        "user_column": "user",
        "time_column": "at",
        "window": "7d",
        "experiment": "shop",
    }
    join_metrics(*both, out=out, **options, aggregate="count", keep=["day"], metric_where="day = 2")
    found = sorted(pq.read_table(out).to_pylist(), key=lambda row: str(row["user"]))
    assert [(row["user"], row["action"], row["day"], row["reward"]) for row in found] == [
        ("ann", "A", "1", 0),
        ("bob", "B", "2", 1),
        ("cy", "A", "2", 0),
    ]


def test_a_glob_reads_each_file_once(tmp_path: Path) -> None:
    inner = tmp_path / "lake" / "day1" / "part"
    inner.mkdir(parents=True)
    (inner / "a.csv").write_text("action,reward\nA,1\nB,0\n")
    every = str(tmp_path / "lake" / "**" / "**" / "*.csv")
    assert len(read_log(every, actions=["A", "B"])) == 2
    (inner / "b.csv").symlink_to("a.csv")
    for glob in (every, str(inner / "*.csv")):
        with pytest.raises(InvalidLogError, match=r"glob .* are the same file: its rows would be read twice"):
            read_log(glob, actions=["A", "B"])
    assert len(read_log(str(inner / "b*.csv"), actions=["A", "B"])) == 2
    (inner / "b.csv").unlink()
    (tmp_path / "lake" / "day2").symlink_to(tmp_path / "lake" / "day1")
    with pytest.raises(InvalidLogError, match="are the same file"):
        read_log(str(tmp_path / "lake" / "day*" / "part" / "*.csv"), actions=["A", "B"])
