"""Traps of sources of external vaults, each of which once led to wrong statistics or a false certificate."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from armnesia.core.errors import UnsupportedError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.logs import open_source
from armnesia.logs.erasing import People, open_eraser
from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_place
from tests.logs.lakes.tables import iceberg_catalog, static_name, write_delta, write_iceberg
from tests.vault.state.test_external_records import EXTERNAL, NAMED, ROWS, write

OPENED: dict[str, Any] = {"table": "log", "user": "user", "ordered_by": "at"}


def table(path: Path, rows: Sequence[tuple[Any, ...]], user: str = "TEXT") -> str:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS log (at INTEGER, action TEXT, reward REAL, user {user})"
        )
        connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)
    return f"sqlite:///{path}"


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def vault_of(tmp_path: Path, configuration: Configuration = EXTERNAL) -> Vault:
    return fresh_place("sqlite", tmp_path).create(configuration)


@pytest.mark.filterwarnings("ignore:user column 'user' looks like")
@pytest.mark.parametrize(
    ("type_", "users"),
    [
        ("TEXT COLLATE NOCASE", ("Ann", "ann", "bob")),
        ("TEXT COLLATE RTRIM", ("ann ", "ann", "bob")),
        ("", (1e16, 10**16, 3)),
    ],
)
def test_names_that_the_database_takes_for_equal_are_two(
    tmp_path: Path, type_: str, users: tuple[Any, ...]
) -> None:
    source = table(tmp_path / "log.db", [(at, "A", 1.0, user) for at, user in enumerate(users)], type_)
    configuration = Configuration(actions=("A", "B"), mode="external", user_type=UserType.EXACT)
    with vault_of(tmp_path, configuration) as vault:
        assert vault.ingest(source, **OPENED).added == 3
        assert vault.forget(users=[users[1]], exactly=True).records == 1
        vault.rebuild()
        assert vault.n_records == 2
        assert vault.verify().holds


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM log WHERE at = 0", "INSERT INTO log VALUES (3, 'B', 0.5, 'ann')"],
    ids=["a row is gone", "a row has the highest value"],
)
def test_rows_below_the_highest_value_that_come_or_go_are_noticed(tmp_path: Path, sql: str) -> None:
    rows = [(at, "A", 1.0, "ann") for at in range(4)]
    source = table(tmp_path / "log.db", rows)
    with vault_of(tmp_path) as vault:
        vault.ingest(source, **OPENED)
        change(tmp_path / "log.db", sql)
        with pytest.raises(VaultError, match="has changed since it was counted"):
            vault.forget(users=["ann"])
        assert not vault.verify().holds
        again = vault.ingest(source, **OPENED)
        assert again.recounted_because is not None
        assert "added or removed" in again.recounted_because
        assert vault.verify().holds
        assert vault.forget(users=["ann"]).records == (3 if "DELETE" in sql else 5)


def test_columns_of_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    duckdb.execute(
        f"COPY (SELECT 'A' AS action, 1 AS reward, 'ann'::BLOB AS user) TO '{path}' (FORMAT parquet)"
    )
    with vault_of(tmp_path) as vault, pytest.raises(VaultError, match="in a column of bytes"):
        vault.ingest(str(path), user="user")
    eraser = open_eraser(open_source(str(path), action="action", reward="reward", user="user"))
    with pytest.raises(UnsupportedError, match="holds bytes"):
        eraser.plan(People.named(["ann"]))


def test_sources_that_overlap_are_refused_also_after_readmitting_and_in_a_recount(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    first = write(folder / "a.csv", ROWS)
    with vault_of(tmp_path) as vault:
        vault.ingest(str(first), **NAMED)
        vault.forget(users=["ann"])
        vault.readmit(users=["ann"])
        with pytest.raises(VaultError, match="would count twice"):
            vault.ingest(f"{folder}/*.csv", **NAMED)
        vault.ingest(str(first), **NAMED)
        assert vault.n_records == 4
    with fresh_place("sqlite", folder).create(EXTERNAL) as vault:
        vault.ingest(f"{folder}/*.csv", **NAMED)
        second = write(tmp_path / "b.csv", [("A", "0.5", "eve", "r9")])
        vault.ingest(str(second), **NAMED)
        (folder / "b.csv").symlink_to(second)  # only now it is in the folder
        with pytest.raises(VaultError, match="would count twice"):
            vault.rebuild()
        assert vault.n_records == 5


def test_a_row_that_was_left_out_may_spell_its_user_otherwise(tmp_path: Path) -> None:
    source = write(
        tmp_path / "log.csv", [("A", "1", "3", "r0"), ("A", "1", "03", "r1"), ("B", "1", "4", "r2")]
    )
    with vault_of(tmp_path) as vault:
        vault.ingest(str(source), **NAMED)
        vault.forget(records=["r0", "r1"])
        vault.rebuild()
        assert vault.forget(users=["3"], exactly=True).records == 0
        assert vault.verify().holds


def lake_eraser(*users: str) -> pa.Table:
    n_rows = len(users)
    return pa.table({"action": ["A"] * n_rows, "reward": [1.0] * n_rows, "user": list(users)})


def test_a_copy_of_a_table_is_not_taken_for_it(tmp_path: Path) -> None:
    first, second, link = tmp_path / "first", tmp_path / "second", tmp_path / "link"
    write_delta(first, lake_eraser("ann", "bob"))
    shutil.copytree(first, second)
    write_delta(second, lake_eraser("ann", "cem"), mode="append")
    link.symlink_to(first)
    with vault_of(tmp_path) as vault:
        vault.ingest(f"delta:{first}", user="user")
        head, sources = vault.head, vault.status().sources
        with pytest.raises(VaultError) as refused:
            vault.ingest(f"delta:{second}", user="user")
        assert f"counted as source 'delta:{first}': a copy of it, whose rows would" in str(refused.value)
        assert f"run armnesia rebuild --without delta:{first}" in str(refused.value)
        assert (vault.head, vault.n_records, vault.status().sources) == (head, 2, sources)
        assert vault.ingest(f"delta:{link}", user="user").rows == 0, "the same table by another name"
        vault.rebuild(without=[vault.status().sources[0].name])
        assert vault.ingest(f"delta:{second}", user="user").added == 4
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().holds


def test_another_file_of_metadata_of_an_iceberg_table_is_the_same_table(tmp_path: Path) -> None:
    before = write_iceberg(tmp_path / "lake", lake_eraser("ann", "bob"))
    table = iceberg_catalog(tmp_path / "lake").load_table("logs.clicks")
    table.append(lake_eraser("ann"))
    with vault_of(tmp_path) as vault:
        assert vault.ingest(before, user="user").added == 2
        assert vault.ingest(static_name(table), user="user").added == 1
        assert vault.forget(users=["ann"]).records == 2
        assert len(vault.status().sources) == 1
        assert vault.verify().holds


@pytest.mark.parametrize("other_rows", [False, True])
def test_a_copy_is_refused_also_while_sources_have_to_be_counted_again(
    tmp_path: Path, other_rows: bool
) -> None:
    (tmp_path / "a").mkdir()
    write(tmp_path / "a" / "log.csv", ROWS)
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copy2)
    with vault_of(tmp_path) as vault:
        vault.ingest(str(tmp_path / "a"), **NAMED)
        vault.forget(users=["ann"])
        vault.readmit(users=["ann"])
        if other_rows:
            assert vault.ingest(str(tmp_path / "b"), **NAMED, other_rows=True).rows == 8
            return
        with pytest.raises(VaultError, match="has the name, size and time of change"):
            vault.ingest(str(tmp_path / "b"), **NAMED)
        assert vault.n_records == 2
        vault.ingest(str(tmp_path / "a"), **NAMED)
        assert vault.n_records == 4


@pytest.mark.parametrize("column", ["user", "USER"])
def test_rows_are_not_ordered_by_the_names_of_people(tmp_path: Path, column: str) -> None:
    source = table(tmp_path / "log.db", [(0, "A", 1.0, "zoe.smith@example.org")])
    change(tmp_path / "log.db", "CREATE VIEW shown AS SELECT at, action, reward, user AS USER FROM log")
    named = OPENED | {"user": column, "ordered_by": column, "table": "log" if column == "user" else "shown"}
    with vault_of(tmp_path) as vault:
        with pytest.raises(VaultError, match="stores the highest value") as refused:
            vault.ingest(source, **named)
        assert "zoe" not in str(refused.value)
        assert vault.status().sources == ()


def test_nothing_is_certified_before_a_source_is_counted(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("action,reward,user\nA,1,ann\nB,0,bob\n", encoding="utf-8")
    refused = "the vault has counted no source yet"
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        before = vault.head
        for options in ({}, {"exactly": True}, {"rows": str(log)}):
            for method in (vault.forget, vault.preview):
                with pytest.raises(VaultError, match=refused):
                    method(users=["9"], **options)
        assert vault.head == before
        vault.ingest(str(log))
        assert vault.forget(users=["ann"]).records == 1
        vault.rebuild(without=[str(log)])
        with pytest.raises(VaultError, match=refused):
            vault.forget(users=["bob"])
        assert vault.forget(users=["ann"]).repeated  # it is known already
