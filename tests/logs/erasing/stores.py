"""The same rows in every kind of source that rows are erased from, read and searched without the package."""

import os
import sqlite3
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import sql as iceberg_sql

from armnesia.logs import Source, open_source
from armnesia.logs.erasing import open_eraser
from armnesia.logs.erasing.eraser import SourceEraser
from tests.databases import fresh_schema, postgres_url

Row = tuple[Any, ...]

COLUMNS = ("user", "action", "reward", "page")
N_PEOPLE = 120


@cache
def name_of(person: int) -> str:
    """A long name, which no file has by chance."""
    return f"{np.random.default_rng(person).bytes(24).hex()}-person"


def made_rows(part: int, n_rows: int = 400) -> list[Row]:
    """Rows of all people, and some of nobody, with rewards that no file has by chance."""
    generator = np.random.default_rng(1000 + part)
    return [
        (
            name_of((7 * row + part) % N_PEOPLE) if row % 13 else None,
            "AB"[row % 2],
            float(generator.random()),
            f"page-{row % 5}",
        )
        for row in range(n_rows)
    ]


def arrow_rows(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    types = (pa.string(), pa.string(), pa.float64(), pa.string())
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=COLUMNS)


def tuples(table: pa.Table) -> list[Row]:
    return list(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=repr)


