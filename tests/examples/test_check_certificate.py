"""The checkers for others, in Python and for Node, agree with the package on what a certificate is."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.signatures import public_key
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.people import RECORD, USER
from tests.vault.ledger.ledgers import OTHER, PUBLIC, SmallLedger, entry_of

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = {
    "python": [sys.executable, str(EXAMPLES / "check_certificate.py")],
    "node": ["node", str(EXAMPLES / "check_certificate.mjs")],
}
ALL = [
    pytest.param(
        name, marks=pytest.mark.skipif(shutil.which(program[0]) is None, reason=f"{name} is not installed")
    )
    for name, program in PROGRAMS.items()
]


def certificate(role: str = USER, text: str = "416") -> Certificate:
    ledger = SmallLedger()
    for number in range(4, 9):
        ledger.write(entry_of(number, "compacted"))
    return ledger.certificate(role, text, later=(4, 8))


@pytest.fixture(params=ALL)
def check(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    def run(text: str, key: str = PUBLIC) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "certificate.json").write_text(text, encoding="utf-8")
        command = [*PROGRAMS[request.param], str(tmp_path / "certificate.json"), key]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)

    return run


@pytest.mark.parametrize(
    ("role", "text", "outcome"),
    [
        (USER, "416", "deleted"),
        (USER, "bob", "uncounted"),
        (USER, "zoé", "nothing"),
        (RECORD, "r-7", "deleted"),
    ],
)
def test_a_certificate_is_right_for_everybody(role: str, text: str, outcome: str, check: Any) -> None:
    done = check(json.dumps(certificate(role, text).to_dict(), indent=7))
    assert done.stderr == ""
    said = [f"{role} {text}: {outcome}", "case DSR-2026/12: ", "actor clerk@example.com: "]
    assert done.stdout.splitlines() == [*said, "compacted", "compacted", "valid"]


def flipped(text: str, place: int) -> str:
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "payload": lambda own: own["envelope"].update(payload=flipped(own["envelope"]["payload"], 100)),
    "type": lambda own: own["envelope"].update(payloadType="application/json"),
    "signature": lambda own: own["envelope"]["signatures"][0].update(
        sig=flipped(own["envelope"]["signatures"][0]["sig"], 5)
    ),
    "index": lambda own: own.update(proof=own["proof"].replace("index 2", "index 3")),
    "size": lambda own: own.update(proof=own["proof"].replace("\n8\n", "\n9\n")),
    "origin": lambda own: own.update(proof=own["proof"].replace("armnesia/v-1", "armnesia/v-2")),
    "checkpoint": lambda own: own.update(proof=flipped(own["proof"], len(own["proof"]) - 20)),
    "hash": lambda own: own.update(proof=flipped(own["proof"], 40)),
    "later": lambda own: own["later"][1].update(proof=own["proof"]),
    "text": lambda own: own["opening"][0].update(text="417"),
    "outcome": lambda own: own["opening"][0].update(outcome="nothing"),
    "salt": lambda own: own["opening"][0].update(salt=own["opening"][1]["salt"]),
    "place": lambda own: own["opening"][0].update(index=own["opening"][1]["index"]),
    "path": lambda own: own["opening"][0].update(path=own["opening"][0]["path"][:-1]),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_certificate_is_refused_by_everybody(change: str, check: Any) -> None:
    document = certificate().to_dict()
    CHANGES[change](document)
    text = json.dumps(document)
    assert text != json.dumps(certificate().to_dict())
    assert check(text).returncode != 0
    problems: object
    try:
        problems = Certificate.read(text).verify(PUBLIC)
    except InvalidInputError as error:
        problems = str(error)
    assert problems


def test_another_key_is_refused_by_everybody(check: Any) -> None:
    text = certificate().to_json()
    assert check(text).returncode == 0
    assert check(text, public_key(OTHER)).returncode != 0
