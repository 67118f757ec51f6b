"""An SQLite source whose last write was cut short: `erase` rolls it back, and everything else says so."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from armnesia.core.errors import InvalidLogError, UnreadableSourceError
from armnesia.logs import open_source
from armnesia.vault import Vault
from tests.databases import Place
from tests.logs.erasing.stores import SqliteStore, found_in, in_order, made_rows, name_of
from tests.vault.erasable_logs import OrderedSqliteStore, counted_vault, ingest

FIRST, SECOND = name_of(1), name_of(2)
CUT_SHORT = "cannot be read before a write that was cut short is rolled back from its journal"


@pytest.fixture
def log(tmp_path: Path) -> SqliteStore:
    log = OrderedSqliteStore(tmp_path / "log")
    log.append(made_rows(0) * 20)
    return log


def cut_short(path: Path, statement: str) -> None:
    """Leave the file and its journal as a process does that is killed while it runs a statement."""
    copies = {path: path.with_name("copy"), path.with_name(f"{path.name}-journal"): path.with_name("other")}
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("BEGIN")
        connection.execute(statement)
        for written, copy in copies.items():
            shutil.copy(written, copy)
        connection.execute("ROLLBACK")
    for written, copy in copies.items():
        copy.rename(written)


def delete_in_part(log: SqliteStore) -> None:
    before = log.path.read_bytes()
    cut_short(log.path, f"UPDATE clicks SET page = 'changed' WHERE user <> '{FIRST}'")
    assert log.path.read_bytes() != before


def assert_refused_with_advice(vault: Vault) -> None:
    with pytest.raises(UnreadableSourceError, match=CUT_SHORT) as refused:
        vault.forget(users=[SECOND])
    assert "run armnesia erase" in str(refused.value)
    assert "no longer exists" not in str(refused.value)
    with pytest.raises(UnreadableSourceError, match=CUT_SHORT):
        vault.preview_erasure()


@pytest.mark.parametrize("by_request", [False, True], ids=["erase", "forget"])
def test_an_erasure_rolls_back_what_was_cut_short(
    log: SqliteStore, sqlite_place: Place, by_request: bool
) -> None:
    rows = log.rows()
    with counted_vault(sqlite_place, log) as vault:
        vault.forget(users=[FIRST])
        delete_in_part(log)
        assert_refused_with_advice(vault)
        if by_request:
            vault.forget(users=[FIRST], erase_at_source=True, purge=True)
        else:
            vault.erase_at_sources(purge=True)
        source = vault.certificate(users=[FIRST]).source
        assert source is not None
        assert source["state"] == "purged"
        assert in_order(log.rows()) == in_order(row for row in rows if FIRST not in row)
        assert ingest(vault, log).added == 0
        assert vault.verify().problems == ()
    assert found_in(log.contents(), [FIRST.encode()]) == set()


def test_a_journal_that_cannot_be_rolled_back_is_named(
    log: SqliteStore, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted_vault(sqlite_place, log) as vault:
        vault.forget(users=[FIRST])
        delete_in_part(log)
        connect = sqlite3.connect

        def read_only(address: str, *given: object, **named: object) -> sqlite3.Connection:
            return connect(address.replace("mode=rw", "mode=ro"), *given, **named)  # type: ignore[call-overload,no-any-return]

        monkeypatch.setattr("armnesia.logs.tables.sqlite.sqlite3.connect", read_only)
        with pytest.raises(InvalidLogError, match="SQLite cannot roll it back \\(SQLITE_READ"):
            vault.erase_at_sources()


def test_reading_a_file_with_such_a_journal_says_what_to_run(log: SqliteStore) -> None:
    delete_in_part(log)
    with pytest.raises(InvalidLogError, match=CUT_SHORT) as refused:
        open_source(f"sqlite:///{log.path}", action="action", reward="reward", table="clicks")
    assert f"sqlite3 {log.path} 'PRAGMA quick_check'" in str(refused.value)
