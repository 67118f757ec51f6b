"""Erasing rows of tables of SQLite and PostgreSQL."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs import open_source
from armnesia.logs.erasing import People, SourceState, open_eraser
from armnesia.logs.erasing.postgres import PostgresEraser
from armnesia.logs.erasing.sqlite import SqliteEraser
from armnesia.logs.erasing.sqlite_rowids import vacuum_with_rowids
from armnesia.logs.values import label_text
from tests.databases import postgres_url
from tests.logs.erasing.stores import (
    PostgresStore,
    SqliteStore,
    Store,
    found_in,
    in_order,
    made_rows,
    name_of,
    needles,
)

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly

PEOPLE = People.named([name_of(1)])
ZERO = "00000000-0000-0000-0000-00000000000"


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "log")


@pytest.fixture
def postgres(tmp_path: Path) -> PostgresStore:
    return PostgresStore(tmp_path / "log")


def erase(store: Store, people: People) -> None:
    plan = store.eraser().plan(people)
    assert plan is not None
    assert store.eraser().apply(plan, people).state == SourceState.LOGICALLY_DELETED


def open_sqlite(store: SqliteStore, table: str) -> Any:
    return open_source(f"sqlite:///{store.path}", action="action", reward="reward", table=table)


def as_role(role: str) -> str:
    address = postgres_url()
    return address + f"{'&' if '?' in address else '?'}options=-c%20role%3D{role}"


def test_values_of_every_type_in_one_column_of_sqlite(sqlite: SqliteStore) -> None:
    users = [7, 7.0, "7", b"7", "07", 70, 7.5, None, b"\xff", "\\xFF"]
    sqlite.append([(user, "A", place / 16, "p") for place, user in enumerate(users)])
    erase(sqlite, People.named(["7"], UserType.TEXT))
    assert [row[0] for row in sqlite.rows()] == ["07", 70, 7.5, None, b"\xff", "\\xFF"]
    erase(sqlite, People.named(["\\xFF"]))
    assert [row[0] for row in sqlite.rows()] == ["07", 70, 7.5, None]


@pytest.mark.parametrize("role", ["user", "id"])
@pytest.mark.parametrize("known", [True, False], ids=["named", "recognised"])
@pytest.mark.parametrize(
    ("declared", "values", "gone"),
    [
        ("TEXT COLLATE NOCASE", ["Ann", "ann", "bob"], "ann"),
        ("TEXT COLLATE RTRIM", ["ann ", "ann", "bob"], "ann"),
        ("TEXT COLLATE RTRIM PRIMARY KEY", ["ann ", "bob"], "ann "),
        ("", [2**53, 2.0**53, 7], "9007199254740992.0"),
    ],
)
def test_values_that_sqlite_takes_for_equal_are_two_names(
    tmp_path: Path, declared: str, values: list[Any], gone: str, known: bool, role: str
) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE clicks (who {declared}, action, reward)")
        connection.execute("CREATE INDEX by_name ON clicks (who)")
        connection.executemany("INSERT INTO clicks VALUES (?, 'A', 1)", [(value,) for value in values])
    columns: Any = {"action": "action", "reward": "reward", role: "who"}
    eraser = open_eraser(open_source(f"sqlite:///{path}", table="clicks", **columns))
    people = People.named([gone], role=role)
    if not known:
        people = People.recognised_by(lambda names: [name == gone for name in names], role=role)
    plan = eraser.plan(people)
    assert plan is not None
    eraser.apply(plan, people)
    assert eraser.purge(plan, people).state == SourceState.PURGED
    with closing(sqlite3.connect(path)) as connection:
        left = [value for (value,) in connection.execute("SELECT who FROM clicks NOT INDEXED")]
    assert list(map(repr, left)) == [repr(value) for value in values if label_text(value) != gone]


@contextmanager
def without_indexes_of(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """A connection that does not know of the index of people, which is then damaged by what it writes."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        index = "FROM sqlite_master WHERE name = 'by_user'"
        entry = connection.execute(f"SELECT type, name, tbl_name, rootpage, sql {index}").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"DELETE {index}")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        yield connection
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", entry)


def test_rows_that_an_index_of_sqlite_lacks_are_not_passed_over(sqlite: SqliteStore) -> None:
    sqlite.append(made_rows(0))
    with without_indexes_of(sqlite) as connection:
        connection.execute("INSERT INTO clicks VALUES ('zoe', 'A', 0.5, 'p')")
    people = People.named(["zoe"])
    plan = sqlite.eraser().plan(people)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="SQLITE_CORRUPT_INDEX"):
        sqlite.eraser().apply(plan, people)
    with closing(sqlite3.connect(sqlite.path)) as connection:
        connection.execute("REINDEX")
    sqlite.eraser().apply(plan, people)
    assert sqlite.eraser().purge(plan, people).state == SourceState.PURGED
    assert found_in(sqlite.contents(), [b"zoe"]) == set()


def test_a_purge_of_sqlite_leaves_no_name_in_a_damaged_index(sqlite: SqliteStore) -> None:
    """VACUUM copies an index as it is, with entries of rows that are gone."""
    sqlite.append(made_rows(0))
    with without_indexes_of(sqlite) as connection:
        connection.execute("DELETE FROM clicks WHERE user = ?", (name_of(1),))
    assert sqlite.eraser().plan(PEOPLE) is None
    plan = sqlite.eraser().empty_plan()
    assert sqlite.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    assert found_in(sqlite.contents(), [name_of(1).encode()]) == set()


