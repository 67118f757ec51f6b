"""The commands `backup`, `restore`, `verify`, `compact` and `readmit`."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import Keyring
from tests.cli.examples import INGEST, mode_of

OLD = "an older copy was put back, and people forgotten since may be in it; run armnesia restore"


def test_an_old_backup_forgets_again_before_it_opens(run: Any, vault: Path) -> None:
    backed_up = run("backup", "old.db", "--json").json
    assert set(backed_up) == {"file", "head"}
    assert mode_of("old.db") == 0o600
    run("forget", "--user", "u1")
    shutil.copy("old.db", "vault.db")
    refused = run("decide")
    assert refused.code == 2
    assert OLD in refused.err
    looked_at = run("verify", "--json")
    assert looked_at.code == 1
    assert OLD in looked_at.json["problems"][0]
    restored = run("restore", "--json").json
    assert set(restored) == {"replayed", "corrections_lost", "recounted", "head", "rows_deleted", "as_it_was"}
    assert (restored["replayed"], restored["rows_deleted"], restored["as_it_was"]) == (1, 40, True)
    assert run("verify", "--json").json["records"] == 160
    names = Keyring.read("vault.db.keys").owner_digests
    counting = "SELECT count(*) FROM record WHERE owner = ?"
    with closing(sqlite3.connect("vault.db")) as database:
        held = [database.execute(counting, names([user])).fetchone() for user in ("u1", "a0")]
    assert held == [(0,), (1,)]


def test_restoring_says_what_was_done_and_what_is_missing(run: Any, vault: Path) -> None:
    run("backup", "old.db")
    run("forget", "--user", "u1")
    shutil.copy("old.db", "vault.db")
    shutil.copy("vault.db.keys.journal", "elsewhere")
    assert run("restore", "elsewhere").out.splitlines()[:3] == [
        "1 ledger entry replayed from the journal.",
        "40 rows of forgotten people deleted again.",
        "If a backup was copied back, rows that came after it are missing: ingest them again.",
    ]
    assert "0 ledger entries replayed" in run("restore").out


def test_a_lost_journal_is_said_and_begun_anew(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    Path("vault.db.keys.journal").unlink()
    refused = run("status")
    assert refused.code == 2
    assert "armnesia restore --without-journal begins a new one" in refused.err
    assert run("restore").code == 2
    assert run("restore", "--without-journal").code == 0
    assert run("verify").code == 0
    assert "without_journal" in [entry["kind"] for entry in run("ledger", "--json").json["entries"]]


def test_what_something_else_changed_is_found_and_repaired(run: Any, vault: Path) -> None:
    whole = run("verify", "--json")
    assert whole.code == 0
    assert whole.json == {"holds": True, "problems": [], "notes": [], "records": 200, "entries": 2}
    with closing(sqlite3.connect("vault.db")) as database, database:
        database.execute("DELETE FROM record WHERE rowid IN (SELECT rowid FROM record LIMIT 3)")
    changed = run("verify")
    assert changed.code == 1
    assert " found" in changed.out.splitlines()[-1]
    refused = run("restore")
    assert refused.code == 2
    assert "accept it with --as-it-is, which the ledger records" in refused.err
    repaired = run("restore", "--as-it-is")
    assert "Something else had changed the rows or the state: they count as they are now." in repaired.out
    assert run("verify", "--json").json["records"] == 197


def test_a_file_whose_beginning_is_lost_is_a_failed_check_if_it_has_keys(run: Any, vault: Path) -> None:
    with open("vault.db", "r+b") as file:
        file.write(b"x" * 4096)
    failed = run("verify", "--json")
    assert failed.code == 1
    assert "file is not a database; nothing was changed: check the address" in failed.json["problems"][0]
    Path("vault.db.keys").unlink()
    refused = run("verify")
    assert (refused.code, refused.out) == (2, "")  # it may be anything
    assert "is not a vault, or is damaged: file is not a database" in refused.err


def test_compact_has_the_time_and_an_entry(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    assert run("status", "--json").json["uncompacted"] == 1
    assert "armnesia compact" in run("status").out
    assert run("compact").out == "Deleted bytes have left the files of the database (entry 4).\n"
    assert run("status", "--json").json["uncompacted"] == 0
    done = run("compact", "--json")
    assert (done.code, done.err, set(done.json)) == (0, "", {"entry", "head", "seconds"})
    assert 0 < done.json["seconds"] < 60


def test_a_reader_that_stays_hinders_compacting(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    with closing(sqlite3.connect("vault.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        done = run("compact", "--timeout", "0.2")
    assert (done.code != 0, done.out, done.err.count("\n")) == (True, "", 1)
    assert run("status", "--json").json["uncompacted"] == 1
    assert run("compact").code == 0


def test_forgotten_people_stay_out_until_they_are_readmitted(run: Any, vault: Path) -> None:
    run("forget", "--user", "u1")
    assert run(*INGEST, "--json").json["suppressed"] == 40
    done = run("readmit", "--user", "u1", "--json").json
    assert (set(done), done["readmitted"], done["entry"]) == ({"readmitted", "entry", "head"}, 1, 4)
    assert run(*INGEST, "--json").json["added"] == 40  # the old records: the file still has them
    run("forget", "--user", "u1")
    sentence = "their records are accepted from now on, old ones too if a source that has them is ingested"
    assert sentence in run("readmit", "--user", "u1").out


@pytest.mark.usefixtures("clicks")
def test_an_external_vault_looks_at_the_source(run: Any) -> None:
    run("init", "--external", "--actions", "A,B,C")
    assert run(*INGEST, "--json").json["added"] == 200
    assert "It counts rows of people who may be forgotten later" in run("backup", "old.db").out
    assert run("forget", "--user", "u1", "--json").json["records"] == 40
    verified = run("verify", "--json").json
    assert verified["holds"] is True
    assert "still has rows of forgotten people or records (40)" in verified["notes"][0]
    assert "Note: " in run("verify").out
    (source,) = run("status", "--json").json["sources"]
    assert not source["recount"]
    assert source["columns"] == {"action": "variant", "reward": "clicked", "user": "person", "id": "row"}
    assert "to be counted again" not in run("status").out
    assert run("readmit", "--user", "u1").code == 0
    assert "    to be counted again " in run("status").out
    Path("clicks.csv").rename("moved.csv")
    moved = run("restore", "--moved", source["name"], "moved.csv")
    assert (moved.code, "All sources were counted again." in moved.out) == (0, True)
    (source,) = run("status", "--json").json["sources"]
    assert run("restore", "--without", source["name"]).code == 0
    assert run("status", "--json").json["records"] == 0


def test_the_permission_is_shown_before_a_source_is_there(run: Any, folder: Path) -> None:
    assert run("init", "--external", "--actions", "A,B", "--may-erase-at-source").code == 0
    assert "permitted" in run("status").out
    assert run("init", "--url", "sqlite:///other.db", "--external", "--actions", "A,B").code == 0
    assert "not permitted" in run("status", "--url", "sqlite:///other.db").out
