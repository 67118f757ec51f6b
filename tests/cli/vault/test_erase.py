"""The command `erase`, and `forget --erase-at-source`."""

import re
import shutil
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest

from armnesia.logs.erase.parquet import ParquetEraser
from tests.cli.examples import COLUMNS, USER_COLUMN, contents, write_clicks

pytestmark = pytest.mark.slow  # the promise tests go the main ways quickly

SOURCE = ("ingest", "clicks.parquet", *COLUMNS, *USER_COLUMN)
DELETED = re.compile(r"^Deleted at source \w+: 40 rows\.$", re.MULTILINE)


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


def kinds(run: Any) -> list[str]:
    return [entry["kind"] for entry in run("ledger", "--json").json["entries"]]


def test_rows_are_erased_by_forget(run: Any, external: Path) -> None:
    done = run("forget", "--user", "u1", "--erase-at-source", "--purge")
    assert done.code == 0
    assert DELETED.search(done.out)
    assert re.search(r"^May remain at source \w+: ", done.out, re.MULTILINE)
    assert people(external) & {"u1", "a1"} == {"a1"}
    assert kinds(run)[-2:] == ["forget", "erased"]
    (deleted,) = run("forget", "--user", "a1", "--erase-at-source", "--json").json["deleted_at_source"]
    assert deleted["rows"] == 1
    assert "deleted_at_source" not in run("forget", "--user", "a2", "--json").json
    assert "source" in run("certificate", "show", "--user", "u1").out
    assert run("verify").code == 0


def test_rows_are_erased_later(run: Any, external: Path) -> None:
    assert run("forget", "--user", "u1").code == 0
    assert "u1" in people(external)
    before = contents(external.parent)
    (source,) = run("erase", "--status", "--json").json["sources"]
    assert source["to_erase"] is True
    assert "may have rows of forgotten people: run armnesia erase" in run("erase", "--status").out
    would = run("erase", "--dry-run", "--json").json
    assert [each["rows"] for each in would["sources"]] == [40]
    assert "Nothing was changed. For the operator only" in run("erase", "--dry-run").out
    assert contents(external.parent) == before
    assert DELETED.search(run("erase").out)
    assert "u1" not in people(external)
    assert "armnesia erase\n" not in run("erase", "--status").out
    assert "No row had to be deleted." in run("erase").out


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
    assert stopped.err == (
        "armnesia: interrupted; run armnesia erase again with the same options, which does the rest\n"
    )
    assert "u1" in people(external)
    assert run("erase", "--purge").code == 0
    assert "u1" not in people(external)
    assert run("verify").code == 0


def test_nothing_is_erased_without_permission(run: Any, parquet: Path) -> None:
    assert run("init", "--actions", "A,B", "--external").code == 0
    assert run(*SOURCE).code == 0
    before = contents(parquet.parent)
    for command in (("erase",), ("forget", "--user", "u1", "--erase-at-source")):
        refused = run(*command)
        assert refused.code == 2
        assert "armnesia init --external --may-erase-at-source" in refused.err
        assert refused.err.count("\n") == 1
    assert contents(parquet.parent) == before
    run("forget", "--user", "u1")
    printed = run("erase", "--status").out
    assert "without that permission" in printed
    assert "run armnesia erase" not in printed


