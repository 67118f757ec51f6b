"""The command `erase`, and `forget --erase-at-source`."""

import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest

from armnesia.core.errors import VaultError
from armnesia.logs.erase.parquet import ParquetEraser
from tests.cli.examples import COLUMNS, USER_COLUMN, contents, write_clicks

pytestmark = pytest.mark.slow  # the promise tests go the main ways quickly

SOURCE = ("ingest", "clicks.parquet", *COLUMNS, *USER_COLUMN)


@pytest.fixture
def parquet(folder: Path) -> Path:
    """The small log as a Parquet file."""
    path = folder / "clicks.parquet"
    duckdb.read_csv(str(write_clicks(folder / "clicks.csv"))).write_parquet(str(path))
    return path


@pytest.fixture
def external(parquet: Path, run: Any) -> Path:
    """The working folder with an external vault that may erase at its source."""
    assert run("init", "--actions", "A,B", "--external", "--may-erase-at-source").code == 0
    assert run(*SOURCE).code == 0
    return parquet


def people(path: Path) -> set[str]:
    return {name for (name,) in duckdb.sql(f"SELECT DISTINCT person FROM '{path}'").fetchall()}


def test_rows_are_erased_by_forget(run: Any, external: Path) -> None:
    done = run("forget", "--user", "u1", "--erase-at-source", "--purge", "--certificate", "u1.json")
    assert done.code == 0
    assert "In the vault: complete: " in done.out
    assert "At the source: purged; rows that came there later" in done.out
    assert "Remains at source 1: " in done.out
    assert people(external) & {"u1", "a1"} == {"a1"}
    assert run("verify").code == 0
    run("export", "ledger.json")
    Path("keys.json").write_text(run("public-key", "--json").out, "utf-8")
    checked = ("certificate", "verify", "u1.json", "--public-key", "keys.json")
    assert "can be checked with the ledger only" in run(*checked).out
    with_ledger = run(*checked, "--ledger", "ledger.json")
    assert with_ledger.code == 0
    assert "Source: purged, by ledger entry 4; rows that came there later are not covered" in with_ledger.out
    found = run(*checked, "--ledger", "ledger.json", "--json").json
    assert found["certificate"]["source"] == "purged"


def test_forget_says_how_many_rows_were_deleted(run: Any, external: Path) -> None:
    done = run("forget", "--user", "u1", "--erase-at-source")
    assert "Deleted at source 1: 40 rows." in done.out
    (deleted,) = run("forget", "--user", "a1", "--erase-at-source", "--json").json["deleted_at_source"]
    assert (deleted["number"], deleted["rows"]) == (1, 1)
    again = run("forget", "--user", "a1", "--erase-at-source")
    assert "No row had to be deleted." in again.out
    assert "deleted_at_source" not in run("forget", "--user", "a2", "--json").json


def test_rows_are_erased_later(run: Any, external: Path) -> None:
    done = run("forget", "--user", "u1", "--json")
    assert done.json["source"] == "untouched"
    assert "u1" in people(external)
    assert "requests to be erased at the sources" in run("status").out
    assert run("status", "--json").json["source_erasures_pending"] == 1
    before = contents(external.parent)
    (source,) = run("erase", "--status", "--json").json["sources"]
    assert (source["state"], source["pending"], source["entry"]) == ("untouched", 1, None)
    waits = "Source 1: 1 request since: run armnesia erase\n"
    assert waits in run("erase", "--status").out
    assert contents(external.parent) == before
    printed = run("erase")
    assert printed.code == 0
    assert waits not in printed.out
    assert "purged" in printed.out
    assert "Remains at source 1: backups and copies of the source keep the rows" in printed.out
    assert "u1" not in people(external)
    assert "requests to be erased" not in run("status").out
    assert "Source: purged" in run("certificate", "show", "--user", "u1").out


def test_an_interrupted_erasure_says_how_it_is_finished(
    run: Any, external: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("forget", "--user", "u1")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ParquetEraser, "deleted", interrupted)
        stopped = run("erase", "--purge")
    assert (stopped.code, stopped.out) == (130, "")
    assert (
        stopped.err
        == "armnesia: interrupted; run armnesia erase again with the same options, which does the rest\n"
    )
    assert "u1" in people(external)
    assert run("erase", "--purge").code == 0
    assert "u1" not in people(external)
    assert run("verify").code == 0


