"""Erasing at the source: the rows are gone there, the statistics stay, and the certificate says how far."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError, VaultError
from armnesia.logs.erasing import FileSwap, file_swaps
from armnesia.logs.erasing.delta_files import DeltaFolder
from armnesia.logs.erasing.file_swaps import put_in_place
from armnesia.vault import Certificate, Configuration, LedgerCopy, Vault
from armnesia.vault.ledger.certificate import CertificateDraft
from tests.databases import Place
from tests.logs.erasing.stores import IcebergStore, Row, Store, in_order, made_rows, name_of
from tests.logs.files.old_statistics import write_old_statistics
from tests.logs.lakes.tables import add_actions, edit_commit
from tests.vault.erasable_logs import (
    KINDS,
    PERMITTED,
    assert_is_plain,
    compact,
    counted_vault,
    ingest,
    make_log,
    traces,
)
from tests.vault.raw_vaults import dumped

pytestmark = pytest.mark.slow  # the promise tests go the main ways quickly

FIRST, SECOND, THIRD = (name_of(person) for person in (1, 2, 3))


@pytest.fixture(params=KINDS)
def log(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A log of every kind."""
    return make_log(request.param, tmp_path / "log", monkeypatch)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return make_log("parquet", tmp_path / "log", monkeypatch)


@pytest.fixture
def delta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return make_log("delta", tmp_path / "log", monkeypatch)


@pytest.fixture
def vault(files: Store, sqlite_place: Place) -> Iterator[Vault]:
    """A vault that has counted two Parquet files."""
    files.with_parts(2)
    with counted_vault(sqlite_place, files) as vault:
        yield vault


def of(people: tuple[str, ...], rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[0] in people]


def without(people: tuple[str, ...], rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[0] not in people]


def state_of(vault: Vault, *people: str) -> str:
    source = vault.certificate(users=people).source
    assert source is not None
    return str(source["state"])


def ledger_of(vault: Vault) -> LedgerCopy:
    return LedgerCopy.of((entry.sequence, entry.text, entry.hash) for entry in vault.ledger())


def assert_valid(vault: Vault, certificate: Certificate) -> None:
    check = certificate.check(vault.public_keys(), ledger=ledger_of(vault))
    assert check.problems == ()


@pytest.mark.slow  # tests/promises has the whole way quickly
def test_a_log_is_erased_appended_to_compacted_and_purged(log: Store, sqlite_place: Place) -> None:
    """The whole life of a log, against the plain model."""
    rows = log.with_parts(2)
    with counted_vault(sqlite_place, log) as vault:
        done = vault.forget(users=[FIRST], erase_at_source=True)
        assert_is_plain(vault, rows, [FIRST])
        assert in_order(log.rows()) == in_order(without((FIRST,), rows))
        assert done.certificate.source == vault.certificate(users=[FIRST]).source
        assert state_of(vault, FIRST) in ("logically deleted", "purged")
        assert_valid(vault, done.certificate)
        assert "rows of forgotten people" not in " ".join(vault.verify().notes)

        log.append(made_rows(2))
        rows += made_rows(2)
        assert ingest(vault, log).recounted is False
        if compact(log):
            assert ingest(vault, log).added == 0
        assert_is_plain(vault, rows, [FIRST])

        assert state_of_forgotten(vault, SECOND) == "untouched"
        assert vault.source_erasures().sources[0].pending == 1
        found = vault.erase_at_sources(purge=True, ignore_retention=True)
        gone = (FIRST, SECOND)
        assert_is_plain(vault, rows, gone)
        assert in_order(log.rows()) == in_order(without(gone, rows))
        assert (found.sources[0].state, found.sources[0].pending) == ("purged", 0)
        for person in gone:
            certificate = vault.certificate(users=[person])
            assert state_of(vault, person) == "purged"
            assert_valid(vault, certificate)
        assert traces(log, sqlite_place, of(gone, rows)) == set()
        assert found.sources[0].remains
        assert ingest(vault, log).recounted is False


