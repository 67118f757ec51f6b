"""Erasing at the source: the rows are gone there, the statistics stay, and the certificate says how far."""

import itertools
import json
import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deltalake
import pytest

from armnesia.core.errors import (
    ArmnesiaError,
    InvalidInputError,
    PartlyErasedError,
    UnsupportedError,
    VaultError,
)
from armnesia.logs.erase.delta import DeltaEraser
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.erase.parquet import ParquetEraser
from armnesia.logs.source import Source
from armnesia.vault import Certificate, Configuration, Vault
from armnesia.vault.operations.erase import ErasureRun, _alone
from tests.databases import Place
from tests.promises.driver import Row
from tests.promises.lakes import Delta, Folder, Lake, Sqlite, arrow
from tests.promises.test_histories import PEOPLE, rows_of
from tests.vault.external_vaults import (
    NAMED,
    PERMITTED,
    READING,
    counted,
    ingest,
    state_of,
    sums,
    sums_of,
    without,
)
from tests.vault.raw_vaults import dumped, raising

ANN, BOB, CEM = PEOPLE[:3]
ROWS = rows_of(1, 40)


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def vault(files: Folder, sqlite_place: Place) -> Iterator[Vault]:
    with counted(sqlite_place, files, ROWS) as vault:
        yield vault


@pytest.fixture
def delta(tmp_path: Path) -> Delta:
    (tmp_path / "table").mkdir()
    return Delta(tmp_path / "table")


def people(lake: Lake) -> set[str]:
    return {person for _, person, *_ in lake.values()}


def assert_is_plain(vault: Vault, rows: list[Row]) -> None:
    assert sums(vault) == sums_of(rows)
    assert vault.verify().problems == ()


def test_a_retention_is_respected_unless_it_is_ignored(delta: Delta, sqlite_place: Place) -> None:
    with counted(sqlite_place, delta, ROWS) as vault:
        vault.forget(users=[ANN], erase_at_source=True, purge=True)
        (source,) = vault.source_erasures().sources
        assert (source.state, source.version) == ("logically deleted", 1)
        assert source.due is not None
        assert ANN.encode() in delta.bytes()
        head = vault.head
        vault.erase_at_sources(purge=True)
        assert vault.head == head, "the ledger does not say the same twice"
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert state_of(vault, ANN) == [(1, "purged")]
        assert_is_plain(vault, without(ROWS, ANN))
        assert ANN.encode() not in delta.bytes()
        vault.forget(users=[BOB], erase_at_source=True)  # whose old rows are in files again
        assert vault.source_erasures().sources[0].state == "logically deleted"
        assert (state_of(vault, ANN), state_of(vault, BOB)) == ([(1, "purged")], [(1, "logically deleted")])


