"""The same rows in each kind of log that an external vault leaves where it is."""

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import catalog as catalogs
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from tests.databases import fresh_schema, postgres_url
from tests.promises.driver import COLUMNS, Row

TYPES = (pa.string(), pa.string(), pa.string(), pa.float64(), pa.string())


def arrow(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*(row.values for row in rows), strict=True) if rows else [()] * len(TYPES)
    return pa.table(
        [pa.array(own, kind) for own, kind in zip(columns, TYPES, strict=True)], names=list(COLUMNS)
    )


class Lake(ABC):
    """A log in a folder or on a server."""

    table: str | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "lake"
        self.folder.mkdir()

    @property
    @abstractmethod
    def source(self) -> str: ...

    @property
    def options(self) -> tuple[str, ...]:
        """What an ingest has to be told beside its columns."""
        return ("--table", self.table) if self.table else ()

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def values(self) -> list[tuple[Any, ...]]:
        """Every row, read by another program: DuckDB, deltalake, pyiceberg, sqlite3 or psycopg."""

    def state(self) -> Any:
        """What is stored: it changes with any file."""
        return {path: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}

    def bytes_after_kills(self) -> bytes:
        """What `bytes` says, without what `remains` says that a killed writer may leave."""
        return self.bytes()

    def bytes(self) -> bytes:
        """Everything that the log has on the disk; of Parquet also what is compressed."""
        return b"".join(content + _unpacked(path) for path, content in self.state().items())


def _unpacked(path: Path) -> bytes:
    if path.suffix != ".parquet":
        return b""
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(at).to_dict() for at in range(file.num_row_groups)]
        return repr((file.read().to_pylist(), groups, file.metadata.metadata)).encode()


def _values(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))


class Folder(Lake):
    @property
    def source(self) -> str:
        return str(self.folder)

    def append(self, rows: Sequence[Row]) -> None:
        pq.write_table(
            arrow(rows), self.folder / f"{len(list(self.folder.iterdir()))}.parquet", compression="none"
        )

    def values(self) -> list[tuple[Any, ...]]:
        return list(duckdb.sql(f"SELECT {', '.join(COLUMNS)} FROM '{self.folder}/*.parquet'").fetchall())


class Delta(Lake):
    @property
    def source(self) -> str:
        return f"delta:{self.folder}"

    def append(self, rows: Sequence[Row]) -> None:
        deltalake.write_deltalake(self.folder, arrow(rows), mode="append")

    @property
    def opened(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.folder)

    def bytes(self) -> bytes:
        """Without the log, which holds lowest and highest values of files until its own retention is over."""
        return b"".join(_unpacked(path) for path in sorted(self.folder.rglob("*.parquet")))

    def values(self) -> list[tuple[Any, ...]]:
        return _values(self.opened.to_pyarrow_table())


class Iceberg(Lake):
    source = "iceberg:lake.logs.clicks"

    @property
    def opened(self) -> Any:
        catalog = load_catalog("lake")
        catalog.create_namespace_if_not_exists("logs")
        plain = {"write.avro.compression-codec": "null"}  # the lowest and highest names of a file are there
        return catalog.create_table_if_not_exists("logs.clicks", schema=arrow([]).schema, properties=plain)

    def append(self, rows: Sequence[Row]) -> None:
        self.opened.append(arrow(rows))

    def values(self) -> list[tuple[Any, ...]]:
        return _values(self.opened.scan().to_arrow())

    def bytes_after_kills(self) -> bytes:
        """Of the files of all snapshots: those that a killed writer has left, nothing names."""
        table = self.opened
        lists = [each.manifest_list for each in table.snapshots()]
        manifests = [each for snapshot in table.snapshots() for each in snapshot.manifests(table.io)]
        entries = [each for manifest in manifests for each in manifest.fetch_manifest_entry(table.io)]
        paths = {table.metadata_location, *lists, *(each.manifest_path for each in manifests)}
        paths |= {each.data_file.file_path for each in entries}
        files = [Path(path.removeprefix("file://")) for path in sorted(paths)]
        return b"".join(file.read_bytes() + _unpacked(file) for file in files)


class Sqlite(Lake):
    table = "clicks"
    declared = f"CREATE TABLE clicks (number INTEGER PRIMARY KEY, {', '.join(COLUMNS)})"

    @property
    def source(self) -> str:
        return f"sqlite:///{self.folder}/log.db"

    def run(self, sql: str, rows: Sequence[Row] = ()) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "log.db")) as database, database:
            done = (
                database.executemany(sql, [each.values for each in rows]) if rows else database.execute(sql)
            )
            return list(done.fetchall())

    def append(self, rows: Sequence[Row]) -> None:
        if not self.run("SELECT 1 FROM sqlite_schema WHERE name = 'clicks'"):
            self.run(self.declared)
        self.run(f"INSERT INTO clicks ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?)", rows)

    def values(self) -> list[tuple[Any, ...]]:
        return self.run(f"SELECT {', '.join(COLUMNS)} FROM clicks")


class Postgres(Lake):
    table: str
    source = ""
    declared = "(number bigserial, event text, person text, arm text, reward float8, country text)"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.schema, self.source = fresh_schema(), postgres_url()
        self.table = f"{self.schema}.clicks"
        self.run(f"CREATE SCHEMA {self.schema}")
        self.run(f"CREATE TABLE {self.table} {self.declared}")

    def run(self, sql: str, rows: Sequence[Row] = ()) -> list[tuple[Any, ...]]:
        with psycopg.connect(postgres_url(), autocommit=True) as database, database.cursor() as cursor:
            if rows:
                cursor.executemany(sql, [each.values for each in rows])
            else:
                cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def append(self, rows: Sequence[Row]) -> None:
        self.run(f"INSERT INTO {self.table} ({', '.join(COLUMNS)}) VALUES (%s, %s, %s, %s, %s)", rows)

    def values(self) -> list[tuple[Any, ...]]:
        return self.run(f"SELECT {', '.join(COLUMNS)} FROM {self.table}")

    def state(self) -> Any:
        return sorted(map(repr, self.values()))

    def bytes(self) -> bytes:
        """The rows: when PostgreSQL removes what it deleted is its own affair."""
        return repr(self.values()).encode()


KINDS: dict[str, type[Lake]] = {
    "folder": Folder,
    "delta": Delta,
    "iceberg": Iceberg,
    "sqlite": Sqlite,
    "postgresql": Postgres,
}


def make_lake(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """An empty log of a kind."""
    if kind == "iceberg":
        named = {"TYPE": "sql", "URI": f"sqlite:///{folder}/catalog.db", "WAREHOUSE": f"file://{folder}/lake"}
        for name, text in named.items():
            monkeypatch.setitem(os.environ, f"PYICEBERG_CATALOG__LAKE__{name}", text)
        monkeypatch.setattr(catalogs, "_ENV_CONFIG", Config())  # pyiceberg reads it when it is imported
    return KINDS[kind](folder)
