"""Deciding: which arm is served now."""

from armnesia.vault.results import Served
from armnesia.vault.state.connection import VaultConnection


def decide(connection: VaultConnection) -> Served:
    """The served arm, which is known without the statistics."""
    head_before = connection.expected_head()
    with connection.database.reading() as session:
        stored = connection.read_checked(session, head_before)
    return stored.served_arm()
