"""Reading back what a transaction has stored, before it is committed.

A file whose pages are damaged may take a statement without an error, and have its row in a place where
nothing finds it, or over another row.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from armnesia.vault.storage.database import Session, Statement

_AT_ONCE = 100
"""Rows that one query looks for."""


def are_stored(session: Session, statements: Iterable[Statement]) -> bool:
    """Whether the rows are as these statements leave them, each once, and each entry follows its predecessor.

    The statements are those of `tables` that store or delete one row by its key; the last one on a row
    counts.
    """
    last = {(_checked(sql)[0], parameters[0]): (sql, parameters) for sql, parameters in statements}
    found = list(last.values())
    return all(_is_stored(session, found[at : at + _AT_ONCE]) for at in range(0, len(found), _AT_ONCE))


def _is_stored(session: Session, statements: list[Statement]) -> bool:
    query = _query(tuple(sql for sql, _ in statements))
    values: list[Any] = [value for _, parameters in statements for value in parameters]
    ((stored,),) = session.query(query, *values)
    return bool(stored)


@lru_cache(maxsize=64)
def _query(statements: tuple[str, ...]) -> str:
    return f"SELECT {' AND '.join(_checked(sql)[1] for sql in statements)}"


@lru_cache(maxsize=64)
def _checked(sql: str) -> tuple[str, str]:
    """The table of a statement, and a condition that holds after it, with the same parameters."""
    if deleting := re.fullmatch(r"DELETE FROM (\w+) WHERE (\w+) = \?", sql):
        table, key = deleting.groups()
        return table, f"NOT EXISTS (SELECT 1 FROM {table} WHERE {key} = ?)"
    storing = re.match(r"INSERT INTO (\w+) \(([\w, ]+)\)|UPDATE (\w+) SET ([\w, =?]+)$", sql)
    assert storing is not None, f"it is not known how to read back what this stores: {sql}"
    table = storing[1] or storing[3]
    key, *others = re.findall(r"\w+", storing[2] or storing[4])
    # By the index of the key, then in the table: a damaged index may lead to the row of another key.
    rows = f"{table} AS found JOIN {table} AS own NOT INDEXED ON own.rowid = found.rowid"
    rows += _AFTER_PREDECESSOR if table == "ledger" else ""
    condition = f"found.{key} = ? AND own.{key} = found.{key}"
    condition += "".join(f" AND own.{name} IS ?" for name in others)
    return table, f"(SELECT count(*) FROM {rows} WHERE {condition}) = 1"


_AFTER_PREDECESSOR = (
    " JOIN ledger AS previous ON previous.sequence = own.sequence - 1 AND instr(own.entry, previous.hash) > 0"
)
