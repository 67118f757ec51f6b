"""`ingest` without a user column: refused unless --no-user is given."""

from pathlib import Path
from typing import Any

import pytest

ROWS = "action,reward,who,id\nA,1,ann,1\nB,0,bob,2\n"


@pytest.fixture(autouse=True)
def vault(folder: Path, run: Any) -> None:
    Path("people.csv").write_text(ROWS)
    Path("machines.csv").write_text("action,reward,id\nA,1,m1\n")
    assert run("init", "--actions", "A,B", "--learner", "greedy").code == 0
    assert run("ingest", "people.csv", "--user-column", "who").code == 0
    assert run("forget", "--user", "ann").code == 0


def test_a_forgotten_option_is_refused_before_anything_is_in(run: Any) -> None:
    log = "userid,version,retention_1\n116,gate_30,0\n337,gate_40,1\n"
    Path("cats.csv").write_text(log)
    new = ("--url", "sqlite:///cats.db")
    ingest = ("ingest", "cats.csv", *new, "--action-column", "version", "--reward-column", "retention_1")
    assert run("init", *new, "--actions", "gate_30,gate_40").code == 0
    refused = run(*ingest)
    assert refused.code == 2
    assert "no user column was named ('userid' may be it): name it with" in refused.err
    assert run("status", *new, "--json").json["records"] == 0
    assert run(*ingest, "--user-column", "userid", "--json").json["added"] == 2


def test_the_user_column_of_before_is_looked_for(run: Any) -> None:
    assert run("ingest", "people.csv", "--json").json["suppressed"] == 1
    refused = run("ingest", "machines.csv")
    assert refused.code == 2
    assert "user column 'who' is not in the source" in refused.err


def test_unless_they_belong_to_no_user(run: Any) -> None:
    done = run("ingest", "machines.csv", "--no-user", "--json")
    assert (done.code, done.json["added"]) == (0, 1)
    assert done.err == ""
    both = run("ingest", "people.csv", "--no-user", "--user-column", "who")
    assert both.code == 2
    assert "rows that belong to no user have no user column" in both.err
