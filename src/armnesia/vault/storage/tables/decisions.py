"""The decisions, and the nodes of the hash tree over them."""

from collections.abc import Iterator, Sequence

from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.schema import (
    DECISION_COLUMNS,
    DECISION_TABLE,
    NODE_TABLE,
    DecisionRow,
    RecordLayout,
)
from armnesia.vault.storage.tables.queries_by_key import query_by_keys


def count_decisions(session: Session) -> int:
    """How many decisions there are."""
    ((number,),) = session.query("SELECT count(*) FROM decision")
    return int(number)


def read_first_decisions(session: Session, number: int) -> list[DecisionRow]:
    """So many decisions, in any order."""
    return [
        DecisionRow(*row) for row in session.query(f"SELECT {DECISION_COLUMNS} FROM decision LIMIT ?", number)
    ]


def stream_decisions(session: Session) -> Iterator[DecisionRow]:
    """All decisions, one by one, by their numbers."""
    for row in session.stream(f"SELECT {DECISION_COLUMNS} FROM decision ORDER BY number"):
        yield DecisionRow(*row)


def put_decision(row: DecisionRow) -> Statement:
    """Store a decision, or put it in the old one's place."""
    return _PUT_DECISION, row


_PUT_DECISION = (
    f"INSERT INTO decision ({DECISION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
    " key = excluded.key, statistics = excluded.statistics, served = excluded.served,"
    " served_by = excluded.served_by, seal = excluded.seal"
)


def read_decisions(session: Session, numbers: Sequence[int]) -> list[DecisionRow]:
    """The decisions with these numbers."""
    found = query_by_keys(session, f"SELECT {DECISION_COLUMNS} FROM decision WHERE ", "number", numbers)
    return [DecisionRow(*row) for row in found]


def numbers_served_by(session: Session, chosen_by: str) -> list[int]:
    """The numbers of the decisions whose served arm this has chosen: all rows are read."""
    found = session.query("SELECT number FROM decision WHERE served_by = ? ORDER BY number", chosen_by)
    return [number for (number,) in found]


def numbers_of_keys(session: Session, keys: Sequence[str]) -> dict[str, int]:
    """By key, the numbers of those decisions that there are."""
    return dict(query_by_keys(session, "SELECT key, number FROM decision WHERE ", "key", keys))


def delete_decisions(session: Session) -> None:
    """Delete all decisions."""
    session.execute("DELETE FROM decision")


def rebuild_decision_indexes(session: Session, layout: RecordLayout) -> None:
    """Make the indexes of the decisions again."""
    statement = session.dialect.rebuild_decision_indexes
    if statement is not None:
        for table in (DECISION_TABLE, *([NODE_TABLE] if layout.keyed else [])):
            session.execute(statement.format(table.name))


def read_nodes(session: Session, nodes: Sequence[int]) -> dict[int, bytes]:
    """Nodes of the hash tree over the decisions."""
    found = query_by_keys(session, "SELECT node, digests FROM decision_node WHERE ", "node", nodes)
    return {node: bytes(digests) for node, digests in found}


def stream_nodes(session: Session) -> Iterator[Row]:
    """All nodes of the hash tree, as (node, digests)."""
    return session.stream("SELECT node, digests FROM decision_node ORDER BY node")


def put_node(node: int, digests: bytes) -> Statement:
    """Store a node, or put it in the old one's place."""
    return (
        "INSERT INTO decision_node (node, digests) VALUES (?, ?)"
        " ON CONFLICT (node) DO UPDATE SET digests = excluded.digests",
        (node, digests),
    )


def delete_nodes(session: Session) -> None:
    """Delete the whole hash tree."""
    session.execute("DELETE FROM decision_node")
