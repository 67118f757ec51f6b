"""The state of a vault, for its operator."""

from collections.abc import Mapping
from typing import Any

from armnesia.vault.configuration import Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import EntryRow, SuppressedRow
from armnesia.vault.ledger.certificate import PublicKeys
from armnesia.vault.operations.decide import served_in
from armnesia.vault.results import ArmScore, Served, Status, VaultIdentity
from armnesia.vault.state.certificates import entry_in
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import find_decision
from armnesia.vault.state.decisions import DEFAULT, VaultDecision, key_dict, stacked
from armnesia.vault.state.sources import held_sources


def status_of(
    connection: VaultConnection, *, scores: bool = False, where: Mapping[str, Any] | None = None
) -> Status:
    """The state of the vault; `scores` are for the operator only: changes reveal what was deleted.

    In a vault with many decisions, `where` names the one whose scores are wanted.
    """
    with connection.reading() as transaction:
        session, state = transaction.session, transaction.state
        decision = find_decision(transaction, where) if scores or where is not None else None
        served = None if state.configuration.by else served_in(transaction)
        suppressed = statements.count(session, SuppressedRow, readmitted=None)
        corrected = [entry_in(text) for text in statements.envelopes_of(session, ["correct"])]
        waiting = _uncompacted(session)
        sources = held_sources(session)
        records = connection.records.count(session)
    return Status(
        vault=state.vault,
        location=connection.database.location,
        served=served or Served(None, DEFAULT, state.head),
        configuration=state.configuration,
        decisions=state.n_decisions if state.configuration.by else None,
        records=records,
        suppressed=suppressed,
        replaced=sum(entry.facts["replaced"] for entry in corrected),
        head=state.head,
        witness=connection.witness.to,
        witnessed=connection.witness.told,
        uncompacted=waiting,
        signing_key=state.signing_key,
        sources=sources,
        scores=None if decision is None else _scores(decision, state.configuration),
        scores_of=(
            None
            if decision is None or not state.configuration.by
            else key_dict(state.configuration.key_columns, decision.key)
        ),
    )


def identify(connection: VaultConnection) -> VaultIdentity:
    """Where a vault is, what it is called, and which keys it has."""
    with connection.reading() as transaction:
        state, keyring = transaction.state, transaction.keyring
    return VaultIdentity(
        vault=state.vault,
        location=connection.database.location,
        keys=connection.keys_path,
        public_key=keyring.public_key(),
        head=state.head,
        configuration=state.configuration,
    )


def read_public_keys(connection: VaultConnection) -> PublicKeys:
    """The keys that the vault has signed with, from the last one that was compromised on."""
    with connection.reading() as transaction:
        texts = statements.envelopes_of(transaction.session, ["init", "signing_key"])
        vault = transaction.state.vault
    keys: list[str] = []
    for entry in map(entry_in, texts):
        if entry.facts.get("compromised_since") is not None:
            keys = []
        keys.append(entry.signer)
    return PublicKeys(vault, tuple(keys))


def _uncompacted(session: Session) -> int:
    """How many deletions and corrections came after the last `compact`."""
    compacted = statements.envelopes_of(session, ["compacted"])
    through = entry_in(compacted[-1]).facts["through"] if compacted else 0
    return statements.count(session, EntryRow, after=through, kind=["forget", "correct", "restored"])


def _scores(decision: VaultDecision, configuration: Configuration) -> tuple[ArmScore, ...] | None:
    """The arms of a decision; None while there are none."""
    if not configuration.actions:
        return None
    stream = stacked([decision], configuration)
    statistics, found = stream.statistics, stream.decision()
    columns = (
        statistics.actions,
        statistics.counts[0].tolist(),
        statistics.means[0].tolist(),
        found.scores[0].tolist(),
    )
    return tuple(ArmScore(*row) for row in zip(*columns, strict=True))
