"""How people are named, on the command line: `--user-type`, what `ingest` says, and `--exactly`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import contents


@pytest.fixture(autouse=True)
def logs(folder: Path) -> Path:
    """Two logs of the same three people: as integers, and as pandas writes them with a missing value."""
    Path("integers.csv").write_text("action,reward,user\nA,1,1\nB,0,2\nA,0,3\n")
    Path("floats.csv").write_text("action,reward,user\nA,1,1.0\nB,0,2.0\nA,0,3.0\n")
    return folder


def test_ids_that_became_floats_are_no_second_people_in_a_vault_of_integers(run: Any) -> None:
    assert run("init", "--actions", "A,B", "--user-type", "integer", "--learner", "greedy").code == 0
    first = run("ingest", "floats.csv")
    assert (first.err, "User type" in first.out) == ("", False)  # it was declared
    again = run("ingest", "integers.csv", "--json")
    assert (again.json["added"], again.json["already_there"], again.json["user_type_fixed"]) == (0, 3, None)
    done = run("forget", "--user", "1", "--certificate", "one.json", "--json").json
    (opened,) = done["certificate"]["opening"]
    assert (done["records"], opened["text"]) == (1, "1")
    shown = [run("certificate", "show", "--user", name, "--json").out for name in ("1", "1.0", " 01")]
    assert len(set(shown)) == 1
    assert run("ingest", "floats.csv", "--user-column", "user", "--json").json["suppressed"] == 1
    Path("names").write_text("3.0\n")
    assert run("forget", "--file", "names", "--dry-run", "--json").json["records"] == 1
    assert run("readmit", "--user", "1.0", "--json").json["readmitted"] == 1
    assert run("verify").code == 0
    assert "integer" in run("status").out


def test_the_first_ingest_says_how_people_are_named(run: Any) -> None:
    assert run("init", "--actions", "A,B", "--learner", "greedy").code == 0
    assert run("status", "--json").json["configuration"]["user_type"] is None
    done = run("ingest", "integers.csv")
    assert "User type from now on: integer\n" in done.out
    assert done.err == ""
    assert run("status", "--json").json["configuration"]["user_type"] == "integer"
    assert "User type" not in run("ingest", "floats.csv").out
    Path("names.csv").write_text("action,reward,user\nA,1,7\nA,1,ann\n")
    refused = run("ingest", "names.csv")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert refused.err.startswith("armnesia: user column 'user' must hold integers, by which this vault")
    assert "names people; got another value at row 2: init --user-type text makes a vault" in refused.err


def test_a_misspelt_person_is_refused_with_the_spelling_that_is_held(run: Any, logs: Path) -> None:
    assert run("init", "--actions", "A,B", "--learner", "greedy").code == 0
    done = run("ingest", "floats.csv")
    assert "User type from now on: text\n" in done.out
    before = contents(logs)
    for options in ((), ("--dry-run",), ("--certificate", "one.json")):
        refused = run("forget", "--user", "1", *options)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == (
            "armnesia: the vault holds rows of '1.0', which may be user '1': if they are the same, name"
            " them as the vault does, all in one request; if they are not, add exactly=True (--exactly);"
            " nothing was changed\n"
        )
    assert contents(logs) == before
    assert run("forget", "--user", "1", "--exactly", "--dry-run", "--json").json["held"] == 0
    assert run("forget", "--user", "1", "--exactly", "--json").json["held"] == 0
    assert run("forget", "--user", "1.0", "--json").json["records"] == 1


def test_another_type_is_refused_before_anything_is_made(run: Any, logs: Path) -> None:
    before = contents(logs)
    refused = run("init", "--actions", "A,B", "--user-type", "number")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "armnesia: user_type must be integer or text; got 'number'\n"
    assert contents(logs) == before
