"""A source that was moved is not counted twice, and keeps its number."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.vault import Configuration, Vault
from tests.databases import Place
from tests.logs.erasing.stores import Store
from tests.vault.erasable_logs import counted_vault, make_log
from tests.vault.operations.test_dropped_sources import FIRST, SECOND, name_of_source, states


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    made = make_log("parquet", tmp_path / "log", monkeypatch)
    made.with_parts(2)
    return made


@pytest.fixture
def vault(log: Store, sqlite_place: Place) -> Iterator[Vault]:
    with counted_vault(sqlite_place, log) as vault:
        yield vault


def moved(log: Store) -> str:
    """Move the log, and name it at its new place."""
    folder = log.folder.with_name("moved")
    log.folder.rename(folder)
    return str(folder / "*.parquet")


@pytest.mark.parametrize("dry_run", [True, False])
def test_files_that_were_moved_are_not_counted_again(vault: Vault, log: Store, dry_run: bool) -> None:
    before, place = vault.n_records, moved(log)
    with pytest.raises(VaultError, match=r"has the name, size and time of change of one .*which was moved"):
        vault.ingest(place, user="user", dry_run=dry_run)
    assert vault.n_records == before


def test_nor_is_a_copy_beside_them_or_a_part_of_it(vault: Vault, log: Store) -> None:
    folder = log.folder.with_name("copy")
    shutil.copytree(log.folder, folder)
    first = min(folder.glob("*.parquet"))
    for place in (folder / "*.parquet", first):
        with pytest.raises(VaultError, match=r"a copy, whose rows would count twice"):
            vault.ingest(str(place), user="user")


def test_files_with_other_rows_that_look_alike_can_be_counted(vault: Vault, log: Store) -> None:
    before, place = vault.n_records, moved(log)
    assert vault.ingest(place, user="user", other_rows=True).added == before


def test_files_of_another_time_are_others(vault: Vault, log: Store) -> None:
    folder = log.folder.with_name("copy")
    shutil.copytree(log.folder, folder)
    for path in folder.glob("*.parquet"):
        os.utime(path, (1, 1))
    before = vault.n_records
    assert vault.ingest(str(folder / "*.parquet"), user="user").added == before


def test_a_source_that_was_moved_keeps_its_number_and_its_certificates(vault: Vault, log: Store) -> None:
    old = name_of_source(vault)
    vault.forget(users=[FIRST])
    before, place, entries = vault.n_records, moved(log), len(vault.ledger())
    with pytest.raises(VaultError, match=r"if it was moved, run armnesia rebuild --moved \S+ NEW ;"):
        vault.forget(users=[SECOND])
    done = vault.rebuild(moved=(old, place))
    assert done.to_dict()["moved"] == [old, place]
    assert name_of_source(vault) == place
    (entry,) = vault.ledger()[entries:]
    assert (entry.kind, entry.fields["moved"], entry.fields["dropped"]) == ("rebuild", [1], [])
    assert vault.n_records == before
    vault.erase_at_sources(purge=True)
    assert states(vault, FIRST) == [(1, "purged")]
    claim = vault.certificate(users=[FIRST]).source
    assert claim is not None
    assert not any("dropped" in sentence for sentence in claim["remains"])
    assert vault.verify().problems == ()
    assert vault.ingest(place, user="user").rows == 0


def test_what_came_at_the_new_place_is_counted_by_the_next_ingest(vault: Vault, log: Store) -> None:
    old, before, place = name_of_source(vault), vault.n_records, moved(log)
    first = min(Path(place).parent.glob("*.parquet"))
    shutil.copyfile(first, first.with_name("later.parquet"))
    vault.rebuild(moved=(old, place))
    assert vault.n_records == before
    assert vault.ingest(place, user="user").added > 0


def test_files_with_other_times_are_counted_and_must_add_up(vault: Vault, log: Store) -> None:
    old, place = name_of_source(vault), moved(log)
    files = sorted(Path(place).parent.glob("*.parquet"))
    for path in files:
        os.utime(path, (1, 1))
    vault.rebuild(moved=(old, place))
    elsewhere = files[0].parent.with_name("elsewhere")
    files[0].parent.rename(elsewhere)
    files[0].parent.mkdir()
    shutil.copyfile(elsewhere / files[0].name, files[0].parent / "half.parquet")
    head = vault.head
    with pytest.raises(VaultError, match=r"does not have the files that were counted, nor rows that add up"):
        vault.rebuild(moved=(place, str(files[0].parent / "half.parquet")))
    assert vault.head == head


def test_a_source_that_is_still_there_was_not_moved(vault: Vault, log: Store) -> None:
    folder = log.folder.with_name("copy")
    shutil.copytree(log.folder, folder)
    with pytest.raises(VaultError, match="is still there as it was counted"):
        vault.rebuild(moved=(name_of_source(vault), str(folder / "*.parquet")))


def test_a_move_is_refused_to_nowhere_from_nowhere_and_beside_other_changes(vault: Vault, log: Store) -> None:
    old, head, place = name_of_source(vault), vault.head, moved(log)
    with pytest.raises(InvalidInputError, match="the vault has no source 'elsewhere'"):
        vault.rebuild(moved=("elsewhere", place))
    with pytest.raises(ArmnesiaError, match=r"nowhere\.parquet"):
        vault.rebuild(moved=(old, str(log.folder / "nowhere.parquet")))
    with pytest.raises(InvalidInputError, match="give it alone"):
        vault.rebuild(moved=(old, place), without=[old])
    assert vault.head == head


@pytest.mark.parametrize("kind", ["delta", "sqlite"])
def test_tables_are_moved_with_their_files(
    kind: str, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(kind, tmp_path / "log", monkeypatch)
    log.with_parts(2)
    with counted_vault(sqlite_place, log) as vault:
        old = name_of_source(vault)
        vault.forget(users=[SECOND], erase_at_source=True)
        vault.forget(users=[FIRST])
        log.folder.rename(tmp_path / "moved")
        place = old.replace(str(log.folder), str(tmp_path / "moved"))
        if kind == "delta":
            with pytest.raises(VaultError, match=r"if it was moved, run armnesia rebuild --moved "):
                vault.ingest(place, user="user")
        vault.rebuild(moved=(old, place))
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert states(vault, FIRST) == states(vault, SECOND) == [(1, "purged")]
        assert vault.verify().problems == ()


def test_a_source_is_not_dropped_while_requests_wait_there(vault: Vault) -> None:
    name = name_of_source(vault)
    vault.forget(users=[FIRST])
    head = vault.head
    with pytest.raises(VaultError, match=r"1 answered request may have rows .* armnesia rebuild --moved"):
        vault.rebuild(without=[name])
    assert vault.head == head
    vault.erase_at_sources(purge=True)
    assert vault.rebuild(without=[name]).dropped == (name,)


def test_without_the_permission_nothing_waits(log: Store, sqlite_place: Place) -> None:
    configuration = Configuration(actions=("A", "B"), mode="external")
    with counted_vault(sqlite_place, log, configuration) as vault:
        vault.forget(users=[FIRST])
        assert vault.rebuild(without=[name_of_source(vault)]).dropped
