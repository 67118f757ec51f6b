"""What the ledger says of erasures at the sources of an external vault, and what is due there."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.certificate_text import CERTIFIED
from armnesia.vault.ledger.source_claim import ERASURE, KINDS, SourceState, dropped_sources, source_claim
from armnesia.vault.results.sources import DroppedSource, SourceErasure
from armnesia.vault.state.counted_sources import CountedSource
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session

_NAMING = (*CERTIFIED, *KINDS)
"""The kinds of ledger entries that name sources by their numbers."""


def check_may_erase(configuration: Configuration) -> None:
    """Refuse to touch sources in a vault that was created without the permission."""
    if not configuration.may_erase_at_source:
        raise VaultError(
            "this vault may not erase rows at their sources: that is permitted when an external vault is"
            " created; nothing was changed; for a vault that may, and knows who was forgotten here, run"
            " armnesia init --url NEW --external --may-erase-at-source --successor-of THIS, and ingest the"
            " sources there"
        )


def read_erasures(session: Session, configuration: Configuration) -> list[dict[str, Any]]:
    """The entries of the ledger that say how far rows are erased, of readmissions, and of dropped sources."""
    if configuration.mode != "external":
        return []
    return list(_of_kinds(tables.read_entries_like(session, KINDS), KINDS))


def _of_kinds(texts: Sequence[str], kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    for text in texts:
        entry = json.loads(text)
        if entry["kind"] in kinds:
            yield entry


def last_erasures(entries: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """By the number of a source, the last entry that erased rows there."""
    return {each["source"]: each for each in entries if each["kind"] == ERASURE}


def requests_answered(session: Session) -> list[int]:
    """The entries that answered requests."""
    return [each["sequence"] for each in _of_kinds(tables.read_entries_like(session, CERTIFIED), CERTIFIED)]


def next_number(session: Session, sources: Iterable[CountedSource]) -> int:
    """The number of a new source: one that no entry of the ledger names, whose certificates go by it."""
    used = [each.number for each in sources]
    for entry in _of_kinds(tables.read_entries_like(session, _NAMING), _NAMING):
        used += entry.get("sources") or ()
        used += [entry["source"]] if entry["kind"] == ERASURE else entry.get("dropped", ())
    return max(used, default=0) + 1


def dropped_unerased(transaction: Transaction, sources: Iterable[CountedSource]) -> tuple[DroppedSource, ...]:
    """Sources that were dropped while rows of forgotten people were there, as far as the ledger says."""
    session, counted = transaction.session, {each.number for each in sources}
    erasures = read_erasures(session, transaction.state.configuration)
    dropped = {number: at for number, at in dropped_sources(erasures).items() if number not in counted}
    requests = unerased_requests(transaction, dropped)
    return tuple(DroppedSource(number, dropped[number], n) for number, n in sorted(requests.items()) if n)


def unerased_requests(transaction: Transaction, numbers: Iterable[int]) -> dict[int, int]:
    """Of each of these sources, how many requests may have rows there that are not purged, by the ledger."""
    session, requests = transaction.session, dict.fromkeys(numbers, 0)
    if not requests:
        return requests
    erasures = read_erasures(session, transaction.state.configuration)
    for entry in _of_kinds(tables.read_entries_like(session, CERTIFIED), CERTIFIED):
        claim = source_claim(entry, erasures)
        for own in () if claim is None else claim["versions"]:
            if own["source"] in requests and own["state"] != SourceState.PURGED:
                requests[own["source"]] += 1
    return requests


def source_statuses(transaction: Transaction, sources: Iterable[CountedSource]) -> tuple[SourceErasure, ...]:
    """How far each source is, by the ledger."""
    session, configuration = transaction.session, transaction.state.configuration
    last, requests = last_erasures(read_erasures(session, configuration)), requests_answered(session)
    return tuple(_status(each, last.get(each.number), requests) for each in sources)


def _status(each: CountedSource, last: Mapping[str, Any] | None, requests: Sequence[int]) -> SourceErasure:
    known = last or {"through": 0, "state": str(SourceState.UNTOUCHED), "sequence": None, "remains": ()}
    return SourceErasure(
        number=each.number,
        name=each.name,
        state=known["state"],
        pending=sum(1 for sequence in requests if sequence > known["through"]),
        entry=known["sequence"],
        version=known.get("version"),
        remains=tuple(known["remains"]),
        due=known.get("due"),
        left_out=each.left_out,
    )
