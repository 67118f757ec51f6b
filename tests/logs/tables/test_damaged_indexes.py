"""An index that lacks rows hides nobody: tables are read without their indexes."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source, open_source
from armnesia.logs.rows import Selection
from armnesia.vault import Configuration
from tests.databases import fresh_place
from tests.logs.conftest import Schema

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly

NAMES: dict[str, Any] = {"action": "action", "reward": "reward", "user": "user"}
SPELLINGS = ["clicks", "CLICKS", "main.clicks", "Main.Clicks"]
N_ROWS = 500
HIDDEN = [(250, "A", 1, "zoe", "p"), (251, "B", 1, "u7", "p")]
"""Rows that are in no index: the only one of zoe, and one of the two of u7."""
INDEXED = [(at, "AB"[at % 2], 1, f"u{at}", "x" * 200) for at in range(N_ROWS) if at not in (250, 251)]
USERS = {"zoe", *(row[3] for row in INDEXED)}


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """A table, and the same WITHOUT ROWID (`keyed`), with indexes that lack rows."""
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for table, kind in (("clicks", ""), ("keyed", "WITHOUT ROWID")):
            key = "PRIMARY KEY" if kind else ""
            database.execute(f"CREATE TABLE {table} (at INTEGER {key}, action, reward, user, page) {kind}")
            database.execute(f"CREATE INDEX of_{table} ON {table} (user, action, reward, at)")
            database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", INDEXED)
        database.execute("CREATE VIEW seen AS SELECT * FROM clicks")
        chosen = "FROM sqlite_master WHERE name IN ('of_clicks', 'of_keyed')"
        entries = database.execute(f"SELECT type, name, tbl_name, rootpage, sql {chosen}").fetchall()
        database.execute("PRAGMA writable_schema = ON")
        database.execute(f"DELETE {chosen}")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for table in ("clicks", "keyed"):
            database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", HIDDEN)
        database.execute("PRAGMA writable_schema = ON")
        database.executemany("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", entries)
    return f"sqlite:///{path}"


@pytest.fixture
def damaged_on_server(schema: Schema) -> dict[str, str]:
    """The same on a server that reads an index wherever it may."""
    columns = {"at": "int", "action": "text", "reward": "int", "user": "text", "page": "text"}
    table, run = schema.create("clicks", columns, INDEXED), schema.connection.execute
    run(f'CREATE INDEX of_clicks ON {table} ("user", action, reward, at)')
    ready = f"UPDATE pg_index SET indisready = %s WHERE indexrelid = '{schema.name}.of_clicks'::regclass"
    run(ready, (False,))
    for row in HIDDEN:
        run(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", row)
    run(ready, (True,))
    run(f"VACUUM {table}")
    joined = "&" if "?" in schema.url else "?"
    return {"source": f"{schema.url}{joined}options=-c%20enable_seqscan%3Doff", "table": table}


def opened(source: str, table: str, **options: Any) -> Source:
    return open_source(source, table=table, whole_rows=False, **NAMES, **options)


def users_of(source: Source, selection: Selection | None = None) -> list[str | None]:
    return [user for raw in source.raw_rows(1000, selection) for user in raw.users]


def check_reads_all(source: Source) -> None:
    assert source.n_rows() in (N_ROWS, None)
    assert set(users_of(source)) == USERS
    for user_type in (UserType.EXACT, UserType.TEXT):
        wanted = Selection("user", frozenset({"zoe", "u7", "nobody"}), user_type)
        assert sorted(map(str, users_of(source, wanted))) == ["u7", "u7", "zoe"]
    assert source.labels_like("user", {"zoe", "u1", "nobody"}, UserType.TEXT) == {"zoe", "u1"}


@pytest.mark.parametrize("where", [None, "reward = 1"], ids=["all", "where"])
@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("table", SPELLINGS)
def test_sqlite_reads_rows_that_an_index_lacks(
    damaged: str, table: str, part: bool, where: str | None
) -> None:
    source = opened(damaged, table, where=where)
    if part:
        source = source.ordered_by("at")
        manifest = source.manifest()
        source = source.counted_part(manifest, source.changes_since(manifest))
    check_reads_all(source)


def test_postgresql_reads_rows_that_an_index_lacks(schema: Schema, damaged_on_server: dict[str, str]) -> None:
    schema.connection.execute("SET enable_seqscan = off")
    held = schema.connection.execute(
        f"""SELECT count(*) FROM {damaged_on_server["table"]} WHERE "user" = 'u7'"""
    ).fetchone()
    assert held == (1,), "the index is damaged"
    check_reads_all(opened(**damaged_on_server))


@pytest.mark.parametrize("table", ["SEEN", "keyed"])
def test_where_an_index_cannot_be_passed_by_a_damaged_one_is_refused(damaged: str, table: str) -> None:
    """Nothing can be said where a view is read that would reach its tables."""
    source = opened(damaged, table)
    for read in (
        lambda: list(source.distinct_labels("user")),
        lambda: source.labels_like("user", {"zoe"}, UserType.TEXT),
        lambda: users_of(source, Selection("user", frozenset({"zoe"}))),
    ):
        with pytest.raises(InvalidLogError, match=r"one may be damaged: .* run REINDEX on it, or restore it"):
            read()
    with closing(sqlite3.connect(damaged.removeprefix("sqlite:///"))) as database:
        database.execute("REINDEX")
    check_reads_all(source)


@pytest.mark.parametrize("table", SPELLINGS)
def test_a_vault_counts_and_forgets_rows_that_an_index_lacks(
    tmp_path: Path, damaged: str, table: str
) -> None:
    place = fresh_place("sqlite", tmp_path)
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        assert vault.ingest(damaged, table=table, **NAMES, ordered_by="at").added == N_ROWS
        assert vault.forget(users=["zoe"]).records == 1
        assert vault.forget(users=["u7"]).records == 2
        assert vault.verify().holds


@pytest.mark.parametrize("table", ["seen", "keyed"])
def test_a_vault_counts_nothing_by_a_damaged_index(tmp_path: Path, damaged: str, table: str) -> None:
    place = fresh_place("sqlite", tmp_path)
    with (
        place.create(Configuration(actions=("A", "B"), mode="external")) as vault,
        pytest.raises(InvalidLogError, match="one may be damaged"),
    ):
        vault.ingest(damaged, table=table, **NAMES, ordered_by="at")
