"""VACUUM of an SQLite file that leaves rows their rowids.

Rows of a table without INTEGER PRIMARY KEY have rowids of their own, to which other tables and full-text
indexes may refer. VACUUM numbers them from 1 on in every such table of the file, unless it has an index. So
tables without one get an index, which has no entries, as long as VACUUM runs. SQLite does not promise that
this helps: it is tried before, in a temporary database.
"""

import sqlite3
from contextlib import closing

from armnesia.logs.columns import quoted

_PREFIX = "armnesia_keeps_rowids_"
_MADE = "SELECT name FROM main.sqlite_master WHERE type = 'index' AND substr(name, 1, length(?1)) = ?1"
_WITHOUT_INDEX = """
    SELECT name FROM main.sqlite_master AS listed
    WHERE type = 'table' AND rootpage > 0 AND substr(name, 1, 7) <> 'sqlite_' AND NOT EXISTS (
        SELECT 1 FROM main.sqlite_master WHERE type = 'index' AND tbl_name = listed.name
    )
"""
"""Tables that are neither virtual nor SQLite's own, and have no index."""


def vacuum_with_rowids(connection: sqlite3.Connection) -> bool:
    """Write the file again without unused space; False if nothing was done, because rowids would change."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        drop_empty_indexes(connection)
        made = _make_empty_indexes(connection)
        if made and not _indexes_keep_rowids():
            return False
        connection.execute("COMMIT")
        connection.execute("VACUUM")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        drop_empty_indexes(connection)
    return True


def drop_empty_indexes(connection: sqlite3.Connection) -> None:
    """Drop the indexes that were made for VACUUM, which a process that was killed leaves."""
    for (name,) in connection.execute(_MADE, (_PREFIX,)).fetchall():
        connection.execute(f"DROP INDEX main.{quoted(name)}")


def _make_empty_indexes(connection: sqlite3.Connection) -> int:
    """Make an index without entries for each table whose rowids VACUUM would change; how many there are."""
    number = 0
    for (table,) in connection.execute(_WITHOUT_INDEX).fetchall():
        columns = connection.execute(f"PRAGMA main.table_info({quoted(table)})").fetchall()
        if any(place_in_key for *_, place_in_key in columns):
            continue  # a key without an index is the rowid itself, or there are no rowids
        name, column = quoted(f"{_PREFIX}{number}"), quoted(columns[0][1])
        # A collation may be one that only another program knows.
        connection.execute(f"CREATE INDEX main.{name} ON {quoted(table)} ({column} COLLATE BINARY) WHERE 0")
        number += 1
    return number


def _indexes_keep_rowids() -> bool:
    """Try whether VACUUM leaves the rows of a table with an empty index their rowids."""
    with closing(sqlite3.connect("", isolation_level=None)) as trial:
        trial.execute("CREATE TABLE some (value)")
        trial.execute("INSERT INTO some (rowid, value) VALUES (3, 'a'), (5, 'b')")
        _make_empty_indexes(trial)
        trial.execute("VACUUM")
        return trial.execute("SELECT rowid, value FROM some").fetchall() == [(3, "a"), (5, "b")]
