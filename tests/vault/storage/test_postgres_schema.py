"""Whatever could copy, hide or falsify the rows of a PostgreSQL vault is found in the server's catalogue."""

import re
from collections.abc import Iterator
from contextlib import closing, suppress

import psycopg
import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_place, postgres_url
from tests.vault.raw_vaults import TABLES, change, filled

STAND_INS = {
    "text of several arguments": """CREATE FUNCTION {s}.concat_ws(text, "char", "char", text, text)
        RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'r p'::text $$""",
    "text of an array": """CREATE FUNCTION {s}.array_to_string(name[], text)
        RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'owner'::text $$""",
    "number of keys": """CREATE FUNCTION {s}.plus(bigint, bytea) RETURNS bigint LANGUAGE sql
        AS $$ SELECT 0::bigint $$;
        CREATE AGGREGATE {s}.count(bytea) (SFUNC = {s}.plus, STYPE = bigint, INITCOND = '0')""",
    "equality of schemas": """CREATE FUNCTION {s}.same(oid, regnamespace) RETURNS boolean LANGUAGE sql
        IMMUTABLE AS $$ SELECT false $$;
        CREATE OPERATOR {s}.= (LEFTARG = oid, RIGHTARG = regnamespace, FUNCTION = {s}.same)""",
}
"""Functions and operators that were preferred to PostgreSQL's own, because they have just the right types."""

NEW_INDEX = "DROP INDEX {s}.record_owner; CREATE INDEX record_owner ON {s}.record"
CHANGES = {
    "table": "CREATE TABLE {s}.extra AS TABLE {s}.record",
    "view": "CREATE VIEW {s}.spy AS SELECT * FROM {s}.record",
    "view elsewhere": "CREATE VIEW {other}.spy AS SELECT owner FROM {s}.record",
    "materialised view elsewhere": "CREATE MATERIALIZED VIEW {other}.spy AS SELECT * FROM {s}.record",
    "publication": "CREATE PUBLICATION {other} FOR TABLE {s}.record",
    "publication of a schema": "CREATE PUBLICATION {other} FOR TABLES IN SCHEMA {s}",
    "statistics": "CREATE STATISTICS {other}.spy (mcv) ON owner, arm FROM {s}.record",
    "foreign key elsewhere": "CREATE TABLE {other}.spy (i bytea REFERENCES {s}.record ON DELETE CASCADE)",
    "child elsewhere": "CREATE TABLE {other}.spy () INHERITS ({s}.record)",
    "parent": """CREATE TABLE {other}.spy (owner bytea); ALTER TABLE {s}.record INHERIT {other}.spy""",
    "deferrable key": """ALTER TABLE {s}.record DROP CONSTRAINT record_pkey;
        ALTER TABLE {s}.record ADD PRIMARY KEY (identity) DEFERRABLE""",
    "order of the index": f"{NEW_INDEX} (owner DESC)",
    "kind of the index": f"{NEW_INDEX} USING hash (owner)",
    "more in the index": f"{NEW_INDEX} (owner) INCLUDE (arm)",
    "part of the rows": f"{NEW_INDEX} (owner) WHERE arm = 0",
    "order of text": 'ALTER TABLE {s}.certificate ALTER body TYPE text COLLATE "C"',
    "right of a column": "GRANT SELECT (owner) ON {s}.record TO public",
    "rights": "GRANT ALL ON ALL TABLES IN SCHEMA {s} TO public",
    "rights of a role": "GRANT SELECT ON {s}.record TO pg_monitor",
    "later rights": "ALTER DEFAULT PRIVILEGES IN SCHEMA {s} GRANT SELECT ON TABLES TO public",
    "owner of all": "; ".join(f"ALTER TABLE {{s}}.{table} OWNER TO pg_monitor" for table in TABLES),
    "type": "CREATE TYPE {s}.text AS ENUM ('a')",
    "domain": "CREATE DOMAIN {s}.bytea AS pg_catalog.bytea",
    "sequence": "CREATE SEQUENCE {s}.more OWNED BY {s}.record.arm",
    "function on the table": """CREATE FUNCTION {other}.spy() RETURNS bigint LANGUAGE sql
        BEGIN ATOMIC SELECT count(*) FROM {s}.record; END""",
    "collation": 'CREATE COLLATION {s}.spy FROM "C"',
    "cast": """CREATE TYPE {s}.kept AS (t text); CREATE FUNCTION {s}.kept(bytea) RETURNS {s}.kept LANGUAGE sql
        AS $$ SELECT ROW('')::{s}.kept $$;
        CREATE CAST (bytea AS {s}.kept) WITH FUNCTION {s}.kept(bytea) AS ASSIGNMENT""",
}


@pytest.fixture
def administrator() -> Iterator[psycopg.Connection]:
    with closing(psycopg.connect(postgres_url(), autocommit=True)) as connection:
        yield connection


def run(connection: psycopg.Connection, schema: str, statements: str) -> None:
    """Run statements for the schema of a vault, and for another that is made for them."""
    other = f"{schema[:30]}_other"
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {other}")
    connection.execute(statements.format(s=schema, other=other))


def clean(connection: psycopg.Connection, schema: str) -> None:
    connection.execute(f"DROP PUBLICATION IF EXISTS {schema[:30]}_other")
    connection.execute(f"DROP SCHEMA IF EXISTS {schema[:30]}_other CASCADE")