def test_without_the_permission_a_new_vault_may_have_it(run: Any, parquet: Path) -> None:
    run("init", "--actions", "A,B", "--external", "--user-type", "text")
    run(*SOURCE)
    run("forget", "--user", "u1")
    new, journal = ("--url", "sqlite:///new.db"), ("--forgotten-from", "vault.db.keys.journal")
    options = ("--actions", "A,B", "--external", "--may-erase-at-source", "--user-type", "text")
    assert run("init", *new, *options, *journal).code == 0
    assert "40 rows of forgotten people or records lie at the source" in run(*SOURCE, *new).out
    assert DELETED.search(run("erase", *new).out)
    assert "u1" not in people(parquet)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("erase", "--status", "--purge"), "--status changes nothing"),
        (("erase", "--dry-run", "--purge"), "--dry-run changes nothing"),
        (("erase", "--dry-run", "--status"), "changes nothing"),
        (("erase", "--ignore-retention"), "ignore_retention is about a purge"),
        (("forget", "--user", "u1", "--purge"), "go with --erase-at-source"),
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
    shutil.copy(external, "more.parquet")
    assert run("ingest", "more.parquet", *COLUMNS, *USER_COLUMN).code == 0
    deleted = ParquetEraser.deleted

    def full(eraser: ParquetEraser, people: Any) -> int:
        if eraser.source.location == str(external):
            raise OSError(28, "No space left on device", str(external))
        return deleted(eraser, people)

    with monkeypatch.context() as patched:
        patched.setattr(ParquetEraser, "deleted", full)
        failed = run("forget", "--user", "u1", "--erase-at-source")
    assert failed.code == 1
    assert "Forgotten: " in failed.out
    assert DELETED.search(failed.out)  # at the other source
    assert "No space left on device" in failed.err
    assert "the request itself is done: run armnesia erase to do the rest" in failed.err
    assert failed.err.count("\n") == 1
    assert run("erase").code == 0
    assert "u1" not in people(external)


def test_a_source_that_was_moved_is_erased_at_its_new_place(run: Any, external: Path) -> None:
    run("forget", "--user", "u1")
    external.rename(external.with_name("new.parquet"))
    assert run("restore", "--moved", str(external), "new.parquet").code == 0
    assert run("erase", "--purge").code == 0
    assert "u1" not in people(external.with_name("new.parquet"))


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
    told = "may have rows of forgotten people: run armnesia erase"
    assert told in run("erase", "--status").out
    assert "rows of forgotten people may be there" in run("status").out
    assert told not in run("erase").out
    assert "rows of forgotten people may be there" not in run("status").out


def test_a_purge_that_has_to_wait_is_announced(run: Any, folder: Path) -> None:
    rows = {"variant": ["A", "B"] * 4, "clicked": [1, 0] * 4, "person": [f"u{row}" for row in range(8)]}
    path = folder / ("a-folder-with-a-rather-long-name-" * 3)
    deltalake.write_deltalake(str(path), pa.table(rows))  # it keeps old files for a week
    assert run("init", "--actions", "A,B", "--external", "--may-erase-at-source").code == 0
    assert run("ingest", f"delta:{path}", *COLUMNS, *USER_COLUMN).code == 0
    done = run("forget", "--user", "u1", "--erase-at-source", "--purge")
    assert done.code == 0, done.err
    (line,) = [line for line in run("erase", "--status").out.splitlines() if "is not purged" in line]
    assert line.endswith("run armnesia erase --purge when the retention of the source is over")
    assert line in run("erase", "--purge").out
    assert run("erase", "--status", "--json").json["sources"][0]["to_purge"] is True
    assert "old files or versions may hold erased rows: armnesia erase --purge" in run("status").out
    assert "is not purged" not in run("erase", "--purge", "--ignore-retention").out
    assert "may hold erased rows" not in run("status").out


def test_a_vault_without_sources_says_so(run: Any, folder: Path) -> None:
    run("init", "--actions", "A,B", "--external", "--may-erase-at-source")
    assert run("erase", "--status").out == "No source is counted.\n"


def test_what_was_done_is_shown_where_a_source_failed(run: Any, external: Path) -> None:
    shutil.copy(external, "more.parquet")
    assert run("ingest", "more.parquet", *COLUMNS, *USER_COLUMN).code == 0
    assert run("forget", "--user", "u1").code == 0
    external.with_name("link.parquet").hardlink_to(external)
    done = run("erase", "--json")
    assert done.code == 1
    assert "hard links" in done.err
    assert "nothing was changed" not in done.err
    assert "u1" not in people(Path("more.parquet"))
