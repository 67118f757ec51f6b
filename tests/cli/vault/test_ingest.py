"""The command `ingest`."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import COLUMNS, INGEST, USER_COLUMN

pytestmark = pytest.mark.usefixtures("clicks")


def test_what_is_sent_twice_is_added_once_with_a_warning_without_ids(run: Any) -> None:
    run("init", "--actions", "A,B")
    counts = run("ingest", "clicks.csv", *COLUMNS, *USER_COLUMN, "--json")
    assert counts.json == {
        "dry_run": False,
        "rows": 200,
        "added": 200,
        "already_there": 0,
        "suppressed": 0,
        "without_user": 0,
        "replaced": 0,
        "served": "B",
        "user_column": "person",
        "id_column": None,
        "actions_fixed": None,
        "user_type_fixed": "text",
        "head": run("status", "--json").json["head"],
    }
    assert counts.err == ""
    again = run("ingest", "clicks.csv", *COLUMNS, *USER_COLUMN, "--json")
    assert again.json["already_there"] == 200
    assert again.err.startswith("armnesia: warning: 200 rows not added: all columns are equal to")
    assert "200 rows: 0 added, 200 already there" in run("ingest", "clicks.csv", *COLUMNS, *USER_COLUMN).out


def test_a_dry_run_says_what_would_be_added_and_changes_nothing(run: Any) -> None:
    run("init")
    head = run("ledger", "--checkpoint-only").out
    would = run("ingest", "clicks.csv", *COLUMNS, *USER_COLUMN, "--dry-run")
    assert would.code == 0
    assert would.out.splitlines() == [
        "200 rows: 200 would be added, 0 already there, 0 of forgotten people or records left out",
        "User type from then on: text",
        "Served now, before the ingest: None",
        "Nothing was changed.",
    ]
    assert "the actions of the vault would be fixed from then on" in would.err
    assert (run("ledger", "--checkpoint-only").out, run("status", "--json").json["records"]) == (head, 0)
    assert run("ingest", "clicks.csv", *COLUMNS, *USER_COLUMN, "--dry-run", "--json").json["dry_run"] is True


def test_another_column_is_refused(run: Any) -> None:
    Path("log.csv").write_text("arm,click,won,user\nA,1,0,ann\nB,0,1,bob\n")
    run("init", "--actions", "A,B")
    ingest = ("ingest", "log.csv", "--action-column", "arm", "--reward-column")
    assert run(*ingest, "click").code == 0
    refused = run(*ingest, "won")
    assert refused.code == 2
    assert "the vault has its rewards from column 'click', and this source from column 'won'" in refused.err


def test_with_ids_the_same_file_twice_needs_no_warning(run: Any, vault: Path) -> None:
    again = run(*INGEST, "--json")
    assert (again.json["added"], again.json["already_there"], again.err) == (0, 200, "")


def test_rows_without_a_user_have_to_be_stated(run: Any) -> None:
    run("init")
    refused = run("ingest", "clicks.csv", *COLUMNS)
    assert refused.code == 2
    assert "no user column was named" in refused.err
    assert run("ingest", "clicks.csv", *COLUMNS, "--no-user").code == 0


def test_a_table_of_a_database_is_a_source(run: Any) -> None:
    with sqlite3.connect("log.db") as log:
        log.execute("CREATE TABLE shown (arm TEXT, won REAL, who TEXT)")
        log.executemany("INSERT INTO shown VALUES (?, ?, ?)", [("A", 1, "ann"), ("B", 0, "bob")])
    log.close()
    run("init")
    columns = ("--action-column", "arm", "--reward-column", "won", "--user-column", "who", "--table", "shown")
    assert run("ingest", "sqlite:///log.db", *columns, "--json").json["added"] == 2


def test_the_bundled_log_brings_its_columns(run: Any) -> None:
    run("init", "--actions", "AA,B6,DL,UA,VX")
    assert run("ingest", "flights", "--json").json["added"] == 16026
    assert run("forget", "--user", "N711ZX", "--json").json["counts"]["DL"] == 123


def test_the_first_ingest_says_which_actions_are_fixed(run: Any) -> None:
    run("init")
    first = run(*INGEST)
    assert first.code == 0
    assert first.err.startswith(
        "armnesia: warning: the actions of the vault are fixed from now on: 'A', 'B'; rows with another"
        " action will be refused until armnesia arms add offers it"
    )
    assert first.err.count("\n") == 1
    assert run(*INGEST).err == ""


def test_declared_actions_need_no_warning(run: Any) -> None:
    run("init", "--actions", "A,B")
    assert run(*INGEST).err == ""


def test_propensities_that_differ_are_named(run: Any) -> None:
    Path("log.csv").write_text("action,reward,user,pscore\nA,1,ann,0.9\nA,0,bob,0.2\n")
    run("init", "--actions", "A,B")
    done = run("ingest", "log.csv", "--json")
    assert (done.code, done.json["added"]) == (0, 2)
    assert done.err.startswith("armnesia: warning: column 'pscore' holds propensities that differ among rows")
    assert done.err.count("propensities") == 1


def test_only_rows_that_satisfy_the_conditions_come_in(run: Any, folder: Path) -> None:
    (folder / "visits.csv").write_text("action,reward,user,age\nA,1,ann,20\nB,0,bob,30\nA,9,cem,40\n")
    run("init", "--actions", "A,B")
    done = run("ingest", "visits.csv", "--where", "age < 40", "--where", "user != bob", "--json").json
    assert (done["rows"], done["added"]) == (1, 1)
    refused = run("ingest", "flights", "--where", "age < 40")
    assert refused.code == 2
    assert "has its own columns: leave --action-column" in refused.err


def test_a_new_action_is_refused_with_the_command_that_offers_it(run: Any) -> None:
    run("init", "--actions", "A,B")
    Path("new.csv").write_text("action,reward,user\nA,1,ann\nC,0,bob\n")
    for options in ((), ("--dry-run",)):
        refused = run("ingest", "new.csv", *options)
        assert refused.code == 2
        assert refused.err == (
            "armnesia: action column 'action' must hold declared actions only, 'A', 'B'; got 'C' at row 2;"
            " nothing was ingested: if it is a new arm, offer it first with armnesia arms add\n"
        )
    assert run("arms", "add", "C").code == 0
    assert run("ingest", "new.csv", "--json").json["added"] == 2


def test_corrected_rows_replace_those_with_their_ids(run: Any) -> None:
    run("init", "--actions", "A,B")
    Path("log.csv").write_text("action,reward,user,id\nA,1,ann,1\nB,0,bob,2\n")
    Path("corrected.csv").write_text("action,reward,user,id\nA,0,ann,1\nB,0,bob,2\nB,1,cem,3\n")
    run("ingest", "log.csv", "--id-column", "id")
    refused = run("ingest", "corrected.csv", "--id-column", "id")
    assert refused.code == 2
    assert "need replace=True (--replace), unless this export is older than the correction" in refused.err
    replace = ("ingest", "corrected.csv", "--id-column", "id", "--replace")
    would = run(*replace, "--dry-run").out
    assert "3 rows: 1 would be added, 1 would be replaced, 1 already there, 0 of forgotten people or" in would
    done = run(*replace)
    assert (
        "3 rows: 1 added, 1 replaced, 1 already there, 0 of forgotten people or records left out" in done.out
    )
    again = run(*replace, "--json").json
    assert (again["replaced"], again["already_there"], "erasure" in again) == (0, 3, False)
    status = run("status", "--json").json
    assert (status["replaced"], status["records"]) == (1, 3)
    assert "rows replaced by corrections" in run("status").out
    older = run("ingest", "log.csv", "--id-column", "id")
    assert older.code == 2
    assert "older than the correction: then leave these rows out; nothing was ingested" in older.err


def test_rows_of_forgotten_records_are_not_called_those_of_people(run: Any) -> None:
    Path("ids.csv").write_text("action,reward,user,id\nA,1,ann,r1\nB,0,bob,r2\n")
    ingest = ("ingest", "ids.csv", "--id-column", "id", "--user-column", "user")
    run("init", "--actions", "A,B")
    run(*ingest)
    run("forget", "--records", "r1")
    assert "0 added, 1 already there, 1 of forgotten people or records left out" in run(*ingest).out
