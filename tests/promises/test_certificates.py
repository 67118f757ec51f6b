"""Promise 6: anybody with the public key checks a certificate, offline."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.promises.driver import Driven, check_certificate, driven, words_of_certificate
from tests.promises.test_histories import PEOPLE, rows_of


@pytest.fixture
def vault(tmp_path: Path) -> Driven:
    """Certificates do not depend on the database; one test shows it."""
    vault = driven("sqlite", tmp_path)
    vault.add(rows_of(1))
    return vault


def test_a_certificate_is_checked_without_the_vault(database: str, tmp_path: Path) -> None:
    vault = driven(database, tmp_path)
    vault.add(rows_of(1))
    vault.forget(PEOPLE[0])
    certificate, keys = vault.certificate(PEOPLE[0]), vault.public_keys()
    vault.place.keys.unlink()
    assert check_certificate(certificate, keys) == []
    assert PEOPLE[0] in words_of_certificate(certificate, keys)


def test_one_changed_character_anywhere_is_refused(vault: Driven) -> None:
    vault.forget(PEOPLE[0], PEOPLE[1])
    path, keys = vault.certificate(PEOPLE[0]), vault.public_keys()
    text = path.read_text(encoding="utf-8")
    places = [place for place, letter in enumerate(text) if letter.isalnum()]
    for place in places[:: len(places) // 60]:
        other = "1" if text[place] != "1" else "2"
        path.write_text(text[:place] + other + text[place + 1 :], encoding="utf-8")
        assert check_certificate(path, keys) != [], text[place - 20 : place + 20]
    path.write_text(text, encoding="utf-8")
    assert check_certificate(path, keys) == []


def test_a_certificate_of_another_vault_is_refused(vault: Driven, tmp_path: Path) -> None:
    vault.forget(PEOPLE[0])
    stranger = driven("sqlite", tmp_path)
    assert check_certificate(vault.certificate(PEOPLE[0]), stranger.public_keys()) != []


def test_a_certificate_stays_valid_after_a_new_signing_key(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    old = vault.certificate(PEOPLE[0])
    vault.rotate_signing_key()
    vault.forget(PEOPLE[1])
    keys = vault.public_keys()
    assert check_certificate(old, keys) == check_certificate(vault.certificate(PEOPLE[1]), keys) == []


def test_what_a_stolen_key_signed_is_refused_and_issued_again(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    old = vault.certificate(PEOPLE[0])
    vault.rotate_signing_key("--compromised-since", 1)
    keys = vault.public_keys()
    assert check_certificate(old, keys) != []
    assert check_certificate(vault.certificate(PEOPLE[0]), keys) == []


def test_a_certificate_for_nobody_says_that_nothing_was_held(vault: Driven) -> None:
    vault.forget("zoe")
    said = words_of_certificate(vault.certificate("zoe"), vault.public_keys())
    assert "held" in said


def test_the_ledger_and_the_export_name_nobody(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    vault.forget_events("e1-7")
    told = json.dumps(vault.ledger()) + vault.auditors_export().read_text(encoding="utf-8")
    assert not any(name in told for name in (*PEOPLE, "e1-7"))


def test_a_certificate_agrees_with_the_ledger_that_an_auditor_has(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    certificate, keys, ledger = vault.certificate(PEOPLE[0]), vault.public_keys(), vault.auditors_export()
    assert check_certificate(certificate, keys, "--checkpoint", ledger) == []
    other = driven("sqlite", vault.folder).auditors_export()
    assert check_certificate(certificate, keys, "--checkpoint", other) != []


def test_an_entry_at_level_retained_does_not_say_how_much_was_deleted(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    vault.forget(PEOPLE[1], PEOPLE[2])
    one, two = vault.ledger()[-2:]
    assert set(one) == set(two)
    assert not any("count" in name or "records" in name for name in one)


def test_a_signed_decision_has_no_counts_and_no_scores(vault: Driven) -> None:
    assert vault.served() in vault.signed_decisions()
    assert not any(word in vault.signed_decisions() for word in ("count", "mean", "score", "margin"))


def test_a_certificate_is_valid_after_jq(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    path = vault.certificate(PEOPLE[0])
    rewritten = json.dumps(json.loads(path.read_text(), parse_float=_as_jq), sort_keys=True, indent=2)
    path.write_text(rewritten, encoding="utf-8")
    assert check_certificate(path, vault.public_keys()) == []


def _as_jq(number: str) -> float | int:
    value = float(number)
    return int(value) if value.is_integer() else value


def test_a_certificate_is_checked_by_ten_lines_on_cryptography_alone(vault: Driven) -> None:
    import base64

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    vault.forget(PEOPLE[0])
    certificate = json.loads(vault.certificate(PEOPLE[0]).read_text())
    envelope = certificate.get("envelope", certificate)
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(vault.signing_key()))
    key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)
    assert json.loads(payload)["_type"] == "https://in-toto.io/Statement/v1"


def test_a_certificate_is_checked_against_a_checkpoint_alone(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    certificate = vault.certificate(PEOPLE[0])
    assert check_certificate(certificate, vault.public_keys(), "--checkpoint", vault.checkpoint()) == []


def test_a_certificate_says_in_plain_words_first_what_was_done(vault: Driven) -> None:
    vault.forget(PEOPLE[0])
    said = words_of_certificate(vault.certificate(PEOPLE[0]), vault.public_keys())
    assert "deleted the records held under the identifier" in said.split("\n\n")[0]


def test_the_case_and_who_did_it_stand_in_the_certificate_and_not_in_the_ledger(vault: Driven) -> None:
    vault.forget(PEOPLE[0], options=("--case", "ticket-4711", "--by", "desk@example.org"))
    text = vault.certificate(PEOPLE[0]).read_text(encoding="utf-8")
    assert "ticket-4711" in text
    assert "ticket-4711" not in json.dumps(vault.ledger())


def test_the_checker_of_the_documentation_needs_nothing_of_armnesia(vault: Driven, tmp_path: Path) -> None:
    vault.forget(PEOPLE[0])
    checker = Path(__file__).parents[2] / "examples" / "check_certificate.py"
    command = [sys.executable, str(checker)]
    path = vault.certificate(PEOPLE[0])
    assert (
        subprocess.run([*command, path, vault.signing_key()], check=False, capture_output=True).returncode
        == 0
    )
    path.write_text(path.read_text().replace('"deleted"', '"nothing"'), encoding="utf-8")
    assert (
        subprocess.run([*command, path, vault.signing_key()], check=False, capture_output=True).returncode
        != 0
    )