def schema_of(vault: Vault) -> str:
    return vault._connection.database.schema  # type: ignore[attr-defined, no-any-return]


def check_refused(place: Place, vault: Vault) -> None:
    """Refused by a process that had it open, and by one that opens it; `verify` says what it is."""
    for use in (lambda: vault.forget(users=["ann"]), vault.decide, place.open):
        with pytest.raises(VaultError, match=r"schema: .*; nothing is read from such a vault"):
            use()
    assert any(problem.startswith("schema: ") for problem in vault.verify().problems)


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_what_could_leak_or_falsify_is_refused(
    postgres_place: Place, administrator: psycopg.Connection, changes: str
) -> None:
    with filled(postgres_place) as vault:
        try:
            run(administrator, schema_of(vault), changes)
            check_refused(postgres_place, vault)
        finally:
            clean(administrator, schema_of(vault))


@pytest.mark.parametrize("stand_in", STAND_INS.values(), ids=STAND_INS)
def test_a_function_in_the_schema_does_not_stand_in_for_one_of_the_server(
    postgres_place: Place, administrator: psycopg.Connection, stand_in: str
) -> None:
    """Together with what it would hide: an index that finds only a part of the rows, and a child table."""
    with filled(postgres_place) as vault:
        run(administrator, schema_of(vault), stand_in)
        check_refused(postgres_place, vault)
        hidden = f"{NEW_INDEX} (owner DESC);"
        run(administrator, schema_of(vault), hidden + "CREATE TABLE {s}.child () INHERITS ({s}.record)")
        check_refused(postgres_place, vault)
        problems = str(vault.verify().problems)
        assert "child" in problems
        assert "record_owner" in problems


def test_a_publication_of_all_tables_is_refused(
    postgres_place: Place, administrator: psycopg.Connection
) -> None:
    """In a database of its own: it would reach the vaults of other tests."""
    name = f"all_{schema_name(postgres_place)}"
    administrator.execute(f"CREATE DATABASE {name}")
    try:
        address, _, rest = postgres_place.url.partition("?")
        place = Place(f"{address.rpartition('/')[0]}/{name}?{rest}", postgres_place.keys)
        with filled(place) as vault:
            with closing(
                psycopg.connect(place.url.partition("&schema=")[0].partition("?schema=")[0])
            ) as other:
                other.execute("CREATE PUBLICATION everything FOR ALL TABLES")
                other.commit()
            check_refused(place, vault)
    finally:
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


def schema_name(place: Place) -> str:
    return place.url.partition("schema=")[2][:40]


def test_a_schema_with_other_tables_takes_no_vault(
    postgres_place: Place, administrator: psycopg.Connection
) -> None:
    schema = schema_name(postgres_place)
    administrator.execute(f"CREATE SCHEMA {schema}")
    administrator.execute(f"CREATE TABLE {schema}.of_another_program (n int)")
    with pytest.raises(
        VaultError, match=r"of_another_program is in the vault's schema, and armnesia .*; nothing was created"
    ):
        postgres_place.create(Configuration(actions=("A", "B")))
    assert not postgres_place.keys.exists()
    administrator.execute(f"DROP TABLE {schema}.of_another_program")
    with filled(postgres_place) as vault:
        assert vault.verify().holds


def test_a_member_of_the_owner_may_use_the_vault_and_others_may_not(
    postgres_place: Place, administrator: psycopg.Connection
) -> None:
    with filled(postgres_place) as vault:
        schema = schema_of(vault)
        role, member = f"{schema[:20]}_owner", f"{schema[:20]}_member"
        try:
            administrator.execute(f"CREATE ROLE {role}; CREATE ROLE {member} LOGIN IN ROLE {role}")
            administrator.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
            for table in TABLES:
                administrator.execute(f"ALTER TABLE {schema}.{table} OWNER TO {role}")
            with pytest.raises(
                VaultError, match=f"belongs to the role '{role}', of which this user is no member"
            ):
                vault.decide()
            url = re.sub("//[^@]*@", f"//{member}@", postgres_place.url)
            with Vault.open(url, keys=postgres_place.keys) as other:
                assert other.forget(users=["ann"]).records == 2
            # Who inherits no rights may write by other ones, but not compact.
            administrator.execute(f"GRANT pg_read_all_data, pg_write_all_data TO {member}")
            with suppress(psycopg.errors.SyntaxError):  # of servers before 16
                administrator.execute(f"GRANT {role} TO {member} WITH INHERIT FALSE")
                with pytest.raises(VaultError, match="no member that inherits its rights"):
                    Vault.open(url, keys=postgres_place.keys)
        finally:
            vault.close()
            administrator.execute(f"DROP SCHEMA {schema} CASCADE")
            with suppress(psycopg.Error):
                administrator.execute(f"DROP ROLE {member}; DROP ROLE {role}")


def test_a_temporary_table_does_not_stand_in_for_one_of_the_vault(postgres_place: Place) -> None:
    with filled(postgres_place) as vault:
        change(vault, "CREATE TEMPORARY TABLE suppressed (digest bytea, kind text)")
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().holds


def test_other_vaults_of_the_same_database_do_not_matter(postgres_place: Place) -> None:
    with (
        filled(postgres_place) as vault,
        filled(fresh_place("postgresql", postgres_place.keys.parent)) as other,
    ):
        assert vault.verify().holds
        assert other.verify().holds
