"""What PostgreSQL's catalogue says about the tables of a vault, and whether its indexes match them.

All queries here are run with the schema `pg_catalog` alone in the search path. A function or operator in the
vault's own schema could otherwise stand in for one of PostgreSQL's, and hide what the query would find.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.schema import DIGESTS_COLUMN, KEY, OWNER_INDEX, UNIQUE, Column, Table

CatalogueQuery = Callable[..., list[Row]]
"""Runs a query with its parameters, where only names of `pg_catalog` are found."""

_CATALOGUE = """
WITH RECURSIVE own AS (
    SELECT pg_class.* FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
    WHERE nspname = ? AND relname = ANY (?)),
member (role) AS (SELECT oid FROM pg_roles WHERE rolname = current_user
    UNION SELECT roleid FROM pg_auth_members a JOIN member m ON m.role = a.member)
SELECT 'table', relname, '', concat_ws(' ', relkind, relpersistence,
    CASE WHEN relrowsecurity OR relforcerowsecurity THEN 'row security' END,
    CASE WHEN EXISTS (SELECT FROM pg_inherits WHERE inhrelid = own.oid) THEN 'inheritance' END) FROM own
UNION ALL SELECT 'owner', relname, pg_get_userbyid(relowner), '' FROM own
    WHERE relowner NOT IN (SELECT role FROM member) OR NOT pg_has_role(relowner, 'USAGE')
UNION ALL SELECT DISTINCT 'right', relname,
    CASE grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(grantee) END, '' FROM own
    CROSS JOIN LATERAL aclexplode(relacl) WHERE grantee <> relowner
UNION ALL SELECT 'column', relname, attname, concat_ws(' ', format_type(atttypid, atttypmod),
    CASE WHEN attnotnull THEN 'NOT NULL' END, CASE WHEN atthasdef THEN 'DEFAULT' END,
    nullif(attidentity::text, ''), nullif(attgenerated::text, ''),
    CASE WHEN attcollation NOT IN (0, 100) THEN 'COLLATE' END,
    CASE WHEN EXISTS (SELECT FROM aclexplode(attacl) WHERE grantee <> relowner) THEN 'GRANTED' END)
    FROM own JOIN pg_attribute ON attrelid = own.oid WHERE attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'index', own.relname, CASE WHEN indisprimary THEN '' ELSE index.relname END,
    concat_ws(' ', split_part(pg_get_indexdef(indexrelid), ' USING ', 2),
    CASE WHEN indisprimary THEN 'PRIMARY KEY' WHEN indisunique THEN 'UNIQUE' END,
    CASE WHEN NOT indimmediate THEN 'DEFERRABLE' END,
    CASE WHEN NOT (indisvalid AND indisready AND indislive) THEN 'INVALID' END)
    FROM own JOIN pg_index ON indrelid = own.oid JOIN pg_class index ON index.oid = indexrelid
UNION ALL SELECT 'constraint', relname, CASE WHEN contype = 'p' THEN '' ELSE conname END,
    pg_get_constraintdef(pg_constraint.oid)
    FROM own JOIN pg_constraint ON conrelid = own.oid WHERE contype <> 'n'
UNION ALL SELECT 'dependent', relname, pg_describe_object(classid, objid, objsubid), ''
    FROM own JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = own.oid
    WHERE classid <> 'pg_attrdef'::regclass
    AND NOT (classid = 'pg_type'::regclass AND objid = reltype)
    AND NOT (classid = 'pg_class'::regclass AND (objid = reltoastrelid
        OR EXISTS (SELECT FROM pg_index WHERE indexrelid = objid AND indrelid = own.oid)))
    AND NOT (classid = 'pg_constraint'::regclass AND EXISTS (SELECT FROM pg_constraint
        WHERE pg_constraint.oid = objid AND conrelid = own.oid AND contype <> 'f'))
UNION ALL SELECT 'member', '', pg_describe_object(classid, objid, objsubid), ''
    FROM pg_namespace n JOIN pg_depend ON refclassid = 'pg_namespace'::regclass AND refobjid = n.oid
    WHERE nspname = ? AND NOT (classid = 'pg_class'::regclass AND objid IN (SELECT oid FROM own))