def test_a_certificate_from_before_the_erasure_is_told_of_it(run: Any, external: Path) -> None:
    assert run("forget", "--user", "u1", "--certificate", "u1.json").code == 0
    Path("keys.json").write_text(run("public-key", "--json").out, "utf-8")
    checked = ("certificate", "verify", "u1.json", "--public-key", "keys.json", "--ledger", "ledger.json")
    run("export", "ledger.json")
    note = "The ledger says more of the sources by now (purged): ask for a new certificate"
    assert note not in " ".join(run(*checked).out.split())
    assert run("erase").code == 0
    Path("ledger.json").unlink()
    run("export", "ledger.json")
    late = run(*checked)
    assert late.code == 0
    assert note in " ".join(late.out.split())
    assert run("certificate", "show", "--user", "u1", "--out", "new.json").code == 0
    again = run("certificate", "verify", "new.json", *checked[3:])
    assert again.code == 0
    assert note not in " ".join(again.out.split())


def test_nothing_is_erased_without_permission(run: Any, parquet: Path) -> None:
    assert run("init", "--actions", "A,B", "--external").code == 0
    assert run(*SOURCE).code == 0
    before = contents(parquet.parent)
    for command in (("erase",), ("forget", "--user", "u1", "--erase-at-source")):
        refused = run(*command)
        assert refused.code == 2
        assert "armnesia init --url NEW --external --may-erase-at-source --successor-of" in refused.err
        assert refused.err.count("\n") == 1
    assert contents(parquet.parent) == before
    run("forget", "--user", "u1")
    printed = run("erase", "--status").out
    assert "without that permission" in printed
    assert "run armnesia erase" not in printed


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("erase", "--status", "--purge"), "--status changes nothing"),
        (("erase", "--ignore-retention"), "ignore_retention is about a purge"),
        (("forget", "--user", "u1", "--purge"), "give erase_at_source"),
        (("forget", "--user", "u1", "--dry-run", "--erase-at-source"), "--dry-run changes nothing"),
    ],
)
def test_options_that_do_not_go_together(
    run: Any, external: Path, arguments: tuple[str, ...], reason: str
) -> None:
    before = contents(external.parent)
    refused = run(*arguments)
    assert (refused.code, reason in refused.err) == (2, True)
    assert contents(external.parent) == before


def test_a_managed_vault_cannot_have_the_permission(run: Any, folder: Path) -> None:
    refused = run("init", "--actions", "A,B", "--may-erase-at-source")
    assert refused.code == 2
    assert "needs an external vault (--external)" in refused.err
    assert contents(folder) == {}


def test_what_fails_at_the_source_after_the_request_is_not_called_refused(
    run: Any, external: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(external))

    with monkeypatch.context() as patched:
        patched.setattr(ParquetEraser, "deleted", full)
        failed = run("forget", "--user", "u1", "--erase-at-source")
    assert failed.code == 1
    assert "Forgotten: " in failed.out
    assert "At the source: untouched; run armnesia erase" in failed.out
    assert f"{str(external)!r} cannot be used: No space left on device" in failed.err
    assert "run armnesia erase; the request itself is done" in failed.err
    assert failed.err.count("\n") == 1
    assert run("erase").code == 0
    assert "Source: purged" in run("certificate", "show", "--user", "u1").out


