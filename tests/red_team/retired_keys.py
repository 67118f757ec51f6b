"""What somebody signs who holds a signing key that was retired, checked against the ledger."""

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from armnesia.vault import Certificate, LedgerCopy, PublicKeys
from armnesia.vault.keys.keyring import Keyring
from tests.red_team.attacks import Trial, Verdict
from tests.red_team.target import Target
from tests.vault.forging import about_another_entry, sign_again

DATES = ("2020-01-01T00:00:00.000000Z", "2026-11-15T10:42:07.123456Z", "2031-01-01T00:00:00.000000Z", "", 5)
WORDS: dict[str, Any] = {
    "not_covered": [],
    "proves": "that no copy exists",
    "claims": {"forgotten": "everything", "level": "retained", "guarantee": "(0, 0)"},
    "remark": "backups too",
}


def retired_keys(trials: int, seed: int) -> Iterator[Trial]:
    """Invent entries, change words, states of erasure, dates and heads of issue, and sign all of it."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Target.create(Path(folder), seed)
        with target.copy(target.folder / "asked").open() as vault:
            vault.export(target.folder / "export.json")
            keys = vault.public_keys()
            numbers = [entry.sequence for entry in vault.ledger() if "terms" in entry.fields]
            honest = [vault.certificate_of_entry(number) for number in numbers]
        ledger = LedgerCopy.read(target.folder / "export.json")
        for _ in range(trials):
            what, forge = draw.choice(list(FORGERIES.items()))
            certificate = draw.choice(honest)
            forged = forge(draw, certificate, target.keyring, ledger)
            if draw.random() < 0.5:
                forged = sign_again(forged, target.keyring, issued=draw.choice(DATES))
            yield _verdict(what, forged, certificate, keys, ledger)


def _verdict(
    what: str, forged: Certificate, honest: Certificate, keys: PublicKeys, ledger: LedgerCopy
) -> Trial:
    try:
        problems = forged.verify(keys, ledger=ledger)
    except Exception as error:
        return Trial(what, Verdict.MISSED, f"{type(error).__name__}: {error}")
    if problems:
        return Trial(what, Verdict.CAUGHT, problems[0])
    said = (
        "schema",
        "vault",
        "sequence",
        "entry",
        "entry_hash",
        "claims",
        "not_covered",
        "proves",
        "erasure",
    )
    if {name: forged.body[name] for name in said} == {name: honest.body[name] for name in said}:
        return Trial(what, Verdict.NO_EFFECT)  # what the vault has said itself, in the time of the key
    return Trial(what, Verdict.MISSED, "it is valid, and the vault never said that")


Forge = Callable[[random.Random, Certificate, Keyring, LedgerCopy], Certificate]


def _any_head(draw: random.Random, ledger: LedgerCopy) -> str:
    number = draw.randint(1, len(ledger.hashes) + 1)
    known = number <= len(ledger.hashes) and draw.random() < 0.8
    return f"{number}:{ledger.hashes[number - 1] if known else 'ab' * 32}"


def _invent(draw: random.Random, honest: Certificate, stolen: Keyring, ledger: LedgerCopy) -> Certificate:
    sequence = draw.randint(2, len(ledger.hashes) + 1)
    fact: dict[str, Any] = draw.choice([{"commitment": "cd" * 32}, {"salt_key": 7}, {"released": "C"}])
    head = _any_head(draw, ledger) if draw.random() < 0.5 else None
    return about_another_entry(honest, stolen, sequence=sequence, issued_at=head, **fact)


def _change_words(
    draw: random.Random, honest: Certificate, stolen: Keyring, ledger: LedgerCopy
) -> Certificate:
    name = draw.choice(list(WORDS))
    return sign_again(honest, stolen, **{name: WORDS[name], "issued_at_head": _any_head(draw, ledger)})


def _change_erasure(
    draw: random.Random, honest: Certificate, stolen: Keyring, ledger: LedgerCopy
) -> Certificate:
    erasure = {
        **honest.body["erasure"],
        **draw.choice([{"state": "complete"}, {"covers": "all backups"}, {"of": 1}]),
    }
    return sign_again(honest, stolen, erasure=erasure, issued_at_head=_any_head(draw, ledger))


def _sign_at_another_head(
    draw: random.Random, honest: Certificate, stolen: Keyring, ledger: LedgerCopy
) -> Certificate:
    return sign_again(honest, stolen, issued_at_head=_any_head(draw, ledger))


def _as_of_the_first_release(
    draw: random.Random, honest: Certificate, stolen: Keyring, ledger: LedgerCopy
) -> Certificate:
    return sign_again(honest, stolen, issued_at_head=...)


def _open_for_another(
    draw: random.Random, honest: Certificate, stolen: Keyring, ledger: LedgerCopy
) -> Certificate:
    signed = sign_again(honest, stolen)
    return Certificate(signed.body, signed.signature, {"salt": "00" * 16, "request": {"users": ["user-9"]}})


FORGERIES: dict[str, Forge] = {
    "an invented entry": _invent,
    "other words": _change_words,
    "another erasure": _change_erasure,
    "another head of issue": _sign_at_another_head,
    "no head of issue": _as_of_the_first_release,
    "another person": _open_for_another,
}