UNION ALL SELECT 'publication', '', pubname, '' FROM pg_publication WHERE puballtables"""
"""(kind, table, name, description) of the tables and all their parts, of whatever depends on them in any
schema (triggers, rules, policies, views, foreign keys, publications, statistics, children), and of whatever
else is in their schema."""

_INDEXES = """SELECT index.relname, own.relname, attname
    FROM pg_index JOIN pg_class own ON own.oid = indrelid JOIN pg_class index ON index.oid = indexrelid
    JOIN pg_attribute ON attrelid = own.oid AND attnum = indkey[0]
    JOIN pg_namespace n ON n.oid = own.relnamespace WHERE nspname = ? ORDER BY 2, 1"""
"""The indexes of a schema, with their tables and first columns."""
_AMCHECK = """SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
    JOIN pg_proc ON pronamespace = n.oid AND proname = 'bt_index_check' AND pronargs = 2
    WHERE extname = 'amcheck' AND has_function_privilege(pg_proc.oid, 'EXECUTE')"""
"""The schema of the extension `amcheck`, if it is installed and this role may use it."""
_KEYS = (
    "SELECT count({column}), sum(('x' || substr(md5({column}::text), 1, 8))::bit(32)::bigint)"
    " FROM {schema}.{table} WHERE {column} IS NOT NULL"
)
"""The number and the sum of hashes of the keys in a column: read from the index, where indexes are used."""

_TYPES = {"INTEGER": "integer", "BIGINT": "bigint", "TEXT": "text", "{blob}": "bytea"}
_ONLY_ONE_ROW = ("constraint", "vault", "vault_one_check", "CHECK ((one = 1))")


_OTHER = "there is {what} that armnesia did not create"
_FOREIGN = {
    "dependent": "{name} depends on the table {table!r}, and armnesia did not create it",
    "member": "{name} is in the vault's schema, and armnesia did not create it",
    "publication": "the publication {name!r} of all tables sends the rows of the vault elsewhere",
    "right": "the role {name!r} has rights on the table {table!r}; only its owner may have any",
    "owner": "the table {table!r} belongs to the role {name!r}, of which this user is no member that inherits"
    " its rights",
}
"""What is said of things that armnesia did not create."""


def schema_query(schema: str, tables: tuple[Table, ...]) -> Statement:
    """The query for `schema_problems`."""
    return _CATALOGUE, (schema, [table.name for table in tables], schema)


def schema_problems(rows: Iterable[Row], tables: tuple[Table, ...]) -> Iterator[str]:
    """Where the tables are not as armnesia creates them, by the rows of `schema_query`: a sentence each."""
    found = {
        (kind, table, name): str(description).replace('"', "") for kind, table, name, description in rows
    }
    expected = _expected(tables)
    upgraded = ("column", "vault", DIGESTS_COLUMN.name)  # its default is that of an upgrade from version 1
    if found.get(upgraded) == f"{expected[upgraded]} DEFAULT":
        found[upgraded] = expected[upgraded]
    if found == expected:
        return
    for key in expected.keys() - found.keys():
        yield f"schema: {_named(*key)} is missing"
    for key in found.keys() - expected.keys():
        yield f"schema: {_FOREIGN.get(key[0], _OTHER).format(table=key[1], name=key[2], what=_named(*key))}"
    for key in expected.keys() & found.keys():
        if expected[key] != found[key]:
            yield f"schema: {_named(*key)} is {found[key]!r}; armnesia created {expected[key]!r}"


@lru_cache(maxsize=16)  # every transaction compares with it
def _expected(tables: tuple[Table, ...]) -> Mapping[tuple[str, str, str], str]:
    """What `_CATALOGUE` finds of tables that armnesia created, by kind, table and name."""
    expected = {_ONLY_ONE_ROW[:3]: _ONLY_ONE_ROW[3]}
    for table in tables:
        if table.name == OWNER_INDEX.table:
            expected["index", OWNER_INDEX.table, OWNER_INDEX.name] = f"btree ({OWNER_INDEX.column})"
        key = table.columns[0].name
        expected["table", table.name, ""] = "r p"
        expected["index", table.name, ""] = f"btree ({key}) PRIMARY KEY"
        expected["constraint", table.name, ""] = f"PRIMARY KEY ({key})"
        for column in table.columns:
            expected["column", table.name, column.name] = _description(column)
            if column.constraint == UNIQUE:
                name = f"{table.name}_{column.name}_key"
                expected["index", table.name, name] = f"btree ({column.name}) UNIQUE"
                expected["constraint", table.name, name] = f"UNIQUE ({column.name})"
    return MappingProxyType(expected)


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


def index_problems(query: CatalogueQuery, session: Session, schema: str) -> Iterator[str]:
    """Where an index does not match its table: a sentence each.

    The extension `amcheck` finds whatever is wrong. Where it is not installed, or this role may not use it,
    the keys in each index are compared with those in its table.
    """
    extension = query(_AMCHECK)
    for index, table, column in query(_INDEXES, schema):
        if extension:
            message = _amcheck(session, f"{extension[0][0]}.bt_index_check", f"{schema}.{index}")
        else:
            keys = _KEYS.format(schema=schema, table=table, column=column)
            by_index = query(keys)
            with session.without_indexes():
                by_table = query(keys)
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
