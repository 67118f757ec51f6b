"""What is said of rows at the sources before and after they are erased, and what is refused in time."""

import dataclasses
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from armnesia.core.errors import InvalidLogError, MissingExtraError, UnsupportedError, VaultError
from armnesia.core.identifiers import UserType
from tests.databases import Place
from tests.logs.erasing.stores import name_of
from tests.vault.erasable_logs import KINDS, PERMITTED, counted_vault, ingest, make_log

pytestmark = pytest.mark.slow  # the promise tests go the main ways quickly

FIRST, SECOND = name_of(1), name_of(2)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("parquet", "Parquet files"), ("delta", "Delta tables"), ("iceberg", "Iceberg tables")],
)
def test_without_the_extra_nobody_is_forgotten(
    kind: str, words: str, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(kind, tmp_path / "log", monkeypatch)
    log.with_parts(1)
    with counted_vault(sqlite_place, log) as vault:
        head = vault.head
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        missing = rf'Erasing rows of {words} needs .*"armnesia\[erase\]", or in a checkout .*"\.\[erase\]"'
        with pytest.raises(MissingExtraError, match=missing):
            vault.forget(users=[FIRST], erase_at_source=True)
        assert vault.head == head


def test_without_the_extra_a_source_is_not_called_lost(
    tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log("delta", tmp_path / "log", monkeypatch)
    log.with_parts(1)
    with counted_vault(sqlite_place, log) as vault:
        monkeypatch.setitem(sys.modules, "deltalake", None)
        with pytest.raises(VaultError, match=r"needs an optional dependency: pip install") as refused:
            vault.forget(users=[FIRST])
        assert str(refused.value).endswith("; nothing was changed")
        assert "rebuild" not in str(refused.value)
        (problem,) = vault.verify().problems
        assert "pip install" in problem
        assert "rebuild" not in problem


def test_a_catalog_that_is_not_found_is_no_source_that_is_gone(
    tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log("iceberg", tmp_path / "log", monkeypatch)
    log.with_parts(1)
    with counted_vault(sqlite_place, log) as vault:
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG.config", {})
        with pytest.raises(VaultError, match="found no catalog 'lake'; it looks for it in") as refused:
            vault.forget(users=[FIRST])
        assert "PYICEBERG_CATALOG__LAKE__URI" in str(refused.value)
        assert "rebuild" not in str(refused.value)


@pytest.mark.parametrize("kind", ["parquet", "delta", "sqlite"])
def test_rows_of_forgotten_people_that_come_back_are_told_of_until_they_are_erased(
    kind: str, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(kind, tmp_path / "log", monkeypatch)
    log.with_parts(1)
    with counted_vault(sqlite_place, log) as vault:
        vault.forget(users=[FIRST], erase_at_source=True)
        assert vault.status().sources_with_left_out == 0
        log.append([(FIRST, "A", 0.5, "page"), (SECOND, "A", 0.5, "page")])
        assert ingest(vault, log).suppressed == 1
        log.append([(SECOND, "B", 0.5, "page")])
        assert ingest(vault, log).suppressed == 0
        (source,) = vault.source_erasures().sources
        assert (source.left_out, source.pending) == (True, 0)
        assert vault.status().to_dict()["sources_with_left_out"] == 1
        vault.erase_at_sources()
        assert vault.status().sources_with_left_out == 0
        assert vault.verify().problems == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_preview_counts_what_an_erasure_deletes(
    kind: str, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(kind, tmp_path / "log", monkeypatch)
    log.with_parts(2)
    rows = sum(row[0] in (FIRST, SECOND) for row in log.rows())
    with counted_vault(sqlite_place, log) as vault:
        assert [each.rows for each in vault.preview_erasure().sources] == [0]
        vault.forget(users=[FIRST, SECOND])
        head = vault.head
        (would,) = vault.preview_erasure().sources
        assert would.rows == rows
        assert (would.files is None) == (kind in {"sqlite", "postgresql"})
        assert vault.head == head
        (done,) = vault.erase_at_sources().deleted or ()
        assert done.rows == rows
        assert done.files == (would.files if kind == "parquet" else None)
        assert vault.erase_at_sources().deleted == ()
        assert vault.source_erasures().deleted is None


def test_rows_in_files_that_are_not_counted_are_counted_among_the_deleted(
    tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log("parquet", tmp_path / "log", monkeypatch)
    log.with_parts(1)
    with counted_vault(sqlite_place, log) as vault:
        vault.forget(users=[FIRST])
        log.append([(FIRST, "A", 0.5, "page")])
        (would,) = vault.preview_erasure().sources
        (done,) = vault.erase_at_sources().deleted or ()
        assert (done.rows, done.files) == (would.rows, 2)


def _write_delta(path: Path, people: Sequence[float]) -> None:
    rows = {"action": ["A", "B"] * 2, "reward": [1, 0, 0, 1], "user": people, "id": [1, 2, 3, 4]}
    deltalake.write_deltalake(path, pa.table(rows), mode="overwrite", schema_mode="overwrite")


def test_a_table_that_cannot_be_written_is_told_before_anybody_is_forgotten(
    tmp_path: Path, sqlite_place: Place
) -> None:
    _write_delta(tmp_path / "log", [7, 8, 9, 8])
    deltalake.DeltaTable(tmp_path / "log").alter.set_table_properties({"delta.appendOnly": "true"})
    with sqlite_place.create(dataclasses.replace(PERMITTED, user_type=UserType.INTEGER)) as vault:
        with pytest.warns(UserWarning, match="but cannot at this one as it is: .*delta.appendOnly") as told:
            vault.ingest(f"delta:{tmp_path / 'log'}", user="user", id="id")
        assert len(told) == 1
        head = vault.head
        with pytest.raises(UnsupportedError, match=r"delta\.appendOnly"):
            vault.forget(users=[8], erase_at_source=True)
        assert vault.head == head


def test_names_that_a_lake_cannot_be_erased_by_are_told_before_anybody_is_forgotten(
    tmp_path: Path, sqlite_place: Place
) -> None:
    """As pandas writes integers; records are erased by their ids nevertheless."""
    configuration = dataclasses.replace(PERMITTED, user_type=UserType.INTEGER)
    refused = "holds DOUBLE: write the column as integers or text, ingest the source again, then erase"
    _write_delta(tmp_path / "log", [7.0, 8.0, 9.0, 8.0])
    with sqlite_place.create(configuration) as vault:
        with pytest.warns(UserWarning, match=rf"but not by the user column of this one: .*{refused}") as told:
            vault.ingest(f"delta:{tmp_path / 'log'}", user="user", id="id")
        assert len(told) == 1
        head = vault.head
        with pytest.raises(InvalidLogError, match=refused):
            vault.forget(users=[8], erase_at_source=True)
        assert vault.head == head
        vault.forget(records=[3], erase_at_source=True)
        vault.forget(users=[8])
        head = vault.head
        with pytest.raises(InvalidLogError, match=refused):
            vault.preview_erasure()
        with pytest.raises(InvalidLogError, match=refused):
            vault.erase_at_sources()
        with pytest.raises(InvalidLogError, match=refused):
            vault.forget(records=[1], erase_at_source=True)
        assert vault.head == head
        _write_delta(tmp_path / "log", [7, 8, 9, 8])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vault.ingest(f"delta:{tmp_path / 'log'}", user="user", id="id")
        vault.erase_at_sources()
        assert deltalake.DeltaTable(tmp_path / "log").to_pyarrow_table()["user"].to_pylist() == [7]
