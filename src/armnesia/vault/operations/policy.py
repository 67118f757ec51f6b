"""Changing the policy for requests."""

from dataclasses import replace
from typing import Any

from armnesia.vault.results import PolicyChange
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import append_entry


def change_policy(connection: VaultConnection, **changes: Any) -> PolicyChange:
    """Change parts of the policy from now on, in the ledger too; without a change nothing is written."""
    with connection.writing() as transaction:
        before = transaction.state
        policy = replace(before.configuration.requests, **changes)
        changed = policy != before.configuration.requests
        if changed:
            configuration = replace(before.configuration, policy=policy)
            _, state, to_ledger = append_entry(
                replace(before, configuration=configuration), "policy", policy=policy.to_dict()
            )
            transaction.store(state, to_ledger)
    return PolicyChange(policy, changed, transaction.state.head)
