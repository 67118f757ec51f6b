"""What a PostgreSQL server keeps beside the vault's tables, and what it says when it is cut off."""

import os
import random
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from armnesia.core.errors import VaultBusyError, VaultError
from armnesia.vault import Configuration, Vault
from armnesia.vault.storage.postgres import PostgresDatabase
from tests.databases import SERVER, Place, postgres_url
from tests.vault.raw_vaults import change, reader_of, values

PERSON, ROWS = "ann", 3000
TABLES = ("record", "decision", "vault", "suppressed", "request")
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
    database = vault._connection.database
    assert isinstance(database, PostgresDatabase)
    return database.schema


def analyse(vault: Vault) -> None:
    """As the server does by itself, when many rows have changed."""
    for table in TABLES:
        change(vault, f"ANALYZE {table}")


def as_made_earlier(vault: Vault) -> None:
    """A vault whose tables the server took samples of, as of any others."""
    for table in TABLES:
        for (column,) in values(
            vault, "SELECT attname FROM pg_attribute WHERE attrelid = ?::regclass AND attnum > 0", table
        ):
            change(vault, f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS -1")
    analyse(vault)
    digest = vault._connection.all_keys.owner_digest(PERSON).hex()
    assert digest in dict(values(vault, NOTED, schema_of(vault)))["owner"]


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
    digest = vault._connection.all_keys.owner_digest(PERSON)
    ((statistics,),) = values(vault, "SELECT statistics FROM decision")
    return [digest, digest.hex().encode(), statistics.encode()]


def test_the_planner_takes_no_samples(postgres_place: Place) -> None:
    with filled(postgres_place) as vault:
        analyse(vault)
        assert values(vault, NOTED, schema_of(vault)) == []


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [False, True])
def test_after_compact_no_file_of_the_server_has_the_person(
    postgres_place: Place, administrator: psycopg.Connection, earlier: bool
) -> None:
    with filled(postgres_place) as vault:
        if earlier:
            as_made_earlier(vault)
        analyse(vault)
        marks = marks_of(vault)  # the sums before a deletion tell, with those after it, what was deleted
        assert len(files_with(administrator, *marks)) >= 2 + earlier
        vault.forget(users=[PERSON])
        vault.rotate_digest_key()  # under the first key, the suppression list has the same digest as the rows
        analyse(vault)
        assert vault.compact().complete
        assert files_with(administrator, *marks) == []
        analyse(vault)
        assert values(vault, NOTED, schema_of(vault)) == []
        assert vault.certificate(users=[PERSON]).body["erasure"]["state"] == "complete"
        assert vault.verify().holds


