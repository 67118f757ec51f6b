"""Erasing at the source: the rows are gone there, the statistics stay, and the ledger says so."""

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from armnesia.logs.statements import Reading
from armnesia.vault import Configuration, Vault
from armnesia.vault.operations.erase import ErasureRun, _alone
from tests.databases import Place
from tests.promises.driver import Row
from tests.promises.lakes import Delta, Folder, Lake, Sqlite
from tests.promises.test_histories import PEOPLE, rows_of
from tests.vault.external_vaults import (
    NAMED,
    PERMITTED,
    READING,
    counted,
    due,
    erased_for,
    forget_and_erase,
    ingest,
    stored,
    sums,
    sums_of,
    without,
)
from tests.vault.raw_vaults import raising

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


@pytest.mark.slow
def test_a_retention_is_respected_unless_it_is_ignored(delta: Delta, sqlite_place: Place) -> None:
    with counted(sqlite_place, delta, ROWS) as vault:
        forget_and_erase(vault, users=[ANN], purge=True)
        assert due(vault) == ["purge"]
        (entry,) = [entry for entry in vault.ledger() if entry.kind == "erased"]
        assert (entry.facts["version"], entry.facts["through"]) == (1, entry.number - 1)
        assert "except in its earlier versions" in vault.certificate(users=[ANN]).words().text()
        assert "until they are purged" in str(entry.facts["remains"])
        assert str(delta.folder) not in json.dumps(entry.to_dict())
        assert ANN.encode() in delta.bytes()
        head = vault.head
        vault.erase_at_sources(purge=True)
        assert vault.head == head, "the ledger does not say the same twice"
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert due(vault) == [""]
        assert "until they are purged" not in str(list(vault.ledger())[-1].facts["remains"])
        assert_is_plain(vault, without(ROWS, ANN))
        assert ANN.encode() not in delta.bytes()
        forget_and_erase(vault, users=[BOB])  # whose old rows are in files again
        assert due(vault) == ["purge"]
        assert ANN not in repr(stored(vault))


def test_people_and_records_are_erased_by_one_command_unless_they_were_readmitted(
    vault: Vault, files: Folder
) -> None:
    record = next(row for row in ROWS if row.person == BOB)
    vault.forget(users=[ANN])
    vault.forget(users=[CEM])
    vault.readmit(users=[CEM])
    _, done = forget_and_erase(vault, records=[record.event])
    assert [each.rows for each in done.sources] == [1 + len(ROWS) - len(without(ROWS, ANN))]
    kept = [row for row in without(ROWS, ANN) if row != record]
    assert sorted(files.values()) == sorted(row.values for row in kept)
    assert_is_plain(vault, kept)
    assert erased_for(vault, ANN) == [files.source]


def test_a_request_for_nobody_is_erased_as_any_other(vault: Vault, files: Folder) -> None:
    """Whether there is an entry must not tell whether somebody was held."""
    vault.forget(users=["nobody of this name"], exactly=True)
    assert due(vault) == ["erase"]
    vault.forget(users=[ANN])
    again, _ = forget_and_erase(vault, users=[ANN])
    assert again.repeated
    assert ANN not in people(files)
    assert erased_for(vault, "nobody of this name") == [files.source]
    forget_and_erase(vault, users=["nobody else"], exactly=True)
    assert erased_for(vault, "nobody else") == [files.source]


def test_rows_that_come_back_are_told_of_until_they_are_erased(vault: Vault, files: Folder) -> None:
    forget_and_erase(vault, users=[ANN])
    late = [Row("late-1", ANN, "A", 4), Row("late-2", BOB, "A", 4), Row("late-3", BOB, "B", 4)]
    files.append(late[:2])
    assert ingest(vault, files).suppressed == 1
    assert due(vault) == ["erase"]
    would, head = vault.preview_erasure(), vault.head
    assert [each.rows for each in would.sources] == [1]
    assert vault.head == head
    files.append(late[2:])  # which the erasure counts as well
    assert [each.rows for each in vault.erase_at_sources().sources] == [1]
    assert [each.rows for each in vault.erase_at_sources().sources] == [None]
    assert due(vault) == [""]
    assert_is_plain(vault, [*without(ROWS, ANN), *late[1:]])


def test_a_source_that_fails_does_not_stop_others(vault: Vault, files: Folder, delta: Delta) -> None:
    delta.append(rows_of(2, 40))
    ingest(vault, delta)
    vault.forget(users=[ANN])
    os.link(files.folder / "0.parquet", files.folder.parent / "link.parquet")
    with pytest.raises(PartlyErasedError, match="hard links") as caught:
        vault.erase_at_sources()
    assert "nothing was changed" not in str(caught.value)
    assert [each.rows is None for each in caught.value.erasures.sources] == [True, False]
    assert due(vault) == ["erase", "purge"]
    assert ANN not in people(delta)
    away = delta.folder.rename(delta.folder.with_name("away"))
    with pytest.raises(ArmnesiaError, match=r"hard links.*delta:"):
        vault.erase_at_sources(purge=True)
    (files.folder.parent / "link.parquet").unlink()
    with pytest.raises(PartlyErasedError, match="delta:"):
        vault.erase_at_sources(purge=True)
    assert due(vault) == ["", "purge"]
    away.rename(delta.folder)
    vault.erase_at_sources()
    assert due(vault) == ["", "purge"]
    assert erased_for(vault, ANN) == [f"delta:{delta.folder}", files.source]
    ingest(vault, files)
    assert vault.verify().problems == ()


