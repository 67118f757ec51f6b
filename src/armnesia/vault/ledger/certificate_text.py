"""The text of a certificate: what was forgotten, with which guarantee, and what is not covered."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import printable
from armnesia.privacy import Guarantee, Level
from armnesia.vault.keys.canonical_json import text_of_plain

CERTIFIED = ("forget", "nothing_held")
NOT_COVERED = (
    "decisions released before the deletion: they were made with the records",
    "records of others that were collected while such a decision was served: they stay, and which arms they"
    " are of may depend on the deleted records",
    "requests of others that were chosen by looking at such a decision; requests that are chosen by looking"
    " at the arm served after the deletion are covered",
    "statistics or scores published before and after the deletion: their difference is what was deleted",
    "copies of rows in the vault's own database to which none of its indexes leads, as damage of a disk or"
    " another program can make them, except in what the certificate says was searched for them",
    "backups, copies, logs and models elsewhere",
    "other accounts of the same person",
    "records without a user, if the vault holds any: whose they are is not known to it",
)
PROVES = (
    "the holder of the signing key makes these claims; the ledger and the procedure can be audited."
    " It does not prove that no copy of the records exists elsewhere"
)
_FORGOTTEN = (
    "the records of the request were removed from the vault's statistics; these are exact integers, and what"
    " remained was, bit for bit, the statistics of the other records alone"
)
_COUNTS_KEPT = "; the number of deleted records per arm is kept, because the penalty is frozen"
_NOTHING_HELD = {
    "forgotten": "nothing: when the request was made, the vault held no records of the users or ids in it",
    "level": "none: nothing was held, so nothing had to be forgotten",
    "guarantee": "none: the request changed neither the statistics nor the served arm",
}
_NOT_OFFERED = "only records of arms that are not offered were deleted"
_OR_KEPT = f", or stayed where {_NOT_OFFERED}"
_ABOUT_OTHERS = (
    "Of this name: nothing was held, so nothing had to be forgotten. What follows was signed for the whole"
    " request, and is about the other names in it"
)
_RETRAINS = ("rollback", "imitation_rollback")
"""At `retained` these serve what retraining on the other records serves; no other unlearner promises that."""
_MOST_NAMES = 10
SEARCHED = (
    "{} was read after the deletion; no digest of the people or records of the request was found, except in"
    " the list of those who stay forgotten"
)
"""What a certificate says in words of which `erasure.searched` says what was read."""

LATER_ROWS = "rows that came there later are not covered"
"""What an erasure at a source leaves open; `verify` and `erase` look for such rows."""


def claims_of(kind: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """The claims of the certificate of a ledger entry; the guarantee is the entry's `level` and `budget`.

    >>> facts = {
    ...     "level": "retained", "budget": {"epsilon": 0.0, "delta": 0.0}, "unlearner": {"name": "rollback"},
    ...     "released": "B",
    ... }
    >>> print(claims_of("forget", facts)["guarantee"])
    the arm served after the deletion, "B", was drawn once by rollback (identical to retraining on the other
    records), with (ε = 0, δ = 0) at level retained: the deleted records are forgotten, their number too;
    records that exist because of an earlier decision stay
    """
    if kind not in CERTIFIED:
        raise InvalidInputError(f"the entry of a certificate must be {' or '.join(CERTIFIED)}; got {kind!r}")
    if kind == "nothing_held":
        return dict(_NOTHING_HELD)
    try:
        epsilon, delta = (float(facts["budget"][name]) for name in ("epsilon", "delta"))
        released = None if "by" in facts else text_of_plain(facts["released"])
        kept = "kept" in facts or any("kept" in each for each in facts.get("decisions", ()))
        claimed = _claims(facts["level"], epsilon, delta, released, str(facts["unlearner"]["name"]), kept)
    except (KeyError, TypeError):
        raise InvalidInputError(
            "the entry of a certificate must have level, budget (epsilon, delta), unlearner (name) and"
            " released or, with many decisions, by"
        ) from None
    counts = _COUNTS_KEPT if facts.get("penalty") == "frozen" else ""
    return {"forgotten": _FORGOTTEN + counts, **claimed}


@lru_cache(maxsize=256)  # most requests have the same claims, and a deletion waits for them
def _claims(
    level_name: str, epsilon: float, delta: float, released: str | None, unlearner: str, kept: bool
) -> dict[str, str]:
    """The level and the guarantee; `released` is None if arms were released in many decisions.

    `kept`: at least one decision lost records of arms alone that it does not offer.
    """
    guarantee = Guarantee(epsilon, delta, Level.named(level_name), is_joint=released is None)
    by = unlearner
    if unlearner in _RETRAINS and guarantee.level is Level.RETAINED:
        by += " (identical to retraining on the other records)"
    drawn = f"the arm served after the deletion, {released}, was drawn once by {by}"
    if released is None:
        drawn = (
            "in every decision with records of the request, the arm served after the deletion was drawn once"
            f" by {by}{_OR_KEPT if kept else ''}; all of them together"
        )
    elif kept:
        drawn = f"the arm served before the deletion, {released}, stayed, because {_NOT_OFFERED}"
    return {
        "level": f"{guarantee.level}: {guarantee.meaning}",
        "guarantee": f"{drawn}, with {guarantee}",
    }


def request_words(opening: Mapping[str, Any] | None) -> str:
    """The users or records that a request names, from its opening.

    >>> request_words({"salt": "", "request": {"users": ["ann", "bob"]}})
    "2 users: 'ann', 'bob'"
    >>> request_words({"salt": "", "request": {"users": ["ann"], "held": False}})
    "1 user: 'ann'; the vault held nothing under this name"
    >>> request_words({"salt": "", "request": {"users": ["ann"], "held": True}, "path": ["0" * 64]})
    "1 user: 'ann', one of several in the request"
    >>> request_words(None)
    'not named here: the certificate has no opening'
    """
    if opening is None:
        return "not named here: the certificate has no opening"
    request = opening["request"]
    if not isinstance(request, Mapping):  # only in a forged file
        return "names nothing"
    kinds = [kind for kind in ("users", "records") if kind in request]
    named = "; ".join(_listed(kind, request[kind]) for kind in kinds) or "names nothing"
    among = ", one of several in the request" if opening.get("path") else ""
    return named + among + ("; the vault held nothing under this name" if _held_nothing(opening) else "")


def _held_nothing(opening: Mapping[str, Any] | None) -> bool:
    """Whether the vault held nothing of the one name that is opened, of a request for several."""
    request = None if opening is None else opening["request"]
    return isinstance(request, Mapping) and request.get("held") is False


def _listed(kind: str, names: list[Any]) -> str:
    noun = kind.removesuffix("s") if len(names) == 1 else kind
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} {noun}: {shown}{more}"


def _source_lines(claim: Mapping[str, Any] | None) -> list[str]:
    """How far rows are erased at the sources of an external vault, and by which ledger entries."""
    if claim is None:
        return []
    entries = [f"{own['entry']}" for own in claim["versions"] if own["entry"] is not None]
    noun = "entry" if len(entries) == 1 else "entries"
    by = f", by ledger {noun} {', '.join(entries)}; {LATER_ROWS}" if entries else ""
    remains = [f"  - {sentence}" for sentence in claim["remains"]]
    return [f"Source: {claim['state']}{by}", *(["Remains at the source:", *remains] if remains else [])]


def words_of(body: Mapping[str, Any], opening: Mapping[str, Any] | None) -> str:
    """The text of a certificate, in the words that were signed."""
    claims, erasure, key = body["claims"], body["erasure"], body["signing_key"]
    lines = [
        f"Entry {body['sequence']} of the ledger of vault {body['vault']}, {body['entry']['time']}",
        f"Request: {request_words(opening)}",
        *([_ABOUT_OTHERS] if _held_nothing(opening) and body["entry"]["kind"] == "forget" else []),
        f"Forgotten: {claims['forgotten']}",
        f"Level: {claims['level']}",
        f"Guarantee: {claims['guarantee']}",
        f"Erasure: {erasure['state']}: {erasure['covers']}",
        *([f"Searched: {SEARCHED.format(erasure['searched'])}"] if "searched" in erasure else []),
        *_source_lines(body.get("source")),
        "Not covered:",
        *(f"  - {item}" for item in body["not_covered"]),
        f"What it proves: {body['proves']}",
        f"Ledger entry: {body['sequence']}:{body['entry_hash']}",
        *([f"Issued at ledger head: {body['issued_at_head']}"] if "issued_at_head" in body else []),
        f"Issued {body['issued']}, signing key {key['version']}: {key['public']}",
    ]
    return "\n".join(printable(line) for line in lines)  # the file may be forged
