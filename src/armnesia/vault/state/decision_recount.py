"""The decisions whose statistics are counted again, by `rebuild` and `restore`."""

from dataclasses import replace

from armnesia.core.errors import VaultError
from armnesia.vault.state.decision_statistics import ArmSums
from armnesia.vault.state.decision_table import read_all_decisions, read_sealed_keys
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.replay import ReplayedState
from armnesia.vault.state.transaction import Transaction


def decisions_to_count(transaction: Transaction, replayed: ReplayedState) -> tuple[list[VaultDecision], bool]:
    """All decisions of a vault with key columns, and whether they are what was stored last.

    If not, only their keys are believed, and the numbers of deleted records are those of the ledger.
    """
    state, keyring = transaction.state, transaction.keyring
    try:
        return read_all_decisions(transaction.session, state, keyring), transaction.intact
    except (VaultError, ValueError, TypeError, KeyError):
        nothing = ArmSums.empty(len(state.actions), state.configuration.penalty)
        found = read_sealed_keys(transaction.session, keyring)
        return replayed.with_deleted(replace(each, statistics=nothing) for each in found), False
