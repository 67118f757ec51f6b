"""The state of a vault, for its operator."""

from armnesia.unlearners.stream import Stream
from armnesia.vault.results import ArmScore, Served, Status
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.corrections import replaced_since
from armnesia.vault.state.signing_keys import certificates_to_reissue, read_public_keys
from armnesia.vault.storage import tables


def status_of(connection: VaultConnection, *, scores: bool) -> Status:
    """Read the state, and try again to erase what could not be erased at once."""
    with connection.reading() as transaction:
        session, state = transaction.session, transaction.state
        suppressed = tables.count_suppressed(session)
        waiting = tables.count_erasures_after(session, state.erased_through)
        replaced = replaced_since(session)
        sources = connection.records.sources(session)
        to_reissue = []
        if state.signing_key > 1:  # the ledger is searched for the history of the keys
            to_reissue = certificates_to_reissue(session, read_public_keys(connection, transaction))
        records = transaction.count_records()
    erased = state.erased_through >= state.head.sequence or connection.erase(state.head)
    stream = state.stream
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
        to_reissue=len(to_reissue),
        sources=sources,
        scores=_scores(stream) if scores and stream is not None else None,
    )


def _scores(stream: Stream) -> tuple[ArmScore, ...]:
    statistics, decision = stream.statistics, stream.decision()
    columns = (
        statistics.actions,
        statistics.counts.tolist(),
        statistics.means.tolist(),
        decision.scores.tolist(),
    )
    return tuple(ArmScore(*row) for row in zip(*columns, strict=True))
