"""What an external vault has counted of a table of a database, and whether that is still what is there."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from armnesia.core.errors import InvalidLogError, VaultError
from armnesia.logs import open_source
from armnesia.vault import Configuration, Vault
from tests.databases import fresh_place
from tests.logs.conftest import Schema
from tests.logs.spark import NEEDS_SPARK, OF_SPARK, spark, spark_type, view
from tests.vault.raw_vaults import arms

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly

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


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("spark", marks=OF_SPARK)])
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


STYLES = [("ISO, MDY", "UTC"), ("SQL, DMY", "Asia/Shanghai"), ("German", "America/New_York")]


@pytest.fixture
def database(schema: Schema) -> Iterator[str]:
    """The URL of a database of its own, whose settings a test may change."""
    name = f"{schema.name}_dates"
    schema.connection.execute(f"CREATE DATABASE {name}")
    yield urlsplit(schema.url)._replace(path=f"/{name}").geturl()
    schema.connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def set_style(schema: Schema, style: tuple[str, str]) -> None:
    for setting, value in zip(("DateStyle", "TimeZone"), style, strict=True):
        schema.connection.execute(f"ALTER DATABASE {schema.name}_dates SET {setting} = '{value}'")


def written_dates(url: str, type_: str | None, *days: str) -> None:
    """Make a table ordered by this type, or add to it: a row of ann and one of bob on each day."""
    with psycopg.connect(url) as connection:
        if type_:
            columns = f'action text, reward float8, "user" text, at {type_}'
            connection.execute(f"CREATE TABLE log ({columns})")
        connection.execute("SET LOCAL DateStyle = 'ISO'; SET LOCAL TimeZone = 'UTC'")
        for day in days:
            for user in ("ann", "bob"):
                connection.execute("INSERT INTO log VALUES ('A', 0.5, %s, %s)", (user, day))


@pytest.mark.parametrize("type_", ["date", "timestamp", "timestamptz"])
def test_dates_mean_the_same_whatever_their_style_and_zone(
    schema: Schema, database: str, type_: str, tmp_path: Path
) -> None:
    """What is 01/02/2026 to one of them is in January to another, and two hours of New York have one text."""
    named: dict[str, Any] = {"source": database, "table": "log", "user": "user", "ordered_by": "at"}
    written_dates(database, type_, "2026-01-02 10:00", "2026-01-15 05:30", "2026-02-01 05:30:00.25")
    set_style(schema, STYLES[0])
    with fresh_place("sqlite", tmp_path).create(EXTERNAL) as vault:
        assert vault.ingest(**named).added == 6
        for number, style in enumerate(STYLES[1:]):
            set_style(schema, style)
            done = vault.ingest(**named)
            assert (done.rows, done.recounted) == (0, False)
            written_dates(database, None, f"2026-11-0{number + 1} 05:30", f"2026-11-0{number + 1} 06:30")
            done = vault.ingest(**named)
            assert (done.added, done.recounted) == (4, False)
        set_style(schema, STYLES[1])
        assert vault.forget(users=["ann"]).records == 7
        assert counts(vault) == [(7, 7 * 10**9 // 2), (0, 0)]
        assert vault.verify().holds


@pytest.mark.parametrize(
    ("type_", "first", "last"),
    [
        ("date", "2026-01-02", "infinity"),
        ("timestamp", "2026-01-02", "infinity"),
        ("timestamptz", "2026-01-02", "infinity"),
        ("date", "-infinity", None),
        ("timestamp", "0044-03-15 BC", None),
    ],
)
def test_dates_that_have_no_plain_text_order_nothing(
    database: str, type_: str, first: str, last: str | None, tmp_path: Path
) -> None:
    named: dict[str, Any] = {"source": database, "table": "log", "user": "user", "ordered_by": "at"}
    refused = pytest.raises(InvalidLogError, match="got infinity, or a year before Christ")
    written_dates(database, type_, first)
    with fresh_place("sqlite", tmp_path).create(EXTERNAL) as vault:
        if last is not None:
            assert vault.ingest(**named).added == 2
            written_dates(database, None, last)
        with refused:
            vault.ingest(**named)
        assert vault.n_records == (0 if last is None else 2)
        if last is not None:
            with pytest.raises(VaultError, match="got infinity, or a year before Christ"):
                vault.forget(users=["ann"])


@NEEDS_SPARK
@pytest.mark.slow
def test_timestamps_of_spark_do_not_depend_on_the_time_zone(tmp_path: Path) -> None:
    session = spark()
    setting = "spark.sql.session.timeZone"
    before = session.conf.get(setting)

    def write(*moments: str) -> None:
        # At 01:30 of that night there are two hours in New York with one text.
        rows = ", ".join(f"('A', 0.5, 'ann', TIMESTAMP '2026-11-01 {moment}Z')" for moment in moments)
        session.sql(f"SELECT * FROM VALUES {rows} AS t (action, reward, who, at)").createOrReplaceTempView(
            "moments"
        )

    named: dict[str, Any] = {"source": "spark:moments", "user": "who", "ordered_by": "at"}
    try:
        with fresh_place("sqlite", tmp_path).create(EXTERNAL) as vault:
            session.conf.set(setting, "America/New_York")
            write("04:30:00", "06:30:00")
            assert vault.ingest(**named).added == 2
            session.conf.set(setting, "Asia/Shanghai")
            assert vault.ingest(**named).rows == 0
            write("04:30:00", "06:30:00", "06:30:01")
            done = vault.ingest(**named)
            assert (done.added, done.recounted) == (1, False)
            assert vault.forget(users=["ann"]).records == 3
            assert vault.verify().holds
    finally:
        session.conf.set(setting, before)
