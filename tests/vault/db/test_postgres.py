"""What a PostgreSQL server keeps beside the vault's tables, and what it says when it is cut off."""

import os
import random
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from armnesia.core.errors import VaultBusyError, VaultError
from armnesia.vault import Configuration, Vault
from armnesia.vault.db import postgres
from armnesia.vault.db.postgres import PostgresDatabase
from tests.databases import SERVER, Place, postgres_url
from tests.vault.raw_vaults import change, values

PERSON, ROWS = "ann", 3000
TABLES = ("record", "decision", "vault", "suppressed", "people")
NOTED = (
    "SELECT attname, coalesce(most_common_vals::text, histogram_bounds::text) FROM pg_stats"
    " WHERE schemaname = ?"
)


@pytest.fixture
def administrator() -> Iterator[psycopg.Connection]:
    with closing(psycopg.connect(postgres_url(), autocommit=True)) as connection:
        yield connection


def filled(place: Place) -> Vault:
    """One person has a third of the rows, so that whoever looks at a sample of them meets that person."""
    vault = place.create(Configuration(actions=("A", "B")))
    rewards = random.Random(place.url)  # others than those of the vaults of other tests on the same server
    log = {
        "action": ["A", "B"] * (ROWS // 2),
        "reward": [rewards.random() for _ in range(ROWS)],
        "user": [PERSON if number % 3 == 0 else f"user-{number}" for number in range(ROWS)],
        "id": list(range(ROWS)),
    }
    vault.ingest(log, user="user", id="id")
    return vault


def schema_of(vault: Vault) -> str:
    database = vault.database
    assert isinstance(database, PostgresDatabase)
    return database.schema


def analyse(vault: Vault) -> None:
    """As the server does by itself, when many rows have changed."""
    for table in TABLES:
        change(vault, f"ANALYZE {table}")


def files_with(connection: psycopg.Connection, *marks: bytes) -> list[str]:
    """The files of the whole server in which one of these is, but for its write-ahead log."""
    if SERVER in os.environ:
        pytest.skip("the files of another server cannot be read")
    connection.execute("CHECKPOINT")
    ((folder,),) = connection.execute("SHOW data_directory").fetchall()
    found = []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and "pg_wal" not in path.parts:
            data = path.read_bytes()
            if any(mark in data for mark in marks):
                found.append(str(path.relative_to(folder)))
    return found


def marks_of(vault: Vault) -> list[bytes]:
    """One of the person's rows, and the sums, which with those after a deletion tell what was deleted."""
    owner = vault.all_keys.owner_digests([PERSON])[0]
    identity, *_ = values(vault, "SELECT identity FROM record WHERE owner = ?", owner)
    ((statistics,),) = values(vault, "SELECT statistics FROM decision")
    return [*identity, statistics.encode()]


def test_the_planner_takes_no_samples(postgres_place: Place) -> None:
    with filled(postgres_place) as vault:
        analyse(vault)
        assert values(vault, NOTED, schema_of(vault)) == []


@pytest.mark.slow
def test_after_compact_no_file_of_the_server_has_the_person(
    postgres_place: Place, administrator: psycopg.Connection
) -> None:
    with filled(postgres_place) as vault:
        analyse(vault)
        marks = marks_of(vault)
        assert len(files_with(administrator, *marks)) >= 2
        vault.forget(users=[PERSON])
        analyse(vault)
        vault.compact()
        assert files_with(administrator, *marks) == []
        analyse(vault)
        assert values(vault, NOTED, schema_of(vault)) == []
        assert vault.verify().holds


@pytest.fixture
def other_database(administrator: psycopg.Connection) -> Iterator[str]:
    """The URL of another database of the same server."""
    name = f"other_{uuid.uuid4().hex[:12]}"
    administrator.execute(f"CREATE DATABASE {name}")
    yield in_database(postgres_url(), name)
    administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


def in_database(url: str, name: str) -> str:
    address, _, options = url.partition("?")
    return f"{address.rpartition('/')[0]}/{name}{'?' if options else ''}{options}"


def test_a_transaction_of_another_database_keeps_deleted_rows_in_the_files(
    postgres_place: Place, other_database: str, administrator: psycopg.Connection
) -> None:
    """VACUUM FULL keeps what its own snapshot sees, which begins at the oldest transaction that writes."""
    filled(postgres_place).close()
    with postgres_place.open(timeout=0.3) as vault:
        owner = vault.all_keys.owner_digests([PERSON])[0]
        (mark,) = next(iter(values(vault, "SELECT identity FROM record WHERE owner = ?", owner)))
        with closing(psycopg.connect(other_database)) as other:
            other.execute("CREATE TABLE written (number integer)")
            vault.forget(users=[PERSON])
            with pytest.raises(VaultError, match="another transaction can still see deleted rows"):
                vault.compact()
            other.rollback()
            other.execute("SELECT 1 FROM pg_class")  # of a reader there VACUUM FULL is not in need
            with postgres_place.open() as patient:  # the server's own vacuum may be at work for a moment
                patient.compact()
        assert files_with(administrator, mark) == []


def test_tables_that_the_server_does_not_rewrite_are_not_erased(
    postgres_place: Place, administrator: psycopg.Connection
) -> None:
    """To a role that may not, it only gives a warning."""
    with filled(postgres_place) as vault:
        vault.forget(users=[PERSON])
        schema = schema_of(vault)
    role = f"{schema[:20]}_writer"
    administrator.execute(f"CREATE ROLE {role} LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
    try:
        url = re.sub("//[^@]*@", f"//{role}@", postgres_place.url)
        with (
            Vault.open(url, keys=postgres_place.keys, timeout=0.3) as vault,
            pytest.raises(VaultError, match="did not rewrite the table"),
        ):
            vault.compact()
    finally:
        administrator.execute(f"DROP ROLE {role}")


def test_writers_wait_for_each_other_also_in_a_damaged_vault(postgres_place: Place) -> None:
    filled(postgres_place).close()
    with postgres_place.open() as vault, postgres_place.open(timeout=0.2) as other:
        change(vault, "DELETE FROM vault")
        writers = [each.database.writing() for each in (vault, other)]
        with writers[0], pytest.raises(VaultBusyError), writers[1]:
            pass


def test_what_amcheck_finds_is_a_problem(postgres_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a function of the same name: the extension may not be installed."""
    with filled(postgres_place) as vault:
        monkeypatch.setattr(postgres, "_AMCHECK", f"SELECT '{schema_of(vault)}.bt_index_check'")
        change(
            vault,
            "CREATE FUNCTION bt_index_check(regclass, boolean) RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
            " IF $1::text LIKE '%record_owner' THEN RAISE SQLSTATE 'XX002'; END IF; END $$",
        )
        (problem,) = vault.verify().problems
        assert "is damaged: SQLSTATE XX002" in problem
        change(vault, "DROP INDEX record_owner")
        (problem,) = vault.verify().problems
        assert problem == "schema: 'index record_owner' is missing"


def test_the_encoding_of_the_client_does_not_matter(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(postgres_place).close()
    for encoding in ("LATIN1", "SQL_ASCII"):
        monkeypatch.setenv("PGCLIENTENCODING", encoding)
        with postgres_place.open() as vault:
            assert vault.forget(users=[f"user-{len(encoding)}", "näme"]).records <= 1
            assert vault.verify().holds


def test_many_people_are_looked_up_one_by_one_without_samples(postgres_place: Place) -> None:
    """Nothing tells the server that few rows are theirs; it must not read all rows for that."""
    with filled(postgres_place) as vault, vault.database.reading() as session:
        names = [vault.all_keys.owner_digests([f"user-{number}"])[0] for number in range(500)]
        marks = ", ".join("?" * len(names))
        plan = session.query(f"EXPLAIN SELECT * FROM record WHERE owner IN ({marks})", *names)
        assert "Seq Scan" not in str(plan)


CUT_OFF = """
    CREATE FUNCTION {schema}.cut_off() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER cutting AFTER INSERT ON {schema}.entry DEFERRABLE INITIALLY {when}
        FOR EACH ROW EXECUTE FUNCTION {schema}.cut_off();
"""


@pytest.mark.parametrize(
    ("when", "told"),
    [
        (
            "DEFERRED",
            r"whether the change was stored is unknown: run the same command again \(the same request twice",
        ),
        ("IMMEDIATE", "cannot be reached; nothing was changed"),
    ],
)
def test_a_connection_that_is_lost(
    postgres_place: Place,
    administrator: psycopg.Connection,
    when: str,
    told: str,
) -> None:
    """Within the commit nobody can know what became of it; before it, nothing did."""
    with filled(postgres_place) as vault:
        administrator.execute(CUT_OFF.format(schema=schema_of(vault), when=when))
        with pytest.raises(VaultError, match=told):
            vault.forget(users=[PERSON])
        with pytest.raises(VaultError, match="cannot be reached; nothing was changed"):
            vault.decide()
        administrator.execute(f"DROP FUNCTION {schema_of(vault)}.cut_off CASCADE")
    with postgres_place.open() as vault:
        assert vault.forget(users=[PERSON]).records == ROWS // 3
        assert vault.verify().holds


def test_a_commit_that_was_done_although_the_connection_was_lost(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(postgres_place) as vault:
        database = vault.database
        assert isinstance(database, PostgresDatabase)

        class Connection:
            """The commit arrives, its answer does not."""

            def __init__(self, connection: Any) -> None:
                self._connection = connection

            def execute(self, sql: str, *parameters: Any) -> Any:
                done = self._connection.execute(sql, *parameters)
                if sql == "COMMIT":
                    self._connection.close()
                    raise psycopg.OperationalError("server closed the connection unexpectedly")
                return done

            def __getattr__(self, name: str) -> Any:
                return getattr(self._connection, name)

        monkeypatch.setattr(database, "_connection", Connection(database._connection))
        with pytest.raises(VaultError, match="whether the change was stored is unknown"):
            vault.forget(users=[PERSON])
    with postgres_place.open() as vault:
        assert vault.forget(users=[PERSON]).repeated  # the same request twice has one answer
        assert vault.verify().holds


@pytest.mark.parametrize("after", [(), ("SELECT 1",)])
def test_a_statement_that_fails_is_noticed_before_the_next_one_or_the_commit(
    postgres_place: Place, after: tuple[str, ...]
) -> None:
    """Statements are sent together, and nothing is committed if one of them fails."""
    with filled(postgres_place) as vault:
        database = vault.database
        statements = [("DELETE FROM entry", ()), ("INSERT INTO vault (id) VALUES (NULL)", ())]

        def store() -> None:
            with database.writing() as session:
                session.execute_together(statements)
                for query in after:
                    session.query(query)
                    pytest.fail("a statement that failed was not noticed before the next one")

        with pytest.raises(VaultError, match=r"refused \(SQLSTATE 23502\); nothing was changed"):
            store()
        assert vault.forget(users=[PERSON]).records == ROWS // 3
        assert vault.verify().holds


def test_messages_name_the_schema_and_a_second_vault_is_told_of_its_keys(postgres_place: Place) -> None:
    schema = postgres_place.url.rpartition("schema=")[2]
    elsewhere = postgres_place.url.replace(schema, "third")
    with postgres_place.create(Configuration(actions=("A", "B"))) as vault:
        shown, meant = urlsplit(vault.status().location), urlsplit(postgres_place.url)
        assert (shown.username, shown.hostname, shown.path) == (meant.username, meant.hostname, meant.path)
        assert parse_qs(shown.query) == parse_qs(meant.query)
    with pytest.raises(VaultError, match=r"there is no vault at '.*schema=third'; make one with"):
        Vault.open(elsewhere, keys=postgres_place.keys)
    with pytest.raises(VaultError, match="a new file with --keys"):
        Vault.create(elsewhere, keys=postgres_place.keys)