def test_a_table_of_sqlite_without_rowid_is_erased_unless_an_index_is_damaged(sqlite: SqliteStore) -> None:
    sqlite.folder.mkdir()
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        typed = "number INTEGER PRIMARY KEY, user, action, reward"
        connection.execute(f"CREATE TABLE keyed ({typed}) WITHOUT ROWID")
        connection.execute("CREATE INDEX by_user ON keyed (user)")
        rows = [(number, "ann", "A", 1) for number in range(3)] + [(3, "bob", "A", 0)]
        connection.executemany("INSERT INTO keyed VALUES (?, ?, ?, ?)", rows)
    with without_indexes_of(sqlite) as connection:
        connection.execute("INSERT INTO keyed VALUES (4, 'ann', 'A', 0)")
    people = People.named(["ann"])
    with pytest.raises(InvalidLogError, match="cannot be read without its indexes, of which one may be dam"):
        open_eraser(open_sqlite(sqlite, "keyed")).plan(people)
    with closing(sqlite3.connect(sqlite.path)) as connection:
        connection.execute("REINDEX")
    eraser = open_eraser(open_sqlite(sqlite, "keyed"))
    plan = eraser.plan(people)
    assert plan is not None
    eraser.apply(plan, people)
    assert eraser.purge(plan, people).state == SourceState.PURGED
    with closing(sqlite3.connect(sqlite.path)) as connection:
        assert connection.execute("SELECT * FROM keyed NOT INDEXED").fetchall() == [(3, "bob", "A", 0)]


def test_views_and_virtual_tables_of_sqlite_are_refused(sqlite: SqliteStore) -> None:
    sqlite.append(made_rows(0))
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        connection.execute("CREATE VIEW seen AS SELECT * FROM clicks")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(user, action, reward)")
    for table in ("seen", "words"):
        with pytest.raises(UnsupportedError, match="it must be a table; it is a view or a virtual table"):
            open_eraser(open_sqlite(sqlite, table))


def test_a_database_that_others_write_to_is_refused_in_a_sentence(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Any = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named, timeout=0))
    sqlite.append(made_rows(0))
    plan = sqlite.eraser().plan(PEOPLE)
    assert plan is not None
    with closing(connect(sqlite.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(InvalidLogError, match="cannot be erased: SQLite failed \\(SQLITE_BUSY\\)"):
            sqlite.eraser().apply(plan, PEOPLE)
    assert len(sqlite.rows()) == len(made_rows(0))


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        ("DELETE FROM clicks WHERE page = 'page-1'", "would not stay the same; nothing was changed"),
        ("INSERT INTO clicks VALUES (old.user, old.action, 0, '')", "brings them back; nothing was changed"),
        ("UPDATE clicks SET reward = 1 WHERE user IS NULL", "would not stay the same; nothing was changed"),
        ("UPDATE clicks SET page = 'page-2' WHERE page = 'page-1'", "not stay the same; nothing was changed"),
        ("UPDATE clicks SET page = 1.0 WHERE page = 1", "would not stay the same; nothing was changed"),
        ("UPDATE clicks SET page = x'FF' WHERE page = CAST(x'FF' AS TEXT)", "nothing was changed"),
    ],
)
def test_triggers_that_change_more_rows_are_noticed(sqlite: SqliteStore, trigger: str, reason: str) -> None:
    sqlite.append([*made_rows(0), ("ann", "A", 0.5, 1)])
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        connection.execute("INSERT INTO clicks VALUES ('bob', 'A', 0.5, CAST(x'FF' AS TEXT))")
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        connection.execute(f"CREATE TRIGGER more AFTER DELETE ON clicks BEGIN {trigger}; END")
    before = quoted_rows(sqlite)
    plan = sqlite.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match=reason):
        sqlite.eraser().apply(plan, PEOPLE)
    assert quoted_rows(sqlite) == before


def quoted_rows(store: SqliteStore) -> list[Any]:
    """All rows, of any encoding, as SQLite itself writes them down."""
    with closing(sqlite3.connect(store.path)) as connection:
        columns = "quote(user), quote(action), quote(reward), hex(page), typeof(page)"
        return connection.execute(f"SELECT {columns} FROM clicks").fetchall()


def test_text_that_is_not_utf8_stays(sqlite: SqliteStore) -> None:
    sqlite.append([("ann", "A", 0.5, "p"), (name_of(1), "A", 0.5, "p")])
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        connection.execute("UPDATE clicks SET page = CAST(x'70FF' AS TEXT)")
    erase(sqlite, PEOPLE)
    assert quoted_rows(sqlite) == [("'ann'", "'A'", "0.5", "70FF", "text")]


@pytest.mark.parametrize(
    "changed",
    [
        "DELETE FROM {table} WHERE page = 'page-1'",
        "INSERT INTO {table} VALUES ('ann', 'A', 0, '')",
        "UPDATE {table} SET reward = 1",
        "UPDATE {table} SET page = NULL WHERE page = ''",
        "UPDATE {table} SET reward = '-0' WHERE reward = 0",
    ],
)
def test_triggers_of_postgres_that_change_more_rows_are_noticed(
    postgres: PostgresStore, changed: str
) -> None:
    postgres.append([*made_rows(0), ("ann", "A", 0.0, "")])
    table = f"{postgres.schema}.clicks"
    body = f"BEGIN {changed.format(table=table)}; RETURN NULL; END"
    with postgres.connected() as connection:
        connection.execute(
            f"CREATE FUNCTION {postgres.schema}.more() RETURNS trigger LANGUAGE plpgsql AS $${body}$$"
        )
        connection.execute(
            f"CREATE TRIGGER more AFTER DELETE ON {table} WHEN (pg_trigger_depth() = 0)"
            f" EXECUTE FUNCTION {postgres.schema}.more()"
        )
    before = postgres.rows()
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="would not stay the same; nothing was changed"):
        postgres.eraser().apply(plan, PEOPLE)
    assert list(map(repr, postgres.rows())) == list(map(repr, before))


