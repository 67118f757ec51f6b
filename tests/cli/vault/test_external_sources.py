"""Sources of an external vault on the command line: what is new there, what has changed, and what to do."""

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = [(arm, won, who, day) for day in range(3) for arm, won, who in (("A", 1, "ann"), ("B", 0, "bob's"))]
COLUMNS = (
    "--table",
    "my clicks",
    "--action-column",
    "the arm",
    "--reward-column",
    "won",
    "--user-column",
    "who",
)
OPTIONS = (*COLUMNS, "--where", "won in (0, 1)", "--where", "\"the arm\" != 'C d'", "--ordered-by", "day")


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for each in statements:
            database.execute(each)


@pytest.fixture
def log(folder: Path) -> Path:
    path = folder / "a log.db"
    execute(path, 'CREATE TABLE "my clicks" ("the arm" TEXT, won INTEGER, who TEXT, day INTEGER, id INTEGER)')
    with closing(sqlite3.connect(path)) as database, database:
        rows = [(*row, number) for number, row in enumerate(ROWS)]
        database.executemany('INSERT INTO "my clicks" VALUES (?, ?, ?, ?, ?)', rows)
    return path


@pytest.fixture
def ingest(log: Path, run: Any) -> tuple[str, ...]:
    """The command that has ingested the log."""
    assert run("init", "--external", "--actions", "A,B").code == 0
    command = ("ingest", f"sqlite:///{log}", *OPTIONS)
    assert run(*command).code == 0
    return command


def suggested(text: str, command: str) -> list[str]:
    """The arguments of a command that a message suggests, as a shell would read them."""
    words = shlex.split(text[text.index(f"run armnesia {command}") :].split(" ; ", maxsplit=1)[0].strip())
    assert words[:2] == ["run", "armnesia"]
    return words[2:]