def state_of_forgotten(vault: Vault, person: str) -> str:
    vault.forget(users=[person])
    return state_of(vault, person)


@pytest.mark.slow  # tests/promises has the whole way quickly
def test_a_log_with_rows_that_are_gone_is_not_touched_again(log: Store, sqlite_place: Place) -> None:
    log.with_parts(1)
    with counted_vault(sqlite_place, log) as vault:
        vault.forget(users=[FIRST], erase_at_source=True, purge=True, ignore_retention=True)
        before, rows = vault.head, log.rows()
        for _ in range(2):
            assert vault.erase_at_sources(purge=True, ignore_retention=True).sources[0].state == "purged"
        assert (vault.head, log.rows()) == (before, rows)


def test_a_retention_is_respected_unless_it_is_ignored(delta: Store, sqlite_place: Place) -> None:
    rows = delta.with_parts(2)
    with counted_vault(sqlite_place, delta) as vault:
        vault.forget(users=[FIRST], erase_at_source=True, purge=True)
        (source,) = vault.source_erasures().sources
        assert (source.state, source.before, source.after) == ("logically deleted", 1, 2)
        assert source.due is not None
        assert any("after their retention" in sentence for sentence in source.remains)
        assert FIRST.encode() in traces(delta, sqlite_place, of((FIRST,), rows))
        head = vault.head
        vault.erase_at_sources(purge=True)
        assert vault.head == head, "the ledger does not say the same twice"
        certificate = vault.certificate(users=[FIRST])
        assert certificate.source is not None
        assert certificate.source["versions"][0]["after"] == 2
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert state_of(vault, FIRST) == "purged"
        assert_valid(vault, vault.certificate(users=[FIRST]))
        assert certificate.verify(vault.public_keys(), ledger=ledger_of(vault)) == [], "it was true then"
        assert_is_plain(vault, rows, [FIRST])
        assert traces(delta, sqlite_place, of((FIRST,), rows)) == set()


def test_an_erasure_tells_nothing_of_people_who_were_forgotten_later(
    delta: Store, sqlite_place: Place
) -> None:
    """Their rows were deleted by another tool, in files that are younger than the erasure."""
    delta.with_parts(1)
    table = deltalake.DeltaTable(str(delta.folder))
    with counted_vault(sqlite_place, delta) as vault:
        vault.forget(users=[FIRST], erase_at_source=True)
        table.update_incremental()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        assert vault.erase_at_sources(purge=True).sources[0].state == "purged"
        known = set(delta.folder.glob("*.parquet"))
        delta.append([("latecomer", "A", 0.5, "page-1"), (THIRD, "B", 0.25, "page-1")])
        (young,) = set(delta.folder.glob("*.parquet")) - known
        os.utime(young, (young.stat().st_mtime + 60,) * 2)
        ingest(vault, delta)
        vault.forget(users=["latecomer"])
        table.update_incremental()
        table.delete("user = 'latecomer'")
        ingest(vault, delta)
        assert vault.erase_at_sources().sources[0].state == "logically deleted"
        assert state_of(vault, "latecomer") == "logically deleted"
        assert vault.erase_at_sources(purge=True).sources[0].state == "logically deleted"
        assert vault.erase_at_sources(purge=True, ignore_retention=True).sources[0].state == "purged"
        assert state_of(vault, "latecomer") == "purged"
        assert not young.exists()


