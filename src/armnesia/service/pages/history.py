"""Why a decision serves its arm, and since when: what the ledger says of it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from armnesia.vault import Entry, Vault

_AT_ONCE, _MOST = 500, 5_000
"""Entries of the ledger that are read at a time, and at most."""
BY_WORDS = {
    "default": "default arm: no records yet",
    "learner": "chosen by the records",
    "release": "drawn after a deletion",
}
KIND_WORDS = {
    "init": "Vault created",
    "configured": "Configuration completed by rows",
    "arms": "Arm offered or retired",
    "correct": "Rows corrected",
    "forget": "People or records forgotten",
    "erased": "Rows erased at a source",
    "readmit": "People or records readmitted",
    "policy": "Policy changed",
    "signing_key": "New signing key",
    "token_revoked": "Token revoked",
    "compacted": "Deleted bytes removed from the files",
    "restored": "Brought in line with its journal",
    "without_journal": "New journal begun: the old one was lost",
}
_BY_BOUND = (
    "The arm has the highest lower confidence bound by the records that the vault has now: a high mean, of"
    " enough records to rely on it. An arm with a higher mean of fewer records may have a lower bound."
)
_CHOSEN = {
    "lcb": _BY_BOUND,
    "kl_lcb": _BY_BOUND,
    "imitation": "The arm is the one with the most records that the vault has now.",
}
_CHOSEN_OTHERWISE = "The arm is the one that the learner chooses by the records that the vault has now."
_MAY_CHANGE = {"forget", "arms", "correct", "restored", "init"}


class Reason(NamedTuple):
    """Why an arm is served, and the last ledger entry that has to do with it."""

    sentence: str
    entry: Entry | None
    entry_words: str


def newest_first(vault: Vault, most: int = _MOST) -> Iterator[Entry]:
    """The entries of the ledger, the newest first, and not more than so many."""
    end, left = vault.head.size, most
    while end > 0 and left > 0:
        number = min(_AT_ONCE, end, left)
        yield from reversed(vault.ledger(after=end - number, most=number).entries)
        end, left = end - number, left - number


def reason_of(vault: Vault, key: Mapping[str, str] | None, by: str) -> Reason:
    """Why the decision with this key serves its arm."""
    entry = next((each for each in newest_first(vault) if _concerns(each, key, by)), None)
    if by == "release":
        sentence = "The arm was drawn when records were forgotten, and stays until other records come in."
        return Reason(sentence, entry, "The deletion")
    if by == "default":
        sentence = "There are no records yet, so that the default arm is served."
        return Reason(sentence, entry, "The last entry of the ledger that may concern it")
    sentence = (
        f"{_CHOSEN.get(vault.configuration.learner, _CHOSEN_OTHERWISE)} New records make no ledger entry, so"
        " that the ledger does not say since when."
    )
    return Reason(sentence, entry, "The last entry of the ledger that may have changed it")


def _concerns(entry: Entry, key: Mapping[str, str] | None, by: str) -> bool:
    """Whether an entry may have changed what a decision serves; where the ledger conceals it, it may."""
    facts: Mapping[str, Any] = entry.facts
    if by == "release" and entry.kind != "forget":
        return False
    if entry.kind == "forget" and "decisions" in facts:
        return any(each["key"] == key for each in facts["decisions"])
    if entry.kind == "arms" and key is not None:
        return dict(facts.get("where") or {}).items() <= dict(key).items()
    return entry.kind in _MAY_CHANGE
