"""The commands `certificate show` and `certificate verify`."""

import json
from pathlib import Path
from typing import Any

import pytest


def entries(run: Any) -> int:
    return int(run("ledger", "--head", "--json").json["head"].partition(":")[0])


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("u1\n\na0\n", ()),
        ("\ufeffname,person\nAnn,u1\nBob,a0\n", ("--column", "person")),
        ('"u1"\r\n"a0"\r\n', ()),
    ],
)
def test_a_file_of_people_is_one_request_and_each_has_a_certificate(
    run: Any, vault: Path, text: str, options: tuple[str, ...]
) -> None:
    Path("people").write_text(text, encoding="utf-8", newline="")
    before = entries(run)
    done = run("forget", "--file", "people", *options, "--json").json
    assert (done["records"], entries(run)) == (41, before + 1)
    assert done["certificate"]["opening"] is None  # it names none of the others
    for person in ("u1", "a0"):
        Path(f"{person}.json").write_text(run("certificate", "show", "--user", person, "--json").out)
        checked = run(
            "certificate", "verify", f"{person}.json", "--public-key", run("public-key").out.strip()
        )
        assert checked.code == 0
        assert f"1 user: '{person}'" in checked.out


def test_certificates_are_shown_by_entry_without_a_name(run: Any, vault: Path) -> None:
    sequence = run("forget", "--user", "u1", "--json").json["sequence"]
    shown = run("certificate", "show", "--sequence", sequence, "--out", "entry.json")
    assert "not named here" in shown.out
    assert b"u1" not in Path("entry.json").read_bytes()
    checked = run("certificate", "verify", "entry.json", "--json").json
    assert checked["valid"] is True
    assert checked["signer_checked"] is False
    assert "No public key was given" in checked["notes"][0]


def test_a_changed_certificate_and_a_wrong_key_are_not_valid(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    whole = Path("u1.json").read_text()
    foreign = run("certificate", "verify", "u1.json", "--public-key", "ab" * 32)
    assert foreign.code == 1
    assert "not among the public keys given" in foreign.out
    for old, new in (('"u1"', '"u2"'), ('"retained"', '"retainer"'), ("{\n", "{\n\n")):
        Path("u1.json").write_text(whole.replace(old, new, 1))
        checked = run("certificate", "verify", "u1.json", "--json")
        assert checked.code == 1
        assert checked.json["problems"]
    assert "The certificate is not valid" in run("certificate", "verify", "u1.json").out


def test_a_certificate_always_has_the_key_opening_and_is_read_again(run: Any, vault: Path) -> None:
    several = run("forget", "--user", "u1", "--user", "a1", "--json").json
    assert several["certificate"]["opening"] is None
    printed = run("certificate", "show", "--sequence", several["sequence"], "--json").out
    assert json.loads(printed).keys() == {"body", "signature", "opening"}
    Path("printed.json").write_text(printed, encoding="utf-8")
    checked = run("certificate", "verify", "printed.json", "--public-key", run("public-key").out.strip())
    assert checked.code == 0
    Path("printed.json").write_text(printed.replace("null", '""'), encoding="utf-8")
    assert run("certificate", "verify", "printed.json").code == 1
    run("certificate", "show", "--sequence", several["sequence"], "--out", "entry.json")
    assert run("certificate", "verify", "entry.json").code == 0


def test_a_public_key_is_digits_or_a_file_that_exists(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    refused = run("certificate", "verify", "u1.json", "--public-key", "missing.txt")
    assert (refused.code, refused.out) == (2, "")
    assert "--public-key must be a key or a file that exists" in refused.err
    assert refused.err.endswith("got 'missing.txt'\n")
