"""The commands `export`, `backup` and `restore`."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from armnesia.vault import Keyring
from tests.cli.examples import mode_of


def test_upkeep_has_stable_keys(run: Any, vault: Path) -> None:
    compacted = run("compact", "--json").json
    assert (compacted["erasure"], compacted["pending_because"]) == ("complete", None)
    assert run("export", "audit.json", "--json").json["for_restore"] is False
    exported = json.loads(Path("audit.json").read_text())
    assert "suppressed" not in exported


def test_an_old_backup_forgets_again_before_it_opens(run: Any, vault: Path) -> None:
    backed_up = run("backup", "old.db", "--json").json
    assert set(backed_up) == {"file", "head"}
    assert mode_of("old.db") == 0o600
    run("forget", "--user", "u1")
    exported = run("export", "later.json", "--for-restore", "--json").json
    assert set(exported) == {"file", "head", "entries", "certificates", "for_restore"}
    shutil.copy("old.db", "vault.db")
    assert "run armnesia restore" in run("decide").err
    looked_at = run("verify")
    assert looked_at.code == 1
    assert "shorter than the head that was kept" in looked_at.out
    restored = run("restore", "later.json", "--json").json
    assert set(restored) == {"replayed", "corrections_lost", "recounted", "head"}
    assert restored["replayed"] == 1
    assert run("verify", "--json").json["records"] == 160
    names = Keyring.read("vault.db.keys").owner_digest
    counting = "SELECT count(*) FROM record WHERE owner = ?"
    with closing(sqlite3.connect("vault.db")) as database:
        held = [database.execute(counting, [names(user)]).fetchone() for user in ("u1", "a0")]
    assert held == [(0,), (1,)]


def test_restoring_says_that_later_rows_are_missing(run: Any, vault: Path) -> None:
    run("backup", "old.db")
    run("forget", "--user", "u1")
    run("export", "later.json", "--for-restore")
    shutil.copy("old.db", "vault.db")
    printed = run("restore", "later.json").out
    assert "1 ledger entry replayed" in printed
    assert "Rows that were ingested after the backup are not in it: ingest them again." in printed


def test_of_external_vaults_other_things_are_said(run: Any, folder: Path) -> None:
    Path("log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n", encoding="utf-8")
    assert run("init", "--external", "--actions", "A,B").code == 0
    assert run("ingest", "log.csv").code == 0
    written = " ".join(run("backup", "old.db").out.split())
    assert "It counts rows of people who may be forgotten later: after copying it back" in written
    assert "records of people" not in written
    run("forget", "--user", "ann")
    run("export", "later.json", "--for-restore")
    shutil.copy("old.db", "vault.db")
    printed = " ".join(run("restore", "later.json").out.split())
    assert "The sources that the backup names were counted again; those that were first ingested" in printed
    assert "Rows that were ingested" not in printed
    assert run("status", "--json").json["records"] == 1


def test_the_permission_is_shown_before_a_source_is_there(run: Any, folder: Path) -> None:
    assert run("init", "--external", "--actions", "A,B", "--may-erase-at-source").code == 0
    assert "permitted" in run("status").out
    one_row = "action,reward,user\nA,1,ann\nB,0,bob\n"
    Path("log.csv").write_text(one_row, encoding="utf-8")
    assert run("init", "--url", "sqlite:///other.db", "--external", "--actions", "A,B").code == 0
    assert "not permitted" in run("status", "--url", "sqlite:///other.db").out
    assert run("ingest", "log.csv", "--url", "sqlite:///other.db").code == 0
    run("forget", "--user", "ann", "--url", "sqlite:///other.db")
    note = "1 row of forgotten people or records is still present; delete it"
    assert any(note in each for each in run("verify", "--url", "sqlite:///other.db", "--json").json["notes"])
