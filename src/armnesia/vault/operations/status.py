"""How a vault stands, in a form for people and for JSON."""

import json
from dataclasses import dataclass
from typing import Any

from armnesia.logs import source_name
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.connection import Opened
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import EXTERNAL


@dataclass(frozen=True)
class Served:
    """The arm that is served, why it is that one ("default", "learner", "release"), and the ledger's head."""

    action: Any
    by: str
    head: Head


@dataclass(frozen=True)
class ArmScore:
    """One arm as the operator sees it: published before and after a deletion, it tells what was deleted."""

    action: Any
    count: int
    mean: float
    score: float


@dataclass(frozen=True)
class HeldSource:
    """Where an external vault has rows from, and how many it counts from there."""

    name: str
    records: int


@dataclass(frozen=True)
class Status:
    """How a vault stands. `scores` is None unless the operator asked for them."""

    vault: str
    location: str
    served: Served
    configuration: Configuration
    records: int
    suppressed: int
    head: Head
    erasure: str
    digest_key: int
    signing_key: int
    sources: tuple[HeldSource, ...]
    scores: tuple[ArmScore, ...] | None


def status_of(opened: Opened, *, scores: bool) -> Status:
    """Look, and try again to erase what could not be erased at once."""
    erased = opened.retry_erasure()
    with opened.reading() as session:
        state = opened.load(session)
        ((suppressed,),) = session.query("SELECT count(*) FROM suppressed WHERE readmitted IS NULL")
        ((waiting,),) = session.query(
            "SELECT count(*) FROM certificate WHERE sequence > ?", state.erased_through
        )
        sources = _sources(session) if opened.mode == EXTERNAL else ()
    stream = state.stream
    arms = None
    if scores and stream is not None:
        statistics, decision = stream.statistics, stream.decision()
        columns = (
            statistics.actions,
            statistics.counts.tolist(),
            statistics.means.tolist(),
            decision.scores.tolist(),
        )
        arms = tuple(ArmScore(*row) for row in zip(*columns, strict=True))
    return Status(
        vault=state.vault,
        location=opened.database.location,
        served=Served(state.served_action, state.served_by, state.head),
        configuration=state.configuration,
        records=0 if stream is None else int(stream.statistics.total),
        suppressed=int(suppressed),
        head=state.head,
        erasure="complete" if erased or not waiting else "pending",
        digest_key=state.digest_key,
        signing_key=state.signing_key,
        sources=sources,
        scores=arms,
    )


def _sources(session: Session) -> tuple[HeldSource, ...]:
    counts: dict[int, int] = dict(session.query("SELECT source, count(*) FROM record GROUP BY source"))
    known = session.query("SELECT number, description FROM source ORDER BY number")
    return tuple(
        HeldSource(source_name(json.loads(description)), int(counts.get(number, 0)))
        for number, description in known
    )