def test_a_suggested_ingest_is_the_one_of_before(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    execute(log, 'DELETE FROM "my clicks" WHERE id = 0')
    refused = run("forget", "--user", "ann")
    assert refused.code == 2
    again = suggested(refused.err, "ingest")
    assert again == list(ingest)
    problem, *_ = run("verify", "--json").json["problems"]
    assert suggested(problem, "ingest") == again
    assert run(*again).code == 0
    assert run("forget", "--user", "ann").code == 0
    execute(log, "INSERT INTO \"my clicks\" VALUES ('A', 1, 'cem', 9, 9)")
    note, _ = run("verify", "--json").json["notes"]
    assert "there are rows that are not counted yet" in note
    assert run(*suggested(note, "ingest"), "--json").json["added"] == 1


def test_a_suggested_rebuild_drops_the_source(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    log.unlink()
    refused = run("forget", "--user", "ann")
    assert run(*suggested(refused.err, "rebuild --without")).code == 0
    assert run("status", "--json").json["sources"] == []


def test_status_shows_how_a_source_is_read(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    (source,) = run("status", "--json").json["sources"]
    assert source == {
        "name": f"sqlite:///{log}#my clicks",
        "recount": None,
        "columns": {"action": "the arm", "reward": "won", "user": "who", "id": None},
        "where": ["won in (0, 1)", "\"the arm\" != 'C d'"],
        "ordered_by": "day",
        "ingest_command": shlex.join(["armnesia", *ingest]),
    }
    shown = run("status").out
    for line in ("action the arm", "user who", "where won in (0, 1)", "ordered by day"):
        assert line in shown


def test_status_prints_the_name_of_a_source_whole(run: Any, folder: Path) -> None:
    """It is copied into commands such as rebuild --without."""
    logs = folder / ("a folder with a long name" * 6)
    logs.mkdir()
    (logs / "log.csv").write_text("action,reward,user\nA,1,ann\n", encoding="utf-8")
    run("init", "--external", "--actions", "A,B", "--url", "sqlite:///other.db")
    assert run("ingest", str(logs), "--url", "sqlite:///other.db").code == 0
    assert f"  {logs}" in run("status", "--url", "sqlite:///other.db").out.splitlines()


def test_rows_that_are_not_ingested_yet_are_mentioned(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    """In a request for somebody of whom no row was counted."""
    execute(log, "INSERT INTO \"my clicks\" VALUES ('A', 1, 'cem', 9, 9)")
    hint = "Rows that came to the sources since they were ingested were not looked at"
    assert hint in run("forget", "--user", "cem", "--dry-run").out
    assert hint not in run("forget", "--user", "ann").out
    assert hint in run("forget", "--user", "cem").out
    assert hint not in run("forget", "--user", "cem").out  # it was answered before


def test_rows_that_are_erased_before_they_are_ingested_were_looked_at(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, user in (("a", "ann"), ("b", "cem")):
        if name == "b":
            run("init", "--external", "--actions", "A,B", "--may-erase-at-source")
            assert run("ingest", str(logs), "--user-column", "user").code == 0
        rows = f"SELECT 'A' AS action, 1 AS reward, '{user}' AS user"
        duckdb.execute(f"COPY ({rows}) TO '{logs}/{name}.parquet'")
    done = run("forget", "--user", "cem", "--erase-at-source")
    assert "Deleted at source 1: 1 row" in done.out
    assert "were not looked at" not in done.out


def test_a_source_without_users_is_ingested_without_again(run: Any, log: Path) -> None:
    run("init", "--external", "--actions", "A,B")
    execute(log, 'ALTER TABLE "my clicks" RENAME COLUMN who TO user')
    command = ("ingest", f"sqlite:///{log}", *COLUMNS[:-2], "--ordered-by", "day", "--no-user")
    assert run(*command).code == 0
    (source,) = run("status", "--json").json["sources"]
    assert shlex.split(source["ingest_command"]) == ["armnesia", *command]


def test_a_source_with_other_columns_is_refused_and_says_which(
    run: Any, log: Path, ingest: tuple[str, ...]
) -> None:
    refused = run("ingest", f"sqlite:///{log}", *COLUMNS, "--id-column", "id", "--ordered-by", "day")
    assert refused.code == 2
    assert "the id column is 'id' and was none, the conditions are none and were" in refused.err
    assert "would count twice" in refused.err
    assert suggested(refused.err, "ingest") == list(ingest)
    assert run(*suggested(refused.err, "rebuild")).code == 0


def test_nothing_new_is_said_so(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    nothing = "Nothing is new at the source: all its rows were counted before."
    assert run(*ingest).out.splitlines()[0] == nothing
    assert run(*ingest, "--dry-run").out.splitlines()[0] == nothing
    execute(log, "INSERT INTO \"my clicks\" VALUES ('A', 1, 'ann', 9, 9)")
    left_out = "0 of forgotten people or records left out"
    assert run(*ingest, "--dry-run").out.splitlines()[0] == f"1 new row: 1 would be added, {left_out}"
    assert run(*ingest).out.splitlines()[0] == f"1 new row: 1 added, {left_out}"


def test_rows_that_are_gone_are_warned_of(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    execute(log, 'CREATE TABLE kept AS SELECT * FROM "my clicks"', 'DELETE FROM "my clicks" WHERE day = 1')
    would = run(*ingest, "--dry-run")
    assert "4 rows in all sources: 2 fewer than before would count" in would.out
    assert "rows that were counted are gone from the sources: 2 rows fewer would count;" in would.err
    assert " -2" not in would.out  # the folder of the test may be called …-2
    done = run(*ingest)
    assert "4 rows in all sources: 2 fewer than before count" in done.out
    assert "2 rows fewer count now; if they are gone by mistake, put them back" in done.err
    execute(log, 'DELETE FROM "my clicks"', 'INSERT INTO "my clicks" SELECT * FROM kept')
    back = run(*ingest)
    assert "6 rows in all sources: 2 more than before count" in back.out
    assert "gone" not in back.err
    assert run("verify").code == 0


def test_a_deletion_of_forgotten_people_is_not_warned_of(
    run: Any, log: Path, ingest: tuple[str, ...]
) -> None:
    assert run("forget", "--user", "ann").code == 0
    execute(log, "DELETE FROM \"my clicks\" WHERE who = 'ann'")
    done = run(*ingest)
    assert "3 rows in all sources: as many count as before, 0 of forgotten people" in done.out
    assert "gone" not in done.err


def test_a_dry_run_says_that_the_served_arm_is_the_one_of_before(run: Any, log: Path) -> None:
    run("init", "--external", "--actions", "B,A", "--default-action", "B")
    command = ("ingest", f"sqlite:///{log}", *OPTIONS)
    assert "Served now, before the ingest: B" in run(*command, "--dry-run").out.splitlines()
    assert "Served now: A" in run(*command).out.splitlines()


def test_a_change_in_place_is_named_before_the_arms(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    execute(log, 'UPDATE "my clicks" SET won = 1 - won')
    first, *others = run("verify", "--json").json["problems"]
    assert first.startswith(f"source 'sqlite:///{log}#my clicks' may have changed")
    assert "armnesia rebuild counts all sources again" in first
    assert len(others) == 2
    assert all("statistics of action" in each for each in others)
    assert run("rebuild").code == 0
    assert run("verify").code == 0


def test_going_over_to_a_log_by_person_and_adding_a_day(run: Any, folder: Path) -> None:
    """The commands of docs/vault-operations.md."""
    (folder / "logs").mkdir()
    (folder / "by-person").mkdir()

    def write_day(name: str, users: list[str]) -> None:
        rows = {"action": ["A"] * len(users), "reward": [1] * len(users), "user": users}
        pq.write_table(pa.table(rows), folder / "logs" / f"{name}.parquet")

    write_day("july-1", ["ann", "bob", "ann", "cem"])
    user = ("--user-column", "user")
    run("init", "--external", "--actions", "A,B")
    run("ingest", f"{folder}/logs/*.parquet", *user)
    assert run("forget", "--user", "bob").code == 0
    new = f"{folder}/by-person/*.parquet"
    first = run("layout", f"{folder}/logs/*.parquet", f"{folder}/by-person/until-july.parquet", *user)
    assert first.code == 0
    assert run("rebuild", "--without", f"{folder}/logs/*.parquet").code == 0
    assert run("ingest", new, *user, "--json").json["added"] == 3
    write_day("august-1", ["ann", "bob"])
    run("layout", f"{folder}/logs/august-1.parquet", f"{folder}/by-person/august-1.parquet", *user)
    added = run("ingest", new, *user, "--json").json
    assert (added["added"], added["suppressed"], added.get("recounted_because")) == (1, 1, None)
    assert run("forget", "--user", "ann", "--json").json["records"] == 3
    assert run("verify").code == 0
