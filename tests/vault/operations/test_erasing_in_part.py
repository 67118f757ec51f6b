"""Sources where rows or files cannot be removed: refused at first, and no other source waits for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from armnesia.core.errors import PartlyErasedError, UnfinishedErasureError, UnfinishedError, UnsupportedError
from armnesia.logs.erasing import delta_deletion, delta_ranges
from armnesia.logs.erasing.delta import DeltaEraser
from armnesia.vault import Vault
from tests.databases import Place
from tests.logs.erasing.stores import DeltaStore, IcebergStore, Store, arrow_rows, made_rows, name_of
from tests.vault.erasable_logs import PERMITTED, ingest, make_log
from tests.vault.raw_vaults import raising

pytestmark = pytest.mark.slow  # tests/promises has the whole way quickly

PERSON = name_of(1)


def set_property(lake: Store, name: str, text: str) -> None:
    assert isinstance(lake, IcebergStore)
    lake.table().transaction().set_properties({name: text}).commit_transaction()


def states(vault: Vault) -> list[str]:
    return [each.state for each in vault.source_erasures().sources]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    store = make_log("iceberg", tmp_path / "lake", monkeypatch)
    store.with_parts(1)
    return store


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    store = make_log("parquet", tmp_path / "files", monkeypatch)
    store.with_parts(1)
    return store


def test_a_table_that_cannot_be_purged_does_not_block_other_sources(
    lake: Store, files: Store, sqlite_place: Place
) -> None:
    set_property(lake, "gc.enabled", "false")
    with sqlite_place.create(PERMITTED) as vault:
        for log in (lake, files):
            ingest(vault, log)
        head = vault.head
        with pytest.raises(UnsupportedError, match=r"declares gc\.enabled=false"):
            vault.forget(users=[PERSON], erase_at_source=True, purge=True)
        assert vault.head == head, "nobody was forgotten"
        vault.forget(users=[PERSON])
        for _ in range(2):
            with pytest.raises((UnsupportedError, PartlyErasedError), match=r"declares gc\.enabled=false"):
                vault.erase_at_sources(purge=True)
            assert states(vault) == ["logically deleted", "purged"]
            assert PERSON not in {row[0] for row in (*lake.rows(), *files.rows())}
            assert not any(each.interrupted for each in vault.source_erasures().sources)
        assert vault.verify().problems == ()
        set_property(lake, "gc.enabled", "true")
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert states(vault) == ["purged", "purged"]


def test_all_sources_that_fail_are_told_of(
    lake: Store, files: Store, tmp_path: Path, sqlite_place: Place
) -> None:
    """A link came into the folder of a table after it was counted."""
    table = DeltaStore(tmp_path / "table")
    table.with_parts(1)
    with sqlite_place.create(PERMITTED) as vault:
        for log in (lake, table, files):
            ingest(vault, log)
        set_property(lake, "gc.enabled", "false")
        (table.folder / "link").symlink_to(tmp_path)
        vault.ingest("iceberg:lake.logs.clicks", user="user")
        vault.forget(users=[PERSON])
        with pytest.raises(UnfinishedError, match=r"gc\.enabled=false.*symbolic links"):
            vault.erase_at_sources(purge=True)
        assert states(vault) == ["logically deleted", "untouched", "purged"]
        assert PERSON in {row[0] for row in table.rows()}


def test_a_request_that_erases_in_part_says_what_it_has_done(
    files: Store, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an erasure on its own does."""
    table = DeltaStore(tmp_path / "table")
    table.with_parts(1)
    with sqlite_place.create(PERMITTED) as vault:
        for log in (table, files):
            ingest(vault, log)
        monkeypatch.setattr(DeltaEraser, "apply", raising(UnsupportedError("not today; nothing was changed")))
        with pytest.raises(PartlyErasedError, match=r"not today; .*the request itself is done") as raised:
            vault.forget(users=[PERSON], erase_at_source=True)
        assert "nothing was changed" not in str(raised.value)
        assert [each.number for each in raised.value.erasures.deleted] == [2]
        assert PERSON not in {row[0] for row in files.rows()}


def test_a_retention_that_no_clock_reaches_is_no_failure(tmp_path: Path, sqlite_place: Place) -> None:
    table = DeltaStore(tmp_path / "table")
    retention = {"delta.deletedFileRetentionDuration": "interval 1000000 weeks"}
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), configuration=retention)
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, table)
        vault.forget(users=[PERSON], erase_at_source=True, purge=True)
        assert states(vault) == ["logically deleted"]
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert states(vault) == ["purged"]
        assert vault.verify().problems == ()


def test_a_large_table_whose_erasure_ended_between_two_commits_is_finished(
    tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one part are gone then, and the vault goes on with the plan that it has stored."""
    store = DeltaStore(tmp_path / "log")
    for part in range(3):
        rows = made_rows(part)
        times = pa.array([1000 * part + place for place in range(len(rows))])
        table = arrow_rows(rows).append_column("time", times)
        deltalake.write_deltalake(str(store.folder), table, mode="append")
    others = len([row for row in store.rows() if row[0] != PERSON])
    monkeypatch.setattr(delta_ranges, "MOST_BYTES", 1)
    merges = delta_deletion.RowDeletion.merges
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, store)
        vault.forget(users=[PERSON])
        with monkeypatch.context() as patched:
            patched.setattr(
                delta_deletion.RowDeletion, "merges", lambda *given: stopping_after_one(merges(*given))
            )
            with pytest.raises(UnfinishedError, match="is not finished"):
                vault.erase_at_sources()
        assert others < len(store.rows()) < 3 * len(made_rows(0)), "one part was deleted"
        with pytest.raises(UnfinishedErasureError, match="armnesia erase finishes it"):
            vault.forget(users=[name_of(2)])
        vault.erase_at_sources()
        assert len(store.rows()) == others
        assert states(vault) == ["logically deleted"]
        (entry,) = (each.fields for each in vault.ledger() if each.kind == "erase_source")
        assert (entry["before"], entry["after"]) == (2, 5)
        assert vault.verify().problems == ()


def stopping_after_one(steps: Iterator[Any]) -> Iterator[Any]:
    yield next(steps)
    raise RuntimeError("stopped")
