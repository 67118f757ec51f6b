"""Erasers of tables in databases: triggers, rights, types, logs, and what others still read."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs.source import open_source
from armnesia.logs.statements import Chosen
from tests.logs.conformance.sources import Place
from tests.logs.conformance.test_guards import statements_logged
from tests.logs.erasing.stores import PEOPLE, PostgresStore, SQLiteStore, filled, key, made_rows, without

BOB = Chosen(users=[PEOPLE[1]])


# SQLite


@pytest.mark.parametrize(
    "declared",
    [
        "CREATE TABLE clicks (user, action, reward, event PRIMARY KEY, note) WITHOUT ROWID",
        "CREATE TABLE clicks (user TEXT COLLATE NOCASE, action TEXT, reward REAL, event TEXT, note INTEGER)",
        "CREATE TABLE clicks (user, action, reward, event, note, twice AS (note * 2) STORED)",
    ],
    ids=["without rowid", "collation", "generated column"],
)
def test_tables_of_sqlite(declared: str, sqlite: SQLiteStore) -> None:
    sqlite.run(declared)
    rows = [*made_rows(1), (PEOPLE[1].upper(), "A", 1.0, "event-9", 9)]
    sqlite.run("INSERT INTO clicks (user, action, reward, event, note) VALUES (?, ?, ?, ?, ?)", rows)
    assert sqlite.eraser().delete(BOB) == 3
    assert sorted(sqlite.rows(), key=key) == without(rows, PEOPLE[1])


@pytest.mark.parametrize(
    "trigger",
    [
        "AFTER DELETE ON clicks BEGIN UPDATE clicks SET note = note + 1 WHERE event = 'event-1-0'; END",
        "AFTER DELETE ON clicks BEGIN INSERT INTO clicks SELECT old.user, 'A', 1, old.event, 0; END",
        "BEFORE DELETE ON clicks BEGIN SELECT RAISE(IGNORE); END",
    ],
    ids=["changes another row", "brings the row back", "keeps the row"],
)
def test_a_trigger_of_sqlite_that_changes_rows_is_refused(trigger: str, sqlite: SQLiteStore) -> None:
    rows = filled(sqlite)
    sqlite.run(f"CREATE TRIGGER other {trigger}")
    with pytest.raises(InvalidLogError, match="a trigger, rule or foreign key of the table"):
        sqlite.eraser().delete(BOB)
    assert sorted(sqlite.rows(), key=key) == without(rows)


@pytest.mark.parametrize(
    "declared",
    [
        "CREATE VIEW clicks AS SELECT * FROM stored",
        "CREATE VIRTUAL TABLE clicks USING fts5(user, action, reward, event, note)",
    ],
)
def test_views_and_virtual_tables_of_sqlite_are_refused(declared: str, sqlite: SQLiteStore) -> None:
    sqlite.run("CREATE TABLE stored (user, action, reward, event, note)")
    sqlite.run(declared)
    with pytest.raises(UnsupportedError, match="it must be a table"):
        sqlite.eraser().check()


def test_a_write_ahead_log_is_emptied_when_nobody_reads_it(
    sqlite: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect  # without waiting for a lock
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **{"timeout": 0} | named))
    sqlite.run(sqlite.declared)
    sqlite.run("PRAGMA journal_mode = wal")
    with closing(sqlite3.connect(sqlite.folder / "log.db", isolation_level=None)) as reader:
        rows = filled(sqlite)
        reader.execute("BEGIN")
        assert len(reader.execute("SELECT * FROM clicks").fetchall()) == len(rows)
        assert sqlite.eraser().delete(BOB) == 6
        with pytest.raises(InvalidLogError, match="because others read it"):
            sqlite.eraser().purge()
        assert len(reader.execute("SELECT * FROM clicks").fetchall()) == len(rows)
        reader.execute("COMMIT")
        assert sqlite.eraser().purge() is None
        assert (sqlite.folder / "log.db-wal").stat().st_size == 0
        assert sqlite.files_with(PEOPLE[1]) == 0


# PostgreSQL


@pytest.mark.parametrize(
    ("type_", "names", "chosen"),
    [
        ("bigint", [7, 70, None], "7"),
        ("numeric", ["7", "7.00", "70.5", "NaN"], "7"),
        ("char(5)", ["7", "70"], "7"),
        ("float8", [7.0, 1e20, 0.1], "7"),
        ("uuid", [f"00000000-0000-0000-0000-00000000000{n}" for n in range(2)], None),
        ("bytea", [b"\\a\xff", b"\\a"], "\\x5Ca\\xFF"),
        ("date", ["2026-01-31", "2026-02-01"], "2026-01-31"),
        ("timestamptz", ["2026-01-31 12:00+02", "2026-02-01"], "2026-01-31 10:00:00+00:00"),
        ("boolean", [True, False], "True"),
        ("varchar(9)", ["ann", "Ann", "ann "], "ann"),
    ],
)
def test_names_of_every_type_of_postgresql(
    type_: str, names: list[Any], chosen: str | None, postgres: PostgresStore
) -> None:
    postgres.run(f"CREATE SCHEMA {postgres.schema}")
    declared = postgres.declared.format(postgres.table)
    postgres.run(f"CREATE {declared}".replace('"user" text', f'"user" {type_}'))
    rows = [(name, "A", 1.0, f"event-{at}", at) for at, name in enumerate(names)]
    postgres.run(f"INSERT INTO {postgres.table} VALUES (%s, %s, %s, %s, %s)", rows)
    assert postgres.eraser().delete(Chosen(users=[chosen or names[0]])) == (2 if type_ == "numeric" else 1)
    left = {row[3] for row in postgres.rows()}
    assert left == {row[3] for row in rows[2 if type_ == "numeric" else 1 :]}


def test_names_do_not_stand_in_the_log_of_a_server(tmp_path: Path) -> None:
    """Nor in messages: every statement is logged, with its parameters."""
    place, name = Place(tmp_path), "person-of-the-log"

    def erase(address: dict[str, Any]) -> None:
        eraser = open_source(address["source"], table=address["table"]).named_by(UserType.TEXT).eraser()
        assert eraser.delete(Chosen(users=[name])) == 1
        assert eraser.purge() is None

    try:
        assert statements_logged(place, name, erase) == []
    finally:
        place.close()


FUNCTION = "CREATE FUNCTION {schema}.other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
CHANGES = "UPDATE {table} SET note = note + 1 WHERE event = 'event-1-0'; RETURN old;"
TRIGGERS: dict[str, list[str]] = {
    "changes another row when it is committed": [
        FUNCTION.replace("{body}", CHANGES),
        "CREATE CONSTRAINT TRIGGER other AFTER DELETE ON {table} DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION {schema}.other()",
    ],
    "keeps the row": ["CREATE RULE other AS ON DELETE TO {table} DO INSTEAD NOTHING"],
    "a foreign key": [
        "ALTER TABLE {table} ADD UNIQUE (event), ADD COLUMN because text REFERENCES {table} (event)"
        " ON DELETE CASCADE",
        "UPDATE {table} SET because = 'event-1-1' WHERE event = 'event-1-2'",
    ],
}


@pytest.mark.parametrize("case", TRIGGERS)
def test_what_changes_other_rows_of_postgresql_is_refused(case: str, postgres: PostgresStore) -> None:
    rows = filled(postgres)
    for each in TRIGGERS[case]:
        postgres.run(each.replace("{table}", postgres.table).replace("{schema}", postgres.schema))
    with pytest.raises(InvalidLogError, match="a trigger, rule or foreign key of the table"):
        postgres.eraser().delete(BOB)
    assert sorted(postgres.rows(), key=key) == without(rows)


def test_partitions_are_erased_from(postgres: PostgresStore) -> None:
    postgres.run(f"CREATE SCHEMA {postgres.schema}")
    postgres.run(f"CREATE {postgres.declared.format(postgres.table)} PARTITION BY LIST (action)")
    for action in "AB":
        values = f"FOR VALUES IN ('{action}')"
        postgres.run(f"CREATE TABLE {postgres.table}_{action} PARTITION OF {postgres.table} {values}")
    rows = filled(postgres)
    assert postgres.eraser().delete(BOB) == 6
    assert sorted(postgres.rows(), key=key) == without(rows, PEOPLE[1])


def test_a_view_of_postgresql_is_refused(postgres: PostgresStore) -> None:
    filled(postgres)
    postgres.run(f"ALTER TABLE {postgres.table} RENAME TO kept")
    postgres.run(f"CREATE VIEW {postgres.table} AS SELECT * FROM {postgres.schema}.kept")
    with pytest.raises(UnsupportedError, match="it must be a table"):
        postgres.eraser().delete(BOB)


def test_a_role_that_sees_only_some_rows_deletes_none(postgres: PostgresStore) -> None:
    rows, role = filled(postgres), f"role_{postgres.schema}"
    for each in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {postgres.schema} TO {role}",
        f"GRANT SELECT, DELETE ON {postgres.table} TO {role}",
        f"ALTER TABLE {postgres.table} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY visible ON {postgres.table} USING (note < 150)",
    ):
        postgres.run(each)
    postgres.role = role
    try:
        with pytest.raises(InvalidLogError, match="42501"):  # insufficient privilege
            postgres.eraser().delete(BOB)
    finally:
        postgres.run(f"DROP OWNED BY {role}")
        postgres.run(f"DROP ROLE {role}")
    assert sorted(postgres.rows(), key=key) == without(rows)


def test_another_writer_of_the_same_rows_is_told(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, eraser = filled(postgres), postgres.eraser()
    among = eraser._among  # type: ignore[attr-defined]

    def beside(connection: Any, *given: Any) -> Any:
        connection.execute("SELECT 1 FROM pg_class")  # from here on this transaction sees one snapshot
        postgres.run(f"UPDATE {postgres.table} SET note = 0 WHERE event = 'event-1-1'")
        return among(connection, *given)

    monkeypatch.setattr(eraser, "_among", beside)
    with pytest.raises(InvalidLogError, match=r"40001\); erase again"):
        eraser.delete(BOB)
    monkeypatch.undo()
    assert eraser.delete(BOB) == 6
    assert sorted(postgres.rows(), key=key) == without(rows, PEOPLE[1])
