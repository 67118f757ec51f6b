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
    columns = zip(*(row.values for row in rows), strict=True)
    return pa.table(
        [pa.array(own, kind) for own, kind in zip(columns, TYPES, strict=True)], names=list(COLUMNS)
    )


class Lake(ABC):
    """A log in a folder or on a server."""

    options: tuple[str, ...] = ()
    """What an ingest has to be told beside its columns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "lake"
        self.folder.mkdir()

    @property
    @abstractmethod
    def source(self) -> str: ...

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def values(self) -> list[tuple[Any, ...]]:
        """Every row, read by another program: DuckDB, deltalake, pyiceberg, sqlite3 or psycopg."""

    def bytes(self) -> bytes:
        """Everything that the log has on the disk."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return b"".join(path.read_bytes() for path in files)


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
        options = deltalake.WriterProperties(compression="UNCOMPRESSED")
        deltalake.write_deltalake(str(self.folder), arrow(rows), mode="append", writer_properties=options)

    def bytes(self) -> bytes:
        """Without the log, which holds lowest and highest values of files until its own retention is over."""
        return b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*.parquet")))

    def values(self) -> list[tuple[Any, ...]]:
        return _values(pa.table(deltalake.DeltaTable(str(self.folder)).to_pyarrow_table()))


class Iceberg(Lake):
    source = "iceberg:lake.logs.clicks"

    def table(self, rows: Sequence[Row] = ()) -> Any:
        catalog = load_catalog("lake")
        catalog.create_namespace_if_not_exists("logs")
        return catalog.create_table_if_not_exists(
            "logs.clicks", schema=arrow(rows or [Row("", "", "", 0)]).schema
        )

    def append(self, rows: Sequence[Row]) -> None:
        self.table().append(arrow(rows))

    def values(self) -> list[tuple[Any, ...]]:
        return _values(self.table().scan().to_arrow())


class Sqlite(Lake):
    options = ("--table", "clicks")

    @property
    def source(self) -> str:
        return f"sqlite:///{self.folder}/log.db"

    def append(self, rows: Sequence[Row]) -> None:
        with closing(sqlite3.connect(self.folder / "log.db")) as database, database:
            database.execute(
                f"CREATE TABLE IF NOT EXISTS clicks (number INTEGER PRIMARY KEY, {', '.join(COLUMNS)})"
            )
            sql = f"INSERT INTO clicks ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?)"
            database.executemany(sql, [row.values for row in rows])

    def values(self) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "log.db")) as database:
            return list(database.execute(f"SELECT {', '.join(COLUMNS)} FROM clicks"))


class Postgres(Lake):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.schema = fresh_schema()
        self.options = ("--table", f"{self.schema}.clicks")
        typed = "event text, person text, arm text, reward float8, country text"
        with self.connected() as database:
            database.execute(f"CREATE SCHEMA {self.schema}")
            database.execute(f"CREATE TABLE {self.schema}.clicks (number bigserial, {typed})")

    def connected(self) -> Any:
        return psycopg.connect(postgres_url(), autocommit=True)

    @property
    def source(self) -> str:
        return postgres_url()

    def append(self, rows: Sequence[Row]) -> None:
        sql = f"INSERT INTO {self.schema}.clicks ({', '.join(COLUMNS)}) VALUES (%s, %s, %s, %s, %s)"
        with self.connected() as database, database.cursor() as cursor:
            cursor.executemany(sql, [row.values for row in rows])

    def values(self) -> list[tuple[Any, ...]]:
        with self.connected() as database:
            return list(database.execute(f"SELECT {', '.join(COLUMNS)} FROM {self.schema}.clicks"))

    def bytes(self) -> bytes:
        return b""  # when PostgreSQL removes what it deleted is its own affair


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