def with_deferred_trigger(
    postgres: PostgresStore, body: str, on: str = "clicks", event: str = "DELETE"
) -> None:
    """A trigger that runs when the transaction is committed."""
    with postgres.connected() as connection:
        function = f"{postgres.schema}.later_{on}()"
        body = body.format(schema=postgres.schema)
        connection.execute(
            f"CREATE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {body} RETURN NULL; END $$"
        )
        connection.execute(
            f"CREATE CONSTRAINT TRIGGER later AFTER {event} ON {postgres.schema}.{on}"
            f" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {function}"
        )


DEFER = "SET CONSTRAINTS ALL DEFERRED;"
PUT_BACK = "INSERT INTO {schema}.clicks SELECT OLD.*;"


@pytest.mark.parametrize(
    "body",
    [
        "UPDATE {schema}.clicks SET page = 'seen';",
        "INSERT INTO {schema}.clicks VALUES ('ann', 'A', 0, '');",
        PUT_BACK,
    ],
)
@pytest.mark.parametrize("again", ["", DEFER], ids=["once", "deferred-again"])
def test_triggers_of_postgres_that_run_at_the_commit_are_noticed(
    postgres: PostgresStore, body: str, again: str
) -> None:
    postgres.append(made_rows(0))
    if again:  # what one trigger sets off runs later than itself
        with postgres.connected() as connection:
            connection.execute(f"CREATE TABLE {postgres.schema}.queue (LIKE {postgres.schema}.clicks)")
        with_deferred_trigger(postgres, f"{again} INSERT INTO {{schema}}.queue SELECT OLD.*;")
        with_deferred_trigger(postgres, body.replace("OLD.*", "NEW.*"), on="queue", event="INSERT")
    else:
        with_deferred_trigger(postgres, body)
    before = in_order(postgres.rows())
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match=r"(would not stay the same|or brings them back); nothing was"):
        postgres.eraser().apply(plan, PEOPLE)
    assert in_order(postgres.rows()) == before


