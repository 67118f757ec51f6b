"""A source that was moved keeps its number; one that was dropped without an erasure is said to have rows."""

import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.vault import Vault
from tests.databases import Place
from tests.promises.driver import Row
from tests.promises.lakes import Delta, Folder, Sqlite
from tests.promises.test_histories import PEOPLE, rows_of
from tests.vault.external_vaults import NAMED, PERMITTED, READING, counted, ingest, state_of, sums, sums_of
from tests.vault.raw_vaults import dumped

ANN, BOB = PEOPLE[:2]
ROWS = rows_of(1, 40)


@pytest.fixture
def log(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def vault(log: Folder, sqlite_place: Place) -> Iterator[Vault]:
    with counted(sqlite_place, log, ROWS) as vault:
        yield vault


def moved(log: Folder) -> str:
    """Move the log; its new place."""
    log.folder = log.folder.rename(log.folder.with_name("moved"))
    return log.source


def test_a_source_that_was_moved_keeps_its_number_and_its_certificates(vault: Vault, log: Folder) -> None:
    old = log.source
    vault.forget(users=[ANN])
    before, place, entries = sums(vault), moved(log), len(vault.ledger())
    with pytest.raises(VaultError, match=r"if it was moved, run armnesia rebuild --moved \S+ NEW ;"):
        vault.forget(users=[BOB])
    assert vault.rebuild(moved=(old, place)).to_dict()["moved"] == [old, place]
    assert [each.name for each in vault.status().sources] == [place]
    (entry,) = vault.ledger()[entries:]
    assert (entry.kind, entry.fields["moved"], entry.fields["dropped"]) == ("rebuild", [1], [])
    assert sums(vault) == before
    vault.erase_at_sources(purge=True)
    assert state_of(vault, ANN) == [(1, "purged")]
    assert vault.verify().problems == ()
    assert ingest(vault, log).rows == 0


@pytest.mark.parametrize("kind", [Delta, Sqlite])
def test_tables_are_moved_with_their_files(kind: Any, tmp_path: Path, sqlite_place: Place) -> None:
    log = kind(tmp_path)
    with counted(sqlite_place, log, ROWS) as vault:
        (old,) = vault.status().sources
        vault.forget(users=[BOB], erase_at_source=True)
        vault.forget(users=[ANN])
        log.folder.rename(tmp_path / "moved")
        place = old.name.replace(str(tmp_path / "lake"), str(tmp_path / "moved"))
        if kind is Delta:
            with pytest.raises(VaultError, match=r"if it was moved, run armnesia rebuild --moved "):
                vault.ingest(place, **NAMED)
        vault.rebuild(moved=(old.name, place))
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert state_of(vault, ANN) == state_of(vault, BOB) == [(1, "purged")]
        assert vault.verify().problems == ()


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


@pytest.mark.parametrize("what", ["folder", "file", "table"])
def test_what_was_moved_is_not_counted_a_second_time_at_its_new_place(
    what: str, tmp_path: Path, sqlite_place: Place
) -> None:
    log = Folder(tmp_path) if what == "folder" else Sqlite(tmp_path)
    with counted(sqlite_place, log, ROWS) as vault:
        (old,), before = vault.status().sources, dumped(vault)
        place, table = log.source, "clicks"
        if what == "folder":
            place = moved(log)  # type: ignore[arg-type]
        elif what == "file":
            (log.folder / "log.db").rename(log.folder / "new.db")
            place = place.replace("log.db", "new.db")
        else:
            table = "views"
            execute(log.folder / "log.db", "ALTER TABLE clicks RENAME TO views")
        new = place if what == "folder" else f"{place}#{table}"
        for dry_run in (True, False):
            with pytest.raises(VaultError) as refused:
                vault.ingest(
                    place, table=None if what == "folder" else table, **{**NAMED, "dry_run": dry_run}
                )
            assert f"run armnesia rebuild --moved {shlex.join([old.name, new])} ;" in str(refused.value)
            assert f"run armnesia rebuild --without {shlex.quote(old.name)}" in str(refused.value)
        assert dumped(vault) == before
        vault.rebuild(moved=(old.name, new))
        assert sums(vault) == sums_of(ROWS)
        assert vault.verify().problems == ()


def test_rows_that_were_moved_into_a_new_source_count_once(vault: Vault, log: Folder, tmp_path: Path) -> None:
    other = rows_of(2, 10)
    log.append(other)
    ingest(vault, log)
    archive = tmp_path / "archive"
    archive.mkdir()
    (log.folder / "0.parquet").rename(archive / "0.parquet")
    for dry_run in (True, False):
        done = vault.ingest(str(archive), **{**NAMED, "dry_run": dry_run})
        assert (done.rows, done.added) == (50, 0)
        assert str(done.recounted_because).startswith(f"source {log.source!r}: ")
    assert sums(vault) == sums_of([*ROWS, *other])
    assert vault.verify().problems == ()


def test_rows_that_were_moved_into_a_counted_source_count_once(
    vault: Vault, log: Folder, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    second = Folder(tmp_path / "second")
    other = rows_of(2, 10)
    second.append(other)
    ingest(vault, second)
    (log.folder / "0.parquet").rename(second.folder / "moved.parquet")
    before = dumped(vault)
    with pytest.raises(VaultError, match="run armnesia rebuild --without") as refused:
        ingest(vault, second)
    assert repr(log.source) in str(refused.value)
    assert dumped(vault) == before
    log.append(rows_of(3, 5))
    assert ingest(vault, second).recounted
    assert sums(vault) == sums_of([*ROWS, *other, *rows_of(3, 5)])
    assert vault.verify().problems == ()


def test_a_place_that_is_counted_already_is_not_where_another_source_was_moved_to(
    vault: Vault, log: Folder, tmp_path: Path
) -> None:
    old, second = log.source, tmp_path / "second"
    shutil.copytree(log.folder, second)
    vault.ingest(str(second), **NAMED)
    moved(log)
    with pytest.raises(VaultError, match=r"is counted already.* run armnesia rebuild --without") as refused:
        vault.rebuild(moved=(old, str(second)))
    assert str(refused.value).endswith(shlex.quote(old))
    vault.rebuild(without=[old])
    assert sums(vault) == sums_of(ROWS)


def test_a_place_with_other_rows_or_beside_the_old_one_is_refused(vault: Vault, log: Folder) -> None:
    old, head, folder = log.source, vault.head, log.folder.with_name("copy")
    shutil.copytree(log.folder, folder)
    with pytest.raises(VaultError, match="is still there as it was counted"):
        vault.rebuild(moved=(old, str(folder)))
    place = moved(log)
    log.append([Row("more", ANN, "A", 4)])
    more = "does not have rows that add up .* by now, run armnesia rebuild --without"
    for new, match in ((place, more), (f"{place}/no.parquet", "no.parquet")):
        with pytest.raises(ArmnesiaError, match=match):
            vault.rebuild(moved=(old, new))
    with pytest.raises(InvalidInputError, match="the vault has no source 'elsewhere'"):
        vault.rebuild(moved=("elsewhere", str(folder)))
    with pytest.raises(InvalidInputError, match="give it alone"):
        vault.rebuild(moved=(old, str(folder)), without=[old])
    assert vault.head == head
    vault.rebuild(moved=(old, str(folder)))
    assert sums(vault) == sums_of(ROWS)


def test_a_source_is_not_dropped_while_requests_wait_there(vault: Vault, log: Folder) -> None:
    vault.forget(users=[ANN])
    head = vault.head
    with pytest.raises(VaultError, match=r"1 answered request may have rows .* armnesia rebuild --moved"):
        vault.rebuild(without=[log.source])
    assert vault.head == head
    vault.erase_at_sources(purge=True)
    assert vault.rebuild(without=[log.source]).dropped == (log.source,)
    assert state_of(vault, ANN) == [(1, "purged")]
    assert vault.source_erasures().dropped == ()


def test_without_the_permission_nothing_waits(log: Folder, sqlite_place: Place) -> None:
    with counted(sqlite_place, log, ROWS, READING) as vault:
        vault.forget(users=[ANN])
        assert vault.rebuild(without=[log.source]).dropped


def test_a_copy_that_is_purged_says_nothing_of_the_log_that_was_dropped(vault: Vault, log: Folder) -> None:
    vault.forget(users=[ANN])
    shutil.copytree(log.folder, log.folder.with_name("copy"))
    vault.rebuild(without=[log.source], unerased=True)
    log.folder = log.folder.with_name("copy")
    ingest(vault, log)
    vault.forget(users=[BOB], erase_at_source=True, purge=True)
    assert state_of(vault, ANN) == [(1, "untouched")]
    claim = vault.certificate(users=[ANN]).source
    assert any("source 1 was dropped by ledger entry" in each for each in (claim or {})["remains"])
    assert state_of(vault, BOB) == [(2, "purged")]
    found = vault.source_erasures()
    assert [each.number for each in found.sources] == [2]
    assert [(each.number, each.requests) for each in found.dropped] == [(1, 1)]
    assert vault.verify().problems == ()


def test_a_backup_from_before_drops_the_source_again(
    vault: Vault, log: Folder, sqlite_place: Place, tmp_path: Path
) -> None:
    vault.back_up(tmp_path / "backup.db")
    vault.forget(users=[ANN])
    vault.rebuild(without=[log.source], unerased=True)
    vault.export(tmp_path / "export.json", for_restore=True)
    address = f"sqlite:///{tmp_path / 'backup.db'}"
    Vault.restore(address, tmp_path / "export.json", keys=sqlite_place.keys)
    with Vault.open(address, keys=sqlite_place.keys) as restored:
        assert restored.source_erasures().sources == ()
        assert state_of(restored, ANN) == [(1, "untouched")]
        ingest(restored, log)
        assert [each.number for each in restored.source_erasures().sources] == [2]
        assert restored.configuration.mode == PERMITTED.mode
