"""Sources of an external vault on the command line: what is new there, what has changed, and what to do."""

import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

ROWS = [(arm, won, who) for _ in range(3) for arm, won, who in (("A", 1, "ann"), ("B", 0, "bob's"))]
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
CONDITIONS = ("--where", "won in (0, 1)", "--where", "\"the arm\" != 'C d'")


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for each in statements:
            database.execute(each)


@pytest.fixture
def log(folder: Path) -> Path:
    path = folder / "a log.db"
    execute(path, 'CREATE TABLE "my clicks" ("the arm" TEXT, won INTEGER, who TEXT)')
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany('INSERT INTO "my clicks" VALUES (?, ?, ?)', ROWS)
    return path


@pytest.fixture
def ingest(log: Path, run: Any) -> tuple[str, ...]:
    """The command that ingests the log again; the vault knows its columns."""
    assert run("init", "--external", "--actions", "A,B").code == 0
    assert run("ingest", f"sqlite:///{log}", *COLUMNS, *CONDITIONS).code == 0
    return ("ingest", f"sqlite:///{log}", *COLUMNS[:2], *CONDITIONS)


def suggested(text: str, command: str) -> list[str]:
    """The arguments of a command that a message suggests, as a shell would read them."""
    words = shlex.split(text[text.index(f"run armnesia {command}") :].split(" ; ", maxsplit=1)[0].strip())
    assert words[:2] == ["run", "armnesia"]
    return words[2:]


