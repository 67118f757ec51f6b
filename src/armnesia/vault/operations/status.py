"""The state of a vault, for its operator."""

from collections.abc import Mapping
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.ledger import Entry
from armnesia.vault.results.served import Served
from armnesia.vault.results.status import ArmScore, PendingErasures, Status
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.corrections import replaced_since
from armnesia.vault.state.counted_sources import read_sources
from armnesia.vault.state.decision_table import find_decision, key_dict, stacked
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.signing_keys import certificates_to_reissue, read_public_keys
from armnesia.vault.state.source_erasures import source_statuses
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


def to_reissue(connection: VaultConnection) -> tuple[int, ...]:
    """The ledger entries whose certificates were signed with a key that was compromised."""
    with connection.reading() as transaction:
        return tuple(_to_reissue(connection, transaction))


def _to_reissue(connection: VaultConnection, transaction: Transaction) -> list[int]:
    if transaction.state.signing_key == 1:  # otherwise the ledger is searched for the history of the keys
        return []
    return certificates_to_reissue(transaction.session, read_public_keys(connection, transaction))


def status_of(connection: VaultConnection, *, scores: bool, where: Mapping[str, Any] | None = None) -> Status:
    """Read the state, and try again to erase what could not be erased at once.

    In a vault with many decisions, `where` names the one whose scores are wanted.
    """
    with connection.reading() as transaction:
        session, state = transaction.session, transaction.state
        decision = _named(transaction, where) if scores or where is not None else None
        suppressed = tables.count_suppressed(session)
        waiting = tables.count_erasures_after(session, state.erased_through)
        replaced = replaced_since(session)
        sources = connection.records.sources(session)
        reissue = _to_reissue(connection, transaction)
        records = transaction.count_records()
        pending = purges = left_out = None
        if not connection.records.layout.holds_rows:
            found = source_statuses(transaction, read_sources(session))
            left_out = sum(each.left_out for each in found)
        if state.configuration.may_erase_at_source:
            pending = max((each.pending for each in found), default=0)
            purges = sum(each.purge_pending for each in found)
    erased = state.erased_through >= state.head.sequence or connection.erase(state.head)
    return Status(
        vault=state.vault,
        location=connection.database.location,
        served=Served(state.served_action, state.served_by, state.head),
        configuration=state.configuration,
        decisions=state.n_decisions if state.configuration.by else None,
        records=records,
        suppressed=suppressed,
        replaced=replaced,
        head=state.head,
        erasure="complete" if erased or not waiting else "pending",
        digest_key=state.digest_key,
        signing_key=state.signing_key,
        to_reissue=len(reissue),
        sources=sources,
        source_erasures_pending=pending,
        source_purges_pending=purges,
        sources_with_left_out=left_out,
        scores=None if decision is None else _scores(decision, state.configuration),
        scores_of=(
            None
            if decision is None or not state.configuration.by
            else key_dict(state.configuration.key_columns, decision.key)
        ),
    )


def pending_erasures(connection: VaultConnection) -> PendingErasures:
    """Count the erasures that are pending, after trying again to complete them."""
    with connection.reading() as transaction:
        session, state = transaction.session, transaction.state
        waiting = tables.count_erasures_after(session, state.erased_through)
        first = tables.first_erasure_after(session, state.erased_through) if waiting else None
    if first is None or connection.erase(state.head):
        return PendingErasures(0, None)
    return PendingErasures(waiting, Entry.from_text(first).time)


def _named(transaction: Transaction, where: Mapping[str, Any] | None) -> VaultDecision | None:
    """The decision whose scores are wanted; refuse if it is not said which."""
    state = transaction.state
    if where is not None:
        return find_decision(transaction, where)
    if state.configuration.by:
        names = [column.name for column in state.configuration.key_columns]
        raise InvalidInputError(
            f"the vault has decisions by {listed(names)}: name the one whose scores are wanted, as in"
            f" --where {','.join(f'{name}=…' for name in names)}"
        )
    return state.decision


def _scores(decision: VaultDecision, configuration: Configuration) -> tuple[ArmScore, ...]:
    stream = stacked([decision], configuration)
    statistics, found = stream.statistics, stream.decision()
    columns = (
        statistics.actions,
        statistics.counts[0].tolist(),
        statistics.means[0].tolist(),
        found.scores[0].tolist(),
    )
    return tuple(ArmScore(*row) for row in zip(*columns, strict=True))
