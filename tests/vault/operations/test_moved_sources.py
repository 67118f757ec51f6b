"""A source that was moved is not counted twice, and keeps its number."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Vault
from tests.databases import Place
from tests.logs.erasing.stores import Store
from tests.vault.erasable_logs import counted_vault, make_log


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
