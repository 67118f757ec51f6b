"""What PostgreSQL's catalogue says about the tables of a vault, and whether its indexes match them."""

from collections.abc import Iterator

from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import DIGESTS_COLUMN, KEY, OWNER_INDEX, Column, Table

_CATALOGUE = """
WITH own AS (SELECT * FROM pg_class WHERE relnamespace = ?::regnamespace AND relname = ANY (?))
SELECT 'table', relname, '', concat_ws(' ', relkind, relpersistence,
    CASE WHEN relrowsecurity OR relforcerowsecurity THEN 'row security' END,
    CASE WHEN relhassubclass OR relispartition THEN 'inheritance' END) FROM own
UNION ALL SELECT 'owner', relname, '', relowner::text FROM own
UNION ALL SELECT 'column', relname, attname, concat_ws(' ', format_type(atttypid, atttypmod),
    CASE WHEN attnotnull THEN 'NOT NULL' END, CASE WHEN atthasdef THEN 'DEFAULT' END,
    nullif(attidentity::text, ''), nullif(attgenerated::text, ''))
    FROM own JOIN pg_attribute ON attrelid = own.oid WHERE attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'index', own.relname, CASE WHEN indisprimary THEN '' ELSE index.relname END,
    concat_ws(' ', amname, array_to_string(ARRAY(SELECT coalesce(attname, '(expression)')
        FROM unnest(indkey::int[]) AS key
        LEFT JOIN pg_attribute ON attrelid = own.oid AND attnum = key), ','),
    CASE WHEN indisprimary THEN 'PRIMARY KEY' WHEN indisunique THEN 'UNIQUE' END,
    CASE WHEN indpred IS NOT NULL THEN 'WHERE' END,
    CASE WHEN NOT (indisvalid AND indisready AND indislive) THEN 'INVALID' END)
    FROM own JOIN pg_index ON indrelid = own.oid JOIN pg_class index ON index.oid = indexrelid
    JOIN pg_am ON pg_am.oid = index.relam
UNION ALL SELECT 'constraint', relname, CASE WHEN contype = 'p' THEN '' ELSE conname END,
    CASE WHEN contype = 'p' THEN '' ELSE pg_get_constraintdef(pg_constraint.oid) END
    FROM own JOIN pg_constraint ON conrelid = own.oid WHERE contype <> 'n'
UNION ALL SELECT 'trigger', relname, tgname, '' FROM own JOIN pg_trigger ON tgrelid = own.oid
    WHERE NOT tgisinternal
UNION ALL SELECT 'rule', relname, rulename, '' FROM own JOIN pg_rewrite ON ev_class = own.oid
UNION ALL SELECT 'policy', relname, polname, '' FROM own JOIN pg_policy ON polrelid = own.oid"""
"""(kind, table, name, description) of everything that belongs to these tables."""

_INDEXES = """SELECT index.relname, own.relname, attname
    FROM pg_index JOIN pg_class own ON own.oid = indrelid JOIN pg_class index ON index.oid = indexrelid
    JOIN pg_attribute ON attrelid = own.oid AND attnum = indkey[0]
    WHERE own.relnamespace = ?::regnamespace ORDER BY 2, 1"""
"""The indexes of a schema, with their tables and first columns."""
_AMCHECK = """SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
    JOIN pg_proc ON pronamespace = n.oid AND proname = 'bt_index_check' AND pronargs = 2
    WHERE extname = 'amcheck' AND has_function_privilege(pg_proc.oid, 'EXECUTE')"""
"""The schema of the extension `amcheck`, if it is installed and this role may use it."""
_KEYS = (
    "SELECT count({column}), sum(('x' || substr(md5({column}::text), 1, 8))::bit(32)::bigint)"
    " FROM {table} WHERE {column} IS NOT NULL"
)
"""The number and the sum of hashes of the keys in a column: read from the index, where indexes are used."""

_TYPES = {"INTEGER": "integer", "BIGINT": "bigint", "TEXT": "text", "{blob}": "bytea"}
_ONLY_ONE_ROW = ("constraint", "vault", "vault_one_check", "CHECK ((one = 1))")