def test_rows_that_are_put_back_after_the_comparison_are_noticed(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a trigger is deferred."""
    monkeypatch.setattr(PostgresEraser, "_finish_triggers", lambda *given: None)
    postgres.append(made_rows(0))
    with_deferred_trigger(postgres, PUT_BACK)
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="still has rows of the people to be erased"):
        postgres.eraser().apply(plan, PEOPLE)


def test_deferred_triggers_that_change_nothing_do_no_harm(postgres: PostgresStore) -> None:
    postgres.append(made_rows(0))
    with_deferred_trigger(postgres, "")
    erase(postgres, PEOPLE)
    assert in_order(postgres.rows()) == in_order(row for row in made_rows(0) if row[0] != name_of(1))


def test_columns_that_only_an_inheriting_table_has_are_compared(postgres: PostgresStore) -> None:
    with_heirs(postgres)
    heir = f"{postgres.schema}.clicks_2025"
    with postgres.connected() as connection:
        connection.execute(f"ALTER TABLE {heir} ADD note text DEFAULT 'first'")
        connection.execute(f"INSERT INTO {heir} VALUES ('ann', 'A', 0.5, '')")
        connection.execute(
            f"CREATE FUNCTION {postgres.schema}.note() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN UPDATE {heir} SET note = 'seen'; RETURN NULL; END $$"
        )
        trigger = f'more AFTER DELETE ON {postgres.schema}."of May"'
        connection.execute(f"CREATE TRIGGER {trigger} FOR EACH ROW EXECUTE FUNCTION {postgres.schema}.note()")
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="would not stay the same; nothing was changed"):
        postgres.eraser().apply(plan, PEOPLE)
    with postgres.connected() as connection:
        connection.execute(f'DROP TRIGGER more ON {postgres.schema}."of May"')
    postgres.eraser().apply(plan, PEOPLE)
    assert name_of(1) not in {row[0] for row in postgres.rows()}


def test_rows_that_an_index_of_postgres_lacks_are_not_passed_over(postgres: PostgresStore) -> None:
    postgres.append(made_rows(0))
    with postgres.connected() as connection:
        index = f"indrelid = '{postgres.schema}.clicks'::regclass"
        connection.execute(f"UPDATE pg_index SET indisready = false WHERE {index}")
    postgres.append([("zoe", "A", 0.5, "p"), (name_of(1), "A", 0.5, "p")])
    with postgres.connected() as connection:
        connection.execute(f"UPDATE pg_index SET indisready = true WHERE {index}")
    url = postgres_url()
    url += f"{'&' if '?' in url else '?'}options=-c%20enable_seqscan%3Doff"
    source = open_source(url, action="action", reward="reward", table=f"{postgres.schema}.clicks")
    people = People.named(["zoe", name_of(1)])
    plan = open_eraser(source).plan(people)
    assert plan is not None
    open_eraser(source).apply(plan, people)
    assert not {"zoe", name_of(1)} & {row[0] for row in postgres.rows()}


def test_people_whom_citext_takes_for_one_are_two(postgres: PostgresStore) -> None:
    table = f"{postgres.schema}.folded"
    with postgres.connected() as connection:
        try:
            connection.execute(f"CREATE EXTENSION IF NOT EXISTS citext SCHEMA {postgres.schema}")
        except psycopg.Error:
            pytest.skip("this PostgreSQL has no citext")
        type_ = f"{postgres.schema}.citext"
        connection.execute(f'CREATE TABLE {table} ("user" {type_}, action {type_}, reward float8)')
        for name, action in (("Ann", "A"), ("ann", "a"), ("bob", "A")):
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s, 0.5)", (name, action))
    source = open_source(postgres_url(), action="action", reward="reward", table=table)
    assert set(source.distinct_actions()) == {"A", "a"}
    people = People.named(["ann"])
    plan = open_eraser(source).plan(people)
    assert plan is not None
    open_eraser(source).apply(plan, people)
    with postgres.connected() as connection:
        left = {user for (user,) in connection.execute(f'SELECT "user"::text FROM {table}')}
    assert left == {"Ann", "bob"}


def test_rules_of_postgres_that_change_more_rows_are_noticed(postgres: PostgresStore) -> None:
    postgres.append(made_rows(0))
    table = f"{postgres.schema}.clicks"
    with postgres.connected() as connection:
        connection.execute(
            f"CREATE RULE more AS ON DELETE TO {table} DO ALSO UPDATE {table} SET page = 'seen'"
        )
    before = postgres.rows()
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="would not stay the same; nothing was changed"):
        postgres.eraser().apply(plan, PEOPLE)
    assert postgres.rows() == before


def test_columns_of_any_name_are_compared(postgres: PostgresStore) -> None:
    """Also of the name that the statement gives to the table."""
    table = f"{postgres.schema}.named"
    with postgres.connected() as connection:
        connection.execute(
            f'CREATE TABLE {table} ("user" text, action text, reward float8, armnesia_row int)'
        )
        connection.execute(f"INSERT INTO {table} VALUES ('ann', 'A', 0, 1), ('bob', 'A', 0, 2)")
        connection.execute(
            f"CREATE RULE more AS ON DELETE TO {table} DO ALSO UPDATE {table} SET action = 'B'"
        )
    eraser = open_eraser(open_source(postgres_url(), action="action", reward="reward", table=table))
    people = People.named(["ann"])
    plan = eraser.plan(people)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="would not stay the same; nothing was changed"):
        eraser.apply(plan, people)


def test_an_eraser_that_leaves_rows_is_caught(
    sqlite: SqliteStore, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for eraser in (SqliteEraser, PostgresEraser):
        monkeypatch.setattr(eraser, "_delete", lambda *given: None)
    for store in (sqlite, postgres):
        store.append(made_rows(0))
        plan = store.eraser().plan(PEOPLE)
        assert plan is not None
        with pytest.raises(InvalidLogError, match="still has rows of the people to be erased"):
            store.eraser().apply(plan, PEOPLE)


def test_samples_of_the_planner_of_sqlite_go(sqlite: SqliteStore) -> None:
    sqlite.append(made_rows(0))
    with closing(sqlite3.connect(sqlite.path)) as connection, connection:
        connection.execute("ANALYZE")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("CREATE TABLE IF NOT EXISTS samples (tbl, sample)")
        connection.execute("INSERT INTO samples VALUES ('clicks', ?)", (name_of(1),))
        connection.execute(
            "UPDATE sqlite_master SET name = 'sqlite_stat4', tbl_name = 'sqlite_stat4',"
            " sql = 'CREATE TABLE sqlite_stat4(tbl, sample)' WHERE name = 'samples'"
        )
    plan = sqlite.eraser().plan(PEOPLE)
    assert plan is not None
    sqlite.eraser().apply(plan, PEOPLE)
    assert sqlite.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    gone = needles(row for row in made_rows(0) if row[0] == name_of(1))
    assert found_in(sqlite.contents(), gone) == set()


@pytest.mark.parametrize(
    ("type_", "values", "name"),
    [
        ("int4", [1, 2, None, -3], "-3"),
        ("int2", [1, 2], "70000"),
        ("int8", [-(2**63), 5, 2**63 - 1], str(-(2**63))),
        ("numeric", ["1.50", "1.5", "15", "NaN"], "1.5"),
        ("float8", [0.1, 7.0, None], "7"),
        ("float4", [0.5, 7.0], "0.5"),
        ("uuid", [f"{ZERO}1", f"{ZERO}2"], f"{ZERO}2"),
        ("char(5)", ["ann", "bob"], "ann"),
        ("boolean", [True, False, None], "True"),
        ("date", ["2026-01-31", "2026-02-01"], "2026-01-31"),
        ("timestamptz", ["2026-01-31T12:00+02:00", "2026-01-31T12:00Z"], "2026-01-31 10:00:00+00:00"),
        ("bytea", [b"ann", b"\xff"], "\\xFF"),
    ],
)
def test_names_are_compared_by_their_text_in_every_type(
    postgres: PostgresStore, type_: str, values: list[Any], name: str
) -> None:
    table = f"{postgres.schema}.typed"
    with postgres.connected() as connection:
        connection.execute(f"CREATE TABLE {table} (number int, who {type_}, action text, reward float8)")
        for number, value in enumerate(values):
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s, 'A', 0.5)", (number, value))
    source = open_source(
        postgres_url(), action="action", reward="reward", user="who", id="number", table=table
    )
    (rows,) = source.rows(["A"], (0, 1))
    kept = {int(id_) for id_, user in zip(rows.ids or [], rows.users, strict=True) if user != name}
    people = People.named([name], UserType.TEXT)
    plan = open_eraser(source).plan(people)
    if len(kept) == len(values):
        assert plan is None
        return
    assert plan is not None
    open_eraser(source).apply(plan, people)
    with postgres.connected() as connection:
        assert {number for (number,) in connection.execute(f"SELECT number FROM {table}")} == kept


def test_names_that_a_collation_takes_for_equal_are_two_people(postgres: PostgresStore) -> None:
    table = f"{postgres.schema}.folded"
    with postgres.connected() as connection:
        try:
            connection.execute(
                f"CREATE COLLATION {postgres.schema}.folded"
                " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.Error:
            pytest.skip("this PostgreSQL has no ICU")
        typed = f'"user" text COLLATE {postgres.schema}.folded, action text, reward float8'
        connection.execute(f"CREATE TABLE {table} ({typed})")
        for name in ("ann", "Ann", "bob"):
            connection.execute(f"INSERT INTO {table} VALUES (%s, 'A', 0.5)", (name,))
    source = open_source(postgres_url(), action="action", reward="reward", table=table)
    people = People.named(["ann"], UserType.TEXT)
    plan = open_eraser(source).plan(people)
    assert plan is not None
    open_eraser(source).apply(plan, people)
    with postgres.connected() as connection:
        left = {user for (user,) in connection.execute(f'SELECT "user" FROM {table}')}
    assert left == {"Ann", "bob"}


def test_rows_are_erased_in_a_column_with_a_collation_of_its_own(postgres: PostgresStore) -> None:
    table = f"{postgres.schema}.collated"
    with postgres.connected() as connection:
        for column in ('"user" text COLLATE "POSIX"', '"user" varchar(9) COLLATE "POSIX"'):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(f"CREATE TABLE {table} ({column}, action text, reward float8)")
            for name in ("ann", "ann ", "Ann", "bob"):
                connection.execute(f"INSERT INTO {table} VALUES (%s, 'A', 0.5)", (name,))
            source = open_source(postgres_url(), action="action", reward="reward", table=table)
            people = People.named(["ann"], UserType.TEXT)
            plan = open_eraser(source).plan(people)
            assert plan is not None
            open_eraser(source).apply(plan, people)
            left = connection.execute(f'SELECT "user" FROM {table}', prepare=False)
            assert {user for (user,) in left} == {"Ann", "bob"}


def test_views_of_postgres_are_refused(postgres: PostgresStore) -> None:
    view = f"{postgres.schema}.seen"
    with postgres.connected() as connection:
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {postgres.schema}.clicks")
    source = open_source(postgres_url(), action="action", reward="reward", table=view)
    with pytest.raises(UnsupportedError, match="it must be a table; it is a view or a foreign table"):
        open_eraser(source)


def test_rows_that_a_policy_hides_are_not_passed_over(postgres: PostgresStore) -> None:
    postgres.append(made_rows(0))
    role = f"{postgres.schema}_reader"
    with postgres.connected() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {postgres.schema} TO {role}")
        connection.execute(f"GRANT SELECT, DELETE ON {postgres.schema}.clicks TO {role}")
        connection.execute(f"ALTER TABLE {postgres.schema}.clicks ENABLE ROW LEVEL SECURITY")
        connection.execute(f"CREATE POLICY one_page ON {postgres.schema}.clicks USING (page = 'page-1')")
    try:
        source = open_source(
            as_role(role), action="action", reward="reward", table=f"{postgres.schema}.clicks"
        )
        with pytest.raises(InvalidLogError, match="cannot be erased: PostgreSQL failed \\(SQLSTATE 42501\\)"):
            open_eraser(source).plan(PEOPLE)
    finally:
        with postgres.connected() as connection:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


def test_a_purge_says_that_a_transaction_of_another_database_keeps_the_rows(postgres: PostgresStore) -> None:
    postgres.append(made_rows(0))
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    with psycopg.connect(postgres_url(), dbname="template1") as other:
        other.execute("SELECT pg_current_xact_id()").fetchall()
        postgres.eraser().apply(plan, PEOPLE)
        assert postgres.eraser().purge(plan, PEOPLE).state == SourceState.LOGICALLY_DELETED
        other.rollback()
        assert postgres.eraser().purge(plan, PEOPLE).state == SourceState.PURGED


def test_a_purge_says_that_others_can_still_see_the_rows(postgres: PostgresStore) -> None:
    postgres.append(made_rows(0))
    with psycopg.connect(postgres_url()) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute(f"SELECT count(*) FROM {postgres.schema}.clicks").fetchall()
        plan = postgres.eraser().plan(PEOPLE)
        assert plan is not None
        with psycopg.connect(postgres_url()) as other:
            other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            other.execute("SELECT pg_current_xact_id()").fetchall()
            reader.rollback()
            postgres.eraser().apply(plan, PEOPLE)
            held = postgres.eraser().purge(plan, PEOPLE)
            assert held.state == SourceState.LOGICALLY_DELETED
            assert "other transactions could still see them" in held.remains[0]
    assert postgres.eraser().purge(plan, PEOPLE).state == SourceState.PURGED


def test_names_are_in_no_log_of_the_server(postgres: PostgresStore) -> None:
    """Although every statement is logged with all its parameters."""
    postgres.append(made_rows(0))
    with postgres.connected() as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone()
        for setting in ("log_statement = 'all'", "log_parameter_max_length = -1"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")

    def logged() -> bytes:
        files = [path for path in Path(folder).parent.rglob("*log*") if path.is_file()]
        return b"\0".join(path.read_bytes() for path in files if "pg_wal" not in path.parts)

    def wait_until(is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + 120
        while not is_so():
            assert time.monotonic() < until
            time.sleep(0.02)

    def is_logging() -> bool:
        with postgres.connected() as connection:
            return bool(connection.execute("SHOW log_statement").fetchone() == ("all",))

    deleted = f'DELETE FROM "{postgres.schema}"'.encode()
    try:
        wait_until(is_logging)
        marker = name_of(77)
        with postgres.connected() as connection:
            connection.execute(f"SELECT count(*) FROM {postgres.schema}.clicks WHERE page = %s", (marker,))
        erase(postgres, People.named([name_of(1), name_of(2)], UserType.TEXT))
        with postgres.connected() as connection:
            connection.execute("SELECT 'the end of the erasure'")
        wait_until(lambda: b"the end of the erasure" in logged())
        text = logged()
    finally:
        with postgres.connected() as connection:
            for setting in ("log_statement", "log_parameter_max_length"):
                connection.execute(f"ALTER SYSTEM RESET {setting}")
            connection.execute("SELECT pg_reload_conf()")
    assert marker.encode() in text, "the log is read, and has parameters"
    assert deleted in text
    assert name_of(1).encode() not in text
    assert name_of(2).encode() not in text


def test_rows_of_others_stay_in_a_partitioned_table(postgres: PostgresStore) -> None:
    table = f"{postgres.schema}.parts"
    with postgres.connected() as connection:
        typed = '"user" text, action text, reward float8, page text'
        connection.execute(f"CREATE TABLE {table} ({typed}) PARTITION BY LIST (page)")
        connection.execute(f"CREATE TABLE {table}_1 PARTITION OF {table} FOR VALUES IN ('page-1')")
        connection.execute(f"CREATE TABLE {table}_2 PARTITION OF {table} DEFAULT")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", made_rows(0))
    source = open_source(postgres_url(), action="action", reward="reward", table=table)
    plan = open_eraser(source).plan(PEOPLE)
    assert plan is not None
    open_eraser(source).apply(plan, PEOPLE)
    assert open_eraser(source).purge(plan, PEOPLE).state == SourceState.PURGED
    with postgres.connected() as connection:
        left = list(connection.execute(f"SELECT * FROM {table}"))
    assert in_order(left) == in_order(row for row in made_rows(0) if row[0] != name_of(1))


@contextmanager
def role_of(postgres: PostgresStore) -> Iterator[str]:
    """A new role that may use the schema."""
    role = f"{postgres.schema}_owner"
    with postgres.connected() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT ALL ON SCHEMA {postgres.schema} TO {role}")
    try:
        yield role
    finally:
        with postgres.connected() as connection:
            connection.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER")
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


FEW = [(name_of(place % 3), "A", place / 16, "page-1") for place in range(9)]
"""Less than a page of a table, which the server would tidy up when it is read."""


def with_heirs(postgres: PostgresStore) -> None:
    """All rows in a table that inherits from one that inherits from the store's."""
    clicks, may = f"{postgres.schema}.clicks", f'{postgres.schema}."of May"'
    with postgres.connected() as connection:
        connection.execute(f"CREATE TABLE {clicks}_2025 () INHERITS ({clicks})")
        connection.execute(f"CREATE TABLE {may} () INHERITS ({clicks}_2025)")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {may} VALUES (%s, %s, %s, %s)", FEW)


def test_tables_that_inherit_are_purged_too(postgres: PostgresStore) -> None:
    """Before version 18, VACUUM FULL of a table leaves them out."""
    with_heirs(postgres)
    name = name_of(1).encode()
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    postgres.eraser().apply(plan, PEOPLE)
    assert found_in(postgres.contents(), [name])
    assert postgres.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    assert not found_in(postgres.contents(), [name])
    assert in_order(postgres.rows()) == in_order(row for row in FEW if row[0] != name_of(1))


@pytest.mark.parametrize("foreign", ["clicks", "clicks_2025", '"of May"'])
def test_a_table_of_another_owner_is_not_purged(postgres: PostgresStore, foreign: str) -> None:
    """The server warns, and leaves it as it is."""
    with_heirs(postgres)
    with role_of(postgres) as role:
        with postgres.connected() as connection:
            for table in ("clicks", "clicks_2025", '"of May"'):
                if table == foreign:
                    connection.execute(f"GRANT SELECT, DELETE ON {postgres.schema}.{table} TO {role}")
                else:
                    connection.execute(f"ALTER TABLE {postgres.schema}.{table} OWNER TO {role}")
        table = f"{postgres.schema}.clicks"
        source = open_source(as_role(role), action="action", reward="reward", table=table)
        plan = open_eraser(source).plan(PEOPLE)
        assert plan is not None
        open_eraser(source).apply(plan, PEOPLE)
        held = open_eraser(source).purge(plan, PEOPLE)
        assert held.state == SourceState.LOGICALLY_DELETED
        assert "not all could be written again" in held.remains[0]


def file_with_rowids(store: SqliteStore) -> None:
    """Tables whose rows have rowids of their own, with gaps, and a table that refers to them."""
    store.folder.mkdir()
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("CREATE TABLE clicks (user, action, reward, page)")
        rows = [(name_of(place % 3), "A", 0.5, f"page-{place}") for place in range(9)]
        connection.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?)", rows)
        connection.execute("CREATE TABLE notes (click INTEGER, page)")
        connection.execute("INSERT INTO notes SELECT rowid, page FROM clicks WHERE user <> ?", (name_of(1),))
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(page, content = 'clicks')")
        connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
        connection.execute('CREATE TABLE "it\'s ""another""" (rowid, "a b" COLLATE NOCASE)')
        connection.executemany('INSERT INTO "it\'s ""another""" VALUES (?, ?)', [("x", 1), ("y", 2)])
        connection.execute('DELETE FROM "it\'s ""another""" WHERE rowid = \'x\'')
        connection.execute("CREATE TABLE keyed (n INTEGER PRIMARY KEY, value)")
        connection.execute("INSERT INTO keyed VALUES (7, 'seven')")
        connection.execute("CREATE TABLE sorted (n INTEGER PRIMARY KEY) WITHOUT ROWID")


