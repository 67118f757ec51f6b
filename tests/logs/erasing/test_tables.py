"""Erasers of tables in databases: triggers, rights, types, logs, and what others still read."""

import sqlite3
import subprocess
import sys
from typing import Any

import pytest

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs.source import open_source
from armnesia.logs.statements import Chosen
from tests.logs.conformance.sources import Place
from tests.logs.conformance.test_guards import statements_logged
from tests.logs.erasing.rows import BOB, PEOPLE, eraser_of, filled, left, made_rows, of_people, stored
from tests.promises.driver import Row
from tests.promises.lakes import Postgres, Sqlite

# SQLite


@pytest.mark.parametrize(
    "declared",
    [
        "CREATE TABLE clicks (event PRIMARY KEY, person, arm, reward, country) WITHOUT ROWID",
        "CREATE TABLE clicks (event, person TEXT COLLATE NOCASE, arm, reward, country)",
        "CREATE TABLE clicks (event, person, arm, reward, country, twice AS (reward * 2) STORED)",
    ],
    ids=["without rowid", "collation", "generated column"],
)
def test_tables_of_sqlite(declared: str, sqlite: Sqlite) -> None:
    sqlite.run(declared)
    rows = [*made_rows(1), Row("event-9", PEOPLE[1].upper(), "A", 4)]
    sqlite.append(rows)
    assert eraser_of(sqlite).delete(BOB) == 3
    assert stored(sqlite) == left(rows, PEOPLE[1])


@pytest.mark.parametrize(
    "trigger",
    [
        "AFTER DELETE ON clicks BEGIN UPDATE clicks SET reward = 0.75 WHERE event = 'event-1-0'; END",
        "AFTER DELETE ON clicks BEGIN INSERT INTO clicks (person, reward) VALUES (old.person, 1); END",
        "BEFORE DELETE ON clicks BEGIN SELECT RAISE(IGNORE); END",
    ],
    ids=["changes another row", "brings the row back", "keeps the row"],
)
def test_a_trigger_of_sqlite_that_changes_rows_is_refused(trigger: str, sqlite: Sqlite) -> None:
    rows = filled(sqlite)
    sqlite.run(f"CREATE TRIGGER other {trigger}")
    with pytest.raises(InvalidLogError, match="a trigger, rule or foreign key of the table"):
        eraser_of(sqlite).delete(BOB)
    assert stored(sqlite) == left(rows)


@pytest.mark.parametrize(
    "declared",
    [
        "CREATE VIEW clicks AS SELECT * FROM stored",
        "CREATE VIRTUAL TABLE clicks USING fts5(event, person, arm, reward)",
    ],
)
def test_views_and_virtual_tables_of_sqlite_are_refused(declared: str, sqlite: Sqlite) -> None:
    sqlite.run("CREATE TABLE stored (event, person, arm, reward)")
    sqlite.run(declared)
    with pytest.raises(UnsupportedError, match="it must be a table"):
        eraser_of(sqlite).check()


READER = """
import sqlite3, sys
reader = sqlite3.connect(sys.argv[1], isolation_level=None)
reader.execute("BEGIN")
count = lambda: print(len(reader.execute("SELECT * FROM clicks").fetchall()), flush=True)
count()
sys.stdin.readline()
count()
"""


def test_a_write_ahead_log_is_emptied_when_nobody_reads_it(
    sqlite: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect  # without waiting for a lock
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **{"timeout": 0} | named))
    sqlite.run(sqlite.declared)
    sqlite.run("PRAGMA journal_mode = wal")
    rows = filled(sqlite)
    command = [sys.executable, "-c", READER, str(sqlite.folder / "log.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == f"{len(rows)}\n"
        assert eraser_of(sqlite).delete(BOB) == 6
        with pytest.raises(InvalidLogError, match="because others read it"):
            eraser_of(sqlite).purge()
        assert reader.communicate("\n")[0] == f"{len(rows)}\n"
    assert eraser_of(sqlite).purge()
    wal = sqlite.folder / "log.db-wal"
    assert not wal.exists() or wal.stat().st_size == 0
    assert PEOPLE[1].encode() not in sqlite.bytes()


# PostgreSQL


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("type_", "people", "chosen"),
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
        ("inet", ["10.0.0.1", "10.0.0.1/24", None], "10.0.0.1"),
        ("varchar(9)", ["ann", "Ann", "ann "], "ann"),
    ],
)
def test_names_of_every_type_of_postgresql(
    type_: str, people: list[Any], chosen: str | None, postgres: Postgres
) -> None:
    postgres.run(f"ALTER TABLE {postgres.table} ALTER person TYPE {type_} USING NULL")
    rows = of_people(*people)
    postgres.append(rows)
    number = 2 if type_ == "numeric" else 1
    assert eraser_of(postgres).delete(Chosen(users=[chosen or people[0]])) == number
    assert {row[0] for row in postgres.values()} == {row.event for row in rows[number:]}


