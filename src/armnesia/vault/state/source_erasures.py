"""What the ledger says of erasures at the sources of an external vault, and what is due there."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.logs.erasing import SourceState
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.certificate_text import CERTIFIED
from armnesia.vault.ledger.source_claim import ERASURE, KINDS
from armnesia.vault.results import SourceErasure
from armnesia.vault.state.counted_sources import CountedSource
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session


def check_may_erase(configuration: Configuration) -> None:
    """Refuse to touch sources in a vault that was created without the permission."""
    if not configuration.may_erase_at_source:
        raise VaultError(
            "this vault may not erase rows at their sources: that is permitted when an external vault is"
            " created (armnesia init --external --may-erase-at-source); nothing was changed"
        )


def read_erasures(session: Session, configuration: Configuration) -> list[dict[str, Any]]:
    """The entries of the ledger that say how far rows are erased at their sources, and of readmissions."""
    if not configuration.may_erase_at_source:
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
        interrupted=bool(each.plans.under_way),
        entry=known["sequence"],
        before=known.get("before"),
        after=known.get("after"),
        remains=tuple(known["remains"]),
        due=known.get("due"),
    )