def rowids(store: SqliteStore) -> list[list[Any]]:
    with closing(sqlite3.connect(store.path)) as connection:
        asked = (
            f"SELECT rowid, * FROM clicks WHERE user <> '{name_of(1)}'",
            "SELECT notes.page, clicks.page FROM notes LEFT JOIN clicks ON clicks.rowid = click",
            'SELECT _rowid_, * FROM "it\'s ""another"""',
            "SELECT rowid, * FROM keyed",
            "SELECT rowid FROM words WHERE words MATCH '\"page 8\"'",
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name",
        )
        return [connection.execute(sql).fetchall() for sql in asked]


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_purge_of_sqlite_leaves_rows_their_rowids(sqlite: SqliteStore, mode: str) -> None:
    file_with_rowids(sqlite)
    with closing(sqlite3.connect(sqlite.path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    before = rowids(sqlite)
    plan = sqlite.eraser().plan(PEOPLE)
    assert plan is not None
    sqlite.eraser().apply(plan, PEOPLE)
    assert sqlite.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    assert rowids(sqlite) == before
    assert found_in(sqlite.contents(), [name_of(1).encode()]) == set()


def test_what_an_interrupted_purge_of_sqlite_leaves_is_dropped(sqlite: SqliteStore) -> None:
    file_with_rowids(sqlite)
    before = rowids(sqlite)
    erase(sqlite, PEOPLE)

    class Killed(BaseException):
        """The process is gone."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            if sql == "VACUUM" or sql.startswith("DROP"):
                raise Killed
            return super().execute(sql, *given)

    for finish in ("apply", "purge"):
        connection = sqlite3.connect(sqlite.path, isolation_level=None, factory=Connection)
        with closing(connection), pytest.raises(Killed):
            vacuum_with_rowids(connection)
        assert rowids(sqlite) != before
        getattr(sqlite.eraser(), finish)(sqlite.eraser().empty_plan(), PEOPLE)
        assert rowids(sqlite) == before


def test_a_version_of_sqlite_that_would_change_rowids_does_not_purge(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_with_rowids(sqlite)
    before = rowids(sqlite)
    erase(sqlite, PEOPLE)
    monkeypatch.setattr("armnesia.logs.erasing.sqlite_rowids._indexes_keep_rowids", lambda: False)
    erasure = sqlite.eraser().purge(sqlite.eraser().empty_plan(), PEOPLE)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert "would give the rows of tables without INTEGER PRIMARY KEY other rowids" in erasure.remains[0]
    assert rowids(sqlite) == before


@pytest.mark.parametrize(
    ("key", "parts", "refused"),
    [
        ('LIST ("user")', ["FOR VALUES IN ('{name}')", "DEFAULT"], True),
        ('RANGE (lower("user"))', ["FOR VALUES FROM (MINVALUE) TO ('{name}')", "DEFAULT"], True),
        ('HASH ("user")', ["FOR VALUES WITH (MODULUS 1, REMAINDER 0)"], False),
        ("LIST (page)", ["DEFAULT"], False),
    ],
)
@pytest.mark.parametrize("read", ["all", "all_0"], ids=["whole", "partition"])
def test_tables_of_postgres_whose_partitions_name_people_are_refused(
    postgres: PostgresStore, key: str, parts: list[str], refused: bool, read: str
) -> None:
    table = f"{postgres.schema}.all"
    with postgres.connected() as connection:
        typed = '"user" text, action text, reward float8, page text'
        connection.execute(f"CREATE TABLE {table} ({typed}) PARTITION BY {key}")
        for number, bounds in enumerate(parts):
            part = f"{table}_{number} PARTITION OF {table} {bounds.format(name=name_of(1))}"
            connection.execute(f"CREATE TABLE {part}")
        connection.execute(f"INSERT INTO {table} VALUES (%s, 'A', 0.5, 'p')", (name_of(1),))
    source = open_source(postgres_url(), action="action", reward="reward", table=f"{postgres.schema}.{read}")
    if refused:
        with pytest.raises(UnsupportedError, match="bounds of partitions name people") as error:
            open_eraser(source)
        assert name_of(1) not in str(error.value)
    else:
        assert open_eraser(source).plan(PEOPLE) is not None


def test_a_table_below_a_partition_is_looked_at_too(postgres: PostgresStore) -> None:
    table = f"{postgres.schema}.all"
    with postgres.connected() as connection:
        typed = '"user" text, action text, reward float8, page text'
        connection.execute(f"CREATE TABLE {table} ({typed}) PARTITION BY LIST (page)")
        connection.execute(f'CREATE TABLE {table}_0 PARTITION OF {table} DEFAULT PARTITION BY LIST ("user")')
        connection.execute(f"CREATE TABLE {table}_1 PARTITION OF {table}_0 FOR VALUES IN ('ann')")
    source = open_source(postgres_url(), action="action", reward="reward", table=table)
    with pytest.raises(UnsupportedError, match="it is partitioned by the user column"):
        open_eraser(source)


def test_names_in_a_column_of_json_are_erased(postgres: PostgresStore) -> None:
    """Though PostgreSQL cannot compare values of this type."""
    table = f"{postgres.schema}.told"
    with postgres.connected() as connection:
        connection.execute(f'CREATE TABLE {table} ("user" json, action text, reward float8)')
        for name in ("ann", name_of(1), name_of(1)):
            connection.execute(f"INSERT INTO {table} VALUES (to_json(%s::text), 'A', 0.5)", (name,))
    eraser = open_eraser(open_source(postgres_url(), action="action", reward="reward", table=table))
    plan = eraser.plan(PEOPLE)
    assert plan is not None
    eraser.apply(plan, PEOPLE)
    assert eraser.purge(plan, PEOPLE).state == SourceState.PURGED
    with postgres.connected() as connection:
        assert connection.execute(f'SELECT "user" FROM {table}').fetchall() == [("ann",)]


@pytest.mark.parametrize("role", ["user", "id"])
@pytest.mark.parametrize(
    ("value", "refused"),
    [("0.1", True), ("16777216", True), ("7", False), ("1234567", False), ("0.5", False), (None, False)],
)
def test_short_floats_of_postgres_that_it_shows_with_fewer_digits_are_refused(
    postgres: PostgresStore, value: str | None, refused: bool, role: str
) -> None:
    table = f"{postgres.schema}.short"
    with postgres.connected() as connection:
        connection.execute(f"CREATE TABLE {table} (who real, action text, reward float8)")
        connection.execute(f"INSERT INTO {table} VALUES (5, 'A', 0.5), (%s::real, 'A', 0.5)", (value,))
    columns: Any = {"action": "action", "reward": "reward", role: "who"}
    if refused:
        with pytest.raises(InvalidLogError, match=f"{role} column 'who' is of type real and must hold num"):
            open_source(postgres_url(), table=table, **columns)
    else:
        assert open_source(postgres_url(), table=table, **columns).n_rows() == 2


def purged(store: Store, people: People) -> Any:
    plan = store.eraser().plan(people)
    assert plan is not None
    store.eraser().apply(plan, people)
    return store.eraser().purge(plan, people)


def assert_named(found: Any) -> None:
    assert found.state == SourceState.LOGICALLY_DELETED
    assert any("has a word that is a name of somebody" in sentence for sentence in found.remains)


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE INDEX heavy ON clicks (action) WHERE user = '{}'",
        "CREATE TRIGGER heavy AFTER INSERT ON clicks WHEN new.user = '{}' BEGIN SELECT 1; END",
        "CREATE VIEW heavy AS SELECT * FROM clicks WHERE user = '{}'",
    ],
)
def test_a_definition_of_sqlite_that_names_somebody_is_told(sqlite: SqliteStore, definition: str) -> None:
    sqlite.with_parts(2)
    with closing(sqlite3.connect(sqlite.path)) as database, database:
        database.execute(definition.format(name_of(1)))
    assert_named(purged(sqlite, PEOPLE))
    assert purged(sqlite, People.named([name_of(2)])).state == SourceState.PURGED


def test_a_constraint_of_postgres_that_names_somebody_is_told(postgres: PostgresStore) -> None:
    postgres.with_parts(2)
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {postgres.schema}.heavy (CHECK (\"user\" = '{name_of(1)}'))"
            f" INHERITS ({postgres.schema}.clicks)"
        )
    assert_named(purged(postgres, PEOPLE))
    assert purged(postgres, People.named([name_of(2)])).state == SourceState.PURGED


def test_labels_of_the_type_of_users_in_postgres_are_told(postgres: PostgresStore) -> None:
    postgres.with_parts(1)
    names = ", ".join(f"'{name}'" for name in sorted({row[0] for row in postgres.rows() if row[0]}))
    schema = postgres.schema
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE TYPE {schema}.people AS ENUM ({names})")
        connection.execute(
            f'ALTER TABLE {schema}.clicks ALTER COLUMN "user" TYPE {schema}.people'
            f' USING "user"::text::{schema}.people'
        )
    assert_named(purged(postgres, PEOPLE))


def test_a_purge_clears_samples_also_if_others_deleted_the_rows(sqlite: SqliteStore) -> None:
    sqlite.with_parts(2)
    plan = sqlite.eraser().plan(PEOPLE)
    assert plan is not None
    with closing(sqlite3.connect(sqlite.path)) as database, database:
        database.execute("CREATE TABLE samples (tbl, idx, sample)")
        database.execute("INSERT INTO samples VALUES ('clicks', 'by_user', ?)", (name_of(1).encode(),))
        database.execute("PRAGMA writable_schema = ON")
        database.execute(
            "UPDATE sqlite_master SET name = 'sqlite_stat4', tbl_name = 'sqlite_stat4',"
            " sql = 'CREATE TABLE sqlite_stat4 (tbl, idx, sample)' WHERE name = 'samples'"
        )
        database.execute("DELETE FROM clicks WHERE user = ?", (name_of(1),))
    assert sqlite.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    assert name_of(1).encode() not in sqlite.path.read_bytes()


def test_a_table_of_sqlite_with_a_point_in_its_name_is_erased(sqlite: SqliteStore) -> None:
    sqlite.append(made_rows(0))
    with closing(sqlite3.connect(sqlite.path)) as database, database:
        database.execute('ALTER TABLE clicks RENAME TO "a.b"')
    eraser = open_eraser(open_sqlite(sqlite, "main.a.b"))
    plan = eraser.plan(PEOPLE)
    assert plan is not None
    eraser.apply(plan, PEOPLE)
    assert eraser.purge(plan, PEOPLE).state == SourceState.PURGED


def test_a_trigger_of_postgres_that_keeps_the_rows_is_said(postgres: PostgresStore) -> None:
    rows, schema = postgres.with_parts(1), postgres.schema
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(
            f"CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        )
        connection.execute(
            f"CREATE TRIGGER kept BEFORE DELETE ON {schema}.clicks"
            f" FOR EACH ROW EXECUTE FUNCTION {schema}.keep()"
        )
    plan = postgres.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="a trigger or rule of the table keeps the rows, or brings"):
        postgres.eraser().apply(plan, PEOPLE)
    assert in_order(postgres.rows()) == in_order(rows)