class Store(ABC):
    """A source in a folder or on a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def with_parts(self, number: int = 3) -> list[Row]:
        """Write some parts, one after the other; all their rows."""
        rows: list[Row] = []
        for part in range(number):
            self.append(made_rows(part))
            rows += made_rows(part)
        return rows

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def rows(self) -> list[Row]:
        """All rows, read without the package."""

    @abstractmethod
    def open(self) -> Source: ...

    def eraser(self) -> SourceEraser:
        return open_eraser(self.open())

    def contents(self) -> Iterator[bytes]:
        """What all files of the table hold, as it is and decoded."""
        for path in sorted(self.folder.rglob("*")):
            yield os.fsencode(path.name)
            if path.is_file():
                content = path.read_bytes()
                yield content
                if content[:4] == b"PAR1":
                    yield _parquet_text(path)
                elif content[:4] == b"Obj\x01":
                    yield from _avro_blocks(content)


class ParquetStore(Store):
    def append(self, rows: Sequence[Row]) -> None:
        self.folder.mkdir(exist_ok=True)
        number = len(list(self.folder.glob("*.parquet")))
        path = self.folder / f"part-{number}.parquet"
        pq.write_table(arrow_rows(rows), path, compression="none", row_group_size=150)

    def rows(self) -> list[Row]:
        paths = sorted(self.folder.glob("*.parquet"))
        return [row for path in paths for row in tuples(pq.ParquetFile(path).read())]

    def open(self) -> Source:
        return open_source(str(self.folder / "*.parquet"), action="action", reward="reward")


class DeltaStore(Store):
    def append(self, rows: Sequence[Row]) -> None:
        options = deltalake.WriterProperties(compression="UNCOMPRESSED")
        table = arrow_rows(rows)
        deltalake.write_deltalake(str(self.folder), table, mode="append", writer_properties=options)

    def rows(self) -> list[Row]:
        return tuples(pa.table(deltalake.DeltaTable(str(self.folder)).to_pyarrow_table()))

    def open(self) -> Source:
        return open_source(f"delta:{self.folder}", action="action", reward="reward", whole_rows=False)


class IcebergStore(Store):
    """A table of a catalog that the variables of the environment name; see `iceberg_variables`."""

    def catalog(self) -> iceberg_sql.SqlCatalog:
        self.folder.mkdir(exist_ok=True)
        return iceberg_sql.SqlCatalog("lake", **catalog_properties(self.folder))

    def table(self) -> Any:
        return self.catalog().load_table("logs.clicks")

    def append(self, rows: Sequence[Row]) -> None:
        catalog = self.catalog()
        catalog.create_namespace_if_not_exists("logs")
        properties = {"write.parquet.compression-codec": "uncompressed"}
        table = catalog.create_table_if_not_exists(
            "logs.clicks", schema=arrow_rows([]).schema, properties=properties
        )
        table.append(arrow_rows(rows))

    def rows(self) -> list[Row]:
        return tuples(self.table().scan().to_arrow())

    def open(self) -> Source:
        return open_source("iceberg:lake.logs.clicks", action="action", reward="reward", whole_rows=False)


class SqliteStore(Store):
    @property
    def path(self) -> Path:
        return self.folder / "log.db"

    def append(self, rows: Sequence[Row]) -> None:
        self.folder.mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS clicks (user, action, reward, page)")
            connection.execute("CREATE INDEX IF NOT EXISTS by_user ON clicks (user)")
            connection.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?)", rows)

    def rows(self) -> list[Row]:
        with closing(sqlite3.connect(self.path)) as connection:
            return list(connection.execute("SELECT user, action, reward, page FROM clicks"))

    def open(self) -> Source:
        return open_source(f"sqlite:///{self.path}", action="action", reward="reward", table="clicks")


class PostgresStore(Store):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.schema = fresh_schema()
        with self.connected() as connection:
            connection.execute(f"CREATE SCHEMA {self.schema}")
            typed = '"user" text, action text, reward float8, page text'
            connection.execute(f"CREATE TABLE {self.schema}.clicks ({typed})")
            connection.execute(f'CREATE INDEX ON {self.schema}.clicks ("user")')

    def connected(self) -> Any:
        return psycopg.connect(postgres_url(), autocommit=True)

    def append(self, rows: Sequence[Row]) -> None:
        with self.connected() as connection, connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {self.schema}.clicks VALUES (%s, %s, %s, %s)", rows)

    def rows(self) -> list[Row]:
        with self.connected() as connection:
            return list(connection.execute(f"SELECT * FROM {self.schema}.clicks"))

    def open(self) -> Source:
        table = f"{self.schema}.clicks"
        return open_source(postgres_url(), action="action", reward="reward", table=table)

    def contents(self) -> Iterator[bytes]:
        """The files of the table and its indexes on the server, which runs on this machine."""
        with self.connected() as connection:
            connection.execute("CHECKPOINT")
            ((folder,),) = connection.execute("SHOW data_directory").fetchall()
            found = connection.execute(
                "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relnamespace = %s::regnamespace"
                " AND relkind IN ('r', 'i')",
                (self.schema,),
            ).fetchall()
        for (path,) in found:
            yield Path(folder, path).read_bytes()


STORES: dict[str, type[Store]] = {
    "parquet": ParquetStore,
    "delta": DeltaStore,
    "iceberg": IcebergStore,
    "sqlite": SqliteStore,
    "postgresql": PostgresStore,
}


def catalog_properties(folder: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def iceberg_variables(folder: Path) -> dict[str, str]:
    """What names the catalog of a store to pyiceberg, which reads it when it is imported."""
    named = {
        f"PYICEBERG_CATALOG__LAKE__{name.upper()}": text for name, text in catalog_properties(folder).items()
    }
    return {**named, "PYICEBERG_CATALOG__LAKE__TYPE": "sql"}


def needles(rows: Iterable[Row]) -> set[bytes]:
    """What must not be found of rows: their names, and their rewards as numbers and as text."""
    found: set[bytes] = set()
    for user, _, reward, _ in rows:
        if user is not None:
            found |= {str(user).encode(), struct.pack("<d", reward), struct.pack(">d", reward)}
            found.add(repr(reward).encode())
    return found


def found_in(contents: Iterable[bytes], wanted: Iterable[bytes]) -> set[bytes]:
    whole = b"\0".join(contents)
    return {each for each in wanted if each in whole}


def _parquet_text(path: Path) -> bytes:
    """All values, and all statistics."""
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(number).to_dict() for number in range(file.metadata.num_row_groups)]
        return repr((file.read().to_pylist(), groups, file.metadata.metadata)).encode()


def _avro_blocks(content: bytes) -> Iterator[bytes]:
    """The blocks of an Avro file, without their compression."""
    place = 4

    def number() -> int:
        nonlocal place
        shift = value = 0
        while True:
            byte = content[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return (value >> 1) ^ -(value & 1)

    def text() -> bytes:
        nonlocal place
        size = number()
        place += size
        return content[place - size : place]

    described: dict[bytes, bytes] = {}
    while count := number():
        for _ in range(abs(count)):
            key = text()
            described[key] = text()
    place += 16
    while place < len(content):
        number()
        block = text()
        place += 16
        yield zlib.decompress(block, -15) if described.get(b"avro.codec") == b"deflate" else block
