"""The schema of an SQLite file, compared with the statements of armnesia."""

import re
from collections.abc import Iterator

from armnesia.core.messages import shown
from armnesia.vault.storage.database import Row
from armnesia.vault.storage.schema import OWNER_INDEX, TABLES, UNIQUE, Table, upgraded_from_1
from armnesia.vault.storage.sqlite_session import DIALECT

SCHEMA_OBJECTS = "SELECT type, name, tbl_name, sql, rootpage FROM main.sqlite_master"
_FIRST_PAGE = 1  # the root of the schema itself
_STATISTICS_HINT = " (made by ANALYZE; remove it by DROP TABLE {}, then run armnesia compact)"


def schema_problems(objects: list[Row], tables: tuple[Table, ...]) -> Iterator[str]:
    """Compare every object in the file with the statements that may have created it."""
    expected, found, roots = _STATEMENTS[tables], set(), {_FIRST_PAGE}
    for kind, name, table, statement, root in objects:
        key = (kind, name, table)
        found.add(key)
        if root in roots:
            yield f"schema: the {kind} {shown(name)} begins at the page of another one"
        roots.add(root)
        if key not in expected:
            hint = _STATISTICS_HINT.format(name) if _is_statistics(kind, name) else ""
            yield f"schema: there is a {kind} {shown(name)} that armnesia did not create{hint}"
        elif statement not in expected[key] and _spaceless(statement) not in expected[key]:
            yield f"schema: the {kind} {name!r} is not as armnesia created it"
    for kind, name, _ in expected.keys() - found:
        yield f"schema: the {kind} {name!r} is missing"


def _is_statistics(kind: object, name: object) -> bool:
    """Whether this is a table that the statement ANALYZE makes; some of them hold samples of the rows."""
    return kind == "table" and isinstance(name, str) and name.startswith("sqlite_stat")


def _spaceless(statement: object) -> object:
    """The statement without what older versions wrote in another way: line breaks and spaces at brackets."""
    if not isinstance(statement, str):
        return statement
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join(statement.split()))


def _statements(tables: tuple[Table, ...]) -> dict[tuple[str, str, str], set[object]]:
    """The statements that may have created each object, by its type, name and table.

    SQLite makes the indexes of primary keys and of unique columns by itself, without a statement; an integer
    key needs none.
    """
    statements: dict[tuple[str, str, str], set[object]] = {}
    if any(table.name == OWNER_INDEX.table for table in tables):
        statements["index", OWNER_INDEX.name, OWNER_INDEX.table] = {
            OWNER_INDEX.statement,
            _spaceless(OWNER_INDEX.statement),
        }
    for table in tables:
        written = [variant.statement(DIALECT.blob) for variant in (table, upgraded_from_1(table))]
        statements["table", table.name, table.name] = {*written, *map(_spaceless, written)}
        unique = [column for column in table.columns if column.constraint == UNIQUE]
        for number in range(len(unique) + (table.columns[0].type != "INTEGER")):
            statements["index", f"sqlite_autoindex_{table.name}_{number + 1}", table.name] = {None}
    return statements


_STATEMENTS = {tables: _statements(tables) for tables in TABLES.values()}
