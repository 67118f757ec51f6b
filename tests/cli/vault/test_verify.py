"""The commands `verify` and `rebuild`."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import INGEST


def test_verify_finds_what_was_changed_and_rebuild_repairs_it(run: Any, vault: Path) -> None:
    whole = run("verify", "--json")
    assert whole.code == 0
    assert whole.json == {
        "holds": True,
        "problems": [],
        "notes": [],
        "records": 200,
        "entries": 1,
        "certificates": 0,
    }
    with sqlite3.connect("vault.db") as database:
        database.execute("UPDATE decision SET statistics = replace(statistics, 'counts\":[', 'counts\":[1')")
    database.close()
    changed = run("verify")
    assert changed.code == 1
    assert 'statistics of action "A"' in changed.out
    assert " problems found" in changed.out
    assert run("decide").code == 2
    rebuilt = run("rebuild", "--json").json
    assert set(rebuilt) == {"changed", "dropped", "head"}
    assert rebuilt["changed"] is True
    assert run("verify").code == 0
    assert "The statistics have not changed." in run("rebuild").out


@pytest.mark.usefixtures("clicks")
def test_an_external_vault_looks_at_the_source(run: Any) -> None:
    run("init", "--external", "--actions", "A,B,C")
    assert run(*INGEST, "--json").json["added"] == 200
    assert run("forget", "--user", "u1", "--json").json["records"] == 40
    verified = run("verify", "--json").json
    assert verified["holds"] is True
    assert "40 rows of forgotten people or records are still present" in verified["notes"][0]
    assert "Note: " in run("verify").out
    (source,) = run("status", "--json").json["sources"]
    assert source["recount"] is None
    assert source["columns"] == {"action": "variant", "reward": "clicked", "user": "person", "id": "row"}
    assert "to be counted again" not in run("status").out
    assert run("readmit", "--user", "u1").code == 0
    assert "    to be counted again: " in run("status").out
    assert run("rebuild", "--without", source["name"], "--json").json["changed"] is True
    assert run("status", "--json").json["records"] == 0


def test_reading_in_place_is_noted(run: Any, vault: Path) -> None:
    note = "the vault was read in place, which held back the erasure of people forgotten meanwhile: as asked"
    assert run("verify", "--json").json["notes"] == []
    done = run("verify", "--in-place")
    assert (done.code, done.out.splitlines()[0]) == (0, f"Note: {note}")
    assert run("verify", "--in-place", "--json").json["notes"] == [note]