def test_a_source_with_conditions_is_refused_with_the_way_to_read_it_whole(
    tmp_path: Path, sqlite_place: Place
) -> None:
    log = Sqlite(tmp_path)
    log.append(ROWS)
    with sqlite_place.create(PERMITTED) as vault:
        with pytest.warns(UserWarning, match="read with conditions"):
            ingest(vault, log, where="country = DE")
        head = vault.head
        for ask in (
            lambda: forget_and_erase(vault, users=[ANN]),
            vault.preview_erasure,
        ):
            with pytest.raises(UnsupportedError, match=r"restore --without"):
                ask()
        assert vault.head == head
        vault.forget(users=[ANN])
        with pytest.raises(UnsupportedError, match="read with conditions"):
            vault.erase_at_sources()
        Vault.restore(sqlite_place.url, keys=sqlite_place.keys, without=[f"{log.source}#clicks"])
        ingest(vault, log)
        vault.erase_at_sources()
        assert ANN not in people(log)


def test_a_source_without_people_says_so(sqlite_place: Place, tmp_path: Path) -> None:
    log = Folder(tmp_path)
    log.append(ROWS)
    with sqlite_place.create(PERMITTED) as vault:
        vault.ingest(log.source, action="arm", reward="reward", id="event", no_user=True)
        vault.forget(records=[ROWS[0].event])
        vault.forget(users=["ann"], exactly=True)
        (source,) = vault.erase_at_sources().sources
        assert "no user column, by which a forgotten user" in str(source.remains)
        assert source.rows == 1


@pytest.mark.slow
def test_where_nothing_is_left_to_do_no_row_is_read(
    delta: Delta, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(sqlite_place, delta, ROWS) as vault:
        forget_and_erase(vault, users=[ANN], purge=True)
        head = vault.head
        with monkeypatch.context() as patched:
            for owner, name in ((Reading, "labels"), (Reading, "tallies"), (DeltaEraser, "purge")):
                patched.setattr(owner, name, raising(AssertionError("rows are read")))
            vault.erase_at_sources()  # what is left waits for a purge
        assert vault.head == head
        delta.append([row for row in ROWS if row.person == ANN])
        vault.erase_at_sources(purge=True)
        assert_is_plain(vault, without(ROWS, ANN))
        assert sorted(delta.values()) == sorted(row.values for row in without(ROWS, ANN))


@pytest.mark.sampled(3)
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
                forget_and_erase(vault, users=[ANN], purge=True, ignore_retention=True)
        assert erased_for(vault, ANN) == []
        assert vault.forget(users=[BOB]).held == 1  # nothing waits for the erasure
        vault.erase_at_sources(purge=True, ignore_retention=True)
        assert len(erased_for(vault, ANN)) == len(erased_for(vault, BOB)) == 1
        assert due(vault) == [""]
        assert sorted(log.values()) == sorted(row.values for row in without(ROWS, ANN, BOB))
        assert_is_plain(vault, without(ROWS, ANN, BOB))


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
    assert erased_for(vault, ANN) == []
    vault.erase_at_sources()
    assert erased_for(vault, ANN) == [files.source]
    assert_is_plain(vault, without(ROWS, ANN))


def test_who_is_forgotten_while_a_source_is_erased_waits(
    vault: Vault, files: Folder, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.forget(users=[ANN])
    record = ErasureRun.record

    def forgetting(self: ErasureRun) -> None:
        with Vault.open(sqlite_place.url, keys=sqlite_place.keys) as other:
            other.forget(users=[BOB])
        record(self)

    with monkeypatch.context() as patched:
        patched.setattr(ErasureRun, "record", forgetting)
        vault.erase_at_sources()
    assert (erased_for(vault, ANN), erased_for(vault, BOB)) == ([files.source], [])
    assert due(vault) == ["erase"]
    assert BOB in people(files)
    vault.erase_at_sources()
    assert erased_for(vault, BOB) == [files.source]
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
        forget_and_erase(vault, users=[ANN])
    with pytest.raises(InvalidInputError, match="give both"):
        forget_and_erase(vault, users=[ANN], ignore_retention=True)
    assert vault.head == head


def test_an_erasure_after_a_request_that_fails_is_not_called_a_refusal(
    vault: Vault, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(ParquetEraser, "deleted", raising(OSError(28, "No space left on device")))
        with pytest.raises(ArmnesiaError, match="No space left"):
            forget_and_erase(vault, users=[ANN])
    assert sums(vault) == sums_of(without(ROWS, ANN))
    vault.erase_at_sources()
    assert ANN not in people(files)


def test_two_erasures_do_not_run_at_the_same_time(vault: Vault) -> None:
    vault.forget(users=[ANN])
    with _alone(vault), pytest.raises(VaultError, match="another process erases rows"):
        vault.erase_at_sources()
    vault.erase_at_sources()


def test_nothing_is_touched_without_permission(files: Folder, sqlite_place: Place) -> None:
    with pytest.raises(InvalidInputError, match="needs an external vault"):
        Configuration(actions=("A", "B"), may_erase_at_source=True)
    with counted(sqlite_place, files, ROWS, READING) as vault:
        head = vault.head
        with pytest.raises(VaultError, match=r"may not erase.*--may-erase-at-source"):
            forget_and_erase(vault, users=[ANN])
        assert vault.head == head
        vault.forget(users=[ANN])
        with pytest.raises(VaultError, match="may not erase"):
            vault.erase_at_sources()
        assert people(files) == set(PEOPLE)
        assert vault.source_erasures().permitted is False
