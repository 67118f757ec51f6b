"""Deciding: which arm is served now."""

from armnesia.vault.configuration import Configuration
from armnesia.vault.results import Served
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decisions import DEFAULT


def decide(connection: VaultConnection) -> Served:
    """The served arm, which is known without the statistics."""
    head_before = connection.expected_head()
    with connection.database.reading() as session:
        stored = connection.read_checked(session, head_before)
    decision, actions = stored.decision, Configuration.from_text(stored.row.configuration).actions
    if decision is None or decision.served is None or actions is None:
        return Served(None, DEFAULT, stored.head)
    return Served(actions[decision.served], decision.served_by, stored.head)