@pytest.mark.slow
def test_notes_of_the_planner_wait_for_readers_too(
    postgres_place: Place, administrator: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(postgres_place) as vault:
        as_made_earlier(vault)
        marks = marks_of(vault)
        vault.forget(users=[PERSON])
        vault.rotate_digest_key()
    with postgres_place.open(timeout=0.3) as vault:
        database = vault._connection.database
        assert isinstance(database, PostgresDatabase)
        outlived = database._wait_for_older_snapshots
        answers = iter([True])  # whoever reads begins to just after the first look
        with reader_of(postgres_place):
            monkeypatch.setattr(
                database, "_wait_for_older_snapshots", lambda: next(answers, None) or outlived()
            )
            assert not vault.compact().complete
        monkeypatch.undo()
        assert vault.compact().complete
        assert files_with(administrator, *marks) == []


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
        mark = vault._connection.all_keys.owner_digest(PERSON)
        with closing(psycopg.connect(other_database)) as other:
            other.execute("CREATE TABLE written (number integer)")
            vault.forget(users=[PERSON])
            vault.rotate_digest_key()
            done = vault.compact()
            assert (done.complete, done.pending_because) == (
                False,
                "another transaction can still see deleted rows",
            )
            assert vault.certificate(users=[PERSON]).erasure == "pending"
            other.rollback()
            other.execute("SELECT 1 FROM pg_class")  # of a reader there VACUUM FULL is not in need
            assert vault.compact().complete
        assert files_with(administrator, mark) == []


def test_what_the_server_says_of_rows_that_it_kept_is_heard(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(postgres_place).close()
    with postgres_place.open(timeout=0.3) as vault:
        monkeypatch.setattr(PostgresDatabase, "_wait_for_older_snapshots", lambda _: True)
        with reader_of(postgres_place):
            vault.forget(users=[PERSON])
            assert vault.compact().pending_because == "another transaction can still see deleted rows"
        assert vault.compact().complete


def test_a_transaction_that_began_just_before_the_rewriting_is_waited_for(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one of the server's own, which nobody can keep away."""
    with filled(postgres_place) as vault, ExitStack() as opened:
        waited = PostgresDatabase._wait_for_older_snapshots
        tries: list[int] = []

        def overtaken(database: PostgresDatabase) -> bool:
            if tries:
                opened.close()
            tries.append(len(tries))
            return len(tries) == 1 or waited(database)

        monkeypatch.setattr(PostgresDatabase, "_wait_for_older_snapshots", overtaken)
        opened.enter_context(reader_of(postgres_place))
        vault.forget(users=[PERSON])
        assert vault.compact().complete
        assert len(tries) > 1


def test_tables_that_the_server_does_not_rewrite_are_not_erased(
    postgres_place: Place, administrator: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a role that may not, it only gives a warning."""
    with filled(postgres_place) as vault:
        vault.forget(users=[PERSON])
        schema = schema_of(vault)
    role = f"{schema[:20]}_writer"
    administrator.execute(f"CREATE ROLE {role} LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
    try:
        monkeypatch.setattr(PostgresDatabase, "schema_problems", lambda *_: [])
        url = re.sub("//[^@]*@", f"//{role}@", postgres_place.url)
        with Vault.open(url, keys=postgres_place.keys, timeout=0.3) as vault:
            monkeypatch.setattr(PostgresDatabase, "_drop_samples", lambda _: True)
            assert "did not rewrite the table" in str(vault.compact().pending_because)
            assert vault.certificate(users=[PERSON]).erasure == "pending"
    finally:
        administrator.execute(f"DROP ROLE {role}")


def test_samples_that_this_role_may_not_remove_are_told(
    postgres_place: Place, administrator: psycopg.Connection
) -> None:
    with filled(postgres_place) as vault:
        as_made_earlier(vault)
        schema = schema_of(vault)
    role = f"{schema[:20]}_owner"
    administrator.execute(f"CREATE ROLE {role} LOGIN")
    try:
        administrator.execute(f"ALTER SCHEMA {schema} OWNER TO {role}")
        for (table,) in administrator.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'", [schema]
        ).fetchall():
            administrator.execute(f"ALTER TABLE {schema}.{table} OWNER TO {role}")
        url = re.sub("//[^@]*@", f"//{role}@", postgres_place.url)
        with (
            Vault.open(url, keys=postgres_place.keys) as vault,
            pytest.warns(UserWarning, match="let the owner of the database run VACUUM FULL pg_statistic"),
        ):
            assert vault.compact().complete
    finally:
        administrator.execute(f"DROP SCHEMA {schema} CASCADE")
        administrator.execute(f"DROP ROLE {role}")


def lose_the_row_in_its_index(vault: Vault) -> None:
    """The primary key of `vault` does not find its row any more: the index was not written meanwhile."""
    schema = schema_of(vault)
    written = "UPDATE pg_index SET indisready = {0}, indisvalid = {0} WHERE indexrelid = '{1}'::regclass"
    index = f"{schema}.vault_pkey"
    for statements in (
        [written.format("false", index)],
        [
            f"CREATE TEMPORARY TABLE kept AS SELECT * FROM {schema}.vault",
            f"DELETE FROM {schema}.vault",
            f"INSERT INTO {schema}.vault SELECT * FROM kept",
        ],
        [written.format("true", index)],
    ):
        with closing(psycopg.connect(postgres_url())) as connection, connection.transaction():
            connection.execute("SET allow_system_table_mods = on")
            for statement in statements:
                connection.execute(statement)


@pytest.mark.parametrize("damage", ["index", "no row"])
def test_writers_wait_for_each_other_whatever_is_damaged(postgres_place: Place, damage: str) -> None:
    with filled(postgres_place) as vault:
        if damage == "index":
            lose_the_row_in_its_index(vault)
    with postgres_place.open() as vault, postgres_place.open(timeout=0.2) as other:
        if damage == "no row":
            change(vault, "DELETE FROM vault")
        writers = [each._connection.database.writing() for each in (vault, other)]
        with writers[0], pytest.raises(VaultBusyError), writers[1]:
            pass


def test_the_encoding_of_the_client_does_not_matter(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(postgres_place).close()
    for encoding in ("LATIN1", "SQL_ASCII"):
        monkeypatch.setenv("PGCLIENTENCODING", encoding)
        with postgres_place.open() as vault:
            assert vault.forget(users=[f"user-{len(encoding)}", "näme"]).records <= 1
            assert vault.verify().holds


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_takes_no_vault(
    administrator: psycopg.Connection, tmp_path: Path, encoding: str
) -> None:
    name = f"other_{uuid.uuid4().hex[:12]}"
    administrator.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(VaultError, match=f"has the encoding {encoding}, .* with the encoding UTF8"):
            Vault.create(in_database(postgres_url(), name), keys=tmp_path / "keys")
        assert list(tmp_path.iterdir()) == []
    finally:
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_many_people_are_looked_up_one_by_one_without_samples(postgres_place: Place) -> None:
    """Nothing tells the server that few rows are theirs; it must not read all rows for that."""
    with filled(postgres_place) as vault, vault._connection.database.reading() as session:
        names = [vault._connection.all_keys.owner_digest(f"user-{number}") for number in range(500)]
        marks = ", ".join("?" * len(names))
        plan = session.query(f"EXPLAIN SELECT * FROM record WHERE owner IN ({marks})", *names)
        assert "Seq Scan" not in str(plan)


CUT_OFF = """
    CREATE FUNCTION {schema}.cut_off() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER cutting AFTER INSERT ON {schema}.ledger DEFERRABLE INITIALLY {when}
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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within the commit nobody can know what became of it; before it, nothing did."""
    with filled(postgres_place) as vault:
        monkeypatch.setattr(PostgresDatabase, "begin_schema_check", lambda *_: list)  # not of the trigger
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
        database = vault._connection.database
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
        database = vault._connection.database
        statements = [("DELETE FROM ledger", ()), ("INSERT INTO vault (one) VALUES (NULL)", ())]

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


def test_a_look_that_is_cut_off_has_changed_nothing(
    postgres_place: Place, administrator: psycopg.Connection
) -> None:
    with (
        filled(postgres_place) as vault,
        pytest.raises(VaultError, match="cannot be reached; nothing was changed"),
    ):
        _cut_off_while_reading(vault, administrator)


def _cut_off_while_reading(vault: Vault, administrator: psycopg.Connection) -> None:
    with vault._connection.database.reading() as session:
        ((process,),) = session.query("SELECT pg_backend_pid()")
        administrator.execute("SELECT pg_terminate_backend(%s, 5000)", [process])


def test_an_ingest_that_is_cut_off_is_told(
    postgres_place: Place, administrator: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(postgres_place) as vault:
        monkeypatch.setattr(PostgresDatabase, "schema_problems", lambda *_: [])  # not of the trigger
        administrator.execute(
            CUT_OFF.format(schema=schema_of(vault), when="IMMEDIATE").replace("ledger", "record")
        )
        with pytest.raises(VaultError, match="cannot be reached; nothing was changed"):
            vault.ingest({"action": ["A"], "reward": [1], "user": ["u"], "id": ["new"]}, user="user", id="id")
        administrator.execute(f"DROP FUNCTION {schema_of(vault)}.cut_off CASCADE")


def test_messages_name_the_schema_and_a_second_vault_is_told_of_its_keys(postgres_place: Place) -> None:
    schema = postgres_place.url.rpartition("schema=")[2]
    elsewhere = postgres_place.url.replace(schema, "third")
    with postgres_place.create(Configuration(actions=("A", "B"))) as vault:
        shown, meant = urlsplit(vault.status().location), urlsplit(postgres_place.url)
        assert (shown.username, shown.hostname, shown.path) == (meant.username, meant.hostname, meant.path)
        assert parse_qs(shown.query) == parse_qs(meant.query)
    with pytest.raises(VaultError, match=r"there is no vault at '.*schema=third'; make one with"):
        Vault.open(elsewhere, keys=postgres_place.keys)
    with pytest.raises(VaultError, match="another vault, name a new file with --keys"):
        Vault.create(elsewhere, keys=postgres_place.keys)
