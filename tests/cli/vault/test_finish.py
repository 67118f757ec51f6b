"""The commands `finish` and `certificate show --out-folder`: many certificates at once."""

import csv
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import Certificate, Vault
from tests.cli.examples import contents, mode_of, users


@contextmanager
def reader() -> Iterator[None]:
    """Somebody who reads the vault all the while."""
    connection = sqlite3.connect("vault.db", isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM record").fetchone()
    yield
    connection.close()


def test_pending_erasures_are_finished_and_the_certificates_written(run: Any, vault: Path) -> None:
    with reader():
        for name in ("u1", "a1", "stranger"):
            assert run("forget", "--user", name, "--json").json["erasure"] == "pending"
        waiting = run("finish", "--timeout", "0.1", "--out-folder", "early")
        assert (waiting.code, waiting.out) == (
            1,
            "Erasure: pending. Certificates signed again: 0\n3 certificates stay pending: another process was"
            " using the vault\n",
        )
        assert not Path("early").exists()
        assert run("finish", "--timeout", "0", "--json").json["pending"] == 3
    done = run("finish", "--out-folder", "folder")
    assert (done.code, done.out) == (
        0,
        "Erasure: complete. Certificates signed again: 3\n"
        "Written to folder, named by their ledger entries; they name nobody\n",
    )
    files = {f"entry-{entry:06}.json": entry for entry in (2, 3, 4)}
    assert {path.name for path in Path("folder").iterdir()} == set(files)
    assert mode_of("folder") == 0o700
    key = run("public-key").out.strip()
    for name, entry in files.items():
        assert mode_of(f"folder/{name}") == 0o600
        checked = run("certificate", "verify", f"folder/{name}", "--public-key", key, "--json").json
        assert (checked["valid"], checked["certificate"]["sequence"]) == (True, entry)
        assert checked["certificate"]["erasure"] == "complete"
        text = Path("folder", name).read_text(encoding="utf-8")
        assert not any(f'"{person}"' in text for person in ("u1", "a1", "stranger"))
        assert Certificate.from_json(text).opening is None


def test_finish_has_stable_keys(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1", "--no-search")
    run("forget", "--user", "a1", "--no-search")
    done = run("finish", "--since", "3", "--json")
    head = run("ledger", "--head-only").out.strip()
    assert done.json == {
        "erasure": "complete",
        "reissued": [3],
        "pending": 0,
        "pending_because": None,
        "head": head,
        "folder": None,
        "withheld": [],
    }
    assert run("finish", "--json").json["reissued"] == [2]
    nothing = run("finish", "--out-folder", "new", "--json").json
    assert (nothing["reissued"], nothing["folder"], Path("new").exists()) == ([], None, False)
    assert run("finish").out == "Erasure: complete. Certificates signed again: 0\n"
    refused = run("finish", "--since", "0")
    assert (refused.code, refused.err) == (
        2,
        "armnesia: since must be the number of a ledger entry, 1 or more; got 0\n",
    )


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
    assert header == ["file", "name", "entry", "erasure", "held"]
    assert "'=1+1" in {name for _, name, *_ in rows}  # no formula of a spreadsheet
    rows = [[file, name.removeprefix("'"), *others] for file, name, *others in rows]
    assert {name for _, name, *_ in rows} == set(names)
    assert [file for file, *_ in rows] == [f"certificate-{n:06}.json" for n in range(1, 7)]
    assert {path.name for path in Path("out").iterdir()} == {"index.csv", *(file for file, *_ in rows)}
    assert {mode_of(path) for path in Path("out").iterdir()} == {0o600}
    assert mode_of("out") == 0o700
    with Vault.open() as opened:
        keys = opened.public_keys()
    for name_of_file, name, entry, erasure, held in rows:
        certificate = Certificate.from_json(Path("out", name_of_file).read_bytes())
        assert certificate.verify(keys) == []
        assert certificate.opening is not None
        assert certificate.opening["request"]["users"] == [name]
        assert (entry, erasure) == ("2", "complete")
        assert held == ("yes" if name in ("u1", "a1") else "no")


def test_keys_and_exit_code_say_who_has_no_certificate(run: Any, vault: Path) -> None:
    with reader():
        run("forget", *users("u1", "a1"))
        done = run("certificate", "show", *users("u1", "a1", "stranger"), "--out-folder", "out", "--json")
    assert (done.code, done.json) == (
        1,
        {"folder": "out", "index": "out/index.csv", "written": 2, "pending": 2, "missing": 1},
    )
    assert '"","stranger","","",""\n' in Path("out/index.csv").read_text(encoding="utf-8")
    Path("empty").mkdir(mode=0o755)
    Path("empty").chmod(0o755)  # whatever the umask is
    printed = run("certificate", "show", *users("u1", "stranger"), "--out-folder", "empty")
    assert printed.out == (
        "1 certificate written to empty; empty/index.csv says whose they are: do not hand it out\n"
        "1 of the named has no certificate, and no file in the index\n"
    )
    assert mode_of("empty") == 0o700
    of_records = run("forget", "--records", "r3,r4", "--json").json
    assert of_records["named"] == 2
    assert (
        run("certificate", "show", "--records", "r3,r4", "--out-folder", "r", "--json").json["written"] == 2
    )


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
    assert {name for name in contents(vault) if "-wal" not in name and "-shm" not in name} == {
        name for name in before if "-wal" not in name and "-shm" not in name
    }
    assert not Path("new").exists()
    if len(arguments) == 2:
        assert sentence in run("finish", "--out-folder", arguments[1]).err


def test_a_folder_that_becomes_full_is_told(run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("forget", "--user", "u1", "--no-search")
    run("forget", "--user", "a1", "--no-search")
    save = Certificate.save

    def once(self: Certificate, path: Any) -> None:
        if self.body["sequence"] == 3:
            Path(path).touch()
        save(self, path)

    monkeypatch.setattr(Certificate, "save", once)
    done = run("finish", "--out-folder", "folder")
    assert done.code == 2
    assert done.err == (
        "armnesia: folder/entry-000003.json exists already; nothing was written; the certificates are"
        " signed, 1 of 2 are written, and armnesia certificate show --sequence ENTRY --out FILE writes each"
        " of the others\n"
    )
    assert run("finish", "--json").json["reissued"] == []


def test_certificates_of_many_that_cannot_all_be_written_are_told(
    run: Any, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("forget", *users("u1", "a1"))
    save = Certificate.save

    def once(self: Certificate, path: Any) -> None:
        if Path(path).name == "certificate-000002.json":
            Path(path).touch()
        save(self, path)

    command = ("certificate", "show", *users("u1", "a1"), "--out-folder", "folder")
    with monkeypatch.context() as failing:
        failing.setattr(Certificate, "save", once)
        done = run(*command)
    assert (done.code, done.err) == (
        2,
        "armnesia: folder/certificate-000002.json exists already; nothing was written; 1 certificate is"
        " written to folder, without the index that says whose they are: remove the folder, and run the same"
        " command again\n",
    )
    shutil.rmtree("folder")
    assert run(*command).code == 0
