"""Sources, and the hash trees of requests for several people."""

from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.schema import TREE_TABLE


def add_source(session: Session, description: str) -> tuple[int, bool]:
    """The number of a source, and whether it is new; a source that was ingested before keeps its number."""
    found = session.query("SELECT number FROM source WHERE description = ?", description)
    if found:
        return int(found[0][0]), False
    ((number,),) = session.query("SELECT coalesce(max(number), 0) + 1 FROM source")
    session.execute("INSERT INTO source (number, description) VALUES (?, ?)", number, description)
    return int(number), True


def put_source(number: int, description: str) -> Statement:
    """Store a source, or another description in the place of the old one."""
    return (
        "INSERT INTO source (number, description) VALUES (?, ?)"
        " ON CONFLICT (number) DO UPDATE SET description = excluded.description",
        (number, description),
    )


def delete_source(session: Session, number: int) -> None:
    """Delete a source."""
    session.execute("DELETE FROM source WHERE number = ?", number)


def create_tree_table(session: Session) -> None:
    """Create the table of hash trees, for vaults of schema version 1."""
    session.execute(TREE_TABLE.statement(session.dialect.blob))


def insert_tree(row: Row) -> Statement:
    """Store the leaves of a request's hash tree."""
    return "INSERT INTO tree (sequence, leaves) VALUES (?, ?)", row


def read_tree(session: Session, sequence: int) -> bytes | None:
    """The leaves of the hash tree of a ledger entry; None if it has none."""
    found = session.query("SELECT leaves FROM tree WHERE sequence = ?", sequence)
    return bytes(found[0][0]) if found else None
