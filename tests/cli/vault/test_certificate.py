"""The commands `certificate show` and `certificate verify`."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import Certificate, Vault
from tests.cli.examples import contents, mode_of, users


@pytest.fixture
def key(run: Any, vault: Path) -> str:
    """The public key of the vault."""
    return str(run("public-key").out.strip())


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("u1\n\na0\n", ()),
        ("\ufeffname,person\nAnn,u1\nBob,a0\n", ("--column", "person")),
        ('"u1"\r\n"a0"\r\n', ()),
    ],
)
def test_a_file_of_people_is_one_request_and_each_has_a_certificate(
    run: Any, key: str, text: str, options: tuple[str, ...]
) -> None:
    Path("people").write_text(text, encoding="utf-8", newline="")
    done = run("forget", "--file", "people", *options, "--json").json
    assert (done["records"], done["entry"], done["certificate"]) == (41, 3, None)
    for person, other in (("u1", "a0"), ("a0", "u1")):
        Path(f"{person}.json").write_text(run("certificate", "show", "--user", person, "--json").out)
        checked = run("certificate", "verify", f"{person}.json", "--public-key", key)
        assert checked.code == 0
        assert f"deleted the records held under the identifier {person}, and decided again" in checked.out
        assert checked.out.endswith("It is valid: signed by the key given.\n")
        assert f'"{other}"' not in Path(f"{person}.json").read_text()


def test_the_certificate_of_an_entry_names_nobody(run: Any, key: str) -> None:
    entry = run("forget", "--user", "u1", "--json").json["entry"]
    assert run("certificate", "show", "--sequence", entry, "--out", "entry.json").code == 0
    certificate = Certificate.read(Path("entry.json").read_bytes())
    assert certificate.openings == ()
    assert b"u1" not in certificate.logged.envelope.payload
    checked = run("certificate", "verify", "entry.json", "--public-key", key, "--json").json
    assert (checked["valid"], checked["problems"], checked["outcome"]) == (True, [], None)


def test_case_and_actor_are_in_the_certificate_only(run: Any, key: str) -> None:
    run("forget", "--user", "u1", "--case", "T-1", "--by", "Ann Admin", "--certificate", "u1.json")
    shown = run("certificate", "verify", "u1.json", "--public-key", key).out
    assert "Case: T-1\n" in shown
    assert "Entered by: Ann Admin\n" in shown
    assert not any(text in run("ledger", "--json").out for text in ("T-1", "Ann"))
    refused = run("forget", "--user", "a1", "--case", "about a1")
    assert refused.code == 2
    assert run("status", "--json").json["records"] == 160


def test_a_certificate_may_be_laid_out_otherwise_but_not_changed(run: Any, key: str) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    whole = json.loads(Path("u1.json").read_text())
    Path("u1.json").write_text(json.dumps(whole, indent=7, sort_keys=True))
    assert run("certificate", "verify", "u1.json", "--public-key", key).code == 0
    whole["opening"][0]["text"] = "u2"
    Path("u1.json").write_text(json.dumps(whole))
    changed = run("certificate", "verify", "u1.json", "--public-key", key, "--json")
    assert (changed.code, changed.json["valid"], len(changed.json["problems"])) == (1, False, 1)
    shown = run("certificate", "verify", "u1.json", "--public-key", key).out
    assert shown.endswith("It is not valid.\n")
    assert "deleted" not in shown  # nothing of what it claims is printed


def test_a_certificate_of_another_key_says_what_is_needed(run: Any, key: str) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    refused = run("certificate", "verify", "u1.json", "--public-key", "ab" * 32)
    assert refused.code == 1
    assert "a newer public key of this vault, or a newer certificate, is needed" in refused.out
    run("rotate-key")
    Path("keys.json").write_text(run("public-key", "--json").out, encoding="utf-8")
    Path("keys.txt").write_text(run("public-key").out, encoding="utf-8")
    run("certificate", "show", "--user", "u1", "--out", "again.json")
    for keys in ("keys.json", "keys.txt"):
        for file in ("u1.json", "again.json"):
            assert run("certificate", "verify", file, "--public-key", keys).code == 0
    assert run("certificate", "verify", "again.json", "--public-key", key).code == 1


def test_a_checkpoint_that_was_kept_or_an_export_is_compared(run: Any, key: str) -> None:
    Path("before").write_text(run("ledger", "--checkpoint-only").out, encoding="utf-8")
    run("forget", "--user", "u1", "--certificate", "u1.json")
    Path("after").write_text(run("ledger", "--checkpoint-only").out, encoding="utf-8")
    assert run("export", "export.jsonl").code == 0
    run("init", "--url", "sqlite:///other.db")
    run("export", "other.jsonl", "--url", "sqlite:///other.db")
    verify = ("certificate", "verify", "u1.json", "--public-key", key, "--checkpoint")
    for kept in ("after", "export.jsonl"):
        assert run(*verify, kept).code == 0
    assert run(*verify, "other.jsonl").code == 1
    for no_checkpoint in ("clicks.csv", "u1.json"):
        refused = run(*verify, no_checkpoint)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)


def test_a_stolen_key_is_said_at_its_rotation(run: Any, key: str) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    for wrong in ("0", "4"):
        assert run("rotate-key", "--compromised-since", wrong).code == 2
    done = run("rotate-key", "--compromised-since", "2")
    assert "then hand out new ones (armnesia certificate show)" in done.out
    Path("keys.json").write_text(run("public-key", "--json").out, encoding="utf-8")
    refused = run("certificate", "verify", "u1.json", "--public-key", "keys.json")
    assert refused.code == 1
    assert "or a newer certificate, is needed" in refused.out
    run("certificate", "show", "--user", "u1", "--out", "again.json")
    assert run("certificate", "verify", "again.json", "--public-key", "keys.json").code == 0
    assert len(run("public-key", "--json").json["keys"]) == 1


def test_who_was_not_held_and_who_was_readmitted_is_said(run: Any, vault: Path) -> None:
    run("forget", *users("u1", "stranger"))
    shown = run("certificate", "show", "--user", "stranger").out
    assert "deleted the records" not in shown
    assert "nothing" in shown.splitlines()[0]
    run("readmit", "--user", "u1")
    assert (
        "people of this request were admitted again (entry 4)"
        in run("certificate", "show", "--user", "u1").out
    )


def test_names_are_asked_for_one_by_one(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    run("forget", "--user", "a1")
    refused = run("certificate", "show", *users("u1", "a1"))
    assert refused.code == 2
    assert "(--out-folder)" in refused.err
    unknown = run("certificate", "show", "--user", "u2")
    assert (unknown.code, unknown.err) == (
        2,
        "armnesia: there is no certificate: nobody was forgotten here by this name\n",
    )


def test_a_page_to_print(run: Any, vault: Path) -> None:
    run("forget", "--user", "<b>u1</b>", "--exactly")
    page = run("certificate", "show", "--user", "<b>u1</b>", "--html").out
    assert page.startswith("<!DOCTYPE html>")
    assert "&lt;b&gt;u1&lt;/b&gt;" in page
    run("certificate", "show", "--user", "<b>u1</b>", "--out", "page.html")
    assert Path("page.html").read_text(encoding="utf-8") == page
    assert mode_of("page.html") == 0o600


def people_file(*names: str) -> None:
    with Path("people.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["row", "person"], *([n, name] for n, name in enumerate(names))])


FILE = ("--file", "people.csv", "--column", "person")


def test_every_person_of_a_request_gets_a_file(run: Any, vault: Path) -> None:
    names = ["u1", "a1", "=1+1", 'é, "x"', "../../up", "two\nlines", "a1"]
    people_file(*names)
    assert run("forget", *FILE, "--exactly", "--json").json["named"] == 6
    done = run("certificate", "show", *FILE, "--out-folder", "out")
    assert (done.code, done.out) == (
        0,
        "6 certificates written to out; out/index.csv says whose they are: do not hand it out\n",
    )
    with Path("out/index.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:3] == ["file", "name", "entry"]
    assert "'=1+1" in {name for _, name, *_ in rows}  # no formula of a spreadsheet
    rows = [[file, name.removeprefix("'"), *others] for file, name, *others in rows]
    assert {name for _, name, *_ in rows} == set(names)
    assert {path.name for path in Path("out").iterdir()} == {"index.csv", *(file for file, *_ in rows)}
    assert {mode_of(path) for path in Path("out").iterdir()} == {0o600}
    assert mode_of("out") == 0o700
    with Vault.open() as opened:
        keys = opened.public_keys().keys
    for name_of_file, name, *_ in rows:
        certificate = Certificate.read(Path("out", name_of_file).read_bytes())
        assert certificate.verify(keys) == []
        assert certificate.person is not None
        assert certificate.person.text == name


def test_keys_and_exit_code_say_who_has_no_certificate(run: Any, vault: Path) -> None:
    run("forget", *users("u1", "a1"))
    done = run("certificate", "show", *users("u1", "a1", "stranger"), "--out-folder", "out", "--json")
    assert (done.code, done.json) == (
        1,
        {"folder": "out", "index": "out/index.csv", "written": 2, "missing": 1},
    )
    Path("empty").mkdir(mode=0o755)
    printed = run("certificate", "show", *users("u1", "stranger"), "--out-folder", "empty")
    assert printed.out == (
        "1 certificate written to empty; empty/index.csv says whose they are: do not hand it out\n"
        "1 of the named has no certificate, and no file in the index\n"
    )
    assert mode_of("empty") == 0o700


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--out-folder", "full"), "the folder must be a new one; full exists already and is not empty"),
        (("--out-folder", "log"), "the folder must be a new one; log exists already and is not empty"),
        (("--out-folder", "no/new"), "the new folder must be in a folder that exists; no does not"),
        (("--out-folder", "new", "--out", "x"), "--out-folder writes a file per name; leave --out and"),
        (("--out-folder", "new", "--sequence", "2"), "--out-folder writes a file per name; leave --out and"),
    ],
)
def test_a_bad_folder_is_refused_before_anything_is_written(
    run: Any, vault: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    run("forget", "--user", "u1")
    Path("full").mkdir()
    Path("full/mine").touch()
    Path("log").touch()
    before = contents(vault)
    refused = run("certificate", "show", "--user", "u1", *arguments)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert sentence in refused.err
    assert contents(vault).keys() - {"vault.db-wal", "vault.db-shm"} == before.keys() - {
        "vault.db-wal",
        "vault.db-shm",
    }


def test_options_of_a_check_are_refused_in_a_sentence(run: Any, key: str) -> None:
    run("forget", "--user", "u1", "--certificate", "u1.json")
    Path("empty.txt").touch()
    for given, complaint in (
        ("missing.txt", "--public-key must be a key or a file that exists; got 'missing.txt'"),
        ("clicks.csv", "a public key must be 64 hexadecimal digits"),
        ("empty.txt", "--public-key must name at least one key; empty.txt has none"),
    ):
        refused = run("certificate", "verify", "u1.json", "--public-key", given)
        assert (refused.code, refused.out) == (2, "")
        assert complaint in refused.err
    assert run("certificate", "verify", "none.json", "--public-key", key).code == 2
    assert run("certificate", "verify", "clicks.csv", "--public-key", key).code == 1


def test_names_that_look_like_markup_are_shown_as_they_are(run: Any, key: str) -> None:
    run("forget", "--user", "[bold]\x1b[2Jann", "--exactly", "--certificate", "c.json")
    shown = run("certificate", "verify", "c.json", "--public-key", key).out
    assert "[bold]" in shown
    assert "\x1b" not in shown
