"""What cannot be erased at a source is refused before anybody is forgotten, as far as it can be known."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import ArmnesiaError
from tests.databases import Place
from tests.logs.erasing.stores import ParquetStore, PostgresStore, Store, arrow_rows, made_rows, name_of
from tests.vault.erasable_logs import PERMITTED, address_of, ingest, make_log

PERSON = name_of(1)


def refused_before(place: Place, log: Store, spoil: Callable[[], object], match: str) -> None:
    """The request is refused, and nobody is forgotten."""
    with place.create(PERMITTED) as vault:
        ingest(vault, log)
        spoil()
        head = vault.head
        with pytest.raises(ArmnesiaError, match=match):
            vault.forget(users=[PERSON], erase_at_source=True)
        assert vault.head == head


@pytest.fixture
def files(tmp_path: Path) -> ParquetStore:
    store = ParquetStore(tmp_path / "files")
    store.with_parts(1)
    return store


def test_hard_links(files: ParquetStore, tmp_path: Path, sqlite_place: Place) -> None:
    file = files.folder / "part-0.parquet"
    refused_before(sqlite_place, files, lambda: (tmp_path / "link").hardlink_to(file), "hard links")


def test_statistics_of_a_folder(files: ParquetStore, sqlite_place: Place) -> None:
    def describe() -> None:
        file = files.folder / "part-0.parquet"
        pq.write_metadata(arrow_rows([]).schema, files.folder / "_metadata", [pq.ParquetFile(file).metadata])

    refused_before(sqlite_place, files, describe, "has statistics of all files")


@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
def test_places_that_may_not_be_written_to(
    kind: str, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(kind, tmp_path / "log", monkeypatch)
    log.with_parts(1)
    allowed = os.access

    def access(path: str, mode: int, **options: bool) -> bool:
        return not (mode & os.W_OK and str(path).startswith(str(log.folder))) and allowed(
            path, mode, **options
        )

    refused_before(sqlite_place, log, lambda: monkeypatch.setattr(os, "access", access), "may not write to")


RIGHTS = {
    "may not delete its rows": "GRANT SELECT ON {0}.clicks TO {0}_reader",
    "policies": "GRANT SELECT, DELETE ON {0}.clicks TO {0}_reader;"
    " ALTER TABLE {0}.clicks ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {0}.clicks USING (true)",
    "read only": "GRANT SELECT, DELETE ON {0}.clicks TO {0}_reader;"
    " ALTER ROLE {0}_reader SET default_transaction_read_only = on",
    "no replica identity": "GRANT SELECT, DELETE ON {0}.clicks TO {0}_reader;"
    " CREATE PUBLICATION {0}_sent FOR TABLE {0}.clicks",
}


@pytest.mark.parametrize("match", RIGHTS)
def test_rights_on_a_server(
    match: str, tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is read and erased from by another role than its owner."""
    log = make_log("postgresql", tmp_path / "log", monkeypatch)
    assert isinstance(log, PostgresStore)
    log.append(made_rows(0))
    role = f"{log.schema}_reader"
    with log.connected() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {log.schema} TO {role}")
        connection.execute(RIGHTS[match].format(log.schema))
    try:
        with sqlite_place.create(PERMITTED) as vault:
            address = address_of(log)
            address["source"] = f"{address['source']}{'&' if '?' in address['source'] else '?'}user={role}"
            with pytest.warns(UserWarning, match=match):
                vault.ingest(**address)
            head = vault.head
            with pytest.raises(ArmnesiaError, match=match):
                vault.forget(users=[PERSON], erase_at_source=True)
            assert vault.head == head
    finally:
        with log.connected() as connection:
            connection.execute(f"DROP PUBLICATION IF EXISTS {log.schema}_sent")
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
