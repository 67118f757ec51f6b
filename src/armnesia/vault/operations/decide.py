"""Deciding: which arm is served now."""

import json

from armnesia.vault.results import Served
from armnesia.vault.state.connection import VaultConnection


def decide(connection: VaultConnection) -> Served:
    """The served arm, which is known without the statistics."""
    head_before = connection.expected_head()
    with connection.database.reading() as session:
        stored = connection.read_checked(session, head_before)
    row = stored.row
    action = None if row.served is None else json.loads(stored.arms[row.served].label)
    return Served(action, row.served_by, stored.head)
