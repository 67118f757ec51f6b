"""In an external vault a table, or a file, is counted once, by whatever name it is given."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import deltalake
import psycopg
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from armnesia.core.errors import InvalidLogError, VaultError
from armnesia.logs.lakes.manifest import LakeManifest
from armnesia.logs.manifests import TableRange
from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_schema, postgres_url
from tests.logs.lakes.tables import arrow_table, iceberg_catalog, static_name
from tests.logs.lakes.test_changes import Delta, Iceberg, Lake
from tests.logs.lakes.test_iceberg import CLICKS, MORE
from tests.vault.raw_vaults import dumped

EXTERNAL = Configuration(actions=("A", "B", "C"), mode="external")
ORDERED: dict[str, Any] = {"user": "user", "ordered_by": "id"}
TWICE = "its rows would count twice"
OLDER = "it was counted by an older version of armnesia"


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE clicks (id INTEGER PRIMARY KEY, action, reward, user)")
        rows = [("A", 1, "ann"), ("B", 0, "bob"), ("A", 1, "cem")]
        database.executemany("INSERT INTO clicks (action, reward, user) VALUES (?, ?, ?)", rows)
    (tmp_path / "link.db").symlink_to(path)
    (tmp_path / "folder").symlink_to(tmp_path)
    return f"sqlite:///{path}"


def refuse_all(vault: Vault, names: list[tuple[str, str | None]], **options: Any) -> None:
    before = dumped(vault)
    for source, name in names:
        with pytest.raises(VaultError, match=TWICE):
            vault.ingest(source, table=name, **options)
    assert dumped(vault) == before


def test_a_table_in_sqlite_is_one_in_every_spelling(sqlite_place: Place, table: str) -> None:
    folder = table.removesuffix("/log.db")
    spelled: list[tuple[str, str | None]] = [
        (table, "CLICKS"),
        (table, "main.clicks"),
        (table, "MAIN.Clicks"),
        (f"{folder}/link.db", "clicks"),
        (f"{folder}/folder/log.db", "clicks"),
    ]
    with sqlite_place.create(EXTERNAL) as vault:
        assert vault.ingest(table, table="Clicks", **ORDERED).added == 3
        refuse_all(vault, spelled, **ORDERED)
        assert vault.ingest(table, table="Clicks", **ORDERED).rows == 0


@pytest.fixture
def schema() -> Iterator[str]:
    name = fresh_schema()
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f'CREATE TABLE {name}."Clicks" (id int, action text, reward int, "user" text)')
        connection.execute(f"INSERT INTO {name}.\"Clicks\" VALUES (1, 'A', 1, 'ann'), (2, 'B', 0, 'bob')")
        yield name
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def with_options(url: str, **options: str) -> str:
    given = "&".join(f"{name}={quote(value)}" for name, value in options.items())
    return f"{url}{'&' if '?' in url else '?'}{given}"


def test_a_table_on_postgresql_is_one_by_every_address(
    sqlite_place: Place, schema: str, tmp_path: Path
) -> None:
    url = postgres_url()
    found = with_options(url, options=f"-csearch_path={schema}")
    spelled: list[tuple[str, str | None]] = [
        (found, "Clicks"),
        (with_options(found, sslmode="prefer"), "Clicks"),
    ]
    with psycopg.connect(url) as connection:
        host, port, database = connection.info.host, connection.info.port, connection.info.dbname
    if host.startswith("/"):  # another path to the socket of the same server
        (tmp_path / "run").symlink_to(host)
        spelled.append(
            (f"postgresql://postgres@/{database}?host={tmp_path}/run&port={port}", f"{schema}.Clicks")
        )
    with sqlite_place.create(EXTERNAL) as vault:
        assert vault.ingest(url, table=f"{schema}.Clicks", **ORDERED).added == 2
        refuse_all(vault, spelled, **ORDERED)
        assert vault.ingest(url, table=f"{schema}.Clicks", **ORDERED).rows == 0


def test_a_search_path_that_leads_to_another_table_is_noticed(sqlite_place: Place, schema: str) -> None:
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f'CREATE TABLE {schema}.moved AS SELECT * FROM {schema}."Clicks"')
        connection.execute(f"CREATE SCHEMA {schema}_other")
        try:
            found = with_options(postgres_url(), options=f"-csearch_path={schema}_other,{schema}")
            with sqlite_place.create(EXTERNAL) as vault:
                assert vault.ingest(found, table="moved", **ORDERED).added == 2
                connection.execute(f"CREATE TABLE {schema}_other.moved AS SELECT * FROM {schema}.moved")
                with pytest.raises(VaultError, match="it is another table: it was"):
                    vault.forget(users=["ann"])
        finally:
            connection.execute(f"DROP SCHEMA {schema}_other CASCADE")


@pytest.fixture(params=[Delta, Iceberg])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    (tmp_path / "lakes").mkdir()
    made: Lake = request.param(tmp_path / "lakes")
    return made


def files_of(lake: Lake, folder: Path) -> str:
    """A glob for the data files of a table, by way of a link."""
    found = {path.parent for path in folder.rglob("*.parquet")}
    (data,) = found
    (folder / "link").symlink_to(data)
    return f"{folder}/link/*.parquet"


def test_files_of_a_table_of_a_lake_are_refused(sqlite_place: Place, lake: Lake, tmp_path: Path) -> None:
    with sqlite_place.create(EXTERNAL) as vault:
        assert vault.ingest(lake.name, user="user").added == 6
        before = dumped(vault)
        with pytest.raises(InvalidLogError, match=r"belong to an? (Delta|Iceberg) table"):
            vault.ingest(files_of(lake, tmp_path), user="user")
        assert dumped(vault) == before
        lake.append(MORE)
        assert vault.ingest(lake.name, user="user").added == 2
        assert vault.verify().holds


def test_files_that_became_a_table_are_not_counted_again(sqlite_place: Place, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    pq.write_table(arrow_table(CLICKS), tmp_path / "logs" / "part-0.parquet")
    with sqlite_place.create(EXTERNAL) as vault:
        assert vault.ingest(tmp_path / "logs", user="user").added == 6
        deltalake.convert_to_deltalake(str(tmp_path / "logs"))
        refuse_all(vault, [(f"delta:{tmp_path}/logs", None)], user="user")


class AddedFiles(NamedTuple):
    """An Iceberg table with a file that is not in its folder."""

    table: Table
    folder: Path

    @property
    def names(self) -> tuple[str, str]:
        """The table, and the files by way of a link."""
        return static_name(self.table), str(self.folder / "link" / "*.parquet")


@pytest.fixture
def added_files(tmp_path: Path) -> AddedFiles:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    rows = arrow_table(CLICKS)
    pq.write_table(rows, tmp_path / "data" / "part-0.parquet")
    table = iceberg_catalog(tmp_path / "lake").create_table("logs.clicks", schema=rows.schema)
    table.add_files([f"file://{tmp_path}/data/part-0.parquet"])
    return AddedFiles(table, tmp_path)


@pytest.mark.parametrize("table_first", [True, False])
def test_a_table_of_a_lake_and_its_files_are_not_both_counted(
    sqlite_place: Place, added_files: AddedFiles, table_first: bool
) -> None:
    first, second = added_files.names if table_first else reversed(added_files.names)
    with sqlite_place.create(EXTERNAL) as vault:
        assert vault.ingest(first, user="user").added == 6
        refuse_all(vault, [(second, None)], user="user")
        if table_first:
            added_files.table.append(arrow_table(MORE))
        else:
            pq.write_table(arrow_table(MORE), added_files.folder / "data" / "part-1.parquet")
        first, second = added_files.names if table_first else reversed(added_files.names)
        assert vault.ingest(first, user="user").added == 2
        assert vault.verify().holds


def as_before(monkeypatch: pytest.MonkeyPatch, kind: type[TableRange | LakeManifest], *new: str) -> None:
    """Let manifests be written as before these values were part of them."""
    written = kind.to_dict

    def to_dict(self: Any) -> dict[str, Any]:
        return {name: value for name, value in written(self).items() if name not in new}

    monkeypatch.setattr(kind, "to_dict", to_dict)


def check_recount(vault: Vault, source: str, name: str, rows: int, **options: Any) -> None:
    """What was counted before the names were those of the database is counted again, and says why."""
    assert [each.recount for each in vault.status().sources] == [OLDER]
    with pytest.raises(VaultError, match=f"{OLDER}.*run armnesia ingest"):
        vault.forget(users=[name])
    assert any(OLDER in note for note in vault.verify().notes)
    again = vault.ingest(source, **options)
    assert (again.recounted, again.added) == (True, 0)
    assert vault.n_records == rows
    assert vault.verify().notes == ()
    assert vault.forget(users=[name]).held


def test_a_table_that_was_counted_by_its_spelling_is_counted_again(
    sqlite_place: Place, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite_place.create(EXTERNAL) as vault:
        with monkeypatch.context() as before:
            as_before(before, TableRange, "on_server", "n_rows")
            vault.ingest(table, table="CLICKS", **ORDERED)
        with pytest.raises(VaultError, match=TWICE):
            vault.ingest(table, table="clicks", **ORDERED)
        check_recount(vault, table, "ann", 3, table="CLICKS", **ORDERED)


def test_a_table_of_a_lake_that_was_counted_without_its_paths_is_counted_again(
    sqlite_place: Place, added_files: AddedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, files = added_files.names
    with sqlite_place.create(EXTERNAL) as vault:
        with monkeypatch.context() as before:
            as_before(before, LakeManifest, "places")
            vault.ingest(name, user="user")
        with pytest.raises(VaultError, match=TWICE):
            vault.ingest(files, user="user")
        check_recount(vault, name, "1", 6, user="user")
