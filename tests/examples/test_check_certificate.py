"""The example that checks certificates without armnesia, against certificates of a vault."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature

from armnesia.vault import Certificate, Configuration, Vault
from armnesia.vault.keys.signatures import public_key
from examples import check_certificate

ROOT = Path(__file__).parents[2]
PEOPLE = ["ann", "bob", "cem", "zoë", "nobody"]


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Certificate]]:
    """The public key of a vault, and certificates: of one person, of several together, of nobody."""
    url = f"sqlite:///{tmp_path_factory.mktemp('vault')}/vault.db"
    with Vault.create(url, Configuration(actions=("A", "B"))) as vault:
        users = ["ann", "bob", "cem", "zoë", "eve", "eve"]
        log = {"action": ["A", "B"] * 3, "reward": [1, 0, 0.5, 1, 1, 0], "user": users}
        vault.ingest(log, user="user")
        alone = vault.forget(users=["eve"]).certificate
        together = vault.forget(users=PEOPLE).certificate
        each = [vault.certificate(users=[name]) for name in PEOPLE]
        return vault.public_key(), [alone, together, *each]


def test_it_accepts_what_a_vault_hands_out(handed_out: tuple[str, list[Certificate]]) -> None:
    key, certificates = handed_out
    openings = [each.opening for each in certificates]
    assert openings[1] is None
    assert max(len(opening["path"]) for opening in openings[2:] if opening is not None) == 3
    assert min(len(opening["path"]) for opening in openings[2:] if opening is not None) == 1
    for each in certificates:
        assert each.verify(key) == []
        check_certificate.check(each.to_json(), key)


def change_words(found: Any) -> None:
    found["body"]["claims"]["forgotten"] += "!"


def change_name(found: Any) -> None:
    found["opening"]["request"]["users"] = ["eve"]


def swap_sides(found: Any) -> None:
    found["opening"]["path"] = [step.replace("right", "left") for step in found["opening"]["path"]]


@pytest.mark.parametrize(
    ("change", "error"),
    [(change_words, InvalidSignature), (change_name, ValueError), (swap_sides, ValueError)],
)
def test_it_refuses_what_was_changed(
    handed_out: tuple[str, list[Certificate]], change: Callable[[Any], None], error: type[Exception]
) -> None:
    key, certificates = handed_out
    found = json.loads(certificates[2].to_json())
    change(found)
    with pytest.raises(error):
        check_certificate.check(json.dumps(found), key)
    with pytest.raises(InvalidSignature):
        check_certificate.check(certificates[2].to_json(), public_key(bytes(32)))


def test_rewritten_numbers_are_not_what_was_signed(handed_out: tuple[str, list[Certificate]]) -> None:
    """As jq and JavaScript write them."""
    key, certificates = handed_out
    text = certificates[0].to_json()
    assert "0.0" in text
    with pytest.raises(InvalidSignature):
        check_certificate.check(text.replace("0.0,", "0,").replace("0.0}", "0}").replace("0.0\n", "0\n"), key)


def test_it_is_a_command(handed_out: tuple[str, list[Certificate]], tmp_path: Path) -> None:
    key, certificates = handed_out
    certificates[0].save(tmp_path / "eve.json")
    program = ROOT / "examples" / "check_certificate.py"
    command: list[str | Path] = [sys.executable, program, tmp_path / "eve.json", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "signed with this key; the entry, its words and the opening agree\n"


def test_the_page_shows_the_file() -> None:
    page = (ROOT / "docs" / "vault-certificates.md").read_text("utf-8")
    shown = page.split("```python\n")[1].split("```")[0]
    assert shown == (ROOT / "examples" / "check_certificate.py").read_text("utf-8")
