"""The same rows in every kind of source that rows are erased from, read and searched without the erasers."""

import os
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import deltalake
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable
from pyiceberg.utils.config import Config

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.logs.engine import connected
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.source import Source, open_source
from tests.databases import fresh_schema, postgres_url

Row = tuple[Any, ...]
COLUMNS = ("user", "action", "reward", "event", "note")
TYPES = (pa.string(), pa.string(), pa.float64(), pa.string(), pa.int64())


PEOPLE = ("ann-of-the-hill", "bob-the-builder", "cat-from-the-sea")


def arrow(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, TYPES, strict=True)]
    return pa.Table.from_arrays(arrays, names=COLUMNS)


def tuples(table: pa.Table) -> list[Row]:
    return list(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))


class Store(ABC):
    """A source that each test has for itself."""

    kind: ClassVar[str]
    table: str | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def source(self, user_type: UserType | None = None, **options: Any) -> Source:
        given = {"id": "event", "table": self.table} | options
        return open_source(self.address, **given).named_by(user_type)

    def eraser(self, user_type: UserType | None = None, **options: Any) -> Eraser:
        return self.source(user_type, **options).eraser()

    @property
    def address(self) -> str:
        return str(self.folder)

    @abstractmethod
    def append(self, rows: list[Row]) -> None:
        """Add rows, in a file of their own where there are files; the first time, make the source."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """All rows, in any order."""

    def contents(self) -> Iterator[bytes]:
        """What the files hold, without compression."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                yield path.read_bytes()
                # A writer that was killed may leave a file that is not complete.
                with suppress(pa.ArrowInvalid, InvalidLogError):
                    yield from self.unpacked(path)

    @staticmethod
    def unpacked(path: Path) -> Iterator[bytes]:
        """What a compressed file holds."""
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                groups = [file.metadata.row_group(at).to_dict() for at in range(file.num_row_groups)]
                yield repr((file.read().to_pylist(), groups, file.metadata.metadata)).encode()
        if path.suffix == ".avro":
            with connected("avro") as connection:
                connection.load("avro")
                yield repr(connection.rows(f"SELECT * FROM read_avro('{path}')")).encode()

    def state(self) -> Any:
        """What is stored; two states are equal if they hold the same."""
        return {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def settle(self) -> None:
        """Wait until what a killed process has begun is at its end: for files, at once."""
        assert self.folder.is_dir()

    def restore(self, kept: Path) -> None:
        """Make all files as they are in another folder."""
        shutil.rmtree(self.folder)
        shutil.copytree(kept, self.folder)

    def files_with(self, name: str) -> int:
        return sum(name.encode() in content for content in self.contents())


class ParquetStore(Store):
    kind = "Parquet"

    def append(self, rows: list[Row]) -> None:
        number = len(list(self.folder.glob("*.parquet")))
        pq.write_table(arrow(rows), self.folder / f"{number}.parquet", row_group_size=3)

    def rows(self) -> list[Row]:
        return [row for path in sorted(self.folder.glob("*.parquet")) for row in tuples(pq.read_table(path))]


class DeltaStore(Store):
    kind = "Delta"
    options: ClassVar[dict[str, Any]] = {}

    @property
    def address(self) -> str:
        return f"delta:{self.folder}/clicks"

    @property
    def opened(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.folder / "clicks")

    def append(self, rows: list[Row]) -> None:
        self.write(rows)

    def write(self, rows: list[Row], **options: Any) -> None:
        deltalake.write_deltalake(self.folder / "clicks", arrow(rows), mode="append", **options)

    def rows(self) -> list[Row]:
        return tuples(self.opened.to_pyarrow_table())


class IcebergStore(Store):
    kind = "Iceberg"
    address = "iceberg:lake.logs.clicks"

    @cached_property
    def catalog(self) -> SqlCatalog:
        named = {"uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}/warehouse"}
        for name, text in named.items():
            os.environ[f"PYICEBERG_CATALOG__LAKE__{name.upper()}"] = text
        catalog._ENV_CONFIG = Config()  # read when pyiceberg is imported
        return SqlCatalog("lake", **named)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.catalog.create_namespace_if_not_exists("logs")

    @property
    def opened(self) -> IcebergTable:
        return self.catalog.load_table("logs.clicks")

    def append(self, rows: list[Row]) -> None:
        self.catalog.create_table_if_not_exists("logs.clicks", schema=arrow([]).schema).append(arrow(rows))

    def rows(self) -> list[Row]:
        return tuples(self.opened.scan().to_arrow())


class SQLiteStore(Store):
    kind = "SQLite"
    table = "clicks"
    declared = "CREATE TABLE clicks (user, action TEXT, reward REAL, event TEXT, note INTEGER)"

    @property
    def address(self) -> str:
        return f"sqlite:///{self.folder}/log.db"

    def run(self, sql: str, rows: list[Row] | None = None) -> list[Row]:
        with closing(sqlite3.connect(self.folder / "log.db")) as file, file:
            done = file.execute(sql) if rows is None else file.executemany(sql, rows)
            return done.fetchall()

    def append(self, rows: list[Row]) -> None:
        if not self.run("SELECT 1 FROM sqlite_schema WHERE name = 'clicks'"):
            self.run(self.declared)
        self.run("INSERT INTO clicks VALUES (?, ?, ?, ?, ?)", rows)

    def rows(self) -> list[Row]:
        return self.run("SELECT user, action, reward, event, note FROM clicks")


class PostgresStore(Store):
    kind = "PostgreSQL"
    table: str
    role: str | None = None
    """As whom the table is opened, if it is not the one who made it."""
    declared = 'TABLE {} ("user" text, action text, reward float8, event text, note bigint)'

    def __init__(self, folder: Path, schema: str | None = None) -> None:
        super().__init__(folder)
        self.schema = schema or fresh_schema()
        self.table = f"{self.schema}.clicks"

    @property
    def address(self) -> str:
        options = f"options=-c%20role%3D{self.role}"
        url = postgres_url()
        return f"{url}{'&' if '?' in url else '?'}{options}" if self.role else url

    def run(self, sql: str, rows: list[Row] | None = None) -> list[Row]:
        with psycopg.connect(postgres_url(), autocommit=True) as connection, connection.cursor() as cursor:
            if rows is None:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []
            cursor.executemany(sql, rows)
            return []

    def append(self, rows: list[Row]) -> None:
        self.run(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        self.run(f"CREATE {self.declared.format(f'IF NOT EXISTS {self.table}')}")
        self.run(f"INSERT INTO {self.table} VALUES (%s, %s, %s, %s, %s)", rows)

    def rows(self) -> list[Row]:
        return self.run(f'SELECT "user", action, reward, event, note FROM {self.table}')

    def contents(self) -> Iterator[bytes]:
        """The rows: when the server uses their space again is its own affair."""
        yield repr(self.rows()).encode()

    def locks(self) -> list[Row]:
        """Those of others on the table."""
        others = f"relation = to_regclass('{self.table}') AND pid <> pg_backend_pid()"
        return self.run(f"SELECT mode FROM pg_locks WHERE {others} ORDER BY 1")

    def state(self) -> Any:
        return self.locks(), sorted(self.rows(), key=key)

    def settle(self) -> None:
        while self.locks():
            pass

    def restore(self, kept: Path) -> None:
        self.run(f"DROP TABLE {self.table}")
        filled(self)


STORES: dict[str, type[Store]] = {
    each.kind: each for each in (ParquetStore, DeltaStore, IcebergStore, SQLiteStore, PostgresStore)
}


def made_rows(part: int, number: int = 12) -> list[Row]:
    """Rows of three people and of nobody."""
    users = (*PEOPLE, None)
    return [
        (users[at % 4], "AB"[at % 2], (at % 3) / 2, f"event-{part}-{at}", 100 * part + at)
        for at in range(number)
    ]


def key(row: Row) -> tuple[str, ...]:
    return tuple(map(repr, row))


def without(rows: list[Row], *users: Any, events: tuple[str, ...] = ()) -> list[Row]:
    return sorted((row for row in rows if row[0] not in users and row[3] not in events), key=key)


def filled(store: Store) -> list[Row]:
    """Two parts of rows are written; all of them."""
    parts = [made_rows(part) for part in (1, 2)]
    for each in parts:
        store.append(each)
    return [row for each in parts for row in each]
