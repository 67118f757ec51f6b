"""The commands `certificate show` and `certificate verify`."""

import json
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import Certificate, Keyring, Vault
from tests.vault.forging import about_another_entry


def entries(run: Any) -> int:
    return int(run("ledger", "--head-only", "--json").json["head"].partition(":")[0])


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
    assert checked == Certificate.read("entry.json").check(None).to_dict()
    assert checked["certificate"] == Certificate.read("entry.json").summary()


def test_a_certificate_whose_entry_has_a_part_of_another_kind_is_not_valid(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    found = Certificate.read("u1.json")
    entry = {**found.body["entry"], "unlearner": "rollback"}
    Certificate({**found.body, "entry": entry}, found.signature, found.opening).save("forged.json")
    checked = run("certificate", "verify", "forged.json", "--json")
    assert (checked.code, checked.json["valid"], checked.json["certificate"]) == (1, False, None)


def test_a_changed_certificate_and_a_wrong_key_are_not_valid(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    whole = Path("u1.json").read_text()
    foreign = run("certificate", "verify", "u1.json", "--public-key", "ab" * 32)
    assert foreign.code == 1
    assert "not among the public keys given" in foreign.out
    for old, new in (('"u1"', '"u2"'), ('"retained"', '"retainer"')):
        Path("u1.json").write_text(whole.replace(old, new, 1))
        checked = run("certificate", "verify", "u1.json", "--json")
        assert checked.code == 1
        assert checked.json["problems"]
    assert "The certificate is not valid" in run("certificate", "verify", "u1.json").out
    Path("u1.json").write_text(json.dumps(json.loads(whole), indent=4))
    checked = run("certificate", "verify", "u1.json")
    assert checked.code == 0
    assert "Note: The file is not laid out as armnesia writes it;" in checked.out


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


@pytest.fixture
def forged(run: Any, vault: Path) -> Path:
    """The folder after a rotation: `forged.json` is signed with the retired key, about an invented entry.

    Beside it are `honest.json`, of the retired key too, `keys.json`, `export.json` and `ledger.jsonl`.
    """
    run("forget", "--user", "u1", "--certificate", "honest.json")
    run("rotate-key", "signing")
    run("forget", "--user", "a1")
    honest = Certificate.from_json(Path("honest.json").read_bytes())
    invented = about_another_entry(honest, Keyring.read("vault.db.keys"), released="C")
    invented.save("forged.json")
    Path("keys.json").write_text(run("public-key", "--json").out, encoding="utf-8")
    Path("keys.txt").write_text(run("public-key").out, encoding="utf-8")
    assert run("export", "export.json").code == 0
    assert run("ledger", "--export", "ledger.jsonl").code == 0
    return vault


@pytest.mark.parametrize("keys", ["keys.json", "keys.txt"])
@pytest.mark.parametrize("ledger", ["export.json", "ledger.jsonl"])
@pytest.mark.usefixtures("forged")
def test_a_certificate_forged_with_a_retired_key_is_not_valid_against_the_ledger(
    run: Any, keys: str, ledger: str
) -> None:
    head = ("--head", run("ledger", "--head-only").out.strip())
    against = ("--public-key", keys, "--ledger", ledger)
    for options in (against, (*against, *head)):
        honest = run("certificate", "verify", "honest.json", *options, "--json")
        (note,) = honest.json["notes"]
        assert (honest.code, honest.json["problems"]) == (0, [])
        assert note.startswith("The ledger does not say what was searched")
        assert honest.json["ledger_checked"] is True
        refused = run("certificate", "verify", "forged.json", *options, "--json")
        assert refused.code == 1
        assert refused.json["problems"] == [
            "entry 2, which the certificate is about, is not that of the ledger given"
        ]
    shown = run("certificate", "verify", "forged.json", *against)
    assert "The certificate is not valid" in shown.out
    assert "Guarantee" not in shown.out  # nothing of what it claims is printed


@pytest.mark.usefixtures("forged")
def test_without_the_ledger_it_is_said_what_was_not_checked(run: Any) -> None:
    """The forged one passes there, as any certificate of a retired key may; the words say so."""
    for options, note in (
        (
            ("--public-key", "keys.txt"),
            "Note: The public keys were given without the entries that they signed",
        ),
        (("--public-key", "keys.json"), "Note: The certificate is signed with key 1, which is retired."),
        (
            ("--public-key", "keys.json", "--head", run("ledger", "--head-only").out.strip()),
            "Note: A head alone shows how long the ledger is",
        ),
    ):
        checked = run("certificate", "verify", "forged.json", *options)
        assert checked.code == 0
        assert note in " ".join(checked.out.split())
    refused = run(
        "certificate", "verify", "forged.json", "--public-key", "keys.json", "--head", f"2:{'ab' * 32}"
    )
    assert refused.code == 1
    assert "entry 2, which the certificate is about, is not that of the head given" in refused.out


@pytest.mark.usefixtures("forged")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--ledger", "export.json"), "--ledger and --head need a --public-key"),
        (("--head", f"2:{'ab' * 32}"), "--ledger and --head need a --public-key"),
        (("--public-key", "keys.json", "--head", "2"), "a head must look like 12:3f8a"),
        (("--public-key", "keys.json", "--ledger", "none.json"), "none.json cannot be read: No such file"),
        (
            ("--public-key", "keys.json", "--ledger", "clicks.csv"),
            "clicks.csv is no export of a vault and no ledger",
        ),
        (("--public-key", "keys.json", "--ledger", "keys.json"), "keys.json is no export of a vault"),
        (("--public-key", "keys.json", "--public-key", "keys.txt"), "give no other --public-key"),
        (("--public-key", "export.json"), "--public-key export.json: the list of public keys must be as"),
        (("--public-key", "clicks.csv"), "--public-key must be a key or a file"),
        (("--public-key", "empty.txt"), "--public-key must name at least one key; got an empty file"),
    ],
)
def test_options_that_name_no_keys_or_no_ledger_are_refused(
    run: Any, options: tuple[str, ...], complaint: str
) -> None:
    Path("empty.txt").touch()
    refused = run("certificate", "verify", "honest.json", *options)
    assert (refused.code, refused.out) == (2, "")
    assert complaint in refused.err


