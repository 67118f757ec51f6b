"""What a certificate says of the sources of an external vault: how far the rows are erased there.

It follows from the ledger alone. The entry of a request names the vault's sources by their numbers, and an
entry `erase_source` says of one of them that nobody who was forgotten up to an entry (`through`) has rows
there at a version, and what is left of them. An entry `rebuild` names the sources that were `dropped`:
their rows no longer count, and nobody has erased them there. No number is given to a second source.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

ERASURE, READMISSION, REBUILD = "erase_source", "readmit", "rebuild"
KINDS = (ERASURE, READMISSION, REBUILD)
"""The kinds of ledger entries that such a claim depends on."""


class SourceState(StrEnum):
    """How far an erasure at a source has gone."""

    UNTOUCHED = "untouched"
    LOGICALLY_DELETED = "logically deleted"
    """Readers no longer see the rows; earlier versions, or files, still hold them."""
    PURGED = "purged"
    """What held the rows is gone, except what `remains` names."""


_STATES = tuple(str(state) for state in SourceState)
"""From the weakest to the strongest."""
_FIELDS, _EACH = {"state", "versions", "remains"}, {"source", "state", "entry", "version"}


def weakest(states: Iterable[str]) -> str:
    """The state that all sources have reached; untouched, if there are none.

    >>> weakest(["purged", "logically deleted"]), weakest([])
    ('logically deleted', 'untouched')
    """
    return min(states, key=_STATES.index, default=_STATES[0])


def source_claim(entry: Mapping[str, Any], later: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the certificate of an entry says of the sources; None if the entry names none.

    `later` are entries of these `KINDS` up to the one that the certificate is issued at, in their order. Of
    each source, the entry counts that first says that most was reached. People who were readmitted are not
    looked for any more, and no entry says who they are: after a readmission every source stays as it was.

    >>> erased = {"kind": "erase_source", "sequence": 6, "through": 5, "source": 1, "state": "purged",
    ...     "version": None, "remains": ["copies remain"]}
    >>> source_claim({"sequence": 5, "sources": [1]}, [erased])["state"]
    'purged'
    >>> source_claim({"sequence": 5, "sources": [1, 2]}, [erased])["state"]
    'untouched'
    >>> readmitted = {"kind": "readmit", "sequence": 6}
    >>> source_claim({"sequence": 5, "sources": [1]}, [readmitted, {**erased, "sequence": 7}])["state"]
    'untouched'

    A source that was dropped stays as it was, and `remains` says so.

    >>> dropped = {"kind": "rebuild", "sequence": 6, "dropped": [2]}
    >>> claim = source_claim({"sequence": 5, "sources": [2]}, [dropped, {**erased, "sequence": 7}])
    >>> print(claim["state"], *claim["remains"])
    untouched source 2 was dropped by ledger entry 6 and not purged: rows may still be there
    """
    numbers = entry.get("sources")
    if numbers is None:
        return None
    known = [each for each in later if each["sequence"] > entry["sequence"]]
    best, dropped = _furthest(entry["sequence"], known), dropped_sources(known)
    found = [best.get(number) for number in numbers]
    each = [_version(number, erasure) for number, erasure in zip(numbers, found, strict=True)]
    remains = [sentence for erasure in found if erasure is not None for sentence in erasure["remains"]]
    remains += [
        f"source {own['source']} was dropped by ledger entry {dropped[own['source']]} and not purged: rows"
        " may still be there"
        for own in each
        if own["source"] in dropped and own["state"] != _STATES[-1]
    ]
    return {
        "state": weakest(own["state"] for own in each),
        "versions": each,
        "remains": list(dict.fromkeys(remains)),
    }


def nothing_due(claim: Mapping[str, Any] | None) -> bool:
    """Whether the rows are gone from the files of all sources, as far as such a claim says.

    >>> nothing_due(None), nothing_due({"state": "untouched", "versions": []})
    (True, True)
    >>> nothing_due({"versions": [{"source": 1, "state": "logically deleted"}]})
    False
    """
    return claim is None or all(own["state"] == _STATES[-1] for own in claim["versions"])


def dropped_sources(entries: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """By the number of a source that was dropped, the last entry that says so."""
    rebuilds = [each for each in entries if each["kind"] == REBUILD]
    return {number: each["sequence"] for each in rebuilds for number in each.get("dropped", ())}


def _furthest(sequence: int, later: Iterable[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """By source, the first of later entries with the strongest state that covers an entry."""
    best: dict[int, Mapping[str, Any]] = {}
    for each in later:
        if each["kind"] == READMISSION:
            break  # what comes now may not be about the people of this entry
        if each["kind"] == ERASURE and each["through"] >= sequence:
            known = best.get(each["source"])
            if known is None or _STATES.index(each["state"]) > _STATES.index(known["state"]):
                best[each["source"]] = each
    return best


def _version(number: int, erasure: Mapping[str, Any] | None) -> dict[str, Any]:
    if erasure is None:
        return {"source": number, "state": _STATES[0], "entry": None, "version": None}
    return {
        "source": number,
        "state": erasure["state"],
        "entry": erasure["sequence"],
        "version": erasure["version"],
    }


def form_problems(claim: Any, entry: Mapping[str, Any]) -> Iterator[str]:
    """Whether a certificate has such a claim exactly if its entry names sources, and of these sources."""
    numbers = entry.get("sources")
    if numbers is None:
        if claim is not None:
            yield "the certificate must not have source: its ledger entry names no sources"
        return
    each = claim.get("versions") if isinstance(claim, Mapping) else None
    if (
        not isinstance(claim, Mapping)
        or set(claim) != _FIELDS
        or not isinstance(each, list)
        or not all(isinstance(own, Mapping) and set(own) == _EACH for own in each)
        or not all(own["state"] in _STATES for own in each)
        or not isinstance(claim["remains"], list)
    ):
        yield "the certificate must have source, with state, versions of each source, and remains"
        return
    if [own["source"] for own in each] != numbers:
        yield "the certificate's source is not about the sources that its ledger entry names"
    if claim["state"] != weakest(own["state"] for own in each):
        yield "the certificate's source must have the weakest state of all sources"
    for own in each:
        named = own["entry"]
        later = isinstance(named, int) and not isinstance(named, bool) and named > entry["sequence"]
        if (own["state"] == _STATES[0] and named is not None) or (own["state"] != _STATES[0] and not later):
            yield f"the certificate's source {own['source']} must name the later ledger entry that erased it"