def test_where_nothing_is_left_to_do_no_row_is_read(
    delta: Delta, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(sqlite_place, delta, ROWS) as vault:
        vault.forget(users=[ANN], erase_at_source=True, purge=True)
        head = vault.head
        with monkeypatch.context() as patched:
            for owner, name in ((Source, "reading"), (Source, "tallies"), (DeltaEraser, "purge")):
                patched.setattr(owner, name, raising(AssertionError("rows are read")))
            vault.erase_at_sources(purge=True)  # what is left waits for the retention
        assert vault.head == head
        delta.append([row for row in ROWS if row.person == ANN])
        vault.erase_at_sources(purge=True)
        assert_is_plain(vault, without(ROWS, ANN))
        assert sorted(delta.values()) == sorted(row.values for row in without(ROWS, ANN))


@pytest.mark.parametrize(
    ("kind", "step"),
    [*itertools.product(["files", "delta", "sqlite"], ["delete", "record"]), ("delta", "purge")],
)
def test_an_erasure_that_ends_between_two_steps_is_run_again(
    kind: str, step: str, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: dict[str, Any] = {"files": Folder, "delta": Delta, "sqlite": Sqlite}
    log = kinds[kind](tmp_path)
    with counted(sqlite_place, log, ROWS) as vault:
        owner = ErasureRun if step == "record" else DeltaEraser if step == "purge" else Eraser
        original = getattr(owner, step)

        def ending(*given: Any, **options: Any) -> None:
            if step == "delete":
                original(*given, **options)  # the rows are gone, and nobody knows it
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(owner, step, ending)
            with pytest.raises(KeyboardInterrupt):
                vault.forget(users=[ANN], erase_at_source=True, purge=True, ignore_retention=True)
        assert state_of(vault, ANN) == [(1, "untouched")]
        assert vault.forget(users=[BOB]).held == 1  # nothing waits for the erasure
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert state_of(vault, ANN) == state_of(vault, BOB) == [(1, "purged")]
        assert sorted(log.values()) == sorted(row.values for row in without(ROWS, ANN, BOB))
        assert_is_plain(vault, without(ROWS, ANN, BOB))


def test_people_and_records_are_erased_by_one_command(vault: Vault, files: Folder) -> None:
    record = next(row for row in ROWS if row.person == BOB)
    vault.forget(users=[ANN])
    done = vault.forget(records=[record.event], erase_at_source=True)
    assert done.certificate.source is not None
    assert done.certificate.source["state"] == "purged"
    kept = [row for row in without(ROWS, ANN) if row != record]
    assert sorted(files.values()) == sorted(row.values for row in kept)
    assert_is_plain(vault, kept)
    assert [entry.kind for entry in vault.ledger()].count("erase_source") == 1


def test_people_who_were_readmitted_are_not_erased(vault: Vault, files: Folder) -> None:
    vault.forget(users=[ANN])
    vault.forget(users=[BOB])
    vault.readmit(users=[ANN])
    vault.erase_at_sources()
    assert people(files) == {row.person for row in ROWS} - {BOB}
    assert state_of(vault, ANN) == [(1, "untouched")], (
        "after a readmission no erasure counts for earlier ones"
    )
    assert_is_plain(vault, without(ROWS, BOB))


def test_a_request_for_nobody_and_one_that_is_sent_again_say_what_is_done(
    vault: Vault, files: Folder
) -> None:
    done = vault.forget(users=["nobody of this name"], exactly=True)
    assert done.certificate.source is not None
    assert done.certificate.source["state"] == "untouched"
    vault.forget(users=[ANN])
    again = vault.forget(users=[ANN], erase_at_source=True)
    assert again.repeated
    assert again.certificate.source is not None
    assert again.certificate.source["state"] == "purged"
    assert state_of(vault, "nobody of this name") == [(1, "purged")]
    assert ANN not in people(files)


def test_rows_that_come_back_are_told_of_until_they_are_erased(vault: Vault, files: Folder) -> None:
    vault.forget(users=[ANN], erase_at_source=True)
    assert vault.status().sources_with_left_out == 0
    late = [Row("late-1", ANN, "A", 4), Row("late-2", BOB, "A", 4)]
    files.append(late)
    assert ingest(vault, files).suppressed == 1
    (source,) = vault.source_erasures().sources
    assert (source.left_out, source.pending) == (True, 0)
    assert vault.status().to_dict()["sources_with_left_out"] == 1
    would, head = vault.preview_erasure(), vault.head
    assert [each.rows for each in would.sources] == [1]
    assert vault.head == head
    assert [each.rows for each in vault.erase_at_sources().deleted or ()] == [1]
    assert vault.erase_at_sources().deleted == ()
    assert vault.status().sources_with_left_out == 0
    assert_is_plain(vault, [*without(ROWS, ANN), late[1]])


def test_what_came_to_a_source_meanwhile_is_counted_by_the_erasure(vault: Vault, files: Folder) -> None:
    vault.forget(users=[ANN])
    files.append([Row("late-1", ANN, "A", 4), Row("late-2", BOB, "A", 4)])
    vault.erase_at_sources()
    assert ANN not in people(files)
    assert_is_plain(vault, [*without(ROWS, ANN), Row("late-2", BOB, "A", 4)])


def test_rows_that_come_in_while_a_source_is_erased_are_not_called_erased(
    vault: Vault, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.forget(users=[ANN])
    delete = ParquetEraser.delete

    def appending(self: ParquetEraser, names: Any) -> int:
        number = delete(self, names)
        files.append([Row("late", ANN, "A", 4)])
        return number

    with monkeypatch.context() as patched:
        patched.setattr(ParquetEraser, "delete", appending)
        with pytest.raises(VaultError, match="came in meanwhile: run armnesia erase again"):
            vault.erase_at_sources()
    assert state_of(vault, ANN) == [(1, "untouched")]
    vault.erase_at_sources()
    assert state_of(vault, ANN) == [(1, "purged")]
    assert_is_plain(vault, without(ROWS, ANN))


def test_who_is_forgotten_while_a_source_is_erased_waits(
    vault: Vault, files: Folder, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.forget(users=[ANN])
    record = ErasureRun.record

    def forgetting(self: ErasureRun) -> None:
        with sqlite_place.open() as other:
            other.forget(users=[BOB])
        record(self)

    with monkeypatch.context() as patched:
        patched.setattr(ErasureRun, "record", forgetting)
        vault.erase_at_sources()
    assert (state_of(vault, ANN), state_of(vault, BOB)) == ([(1, "purged")], [(1, "untouched")])
    assert BOB in people(files)
    vault.erase_at_sources()
    assert state_of(vault, BOB) == [(1, "purged")]
    assert_is_plain(vault, without(ROWS, ANN, BOB))


def test_a_source_that_cannot_be_erased_is_refused_before_anybody_is_forgotten(
    vault: Vault, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("event,person,arm,reward\nx1,zoe,A,1\n", "utf-8")
    with pytest.warns(UserWarning, match="but cannot at this one: .*only Parquet files"):
        vault.ingest(str(path), **NAMED)
    head = vault.head
    with pytest.raises(UnsupportedError, match="only Parquet files"):
        vault.forget(users=[ANN], erase_at_source=True)
    with pytest.raises(InvalidInputError, match="give erase_at_source"):
        vault.forget(users=[ANN], purge=True)
    with pytest.raises(InvalidInputError, match="give both"):
        vault.forget(users=[ANN], erase_at_source=True, ignore_retention=True)
    assert vault.head == head


def test_a_source_that_fails_does_not_stop_others(vault: Vault, files: Folder, delta: Delta) -> None:
    delta.append(rows_of(2, 40))
    ingest(vault, delta)
    vault.forget(users=[ANN])
    os.link(files.folder / "0.parquet", files.folder.parent / "link.parquet")
    with pytest.raises(PartlyErasedError, match="hard links") as caught:
        vault.erase_at_sources()
    assert "nothing was changed" not in str(caught.value)
    assert [each.state for each in caught.value.erasures.sources] == ["untouched", "logically deleted"]
    assert [each.number for each in caught.value.erasures.deleted or ()] == [2]
    assert ANN not in people(delta)
    delta.folder.rename(delta.folder.with_name("away"))
    with pytest.raises(ArmnesiaError, match=r"hard links.*delta:"):
        vault.erase_at_sources()
    delta.folder.with_name("away").rename(delta.folder)
    (files.folder.parent / "link.parquet").unlink()
    vault.erase_at_sources()
    assert state_of(vault, ANN) == [(1, "purged"), (2, "logically deleted")]


def test_a_source_that_was_erased_is_not_said_to_have_people_where_another_fails(
    vault: Vault, files: Folder, delta: Delta
) -> None:
    vault.forget(users=[ANN], erase_at_source=True)
    delta.append(ROWS)
    ingest(vault, delta)
    files.append([Row("late", ANN, "A", 4)])
    ingest(vault, files)
    assert [each.left_out for each in vault.source_erasures().sources] == [True, True]
    delta.folder.rename(delta.folder.with_name("away"))
    with pytest.raises(PartlyErasedError) as caught:
        vault.erase_at_sources()
    assert ANN not in people(files)
    assert [each.left_out for each in caught.value.erasures.sources] == [False, True]
    delta.folder.with_name("away").rename(delta.folder)
    vault.erase_at_sources()
    assert [each.left_out for each in vault.source_erasures().sources] == [False, False]
    assert vault.verify().problems == ()


def test_tables_of_one_database_are_told_apart(tmp_path: Path, sqlite_place: Place) -> None:
    log = Sqlite(tmp_path)
    with counted(sqlite_place, log, ROWS) as vault:
        with closing(sqlite3.connect(log.folder / "log.db")) as database, database:
            database.execute("CREATE TABLE views AS SELECT * FROM clicks")
            database.execute("CREATE TRIGGER kept BEFORE DELETE ON views BEGIN SELECT raise(IGNORE); END")
        vault.ingest(log.source, table="views", **NAMED)
        vault.forget(users=[ANN])
        with pytest.raises(PartlyErasedError, match="a trigger, rule or foreign key") as caught:
            vault.erase_at_sources()
        assert str(caught.value).startswith(f"source '{log.source}#views': ")


def test_a_source_with_conditions_is_refused_with_the_way_to_read_it_whole(
    tmp_path: Path, sqlite_place: Place
) -> None:
    log = Sqlite(tmp_path)
    log.append(ROWS)
    with sqlite_place.create(PERMITTED) as vault:
        with pytest.warns(UserWarning, match="read with conditions"):
            ingest(vault, log, where="country = DE")
        name = f"{log.source}#clicks"
        for ask, options in (
            (lambda: vault.forget(users=[ANN], erase_at_source=True), []),
            (vault.preview_erasure, []),
            (vault.erase_at_sources, ["--unerased"]),
        ):
            if options:
                vault.forget(users=[ANN])
            head = vault.head
            with pytest.raises(UnsupportedError) as refused:
                ask()
            first, second = str(refused.value).split(" to read it without, run ")[1].split(" , then ")
            assert shlex.split(first) == ["armnesia", "rebuild", "--without", name, *options]
            assert "--where" not in shlex.split(second)
            assert vault.head == head
        vault.rebuild(without=[name], unerased=True)
        ingest(vault, log)
        vault.erase_at_sources()
        assert ANN not in people(log)


def test_an_erasure_after_a_request_that_fails_is_not_called_a_refusal(
    vault: Vault, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(ParquetEraser, "deleted", raising(OSError(28, "No space left on device")))
        with pytest.raises(
            ArmnesiaError, match=r"No space left.*run armnesia erase; the request itself is done"
        ):
            vault.forget(users=[ANN], erase_at_source=True)
    assert sums(vault) == sums_of(without(ROWS, ANN))
    vault.erase_at_sources()
    assert ANN not in people(files)


def test_two_erasures_do_not_run_at_the_same_time(vault: Vault) -> None:
    vault.forget(users=[ANN])
    with _alone(vault._connection), pytest.raises(VaultError, match="another process erases rows"):
        vault.erase_at_sources()
    vault.erase_at_sources()


def test_nothing_is_touched_without_permission(files: Folder, sqlite_place: Place) -> None:
    with pytest.raises(InvalidInputError, match="needs an external vault"):
        Configuration(actions=("A", "B"), may_erase_at_source=True)
    with counted(sqlite_place, files, ROWS, READING) as vault:
        head = vault.head
        with pytest.raises(VaultError, match=r"may not erase.*--may-erase-at-source"):
            vault.forget(users=[ANN], erase_at_source=True)
        assert vault.head == head
        vault.forget(users=[ANN])
        with pytest.raises(VaultError, match="may not erase"):
            vault.erase_at_sources()
        assert people(files) == set(PEOPLE)
        assert vault.source_erasures().permitted is False


def test_what_the_ledger_and_the_vault_say_names_nobody(delta: Delta, sqlite_place: Place) -> None:
    with counted(sqlite_place, delta, ROWS) as vault:
        vault.forget(users=[ANN], erase_at_source=True)
        vault.erase_at_sources(purge=True, ignore_retention=True)
        entries = [entry.fields for entry in vault.ledger() if entry.kind == "erase_source"]
        own = {"source", "state", "version", "remains", "due", "through"}
        common = {"schema", "sequence", "previous", "vault", "kind", "time", "code"}
        assert [set(entry) for entry in entries] == [own | common] * 2
        assert [entry["state"] for entry in entries] == ["logically deleted", "purged"]
        assert str(delta.folder) not in json.dumps([dict(entry) for entry in entries])
        assert ANN not in repr(dumped(vault))


def test_a_certificate_that_says_more_than_the_ledger_is_refused(vault: Vault) -> None:
    """Whoever has the signing key can sign another state; the ledger refutes it."""
    vault.forget(users=[ANN])
    untouched = vault.certificate(users=[ANN])
    vault.erase_at_sources()
    purged = vault.certificate(users=[ANN])
    keyring, keys = vault._connection.all_keys, vault.public_keys()
    (note,) = purged.check(keys).notes
    assert "can be checked with the ledger only" in note
    assert untouched.body["source"] != purged.body["source"]

    def problems(claim: Any) -> tuple[str, ...]:
        issued: Certificate = untouched.draft.issue(
            keyring, head=vault.head, erasure="complete", source=claim
        )
        return issued.check(keys).problems

    claim, (version,) = untouched.body["source"], untouched.body["source"]["versions"]
    assert problems(claim) == ()
    assert "must have source" in problems(None)[0]
    assert "must have source" in problems({**claim, "more": 1})[0]
    assert "weakest state" in problems({**claim, "state": "purged"})[0]
    assert "not about the sources" in problems({**claim, "versions": []})[0]
    forged = {**claim, "state": "purged", "versions": [{**version, "state": "purged"}]}
    assert "must name the later ledger entry" in problems(forged)[0]


def test_finish_signs_certificates_again_that_say_too_little(vault: Vault, tmp_path: Path) -> None:
    done = vault.forget(users=[ANN])
    vault.finish()
    assert vault.finish().reissued == ()
    vault.erase_at_sources()
    assert vault.finish(folder=tmp_path / "again").reissued == (done.certificate.body["sequence"],)
    (path,) = (tmp_path / "again").iterdir()
    source = Certificate.read(path).source
    assert source is not None
    assert source["state"] == "purged"
    assert vault.finish().reissued == ()


def test_a_source_without_people_says_so(sqlite_place: Place, tmp_path: Path) -> None:
    log = Folder(tmp_path)
    log.append(ROWS)
    with sqlite_place.create(PERMITTED) as vault:
        vault.ingest(log.source, action="arm", reward="reward", id="event", no_user=True)
        vault.forget(records=[ROWS[0].event])
        vault.forget(users=["ann"], exactly=True)
        vault.erase_at_sources()
        claim = vault.certificate(users=["ann"]).source
        assert "by which forgotten people could be found" in str(claim)


def test_a_backup_that_is_restored_knows_what_was_erased(
    vault: Vault, files: Folder, tmp_path: Path, sqlite_place: Place
) -> None:
    vault.back_up(tmp_path / "backup.db")
    vault.forget(users=[ANN], erase_at_source=True)
    vault.export(tmp_path / "export.json", for_restore=True)
    vault.close()
    (tmp_path / "backup.db").replace(sqlite_place.path)
    Vault.restore(sqlite_place.url, tmp_path / "export.json", keys=sqlite_place.keys)
    with sqlite_place.open() as restored:
        assert state_of(restored, ANN) == [(1, "purged")]
        ingest(restored, files)
        assert_is_plain(restored, without(ROWS, ANN))


def test_a_table_that_cannot_be_erased_as_it_is_is_told_at_its_ingest(
    delta: Delta, sqlite_place: Place
) -> None:
    deltalake.write_deltalake(str(delta.folder), arrow(ROWS), partition_by=["person"])
    with sqlite_place.create(PERMITTED) as vault:
        with pytest.warns(UserWarning, match="but cannot at this one: .*partitioned by 'person'"):
            ingest(vault, delta)
        head = vault.head
        with pytest.raises(UnsupportedError, match="partitioned by 'person'"):
            vault.forget(users=[ANN], erase_at_source=True)
        assert vault.head == head