def test_a_request_is_told_of_where_only_some_sources_were_erased(
    run: Any, external: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(external, "more.parquet")
    assert run("ingest", "more.parquet", *COLUMNS, *USER_COLUMN).code == 0
    deleted = ParquetEraser.deleted

    def full(eraser: ParquetEraser, people: Any) -> int:
        if eraser.source.location == str(external):
            raise OSError(28, "No space left on device", str(external))
        return deleted(eraser, people)

    monkeypatch.setattr(ParquetEraser, "deleted", full)
    failed = run("forget", "--user", "u1", "--erase-at-source")
    assert failed.code == 1
    assert "Forgotten: " in failed.out
    assert "Deleted at source 2: " in failed.out
    assert "No space left on device; then run armnesia erase; the request itself is done" in failed.err
    again = run("forget", "--user", "a1", "--erase-at-source", "--json")
    assert again.code == 1
    assert (again.json["held"], [each["number"] for each in again.json["deleted_at_source"]]) == (1, [2])


def test_a_database_that_is_written_to_is_erased_later(run: Any, folder: Path) -> None:
    path = folder / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE clicks (action TEXT, reward REAL, user TEXT)")
        database.execute("INSERT INTO clicks VALUES ('A', 1.0, 'ann'), ('B', 0.0, 'bob')")
        assert run("init", "--actions", "A,B", "--external", "--may-erase-at-source").code == 0
        assert run("ingest", f"sqlite:///{path}", "--table", "clicks").code == 0
        database.execute("BEGIN IMMEDIATE")
        failed = run("forget", "--user", "ann", "--erase-at-source")
        assert failed.code == 1
        assert "Forgotten: 1 record" in failed.out
        assert (
            "another process is writing to it; run armnesia erase later; the request itself is" in failed.err
        )
        assert f"sqlite:///{path}#clicks" in failed.err
        database.execute("ROLLBACK")
        assert run("erase").code == 0
        assert database.execute("SELECT user FROM clicks").fetchall() == [("bob",)]


def test_a_certificate_that_cannot_be_written_is_not_called_refused(
    run: Any, external: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise VaultError("the file cannot be written")

    monkeypatch.setattr("armnesia.vault.Certificate.save", refuse)
    failed = run("forget", "--user", "u1", "--certificate", "u1.json")
    assert failed.code == 1
    assert "the request itself is done" in failed.err


def test_names_without_records_are_listed(run: Any, external: Path) -> None:
    done = run("forget", "--user", "u1", "--user", "nobody")
    assert "1 of 2 named had records\nWithout records: 'nobody'\n" in done.out
    again = run("forget", "--user", "a1", "--user", "noone", "--json")
    assert again.json["not_held"] == ["noone"]
    assert "noone" not in run("ledger", "--json").out


def test_a_dropped_source_is_named(run: Any, external: Path) -> None:
    run("forget", "--user", "u1")
    assert "to leave the rows, add --unerased" in run("rebuild", "--without", str(external)).err
    done = run("rebuild", "--without", str(external), "--unerased")
    assert f"Dropped: source {str(external)!r}; its rows no longer count.\nThe statistics" in done.out
    assert run("ledger", "--json").json["entries"][-1]["dropped"] == [1]
    assert "Source 1 was dropped by ledger entry" in run("erase", "--status").out
    external.rename(external.with_name("copy.parquet"))
    assert run("ingest", "copy.parquet", *COLUMNS, *USER_COLUMN).code == 0
    assert run("erase", "--purge").code == 0
    assert "Source: untouched" in run("certificate", "show", "--user", "u1").out


def test_a_source_that_was_moved_is_erased_at_its_new_place(run: Any, external: Path) -> None:
    run("forget", "--user", "u1")
    external.rename(external.with_name("new.parquet"))
    done = run("rebuild", "--moved", str(external), "new.parquet")
    place = str(external.with_name("new.parquet"))
    said, to_do = done.out.splitlines()
    assert said == f"Source {str(external)!r} is counted at {place!r} from now on, by the same number."
    assert "run armnesia export --for-restore" in to_do
    assert run("ledger", "--json").json["entries"][-1]["moved"] == [1]
    assert run("erase", "--purge").code == 0
    assert "Source: purged" in run("certificate", "show", "--user", "u1").out


def test_what_would_be_and_was_deleted_is_counted_for_the_screen(run: Any, external: Path) -> None:
    assert "At the source: untouched; run armnesia erase\n" in run("forget", "--user", "u1").out
    before = external.read_bytes()
    would = run("erase", "--dry-run", "--json").json
    assert [each["rows"] for each in would["sources"]] == [40]
    assert "Nothing was changed. For the operator only" in run("erase", "--dry-run").out
    assert external.read_bytes() == before
    assert "Deleted at source 1: 40 rows.\n" in run("erase").out
    assert "No row had to be deleted.\n" in run("erase").out
    assert run("erase", "--json").json["deleted"] == []
    assert run("erase", "--status", "--json").json["deleted"] is None
    for options in (("--dry-run", "--purge"), ("--dry-run", "--status"), ("--status", "--purge")):
        assert "changes nothing; give it without" in run("erase", *options).err


def test_without_the_permission_a_successor_may_have_it(run: Any, parquet: Path) -> None:
    run("init", "--actions", "A,B", "--external")
    run(*SOURCE)
    forgotten = run("forget", "--user", "u1")
    assert "At the source: untouched; delete the rows there, then ingest it again\n" in forgotten.out
    new, successor = ("--url", "sqlite:///new.db"), ("--successor-of", "sqlite:///vault.db")
    made = run("init", *new, "--actions", "A,B", "--external", "--may-erase-at-source", *successor)
    assert made.code == 0
    assert "40 rows of forgotten people or records lie at the source" in run(*SOURCE, *new).out
    assert "Deleted at source 1: 40 rows" in run("erase", *new).out
    assert "u1" not in people(parquet)


def test_a_source_that_cannot_be_erased_is_warned_of_when_it_is_ingested(run: Any, external: Path) -> None:
    Path("later.csv").write_text("variant,clicked,person\nA,1,zoe\n", "utf-8")
    done = run("ingest", "later.csv", *COLUMNS, *USER_COLUMN)
    assert done.code == 0
    assert "but cannot at this one: " in done.err
    assert "only Parquet files" in done.err


def test_rows_that_came_back_are_told_of(run: Any, external: Path) -> None:
    run("forget", "--user", "u1", "--erase-at-source")
    duckdb.sql("SELECT 'A' AS variant, 1 AS clicked, 'u1' AS person").write_parquet("later.parquet")
    done = run("ingest", "later.parquet", *COLUMNS, *USER_COLUMN)
    assert "1 row of forgotten people or records lies at the source: run armnesia erase." in done.out
    told = "Source 2 has rows of people or records that were forgotten before: run armnesia erase"
    assert told in run("erase", "--status").out
    assert "sources with later rows" in run("status").out
    assert told not in run("erase").out
    assert "sources with later rows" not in run("status").out


@pytest.fixture
def delta(folder: Path, run: Any) -> Path:
    """The working folder with an external vault of a Delta table, which keeps old files for a week."""
    rows = {"variant": ["A", "B"] * 4, "clicked": [1, 0] * 4, "person": [f"u{row}" for row in range(8)]}
    path = folder / ("a-folder-with-a-rather-long-name-" * 3)
    deltalake.write_deltalake(str(path), pa.table(rows))
    assert run("init", "--actions", "A,B", "--external", "--may-erase-at-source").code == 0
    assert run("ingest", f"delta:{path}", *COLUMNS, *USER_COLUMN).code == 0
    return path


def test_a_purge_that_has_to_wait_is_announced_and_counted(run: Any, delta: Path) -> None:
    done = run("forget", "--user", "u1", "--erase-at-source", "--purge")
    assert "At the source: logically deleted; rows that came there later" in done.out
    (line,) = [line for line in done.out.splitlines() if "is not purged" in line]
    moment = re.search(r"from (\S+ \S+) UTC on, run armnesia erase --purge$", line)
    assert moment is not None
    due = datetime.strptime(moment[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert timedelta(days=6, hours=23) < due - datetime.now(UTC) < timedelta(days=7, minutes=2)
    for printed in (run("erase", "--status"), run("erase", "--purge")):
        assert line in printed.out
        assert moment[1] in printed.out  # in the table too, in one line
    found = run("erase", "--status", "--json").json
    assert (found["pending"], found["purges_pending"]) == (0, 1)
    assert found["sources"][0]["purge_pending"] is True
    assert "sources to be purged" in run("status").out
    assert run("status", "--json").json["source_purges_pending"] == 1
    at_once = run("erase", "--purge", "--ignore-retention")
    assert "is not purged" not in at_once.out
    assert run("status", "--json").json["source_purges_pending"] == 0


def test_the_table_of_sources_breaks_no_word(run: Any, delta: Path) -> None:
    run("forget", "--user", "u1", "--erase-at-source")
    printed = run("erase", "--status").out
    assert f"Source 1: delta:{delta}\n" in printed
    words = [word for line in printed.splitlines() if "│" in line for word in line.replace("│", " ").split()]
    assert {"logically", "deleted"} <= set(words)
    assert max(map(len, [line for line in printed.splitlines() if "│" in line])) <= 80


def test_a_vault_without_sources_says_so(run: Any, folder: Path) -> None:
    run("init", "--actions", "A,B", "--external", "--may-erase-at-source")
    assert run("erase", "--status").out == "No source is counted.\n"


def test_the_ledger_says_what_was_erased_and_rebuilt(run: Any, external: Path) -> None:
    run("forget", "--user", "u1", "--erase-at-source")
    run("rebuild")
    run("rebuild", "--without", str(external))
    printed = " ".join(run("ledger").out.replace("│", " ").split())
    for words in ("user_type text", "erase_source source 1: purged", "rebuild nothing changed"):
        assert words in printed
    assert re.search(r"rebuild (nothing )?changed; source 1 dropped", printed)


def test_status_and_verify_say_who_may_erase(run: Any, external: Path) -> None:
    run("forget", "--user", "u1")
    assert "still present; armnesia erase deletes them" in run("verify").out
    assert re.search(r"erasure at the sources +│ permitted", run("status").out)
    assert "where they are erased in a step of its own" in run("certificate", "show", "--user", "u1").out


def test_what_was_done_is_shown_where_a_source_failed(run: Any, external: Path) -> None:
    shutil.copy(external, "more.parquet")
    assert run("ingest", "more.parquet", *COLUMNS, *USER_COLUMN).code == 0
    assert run("forget", "--user", "u1").code == 0
    external.with_name("link.parquet").hardlink_to(external)
    done = run("erase", "--json")
    assert done.code == 1
    assert "hard links" in done.err
    assert "nothing was changed" not in done.err
    assert [each["number"] for each in done.json["deleted"]] == [2]
    assert "u1" not in people(Path("more.parquet"))
