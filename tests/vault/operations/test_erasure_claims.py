"""What certificates say of sources: never more than was looked at, in every column and by every run."""

import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import PartlyErasedError, UnfinishedError, VaultError
from armnesia.vault import Vault
from armnesia.vault.state.erasure_run import ErasureRun
from tests.databases import Place
from tests.logs.erasing.stores import DeltaStore, ParquetStore, made_rows, name_of
from tests.vault.erasable_logs import PERMITTED, assert_is_plain, ingest

pytestmark = pytest.mark.slow  # tests/promises has the whole way quickly

PERSON, OTHER = name_of(1), name_of(2)
COPIES = "copies of the files remain"


def claim(vault: Vault, person: str = PERSON) -> dict[str, object]:
    source = vault.certificate(users=[person]).source
    assert source is not None
    return dict(source)


def state(vault: Vault) -> str:
    (only,) = vault.source_erasures().sources
    return only.state


@pytest.fixture
def files(tmp_path: Path) -> ParquetStore:
    store = ParquetStore(tmp_path / "files")
    store.with_parts(1)
    return store


def write_with_ids(path: Path, users: list[str], ids: list[str], metadata: dict[str, str]) -> None:
    n = len(users)
    columns = {"user": users, "key": ids, "action": ["A", "B"] * (n // 2), "reward": [1.0] * n}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)


def test_a_late_record_does_not_make_the_names_of_people_purged(tmp_path: Path, sqlite_place: Place) -> None:
    """The second column, by which rows are found, says nothing of the first."""
    folder = tmp_path / "log"
    folder.mkdir()
    write_with_ids(folder / "0.parquet", ["alice", "bob"] * 2, ["1", "2", "3", "4"], {"made_for": "alice"})
    with sqlite_place.create(PERMITTED) as vault:

        def read() -> None:
            vault.ingest(str(folder), user="user", id="key")

        read()
        vault.forget(users=["alice"])
        vault.forget(records=["2"])
        vault.erase_at_sources()
        assert claim(vault, "alice")["state"] == "logically deleted"
        write_with_ids(folder / "1.parquet", ["carl", "dora"], ["2", "5"], {})
        read()
        vault.erase_at_sources(purge=True)
        assert claim(vault, "alice")["state"] == "logically deleted"
        assert b"alice" in (folder / "0.parquet").read_bytes()


def test_copies_of_files_are_always_said_to_remain(files: ParquetStore, sqlite_place: Place) -> None:
    backup = files.folder / "part-0.parquet.bak"
    shutil.copy(files.folder / "part-0.parquet", backup)
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, files)
        vault.forget(users=[PERSON], erase_at_source=True)
        assert state(vault) == "logically deleted"
        backup.unlink()
        vault.erase_at_sources(purge=True)
        assert claim(vault)["state"] == "purged"
        assert COPIES in str(claim(vault)["remains"])


def test_a_source_without_people_says_so_also_where_records_are_found(
    tmp_path: Path, sqlite_place: Place
) -> None:
    columns = {"key": ["1", "2"], "action": ["A", "B"], "reward": [1.0, 0.0]}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    with sqlite_place.create(PERMITTED) as vault:
        vault.ingest(str(tmp_path / "log.parquet"), id="key", no_user=True)
        vault.forget(records=["1"])
        vault.forget(users=["ann"], exactly=True)
        vault.erase_at_sources()
        assert "by which forgotten people could be found" in str(claim(vault, "ann")["remains"])


def test_an_interrupted_erasure_is_finished_although_rows_came_in(
    files: ParquetStore, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended between the exchange of the files and the ledger; then a new file has the person again."""
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, files)
        vault.forget(users=[PERSON])
        with monkeypatch.context() as patched:
            patched.setattr(ErasureRun, "_record", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                vault.erase_at_sources()
        assert PERSON not in {row[0] for row in files.rows()}
        files.append(made_rows(0))
        with pytest.raises(VaultError, match="armnesia erase"):
            vault.forget(users=[OTHER])
        vault.erase_at_sources()
        assert PERSON not in {row[0] for row in files.rows()}
        assert state(vault) == "purged"
        vault.forget(users=[OTHER])
        ingest(vault, files)
        assert_is_plain(vault, files.rows(), [PERSON, OTHER])


@pytest.mark.parametrize("fault", ["gone", "not writable"])
def test_a_source_that_fails_does_not_stop_others(
    fault: str, files: ParquetStore, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = ParquetStore(tmp_path / "others")
    others.append(made_rows(1))
    with sqlite_place.create(PERMITTED) as vault:
        for log in (files, others):
            ingest(vault, log)
        vault.forget(users=[PERSON])
        if fault == "gone":
            files.folder.rename(tmp_path / "elsewhere")
        else:

            def refuse(path: str) -> None:
                if path.startswith(str(files.folder)):
                    raise PermissionError(13, "Permission denied", path)

            monkeypatch.setattr("armnesia.logs.erasing.parquet_eraser.reserve", refuse)
        with pytest.raises(PartlyErasedError, match=r"files/\*\.parquet") as caught:
            vault.erase_at_sources()
        assert "nothing was changed" not in str(caught.value)
        assert [each.state for each in caught.value.erasures.sources] == ["untouched", "purged"]
        assert [each.number for each in caught.value.erasures.deleted] == [2]
        assert PERSON not in {row[0] for row in others.rows()}


def test_after_a_readmission_no_erasure_counts_for_earlier_requests(
    tmp_path: Path, sqlite_place: Place
) -> None:
    """The old file of a Delta table is looked into for the people who are still forgotten only."""
    table = DeltaStore(tmp_path / "table")
    table.with_parts(1)
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, table)
        vault.forget(users=[PERSON], erase_at_source=True)
        vault.forget(users=["nobody"], exactly=True)
        vault.readmit(users=[PERSON])
        ingest(vault, table)
        vault.erase_at_sources(purge=True)
        assert claim(vault)["state"] == "logically deleted"
        assert any(PERSON.encode() in content for content in table.contents())


def test_what_came_after_a_purge_is_purged_again(tmp_path: Path, sqlite_place: Place) -> None:
    """Rows came back, and another tool has deleted them: an old version and the log hold them."""
    table = DeltaStore(tmp_path / "table")
    table.with_parts(1)
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, table)
        vault.forget(users=[PERSON], erase_at_source=True, purge=True, ignore_retention=True)
        assert state(vault) == "purged"
        table.append([(PERSON, "A", 0.25, "page")])
        deltalake.DeltaTable(str(table.folder)).delete(f"\"user\" = '{PERSON}'")
        ingest(vault, table)
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert not any(PERSON.encode() in content for content in table.contents())


def test_a_copy_that_came_after_a_purge_is_told(files: ParquetStore, sqlite_place: Place) -> None:
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, files)
        before = (files.folder / "part-0.parquet").read_bytes()
        vault.forget(users=[PERSON], erase_at_source=True)
        assert state(vault) == "purged"
        (files.folder / "part-0.parquet.bak").write_bytes(before)
        vault.erase_at_sources(purge=True)
        assert state(vault) == "logically deleted"
        (files.folder / "part-0.parquet.bak").unlink()
        vault.erase_at_sources(purge=True)
        assert state(vault) == "purged"


def test_the_reasons_of_all_failures_are_in_one_sentence(
    files: ParquetStore, tmp_path: Path, sqlite_place: Place
) -> None:
    others = ParquetStore(tmp_path / "others")
    others.append(made_rows(1))
    with sqlite_place.create(PERMITTED) as vault:
        for log in (files, others):
            ingest(vault, log)
        vault.forget(users=[PERSON])
        for log in (files, others):
            log.folder.rename(tmp_path / f"{log.folder.name}-elsewhere")
        with pytest.raises(UnfinishedError, match=r"files/.*others/"):
            vault.erase_at_sources()


def test_a_preview_refuses_what_the_erasure_refuses(files: ParquetStore, sqlite_place: Place) -> None:
    with sqlite_place.create(PERMITTED) as vault:
        ingest(vault, files)
        vault.forget(users=[PERSON])
        assert vault.preview_erasure().sources[0].rows
        pq.write_table(pq.read_table(files.folder / "part-0.parquet"), files.folder / "part-0.parquet")
        for erase in (vault.preview_erasure, vault.erase_at_sources):
            with pytest.raises(VaultError, match="has changed"):
                erase()