@pytest.mark.slow  # quick for the table alone, in tests/logs/erasing/test_lakes.py
def test_a_purge_of_an_iceberg_table_that_was_interrupted_is_finished(
    tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the snapshots expired; then the table's writer went on, and its metadata forgot them."""
    log = make_log("iceberg", tmp_path / "log", monkeypatch)
    rows = log.with_parts(1)
    with counted_vault(sqlite_place, log) as vault:
        vault.forget(users=[FIRST], erase_at_source=True)
        with monkeypatch.context() as patched:
            patched.setattr("armnesia.logs.erasing.iceberg.TableFiles.remove", interrupt)
            with pytest.raises(KeyboardInterrupt):
                vault.erase_at_sources(purge=True, ignore_retention=True)
        assert isinstance(log, IcebergStore)
        with log.table().transaction() as transaction:
            transaction.set_properties({"write.metadata.previous-versions-max": "1"})
        for part in (1, 2, 3):
            log.append(without((FIRST,), made_rows(part)))
        ingest(vault, log)
        assert vault.erase_at_sources().sources[0].state == "logically deleted"
        assert vault.erase_at_sources(purge=True, ignore_retention=True).sources[0].state == "purged"
        assert traces(log, sqlite_place, of((FIRST,), rows)) == set()


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_single_records_are_erased_by_their_ids(tmp_path: Path, sqlite_place: Place) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    table = pq.ParquetFile(_with_ids(folder / "a.parquet"))
    n_rows = table.metadata.num_rows
    with sqlite_place.create(PERMITTED) as vault:
        vault.ingest(str(folder / "*.parquet"), user="user", id="id")
        vault.forget(users=["ann"])
        done = vault.forget(records=["event-003"], erase_at_source=True)
        assert done.certificate.source is not None
        assert done.certificate.source["state"] == "purged"
        left = pq.ParquetFile(folder / "a.parquet").read().to_pylist()
        assert len(left) == n_rows - 1 - 3
        assert not [row for row in left if row["user"] == "ann" or row["id"] == "event-003"]
        assert vault.verify().problems == ()
        kinds = [entry.kind for entry in vault.ledger()]
        assert kinds.count("erase_source") == 1, "one entry for people and records"


def _with_ids(path: Path) -> Path:
    import pyarrow as pa

    users = ["ann", "bob", "cleo", "bob", "ann", "dan", "ann", "dan"]
    columns = {
        "id": [f"event-{row:03}" for row in range(8)],
        "user": users,
        "action": ["A", "B"] * 4,
        "reward": [0.25, 0.5, 0.75, 1.0] * 2,
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_people_who_were_readmitted_are_not_erased(vault: Vault, files: Store) -> None:
    rows = files.rows()
    vault.forget(users=[FIRST])
    vault.forget(users=[SECOND])
    vault.readmit(users=[FIRST])
    with pytest.raises(VaultError, match=r"people were readmitted.*run armnesia ingest"):
        vault.erase_at_sources()
    ingest(vault, files)
    vault.erase_at_sources()
    assert in_order(files.rows()) == in_order(without((SECOND,), rows))
    assert state_of(vault, FIRST) == "untouched", "the certificate of a request that was not erased"
    assert_is_plain(vault, rows, [SECOND])


def test_a_request_that_found_nothing_has_a_source_too(vault: Vault) -> None:
    done = vault.forget(users=["nobody of this name"], exactly=True)
    assert done.certificate.source is not None
    assert done.certificate.source["state"] == "untouched"
    vault.erase_at_sources()
    assert state_of(vault, "nobody of this name") == "purged"
    assert_valid(vault, vault.certificate(users=["nobody of this name"]))


def test_the_same_request_again_erases_what_is_due(vault: Vault, files: Store) -> None:
    vault.forget(users=[FIRST])
    done = vault.forget(users=[FIRST], erase_at_source=True)
    assert done.repeated
    assert done.certificate.source is not None
    assert done.certificate.source["state"] == "purged"
    assert not of((FIRST,), files.rows())


def test_rows_that_come_back_are_erased_again(vault: Vault, files: Store) -> None:
    vault.forget(users=[FIRST], erase_at_source=True)
    files.append([(FIRST, "A", 0.5, "page")])
    vault.erase_at_sources()
    assert not of((FIRST,), files.rows())
    assert vault.verify().problems == ()


def test_nothing_is_touched_without_permission(files: Store, sqlite_place: Place) -> None:
    rows = files.with_parts(1)
    with counted_vault(sqlite_place, files, Configuration(actions=("A", "B"), mode="external")) as vault:
        head = vault.head
        with pytest.raises(VaultError, match=r"may not erase.*--may-erase-at-source"):
            vault.forget(users=[FIRST], erase_at_source=True)
        assert vault.head == head, "nobody was forgotten"
        vault.forget(users=[FIRST])
        with pytest.raises(VaultError, match="may not erase"):
            vault.erase_at_sources()
        assert files.rows() == rows
        assert state_of(vault, FIRST) == "untouched"
        assert vault.source_erasures().permitted is False


def test_nothing_is_touched_without_the_flag(vault: Vault, files: Store) -> None:
    before = {path: path.stat() for path in files.folder.iterdir()}
    vault.forget(users=[FIRST])
    assert {path: path.stat() for path in files.folder.iterdir()} == before
    with pytest.raises(InvalidInputError, match="give erase_at_source"):
        vault.forget(users=[SECOND], purge=True)
    with pytest.raises(InvalidInputError, match="ignore_retention is about a purge"):
        vault.erase_at_sources(ignore_retention=True)


def test_options_that_do_not_agree_are_refused_before_anybody_is_forgotten(
    vault: Vault, files: Store
) -> None:
    before, n_records, rows = vault.head, vault.n_records, files.rows()
    with pytest.raises(InvalidInputError, match="ignore_retention is about a purge"):
        vault.forget(users=[FIRST], erase_at_source=True, ignore_retention=True)
    assert (vault.head, vault.n_records, files.rows()) == (before, n_records, rows)


def test_a_managed_vault_has_no_such_permission(sqlite_place: Place) -> None:
    with pytest.raises(InvalidInputError, match="needs an external vault"):
        Configuration(actions=("A", "B"), may_erase_at_source=True)
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest({"action": ["A"], "reward": [1], "user": ["ann"]}, user="user")
        done = vault.forget(users=["ann"])
        assert "source" not in done.certificate.body
        assert "sources" not in done.certificate.body["entry"]
        assert "source" not in done.to_dict()
        with pytest.raises(VaultError, match="may not erase"):
            vault.erase_at_sources()
        assert vault.source_erasures().sources == ()


def test_sources_that_cannot_be_erased_are_refused_before_anybody_is_forgotten(
    tmp_path: Path, sqlite_place: Place
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("action,reward,user\nA,1,ann\nB,0,bob\n", "utf-8")
    with sqlite_place.create(PERMITTED) as vault:
        with pytest.warns(UserWarning, match="but cannot at this one: rows of CSV"):
            vault.ingest(str(path), user="user")
        head = vault.head
        with pytest.raises(UnsupportedError, match="rows of CSV files cannot be erased"):
            vault.forget(users=["ann"], erase_at_source=True)
        assert vault.head == head


def test_a_table_that_a_purge_would_damage_is_refused_before_anybody_is_forgotten(
    delta: Store, sqlite_place: Place
) -> None:
    delta.with_parts(1)

    def change(actions: list[dict[str, Any]]) -> None:
        for added in add_actions(actions):
            added["path"] = f"file://{delta.folder}/{added['path']}"

    edit_commit(delta.folder, 0, change)
    with pytest.warns(UserWarning, match="may erase rows at its sources, but cannot at this one"):
        vault = counted_vault(sqlite_place, delta)
    with vault:
        head = vault.head
        with pytest.raises(UnsupportedError, match="its log names files by absolute paths"):
            vault.forget(users=[FIRST], erase_at_source=True, purge=True, ignore_retention=True)
        assert vault.head == head
    assert len(list(delta.folder.glob("*.parquet"))) == 1


def test_all_rows_in_files_with_old_statistics_are_forgotten(tmp_path: Path, sqlite_place: Place) -> None:
    """Also of a person of whom rows are found elsewhere, so that no scan confirms their absence."""
    folder = tmp_path / "log"
    folder.mkdir()
    rows = pa.table({"action": ["A", "B", "A"], "reward": [1, 0, 1], "user": ["zoe", "ömer", "ann"]})
    pq.write_table(rows, folder / "new.parquet")
    write_old_statistics(folder / "old.parquet", rows)
    with sqlite_place.create(PERMITTED) as vault:
        vault.ingest(str(folder), user="user")
        assert vault.forget(users=["ömer"], erase_at_source=True).counts == {"A": 0, "B": 2}
        assert state_of(vault, "ömer") == "purged"
        assert vault.verify().holds
    assert all(pq.read_table(path)["user"].to_pylist() == ["zoe", "ann"] for path in folder.iterdir())


def test_a_source_that_has_changed_is_refused(vault: Vault, files: Store) -> None:
    rows = files.rows()
    vault.forget(users=[FIRST])
    path = files.folder / "part-0.parquet"
    pq.write_table(pq.ParquetFile(path).read().slice(7), path)
    changed = files.rows()
    with pytest.raises(VaultError, match=r"has changed since it was counted.*run armnesia ingest"):
        vault.erase_at_sources()
    assert files.rows() == changed
    ingest(vault, files)
    vault.erase_at_sources()
    assert_is_plain(vault, [*rows[7:400], *rows[400:]], [FIRST])


def test_rows_of_a_lake_that_are_not_counted_are_refused(delta: Store, sqlite_place: Place) -> None:
    rows = delta.with_parts(1)
    with counted_vault(sqlite_place, delta) as vault:
        vault.forget(users=[FIRST])
        delta.append(made_rows(1))
        head = vault.head
        with pytest.raises(VaultError, match=r"not counted yet.*run armnesia ingest"):
            vault.erase_at_sources()
        with pytest.raises(VaultError, match=r"not counted yet.*run armnesia ingest"):
            vault.forget(users=[SECOND], erase_at_source=True)
        assert vault.head == head, "nobody was forgotten"
        ingest(vault, delta)
        vault.erase_at_sources()
        assert_is_plain(vault, [*rows, *made_rows(1)], [FIRST])


def test_files_that_are_not_counted_stay_so(vault: Vault, files: Store) -> None:
    rows = files.rows()
    vault.forget(users=[FIRST])
    files.append(made_rows(5))
    vault.erase_at_sources()
    assert not of((FIRST,), files.rows())
    assert_is_plain(vault, rows, [FIRST])
    ingest(vault, files)
    assert_is_plain(vault, [*rows, *made_rows(5)], [FIRST])


def test_the_last_row_of_a_table_may_be_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_place: Place
) -> None:
    """By whose number it is known which rows are new."""
    log = make_log("sqlite", tmp_path / "log", monkeypatch)
    rows = [*made_rows(0), ("ann of the last row", "A", 0.125, "page")]
    log.append(rows)
    with counted_vault(sqlite_place, log) as vault:
        vault.forget(users=["ann of the last row"], erase_at_source=True)
        assert vault.verify().problems == ()
        log.append(made_rows(1))
        assert ingest(vault, log).recounted is False
        assert_is_plain(vault, [*rows, *made_rows(1)], ["ann of the last row"])


def test_changes_by_others_between_plan_and_apply(
    vault: Vault, files: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused with what to do; after that, the erasure is planned again."""
    rows = files.rows()
    vault.forget(users=[FIRST])
    path = files.folder / "part-1.parquet"
    with monkeypatch.context() as patched:
        patched.setattr("armnesia.logs.erasing.parquet_eraser.check_swap", _changing(path))
        with pytest.raises(VaultError, match=r"has changed since.*run armnesia ingest.*run armnesia erase"):
            vault.erase_at_sources()
    assert vault.source_erasures().sources[0].interrupted
    assert state_of(vault, FIRST) == "untouched"
    assert len(files.rows()) == len(rows) - 1
    with pytest.raises(VaultError, match="is not finished"):
        vault.erase_at_sources()
    ingest(vault, files)
    vault.erase_at_sources()
    assert_is_plain(vault, without((FIRST,), [*rows[:400], *rows[401:]]), [])
    assert state_of(vault, FIRST) == "purged"
    assert not list(files.folder.glob(".armnesia-*"))


def _changing(path: Path) -> Any:
    """What looks at files before they are replaced; it lets another write to one of them first."""
    original = file_swaps.check_swap
    once = [True]

    def look(swap: Any) -> None:
        if once and once.pop():
            pq.write_table(pq.ParquetFile(path).read().slice(1), path)
        original(swap)

    return look


def test_rows_that_others_append_to_a_lake_meanwhile_are_noticed(
    delta: Store, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = delta.with_parts(1)
    with counted_vault(sqlite_place, delta) as vault:
        vault.forget(users=[FIRST])
        from armnesia.logs.erasing.delta import DeltaEraser

        apply = DeltaEraser.apply

        def appending(self: Any, plan: Any, people: Any) -> Any:
            delta.append(made_rows(1))
            return apply(self, plan, people)

        with monkeypatch.context() as patched:
            patched.setattr(DeltaEraser, "apply", appending)
            with pytest.raises(VaultError, match=r"other rows than were counted.*run armnesia ingest"):
                vault.erase_at_sources()
        with pytest.raises(VaultError, match="armnesia erase finishes it"):
            vault.forget(users=[SECOND])
        ingest(vault, delta)
        vault.erase_at_sources()
        assert_is_plain(vault, [*rows, *made_rows(1)], [FIRST])
        (source,) = vault.source_erasures().sources
        assert (source.state, source.after, source.interrupted) == ("logically deleted", 2, False)


def test_an_eraser_that_leaves_a_file_is_caught(
    vault: Vault, files: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: one of the files does not take its place."""
    vault.forget(users=[FIRST])

    def forgetful(swap: FileSwap) -> None:
        if not swap.path.endswith("part-1.parquet"):
            put_in_place(swap)

    with monkeypatch.context() as patched:
        patched.setattr("armnesia.logs.erasing.parquet_eraser.put_in_place", forgetful)
        with pytest.raises(VaultError, match="still has rows of the people to be erased"):
            vault.erase_at_sources(purge=True)
    assert state_of(vault, FIRST) == "untouched"
    vault.erase_at_sources()
    assert state_of(vault, FIRST) == "purged"
    assert not of((FIRST,), files.rows())


def test_a_purge_that_leaves_a_file_is_caught(
    delta: Store, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: old files are not removed."""
    delta.with_parts(1)
    with counted_vault(sqlite_place, delta) as vault:
        with monkeypatch.context() as patched:
            patched.setattr(DeltaFolder, "remove_data_files", lambda self, *, until: None)
            vault.forget(users=[FIRST], erase_at_source=True, purge=True, ignore_retention=True)
        assert state_of(vault, FIRST) == "logically deleted"
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert state_of(vault, FIRST) == "purged"


def test_an_eraser_that_deletes_too_much_is_caught(
    delta: Store, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault that the eraser's own check does not see: the vault counts the other rows again."""
    delta.with_parts(1)
    with counted_vault(sqlite_place, delta) as vault:
        monkeypatch.setattr("armnesia.logs.erasing.lake_eraser.other_rows_stayed", lambda *_: True)
        monkeypatch.setattr("armnesia.logs.erasing.delta_deletion.values_of", lambda *_: [FIRST, SECOND])
        with pytest.raises(VaultError, match=r"other rows than were counted.*the request itself is done"):
            vault.forget(users=[FIRST], erase_at_source=True)
        assert state_of(vault, FIRST) == "untouched"


def test_what_the_ledger_and_the_vault_say_names_nobody(delta: Store, sqlite_place: Place) -> None:
    rows = delta.with_parts(2)
    with counted_vault(sqlite_place, delta) as vault:
        vault.forget(users=[FIRST], erase_at_source=True, purge=True, ignore_retention=True)
        entries = [entry.fields for entry in vault.ledger() if entry.kind == "erase_source"]
        own = {"source", "state", "before", "after", "remains", "due", "through"}
        common = {"schema", "sequence", "previous", "vault", "kind", "time", "code"}
        assert [set(entry) for entry in entries] == [own | common] * 2
        assert [entry["state"] for entry in entries] == ["logically deleted", "purged"]
        assert str(delta.folder) not in json.dumps([dict(entry) for entry in entries])
        stored = repr(dumped(vault))
        assert FIRST not in stored
        assert not [row for row in of((FIRST,), rows) if repr(row[2]) in stored]


def test_a_certificate_that_says_more_than_the_ledger_is_refused(vault: Vault) -> None:
    """Whoever has the signing key can sign another state; the ledger refutes it."""
    vault.forget(users=[FIRST])
    untouched = vault.certificate(users=[FIRST])
    vault.erase_at_sources()
    purged = vault.certificate(users=[FIRST])
    ledger, keys = ledger_of(vault), vault.public_keys()
    assert purged.check(keys, ledger=ledger).problems == ()
    assert untouched.check(keys, ledger=ledger).problems == ()
    (note,) = purged.check(keys).notes
    assert "can be checked with the ledger only" in note
    keyring = vault._connection.all_keys
    claims = [
        {**purged.body["source"], "remains": []},
        {"state": "untouched", "versions": untouched.body["source"]["versions"], "remains": []},
    ]
    for claim in claims:
        forged = purged.draft.issue(keyring, head=vault.head, erasure="complete", source=claim)
        assert forged.check(keys, ledger=ledger).problems == (
            "what the certificate says of the source is not what the ledger says",
        )
        assert forged.check(keys).problems == ()


def test_certificates_need_their_source(vault: Vault) -> None:
    done = vault.forget(users=[FIRST])
    keyring, keys = vault._connection.all_keys, vault.public_keys()
    draft, source = done.certificate.draft, dict(done.certificate.body["source"])

    def problems(draft: CertificateDraft, source: Any) -> tuple[str, ...]:
        issued = draft.issue(keyring, head=vault.head, erasure="complete", source=source)
        return issued.check(keys).problems

    assert problems(draft, source) == ()
    assert "must have source" in problems(draft, None)[0]
    assert "must have source" in problems(draft, {**source, "more": 1})[0]
    version = source["versions"][0]
    purged = {**source, "state": "purged", "versions": [{**version, "state": "purged"}]}
    assert "must name the later ledger entry" in problems(draft, purged)[0]
    assert "weakest state" in problems(draft, {**source, "state": "purged"})[0]
    assert "not about the sources" in problems(draft, {**source, "versions": []})[0]


def test_finish_signs_certificates_again_that_say_too_little(vault: Vault, tmp_path: Path) -> None:
    vault.forget(users=[FIRST])
    before = vault.certificate(users=[FIRST])
    assert vault.finish().reissued == ()
    vault.erase_at_sources()
    done = vault.finish(folder=tmp_path / "again")
    assert done.reissued == (before.body["sequence"],)
    (path,) = (tmp_path / "again").iterdir()
    source = Certificate.read(path).source
    assert source is not None
    assert source["state"] == "purged"
    assert vault.finish().reissued == ()
    assert vault.verify().problems == ()


def test_several_sources_are_erased_one_after_another(tmp_path: Path, sqlite_place: Place) -> None:
    logs: list[Store] = []
    for name in ("one", "two"):
        log = KINDS["parquet"](tmp_path / name)
        log.append(made_rows(len(logs)))
        logs.append(log)
    rows = [row for log in logs for row in log.rows()]
    with counted_vault(sqlite_place, logs[0]) as vault:
        done = vault.forget(users=[FIRST])
        assert done.certificate.body["entry"]["sources"] == [1]
        ingest(vault, logs[1])
        done = vault.forget(users=[SECOND], erase_at_source=True)
        source = done.certificate.source
        assert source is not None
        assert [each["source"] for each in source["versions"]] == [1, 2]
        assert source["state"] == "purged"
        assert state_of(vault, FIRST) == "purged"
        assert_is_plain(vault, rows, [FIRST, SECOND])
        assert not [row for log in logs for row in of((FIRST, SECOND), log.rows())]


def test_two_erasures_do_not_run_at_the_same_time(vault: Vault) -> None:
    from armnesia.vault.operations.erase import _alone

    vault.forget(users=[FIRST])
    with _alone(vault._connection), pytest.raises(VaultError, match="another process erases rows"):
        vault.erase_at_sources()
    vault.erase_at_sources()


def test_a_digest_key_that_was_rotated_still_finds_people(vault: Vault, files: Store) -> None:
    vault.forget(users=[FIRST])
    vault.rotate_digest_key()
    vault.erase_at_sources()
    assert not of((FIRST,), files.rows())
    assert vault.verify().problems == ()


def test_a_vault_with_many_decisions(files: Store, sqlite_place: Place) -> None:
    rows = files.with_parts(1)
    configuration = Configuration(actions=("A", "B"), mode="external", may_erase_at_source=True, by=("page",))
    with counted_vault(sqlite_place, files, configuration) as vault:
        vault.forget(users=[FIRST], erase_at_source=True)
        assert vault.verify().problems == ()
        assert in_order(files.rows()) == in_order(without((FIRST,), rows))
        assert state_of(vault, FIRST) == "purged"


def test_a_backup_that_is_restored_knows_what_was_erased(
    vault: Vault, files: Store, tmp_path: Path, sqlite_place: Place
) -> None:
    rows = files.rows()
    vault.back_up(tmp_path / "backup.db")
    vault.forget(users=[FIRST], erase_at_source=True)
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    (tmp_path / "backup.db").replace(sqlite_place.path)
    Vault.restore(sqlite_place.url, tmp_path / "export.json", keys=sqlite_place.keys)
    with sqlite_place.open() as restored:
        assert state_of(restored, FIRST) == "purged"
        assert_is_plain(restored, rows, [FIRST])


def test_columns_that_cannot_be_written_again_are_told_before_anybody_is_forgotten(
    tmp_path: Path, sqlite_place: Place
) -> None:
    """Whoever has no rows in files with such columns can be erased by a command of its own."""
    (tmp_path / "log").mkdir()
    for number, other in enumerate(["INTERVAL 3 DAY", "3"]):
        rows = f"SELECT 'A' AS action, 1 AS reward, 'ann{number}' AS user, {other} AS other"
        if number == 0:
            rows = rows.replace("AS other", "AS waited")
        duckdb.execute(f"COPY ({rows}) TO '{tmp_path}/log/{number}.parquet'")
    with sqlite_place.create(PERMITTED) as vault:
        with pytest.warns(UserWarning, match="but cannot at this one as it is"):
            vault.ingest(tmp_path / "log", user="user")
        entries = len(list(vault.ledger()))
        with pytest.raises(InvalidLogError, match="cannot be erased: column 'waited' would become"):
            vault.forget(users=["ann1"], erase_at_source=True)
        assert len(list(vault.ledger())) == entries
        vault.forget(users=["ann1"])
        vault.erase_at_sources()
        assert state_of(vault, "ann1") == "purged"
