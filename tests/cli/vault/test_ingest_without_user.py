"""`ingest` without --user: refused where people were forgotten, unless the rows are said to be nobody's."""

from pathlib import Path
from typing import Any

import pytest

ROWS = "action,reward,who,id\nA,1,ann,1\nB,0,bob,2\n"


@pytest.fixture(autouse=True)
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(ROWS)
    Path("machines.csv").write_text("action,reward,id\nA,1,m1\n")
    assert run("init", "--actions", "A,B").code == 0
    assert run("ingest", "people.csv", "--user", "who").code == 0
    assert run("forget", "--user", "ann").code == 0


def test_rows_without_a_user_are_refused(run: Any) -> None:
    refused = run("ingest", "people.csv")
    assert refused.code == 2
    assert "people were forgotten here: name the user column" in refused.err
    assert "--nobody" in refused.err
    assert run("ingest", "people.csv", "--user", "who", "--json").json["suppressed"] == 1


def test_unless_they_are_nobodys(run: Any) -> None:
    done = run("ingest", "machines.csv", "--nobody", "--json")
    assert (done.code, done.json["added"]) == (0, 1)
    assert "without --user" not in done.err  # who says so need not be told
    both = run("ingest", "people.csv", "--nobody", "--user", "who")
    assert both.code == 2
    assert "rows that belong to nobody have no user column" in both.err


def test_forgotten_records_need_the_column_of_ids(run: Any) -> None:
    Path("named.csv").write_text("action,reward,who,id\nA,1,cem,3\n")
    assert run("ingest", "named.csv", "--user", "who", "--id", "id").code == 0
    assert run("forget", "--records", "3").code == 0
    warned = run("ingest", "named.csv", "--user", "who")
    assert warned.code == 0
    assert "single records were forgotten here" in warned.err