@pytest.mark.usefixtures("forged")
def test_a_changed_ledger_makes_no_certificate_valid(run: Any) -> None:
    text = Path("ledger.jsonl").read_text(encoding="utf-8")
    Path("ledger.jsonl").write_text(text.replace('"released":"', '"released":"x', 1), encoding="utf-8")
    options = ("--public-key", "keys.json", "--ledger", "ledger.jsonl", "--json")
    refused = run("certificate", "verify", "honest.json", *options)
    assert refused.code == 1
    (problem,) = refused.json["problems"]
    assert problem.startswith("the ledger given cannot be used: sequence 3: the entry does not follow")


def test_the_certificate_of_one_who_was_not_held_does_not_contradict_itself(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--user", "stranger")
    shown = run("certificate", "show", "--user", "stranger", "--out", "stranger.json").out
    lines = shown.splitlines()
    assert lines[0] == "Certificate written to stranger.json"
    place = next(
        at for at, line in enumerate(lines) if line.startswith("Request: 1 user: 'stranger', one of")
    )
    words = " ".join(lines[place:])
    assert "one of several in the request; the vault held nothing under this name" in words
    about = "Of this name: nothing was held, so nothing had to be forgotten. What follows was signed for the"
    assert words.index(about) < words.index("Forgotten: the records of the request were removed")
    held = " ".join(run("certificate", "show", "--user", "u1").out.split())
    assert "Request: 1 user: 'u1', one of several in the request Forgotten: the records" in held
    alone = run("forget", "--user", "a1", "--certificate", "a1.json")
    assert alone.code == 0
    assert "one of several" not in run("certificate", "show", "--user", "a1").out


def test_names_of_separate_requests_are_shown_one_by_one(run: Any, folder: Path) -> None:
    Path("log.csv").write_text("action,reward,user\n" + "".join(f"A,1,{user}\n" for user in range(330, 380)))
    run("init", "--actions", "A", "--user-type", "integer")
    run("ingest", "log.csv", "--user-column", "user")
    run("forget", "--user", "337")
    run("forget", "--user", "377")
    refused = run("certificate", "show", "--user", "337", "--user", "377")
    assert refused.code == 2
    assert refused.err == (
        "armnesia: there is no certificate of '337', '377' together: they were forgotten in separate"
        " requests, or together with others; show the certificate of each alone, or of all with"
        " --out-folder\n"
    )
    assert "'337' were forgotten" in run("certificate", "show", "--user", "337", "--user", "338").err
    unknown = run("certificate", "show", "--user", "338")
    assert unknown.code == 2
    assert "similar" not in unknown.err


def test_an_export_from_before_a_rotation_does_not_decide(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    run("export", "old.json")
    rotated = run("rotate-key", "signing")
    assert "Export again for auditors" in rotated.out
    run("forget", "--user", "a1", "--certificate", "a1.json")
    run("export", "new.json")
    Path("keys.json").write_text(run("public-key", "--json").out)
    for file in ("u1.json", "a1.json"):
        verify = ("certificate", "verify", file, "--public-key", "keys.json", "--ledger")
        undecided = run(*verify, "old.json")
        assert undecided.code == 1
        assert undecided.out.startswith(
            "Whether the certificate is valid cannot be decided with this export: get a newer one\n"
        )
        assert "not valid" not in undecided.out
        as_json = run(*verify, "old.json", "--json").json
        assert (as_json["valid"], as_json["decided"]) == (False, False)
        decided = run(*verify, "new.json", "--json")
        assert (decided.code, decided.json["valid"], decided.json["decided"]) == (0, True, True)


def test_an_old_export_does_not_hide_what_speaks_against_a_certificate(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    run("export", "old.json")
    run("rotate-key", "signing")
    Path("keys.json").write_text(run("public-key", "--json").out)
    with Vault.open() as opened:
        keys = opened._connection.all_keys
    genuine = Certificate.from_json(Path("u1.json").read_text())
    forged = about_another_entry(genuine, keys, released="C")
    forged.save("forged.json")
    verdict = run("certificate", "verify", "forged.json", "--public-key", "keys.json", "--ledger", "old.json")
    assert (verdict.code, verdict.out.splitlines()[0]) == (1, "The certificate is not valid")
