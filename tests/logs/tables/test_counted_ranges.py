"""What an external vault has counted of a table of a database, and whether that is still what is there."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.logs import open_source
from armnesia.vault import Configuration, Vault
from tests.databases import fresh_place
from tests.logs.conftest import Schema
from tests.logs.spark import NEEDS_SPARK, spark_type, view
from tests.vault.raw_vaults import arms

Row = tuple[str, float, str, int]
COLUMNS = ("action", "reward", "who", "day")
ROWS: list[Row] = [
    ("A", 0.75, "ann", 1),
    ("A", 0.5, "bob", 1),
    ("B", 0.25, "ann", 2),
    ("B", 1.0, "cem", 3),
]
EXTERNAL = Configuration(actions=("A", "B"), mode="external")
BELOW = "rows up to the last one that was counted were added or removed"


class Written:
    """A table, which is written whole."""

    def __init__(self, source: str, table: str | None, write: Callable[[list[Row]], None]) -> None:
        self.named: dict[str, Any] = {"source": source, "table": table, "user": "who"}
        self.write = write


def sqlite_table(path: Path) -> Written:
    def write(rows: list[Row]) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DROP TABLE IF EXISTS log")
            database.execute("CREATE TABLE log (action TEXT, reward REAL, who TEXT, day INTEGER)")
            database.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)

    return Written(f"sqlite:///{path}", "log", write)


def postgres_table(schema: Schema) -> Written:
    def write(rows: list[Row]) -> None:
        schema.connection.execute(f"DROP TABLE IF EXISTS {schema.name}.log")
        schema.create("log", dict(zip(COLUMNS, ("text", "float8", "text", "int"), strict=True)), list(rows))

    return Written(schema.url, f"{schema.name}.log", write)


def spark_table() -> Written:
    def write(rows: list[Row]) -> None:
        table = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
        view(table, {name: spark_type(values) for name, values in table.items()}, name="counted")

    return Written("spark:counted", None, write)


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("spark", marks=NEEDS_SPARK)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Written:
    if request.param == "sqlite":
        return sqlite_table(tmp_path / "log.db")
    return spark_table() if request.param == "spark" else postgres_table(request.getfixturevalue("schema"))


@pytest.fixture
def vault(log: Written, tmp_path: Path) -> Vault:
    log.write(ROWS)
    vault = fresh_place("sqlite", tmp_path).create(EXTERNAL)
    assert vault.ingest(**log.named, ordered_by="day").added == 4
    return vault


def sums(rows: list[Row]) -> list[tuple[int, int]]:
    own = {arm: [round(reward * 10**9) for action, reward, _, _ in rows if action == arm] for arm in "AB"}
    return [(len(units), sum(units)) for units in own.values()]


def counts(vault: Vault) -> list[tuple[int, int]]:
    return [(count, total) for count, total, _ in arms(vault)]


CHANGES = {
    "a row below is gone": [*ROWS[1:]],
    "a row below came": [("A", 0.0, "ann", 2), *ROWS],
    "a row with the highest value came": [*ROWS, ("A", 0.0, "cem", 3)],
    "both, and a later one": [*ROWS, ("A", 0.0, "cem", 3), ("A", 1.0, "ann", 4)],
    "a row below became the last": [*ROWS[1:], ("A", 0.75, "ann", 4)],
}


@pytest.mark.parametrize("rows", CHANGES.values(), ids=CHANGES.keys())
def test_rows_that_came_or_went_below_are_noticed(log: Written, tmp_path: Path, rows: list[Row]) -> None:
    where = "reward >= 0" if len(rows) == 5 else None
    log.write(ROWS)
    with fresh_place("sqlite", tmp_path).create(EXTERNAL) as vault:
        vault.ingest(**log.named, where=where, ordered_by="day")
        log.write(rows)
        for person in ("ann", "cem"):
            with pytest.raises(VaultError, match=f"has changed since it was counted .{BELOW}"):
                vault.forget(users=[person])
        (problem,) = vault.verify().problems
        assert BELOW in problem
        assert counts(vault) == sums(ROWS)
        done = vault.ingest(**log.named, where=where)
        assert BELOW in (done.recounted_because or "")
        assert counts(vault) == sums(rows)
        expected = sum(who == "ann" for _, _, who, _ in rows)
        assert vault.forget(users=["ann"]).records == expected
        assert counts(vault) == sums([row for row in rows if row[2] != "ann"])
        assert vault.verify().holds


def test_later_rows_are_added_and_nothing_is_counted_again(log: Written, vault: Vault) -> None:
    rows = [*ROWS, ("A", 0.25, "ann", 4), ("B", 0.5, "dan", 4)]
    log.write(rows)
    done = vault.ingest(**log.named)
    assert (done.added, done.recounted) == (2, False)
    assert counts(vault) == sums(rows)
    assert vault.forget(users=["ann"]).records == 3
    assert vault.verify().holds
    vault.close()


def test_a_forget_changes_nothing_of_what_was_counted(log: Written, vault: Vault) -> None:
    assert vault.forget(users=["ann"]).records == 2
    assert vault.forget(users=["bob"]).records == 1
    done = vault.ingest(**log.named)
    assert (done.rows, done.recounted) == (0, False)
    log.write([*ROWS[:1], *ROWS[3:]])  # bob, and a row of ann, are deleted at the source
    assert vault.ingest(**log.named).recounted
    assert counts(vault) == sums(ROWS[3:])
    assert vault.verify().holds
    vault.close()


def test_a_table_without_rows_has_nothing_below(log: Written, tmp_path: Path) -> None:
    if log.named["table"] is None:
        pytest.skip("Spark makes no view of no rows")
    log.write([])
    with fresh_place("sqlite", tmp_path).create(EXTERNAL) as vault:
        assert vault.ingest(**log.named, ordered_by="day").added == 0
        log.write(ROWS)
        assert (done := vault.ingest(**log.named)).added == 4
        assert not done.recounted


def test_the_manifest_has_the_rows_of_everybody(log: Written) -> None:
    log.write(ROWS)
    source = open_source(
        log.named["source"],
        table=log.named["table"],
        action="action",
        reward="reward",
        user="who",
        where="reward >= 0.5",
    )
    manifest = source.ordered_by("day").manifest().to_dict()
    assert (str(manifest["highest"]), manifest["n_rows"]) == ("3", 4)
