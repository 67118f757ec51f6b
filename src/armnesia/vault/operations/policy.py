"""Changing the policy for requests."""

from typing import Any

from armnesia.vault.results import PolicyChange
from armnesia.vault.state.connection import VaultConnection


def change_policy(connection: VaultConnection, **changes: Any) -> PolicyChange:
    """Change parts of the policy from now on, in the ledger too; without a change nothing is written."""
    with connection.writing() as transaction:
        before = transaction.state.configuration
        configuration = before.with_policy(**changes)
        policy, changed = configuration.policy, configuration != before
        if changed:
            transaction.append("policy", configuration=configuration)
    return PolicyChange(policy, changed, transaction.state.head)
