"""Whole tables, of which those in `COLUMNS` are given by name; all tables and indexes of a vault."""

from collections.abc import Iterable, Iterator

from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import (
    COLUMNS,
    DECISION_TABLE,
    NODE_TABLE,
    OWNER_INDEX,
    OWNER_TABLE,
    SERVICE_TABLES,
    TABLES,
    VERSION,
    RecordLayout,
    Table,
)


def create_tables(session: Session, layout: RecordLayout) -> None:
    """Create the tables and the index of a new vault."""
    for table in TABLES[layout, VERSION]:
        session.execute(table.statement(session.dialect.blob))
    if layout.holds_rows:
        session.execute(OWNER_INDEX.statement)


def rebuild_indexes(session: Session, layout: RecordLayout) -> None:
    """Make the indexes again from the rows; one that is missing is created."""
    if layout.holds_rows:
        session.execute(f"DROP INDEX IF EXISTS {OWNER_INDEX.name}")
        session.execute(OWNER_INDEX.statement)
    # Not of the tallies, which are made again as a whole, nor of tables that older versions do not have.
    left_out = (OWNER_TABLE, DECISION_TABLE, NODE_TABLE, *SERVICE_TABLES)
    others = [table.name for table in TABLES[layout, VERSION] if table not in left_out]
    statement = session.dialect.rebuild_indexes
    for each in dict.fromkeys(map(statement.format, others)):
        session.execute(each)


def stream_rows(session: Session, table: Table) -> Iterator[Row]:
    """All rows of any table with all its columns, one by one, in any order."""
    return session.stream(f"SELECT {_all_columns(table)} FROM {table.name}")


def load_rows(session: Session, table: Table, rows: Iterable[Row]) -> None:
    """Store rows that have all columns of a table."""
    session.load(table.name, _all_columns(table), rows)


def _all_columns(table: Table) -> str:
    return ", ".join(column.name for column in table.columns)


def read_table(session: Session, table: str) -> list[Row]:
    """All rows of a table, ordered by their key."""
    key = COLUMNS[table].partition(",")[0]
    return session.query(f"SELECT {COLUMNS[table]} FROM {table} ORDER BY {key}")


def stream_table(session: Session, table: str, columns: str | None = None) -> Iterator[Row]:
    """All rows of a table, one by one, in any order."""
    return session.stream(f"SELECT {columns or COLUMNS[table]} FROM {table}")


def stream_by_scan(session: Session, table: str) -> Iterator[Row]:
    """All rows of a table, one by one, without any index."""
    with session.without_indexes() as hint:
        yield from session.stream(f"SELECT {COLUMNS[table]} FROM {table}{hint}")


def stream_in_order(session: Session, table: str) -> Iterator[Row]:
    """All rows of a table, one by one, ordered by their key."""
    key = COLUMNS[table].partition(",")[0]
    return session.stream(f"SELECT {COLUMNS[table]} FROM {table} ORDER BY {key}")


def replace_table(session: Session, table: str, rows: Iterable[Row]) -> None:
    """Delete all rows of a table and store these."""
    session.execute(f"DELETE FROM {table}")
    session.load(table, COLUMNS[table], rows)
