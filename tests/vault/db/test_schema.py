"""What was made of the tables by something other than armnesia is found by `verify`."""

import pytest

from tests.databases import Place
from tests.vault.raw_vaults import change, filled

CHANGES = {
    "sqlite": {
        "DROP INDEX record_owner": "'index record_owner' is missing",
        "CREATE INDEX more ON record (arm)": "'index more' was not created by armnesia",
        "ALTER TABLE source ADD COLUMN note TEXT": "'table source' is not as armnesia created it",
        "CREATE TABLE copies (owner BLOB)": "'table copies' was not created by armnesia",
        "CREATE VIEW seen AS SELECT * FROM record": "'view seen' was not created by armnesia",
        "ANALYZE": "'table sqlite_stat1' was not created by armnesia",
        "CREATE TRIGGER kept BEFORE DELETE ON record BEGIN SELECT raise(IGNORE); END": (
            "'trigger kept' was not created by armnesia"
        ),
    },
    "postgresql": {
        "DROP INDEX record_owner": "'index record_owner' is missing",
        "CREATE INDEX more ON record (arm)": "'index more' was not created by armnesia",
        "ALTER TABLE source ADD COLUMN note TEXT": ("'column source.note' was not created by armnesia"),
        "ALTER TABLE record ALTER arm TYPE bigint": "'column record.arm' is not as armnesia created it",
        "ALTER TABLE record ALTER arm DROP NOT NULL": "'column record.arm' is not as armnesia created it",
        "ALTER TABLE record ALTER arm SET STATISTICS 9": "'column record.arm' is not as armnesia created it",
        "ALTER TABLE record DROP CONSTRAINT record_pkey": "'constraint record_pkey' is missing",
        "ALTER TABLE record SET UNLOGGED": "'table record' is not as armnesia created it",
        "CREATE TABLE copies (owner bytea)": "'table copies' was not created by armnesia",
        "CREATE VIEW seen AS SELECT * FROM record": "'table seen' was not created by armnesia",
        "CREATE RULE kept AS ON DELETE TO record DO INSTEAD NOTHING": (
            "'rule kept' was not created by armnesia"
        ),
        "CREATE TRIGGER kept BEFORE DELETE ON record EXECUTE FUNCTION suppress_redundant_updates_trigger()": (
            "'trigger kept' was not created by armnesia"
        ),
    },
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("database", "sql"),
    [(database, sql) for database, changes in CHANGES.items() for sql in changes],
    indirect=["database"],
)
def test_a_changed_schema_is_found(place: Place, database: str, sql: str) -> None:
    with filled(place) as vault:
        assert vault.verify().holds
        change(vault, sql)
        assert f"schema: {CHANGES[database][sql]}" in vault.verify().problems