def test_names_do_not_stand_in_the_log_of_a_server(place: Place) -> None:
    """Nor in messages: every statement is logged, with its parameters."""
    name = "person-of-the-log"

    def erase(address: dict[str, Any]) -> None:
        eraser = open_source(address["source"], table=address["table"]).named_by(UserType.TEXT).eraser()
        assert eraser.delete(Chosen(users=[name])) == 1

    assert statements_logged(place, name, erase) == []


FUNCTION = "CREATE FUNCTION {schema}.other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
CHANGES = "UPDATE {table} SET reward = 0.75 WHERE event = 'event-1-0'; RETURN old;"
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
def test_what_changes_other_rows_of_postgresql_is_refused(case: str, postgres: Postgres) -> None:
    rows = filled(postgres)
    for each in TRIGGERS[case]:
        postgres.run(each.replace("{table}", postgres.table).replace("{schema}", postgres.schema))
    with pytest.raises(InvalidLogError, match="a trigger, rule or foreign key of the table"):
        eraser_of(postgres).delete(BOB)
    assert stored(postgres) == left(rows)


def test_partitions_are_erased_from(postgres: Postgres) -> None:
    postgres.run(f"DROP TABLE {postgres.table}")
    postgres.run(f"CREATE TABLE {postgres.table} {postgres.declared} PARTITION BY LIST (arm)")
    for arm in "AB":
        values = f"FOR VALUES IN ('{arm}')"
        postgres.run(f"CREATE TABLE {postgres.table}_{arm} PARTITION OF {postgres.table} {values}")
    rows = filled(postgres)
    assert eraser_of(postgres).delete(BOB) == 6
    assert stored(postgres) == left(rows, PEOPLE[1])


def test_a_role_that_sees_only_some_rows_deletes_none(postgres: Postgres) -> None:
    rows, role = filled(postgres), f"role_{postgres.schema}"
    for each in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {postgres.schema} TO {role}",
        f"GRANT SELECT, DELETE ON {postgres.table} TO {role}",
        f"ALTER TABLE {postgres.table} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY visible ON {postgres.table} USING (reward < 0.5)",
    ):
        postgres.run(each)
    postgres.source += f"{'&' if '?' in postgres.source else '?'}options=-c%20role%3D{role}"
    try:
        with pytest.raises(InvalidLogError, match="42501"):  # insufficient privilege
            eraser_of(postgres).delete(BOB)
    finally:
        postgres.run(f"DROP OWNED BY {role}")
        postgres.run(f"DROP ROLE {role}")
    assert stored(postgres) == left(rows)


def test_another_writer_of_the_same_rows_is_told(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, eraser = filled(postgres), eraser_of(postgres)
    among = eraser._among  # type: ignore[attr-defined]

    def beside(connection: Any, *given: Any) -> Any:
        connection.execute("SELECT 1 FROM pg_class")  # from here on this transaction sees one snapshot
        postgres.run(f"UPDATE {postgres.table} SET reward = 0.75 WHERE event = 'event-1-1'")
        return among(connection, *given)

    monkeypatch.setattr(eraser, "_among", beside)
    with pytest.raises(InvalidLogError, match=r"40001\); erase again"):
        eraser.delete(BOB)
    monkeypatch.undo()
    assert eraser.delete(BOB) == 6
    assert stored(postgres) == left(rows, PEOPLE[1])