def schema_problems(session: Session, schema: str, tables: tuple[Table, ...]) -> Iterator[str]:
    """Where the tables are not as armnesia creates them: a sentence each."""
    names = [table.name for table in tables]
    found = {
        (kind, table, name): str(description)
        for kind, table, name, description in session.query(_CATALOGUE, schema, names)
    }
    owners = {key[1]: found.pop(key) for key in [key for key in found if key[0] == "owner"]}
    expected = dict(_expected(tables))
    upgraded = ("column", "vault", DIGESTS_COLUMN.name)  # its default is that of an upgrade from version 1
    if found.get(upgraded) == f"{expected[upgraded]} DEFAULT":
        del found[upgraded], expected[upgraded]
    for key in expected.keys() - found.keys():
        yield f"schema: {_named(*key)} is missing"
    for key in found.keys() - expected.keys():
        yield f"schema: there is {_named(*key)} that armnesia did not create"
    for key in expected.keys() & found.keys():
        if expected[key] != found[key]:
            yield f"schema: {_named(*key)} is {found[key]!r}; armnesia created {expected[key]!r}"
    for table, owner in owners.items():
        if owner != owners.get("vault", owner):
            yield f"schema: the table {table!r} has another owner than the table 'vault'"


def _expected(tables: tuple[Table, ...]) -> Iterator[tuple[tuple[str, str, str], str]]:
    """What `_CATALOGUE` finds of tables that armnesia created."""
    yield _ONLY_ONE_ROW[:3], _ONLY_ONE_ROW[3]
    yield ("index", OWNER_INDEX.table, OWNER_INDEX.name), f"btree {OWNER_INDEX.column}"
    for table in tables:
        key = table.columns[0].name
        yield ("table", table.name, ""), "r p"
        yield ("index", table.name, ""), f"btree {key} PRIMARY KEY"
        yield ("constraint", table.name, ""), ""
        for column in table.columns:
            yield ("column", table.name, column.name), _description(column)


def _description(column: Column) -> str:
    required = "NOT NULL" in column.constraint or KEY in column.constraint
    return _TYPES[column.type] + (" NOT NULL" if required else "")


def _named(kind: str, table: str, name: str) -> str:
    if kind == "table":
        return f"the table {table!r}"
    if kind in ("index", "constraint") and not name:
        return f"the primary key of the table {table!r}"
    article = "an" if kind == "index" else "a"
    return f"{article} {kind} {name!r} of the table {table!r}"


def index_problems(session: Session, schema: str) -> Iterator[str]:
    """Where an index does not match its table: a sentence each.

    The extension `amcheck` finds whatever is wrong. Where it is not installed, or this role may not use it,
    the keys in each index are compared with those in its table.
    """
    extension = session.query(_AMCHECK)
    for index, table, column in session.query(_INDEXES, schema):
        if extension:
            message = _amcheck(session, f"{extension[0][0]}.bt_index_check", f"{schema}.{index}")
        else:
            by_index = session.query(_KEYS.format(column=column, table=table))
            with session.without_indexes():
                by_table = session.query(_KEYS.format(column=column, table=table))
            message = "" if by_index == by_table else "its keys are not those of the table"
        if message:
            yield f"database: the index {index!r} of the table {table!r} is damaged: {message}"


def _amcheck(session: Session, function: str, index: str) -> str:
    """What `amcheck` says of an index; it raises an error where something is wrong."""
    from psycopg import errors  # noqa: PLC0415 (an extra)

    session.execute("SAVEPOINT amcheck")
    try:
        session.query(f"SELECT {function}(?::regclass, true)", index)
    except (errors.IndexCorrupted, errors.DataCorrupted, errors.InternalError_) as error:
        session.execute("ROLLBACK TO SAVEPOINT amcheck")
        return str(error.diag.message_primary)
    session.execute("RELEASE SAVEPOINT amcheck")
    return ""
