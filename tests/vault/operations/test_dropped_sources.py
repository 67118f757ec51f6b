"""A source that was dropped without an erasure: no certificate says that its rows are gone."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from armnesia.vault import Configuration, LedgerCopy, Vault
from tests.databases import Place
from tests.logs.erasing.stores import Store, name_of
from tests.vault.erasable_logs import counted_vault, make_log

FIRST, SECOND = name_of(1), name_of(2)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    made = make_log("parquet", tmp_path / "log", monkeypatch)
    made.with_parts(2)
    return made


@pytest.fixture
def vault(log: Store, sqlite_place: Place) -> Iterator[Vault]:
    with counted_vault(sqlite_place, log) as vault:
        yield vault


def name_of_source(vault: Vault) -> str:
    (source,) = vault.status().sources
    return source.name


def move_to_a_copy(vault: Vault, log: Store) -> Path:
    """Count a copy in the place of the log, which stays where it is."""
    copy = log.folder.with_name("copy")
    shutil.copytree(log.folder, copy)
    vault.rebuild(without=[name_of_source(vault)], unerased=True)
    vault.ingest(str(copy / "*.parquet"), user="user")
    return copy


def states(vault: Vault, person: str) -> list[tuple[int, str]]:
    certificate = vault.certificate(users=[person])
    ledger = LedgerCopy.of((entry.sequence, entry.text, entry.hash) for entry in vault.ledger())
    assert certificate.check(vault.public_keys(), ledger=ledger).problems == ()
    assert certificate.source is not None
    return [(each["source"], each["state"]) for each in certificate.source["versions"]]


def assert_not_purged(vault: Vault) -> None:
    """The first request was answered while only the log was counted, which is as it was."""
    assert states(vault, FIRST) == [(1, "untouched")]
    claim = vault.certificate(users=[FIRST]).source
    assert claim is not None
    assert claim["state"] == "untouched"
    assert any("source 1 was dropped by ledger entry" in sentence for sentence in claim["remains"])
    assert vault.verify().problems == ()


def test_a_copy_that_is_purged_says_nothing_of_the_log_that_was_dropped(vault: Vault, log: Store) -> None:
    vault.forget(users=[FIRST])
    move_to_a_copy(vault, log)
    vault.forget(users=[SECOND], erase_at_source=True, purge=True)
    assert_not_purged(vault)
    assert states(vault, SECOND) == [(2, "purged")]
    assert FIRST in {row[0] for row in log.rows()}
    found = vault.source_erasures()
    assert [each.number for each in found.sources] == [2]
    assert [(each.number, each.requests) for each in found.dropped] == [(1, 1)]
    assert found.to_dict()["dropped"][0]["entry"] == found.dropped[0].entry


def test_what_was_purged_before_it_was_dropped_stays_purged(vault: Vault, log: Store) -> None:
    vault.forget(users=[FIRST], erase_at_source=True, purge=True)
    move_to_a_copy(vault, log)
    assert states(vault, FIRST) == [(1, "purged")]
    assert vault.source_erasures().dropped == ()


def test_the_number_is_not_used_again_after_a_rebuild_and_in_a_copy(
    vault: Vault, log: Store, tmp_path: Path
) -> None:
    vault.forget(users=[FIRST])
    vault.rebuild(without=[name_of_source(vault)], unerased=True)
    vault.rebuild()
    address, keys = f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "other.keys"
    vault.copy_to(address, keys=keys)
    with Vault.open(address, keys=keys) as copied:
        folder = log.folder.with_name("copy")
        shutil.copytree(log.folder, folder)
        copied.ingest(str(folder / "*.parquet"), user="user")
        copied.erase_at_sources(purge=True)
        assert_not_purged(copied)


def test_a_backup_from_before_drops_the_source_again(
    vault: Vault, log: Store, sqlite_place: Place, tmp_path: Path
) -> None:
    vault.back_up(tmp_path / "backup.db")
    vault.forget(users=[FIRST])
    move_to_a_copy(vault, log)
    vault.forget(users=[SECOND])
    vault.export(tmp_path / "export.json", for_restore=True)
    address = f"sqlite:///{tmp_path / 'backup.db'}"
    Vault.restore(address, tmp_path / "export.json", keys=sqlite_place.keys)
    with Vault.open(address, keys=sqlite_place.keys) as restored:
        assert restored.source_erasures().sources == ()  # it was dropped since, and is dropped again
        assert states(restored, FIRST) == [(1, "untouched")]
        assert states(restored, SECOND) == [(2, "untouched")]  # of which the backup knows nothing
        restored.ingest(str(log.folder / "*.parquet"), user="user")
        assert [each.number for each in restored.source_erasures().sources] == [3]


def test_a_vault_that_may_not_erase_says_it_too(log: Store, sqlite_place: Place) -> None:
    permitted = Configuration(actions=("A", "B"), mode="external")
    with counted_vault(sqlite_place, log, permitted) as vault:
        vault.forget(users=[FIRST])
        move_to_a_copy(vault, log)
        assert_not_purged(vault)
