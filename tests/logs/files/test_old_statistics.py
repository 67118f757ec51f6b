"""People are found in files whose statistics are in an order that DuckDB does not take them for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia import ArmStatistics
from armnesia.core.identifiers import UserType
from armnesia.logs import Log, open_source, read_log
from armnesia.logs.erasing import People, open_eraser
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.label_lookup import finds_by_value
from armnesia.logs.files.source import FileSource
from tests.logs.files.old_statistics import write_old_statistics
from tests.logs.lakes.tables import add_actions, edit_commit

USERS = ["zoe", "ömer", " ann", "éva", "ann", None]


def rows_of(users: list[Any]) -> pa.Table:
    actions = ["A" if row % 2 else "B" for row in range(len(users))]
    return pa.table({"action": actions, "reward": [0.5] * len(users), "user": pa.array(users, pa.string())})


def read(path: Path, **options: Any) -> Log:
    return read_log(path, action="action", reward="reward", actions=["A", "B"], **options)


def without(users: list[Any], *names: str) -> list[Any]:
    return [user for user in users if user not in names]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Everybody is in the new file, too, so that a look-up finds some rows in any case."""
    folder = tmp_path / "log"
    folder.mkdir()
    pq.write_table(rows_of(USERS), folder / "new.parquet")
    write_old_statistics(folder / "old.parquet", rows_of(USERS))
    return folder


def test_duckdb_leaves_out_rows_by_such_statistics(log: Path) -> None:
    asked = f"SELECT count(*) FROM '{log}/old.parquet' WHERE \"user\" = 'ömer'"
    assert duckdb.sql(asked).fetchall() == [(0,)], "the trap is there"


@pytest.mark.parametrize("name", ["zoe", "ömer", "éva", "ann"])
def test_all_rows_of_a_person_are_found(log: Path, name: str) -> None:
    assert read(log).request(user=name).counts.sum() == 2 * USERS.count(name)


@pytest.mark.parametrize("name", ["zoe", "ömer", "éva", "ann"])
def test_all_rows_of_a_person_are_erased(log: Path, name: str) -> None:
    source = open_source(log, action="action", reward="reward", whole_rows=False)
    eraser, people = open_eraser(source), People.named([name], UserType.TEXT)
    plan = eraser.plan(people)
    assert plan is not None
    eraser.apply(plan, people)
    spelled = {user for user in USERS if user is not None and user.strip() == name}
    for path in log.iterdir():
        assert pq.read_table(path)["user"].to_pylist() == without(USERS, *spelled)


def test_the_files_of_a_table(tmp_path: Path) -> None:
    """Also at an earlier version, after the file was written again."""
    folder = tmp_path / "table"
    for _ in range(2):
        deltalake.write_deltalake(str(folder), rows_of(USERS), mode="append")
    (path,) = deltalake.DeltaTable(str(folder), version=0).file_uris()
    old = Path(path.removeprefix("file://"))
    write_old_statistics(old, rows_of(USERS))

    def resize(actions: list[dict[str, Any]]) -> None:
        (added,) = add_actions(actions)
        added["size"] = old.stat().st_size

    edit_commit(folder, 0, resize)
    source = open_source(f"delta:{folder}", action="action", reward="reward", whole_rows=False)
    assert isinstance(source, FileSource)
    people = People.named(["ömer"])
    plan = open_eraser(source).plan(people)
    assert plan is not None
    open_eraser(source).apply(plan, people)
    left = pa.table(deltalake.DeltaTable(str(folder)).to_pyarrow_table())["user"].to_pylist()
    assert sorted(left, key=str) == sorted(2 * without(USERS, "ömer"), key=str)


def test_conditions_find_all_rows(log: Path) -> None:
    chosen = read(log / "old.parquet", where="user = ömer")
    assert ArmStatistics.from_log(chosen).total == 1


def test_files_of_today_are_searched_by_value(tmp_path: Path) -> None:
    pq.write_table(rows_of(USERS), tmp_path / "new.parquet")
    source = open_source(tmp_path / "new.parquet", action="action", reward="reward", whole_rows=False)
    assert isinstance(source, FileSource)
    assert source.of_labels("user", ["zoe"]).condition == "c2 = $label"


def test_integers_have_one_order() -> None:
    column = FileColumn("c0", "BIGINT", is_text=False, signed_bounds=True)
    assert finds_by_value(column, ["7"])
    assert not finds_by_value(replace(column, full_type="UBIGINT"), ["7"])