def test_a_suggested_ingest_is_the_one_of_before(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    execute(log, "DELETE FROM \"my clicks\" WHERE who = 'ann'")
    refused = run("forget", "--user", "bob's", "--dry-run")
    assert refused.code == 2
    again = suggested(refused.err, "ingest")
    assert again == list(ingest)
    assert run("verify").code == 1
    assert run(*again).code == 0
    assert run("forget", "--user", "bob's", "--dry-run").code == 0


def test_a_request_says_that_sources_were_counted_again(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    execute(log, "INSERT INTO \"my clicks\" VALUES ('A', 1, 'cem')")
    done = run("forget", "--user", "cem")
    assert "Forgotten: 1 record" in done.out
    assert "All sources were counted again first: source 'sqlite:///" in done.out


def test_a_suggested_restore_drops_the_source(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    log.unlink()
    refused = run("forget", "--user", "ann")
    assert run(*suggested(refused.err, "restore --without")).code == 0
    assert run("status", "--json").json["sources"] == []


def test_status_shows_how_a_source_is_read(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    (source,) = run("status", "--json").json["sources"]
    assert {name: source[name] for name in ("name", "recount", "columns", "where", "ingest_command")} == {
        "name": f"sqlite:///{log}#my clicks",
        "recount": False,
        "columns": {"action": "the arm", "reward": "won", "user": "who", "id": None},
        "where": ["won in (0, 1)", "\"the arm\" != 'C d'"],
        "ingest_command": shlex.join(["armnesia", *ingest]),
    }
    shown = run("status").out
    for line in ("action the arm", "user who", "where won in (0, 1)"):
        assert line in shown


def test_status_prints_the_name_of_a_source_whole(run: Any, folder: Path) -> None:
    """It is copied into commands such as restore --without."""
    logs = folder / ("a folder with a long name" * 6)
    logs.mkdir()
    (logs / "log.csv").write_text("action;reward;user\nA;1;ann\n", encoding="utf-8")
    run("init", "--external", "--actions", "A,B")
    assert run("ingest", str(logs), "--delimiter", ";").code == 0
    assert f"  {logs}" in run("status").out.splitlines()
    (source,) = run("status", "--json").json["sources"]
    assert shlex.split(source["ingest_command"])[-2:] == ["--delimiter", ";"]


def test_rows_that_came_since_are_found_and_erased(
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
    assert done.err == ""
    assert "Forgotten: 1 record" in done.out
    assert re.search(r"^Deleted at source \w+: 1 row\.$", done.out, re.MULTILINE)


def test_a_source_without_users_is_ingested_without_again(run: Any, log: Path) -> None:
    run("init", "--external", "--actions", "A,B")
    execute(log, 'ALTER TABLE "my clicks" RENAME COLUMN who TO user')
    assert run("ingest", f"sqlite:///{log}", *COLUMNS[:-2], "--no-user").code == 0
    (source,) = run("status", "--json").json["sources"]
    again = ("ingest", f"sqlite:///{log}", *COLUMNS[:2], "--no-user")
    assert shlex.split(source["ingest_command"]) == ["armnesia", *again]
    assert run(*again).code == 0


def test_a_source_with_other_columns_is_refused_and_says_which(
    run: Any, log: Path, ingest: tuple[str, ...]
) -> None:
    refused = run("ingest", f"sqlite:///{log}", *COLUMNS)
    assert refused.code == 2
    assert "its rows would count twice" in refused.err
    assert run(*suggested(refused.err, "restore --without")).code == 0


def test_rows_that_are_gone_are_warned_of(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    execute(log, 'CREATE TABLE kept AS SELECT * FROM "my clicks"', 'DELETE FROM "my clicks" WHERE rowid < 3')
    would = run(*ingest, "--dry-run")
    assert "4 rows in all sources: 2 fewer than before would count" in would.out
    assert "rows that were counted are gone from the sources: 2 rows fewer would count;" in would.err
    done = run(*ingest)
    assert "4 rows in all sources: 2 fewer than before count" in done.out
    assert "2 rows fewer count now; if they are gone by mistake, put them back" in done.err
    execute(log, 'DELETE FROM "my clicks"', 'INSERT INTO "my clicks" SELECT * FROM kept')
    back = run(*ingest)
    assert "6 rows in all sources: 2 more than before count" in back.out
    assert "gone" not in back.err
    assert run("verify").code == 0


def test_rows_that_are_gone_before_a_request_are_warned_of(
    run: Any, log: Path, ingest: tuple[str, ...]
) -> None:
    execute(log, 'DELETE FROM "my clicks" WHERE rowid < 3')
    done = run("forget", "--user", "bob's")
    assert "Forgotten: 2 records" in done.out
    assert "2 rows fewer count now; if they are gone by mistake, put them back" in done.err
    execute(log, "DELETE FROM \"my clicks\" WHERE who = 'bob''s'")
    nobody = run("forget", "--user", "cem")
    assert "All sources were counted again first" in nobody.out
    assert "gone" not in nobody.err


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
    command = ("ingest", f"sqlite:///{log}", *COLUMNS, *CONDITIONS)
    assert "Served now, before the ingest: B" in run(*command, "--dry-run").out.splitlines()
    assert "Served now: A" in run(*command).out.splitlines()


def test_new_files_are_counted_alone_and_nothing_new_is_said_so(run: Any, folder: Path) -> None:
    (folder / "logs").mkdir()
    header = "action,reward,user\n"
    (folder / "logs" / "1.csv").write_text(f"{header}A,1,ann\nB,0,bob\n", encoding="utf-8")
    run("init", "--external", "--actions", "A,B")
    assert run("ingest", "logs").code == 0
    nothing = "Nothing is new at the sources: all their rows were counted before."
    assert run("ingest", "logs").out.splitlines()[0] == nothing
    run("forget", "--user", "ann")
    (folder / "logs" / "2.csv").write_text(f"{header}A,1,ann\nB,0,cem\n", encoding="utf-8")
    (note,) = run("verify", "--json").json["notes"]
    left_out = "1 added, 1 of forgotten people or records left out"
    assert run(*suggested(note, "ingest")).out.splitlines()[0] == f"2 new rows: {left_out}"


def test_a_change_in_place_is_named(run: Any, log: Path, ingest: tuple[str, ...]) -> None:
    execute(log, 'UPDATE "my clicks" SET won = 1 - won')
    problems = run("verify", "--json").json["problems"]
    assert sum("statistics of action" in each for each in problems) == 2
    assert problems[-1] == "run armnesia restore, which counts all sources again"
    assert run("restore").code == 0
    assert run("verify").code == 0
