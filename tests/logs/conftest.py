"""The same rows in every kind of source that the package reads."""

import csv
import gzip
import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.logs import Log, Source, open_source, read_log
from armnesia.logs.values import is_missing
from tests.databases import fresh_schema, postgres_url
from tests.logs.lakes.tables import write_delta, write_iceberg
from tests.quick import quick_only

Table = dict[str, list[Any]]


class Schema(NamedTuple):
    """An empty schema on a PostgreSQL server, and a connection to it."""

    connection: psycopg.Connection[Any]
    name: str
    url: str

    def create(self, table: str, columns: dict[str, str], rows: list[tuple[Any, ...]]) -> str:
        """Create a table of these column types; its name with the schema."""
        typed = ", ".join(f'"{name}" {type_}' for name, type_ in columns.items())
        self.connection.execute(f"CREATE TABLE {self.name}.{table} ({typed})")
        marks = ", ".join(["%s"] * len(columns))
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {self.name}.{table} VALUES ({marks})", rows)
        return f"{self.name}.{table}"


class Stored:
    """Rows in one kind of source, ready to be read."""

    def __init__(self, source: Any, **options: Any) -> None:
        self.source, self.options = source, options

    def log(self, **arguments: Any) -> Log:
        return read_log(self.source, **self.options, **arguments)

    def open(self, **arguments: Any) -> Source:
        return open_source(self.source, **self.options, **arguments)


class OnlyArrowStream:
    """The least that an unknown dataframe library offers."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def is_text(values: list[Any]) -> bool:
    return any(isinstance(value, str) for value in values)


def categorical(table: Table) -> pd.DataFrame:
    return pd.DataFrame(table).astype({n: "category" for n, values in table.items() if is_text(values)})


def dictionary_encoded(table: Table) -> pa.Table:
    encoded = {n: pa.array(v).dictionary_encode() if is_text(v) else pa.array(v) for n, v in table.items()}
    return pa.table(encoded)


IN_MEMORY: dict[str, Callable[[Table], Any]] = {
    "mapping of lists": dict,
    "mapping of arrays": lambda table: {name: np.array(values) for name, values in table.items()},
    "mapping of series": lambda table: {name: pd.Series(values) for name, values in table.items()},
    "pandas": pd.DataFrame,
    "pandas nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas object": lambda table: pd.DataFrame(table, dtype=object),
    "pandas categorical": categorical,
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "polars lazy": lambda table: pl.LazyFrame(table, strict=False),
    "polars categorical": lambda table: pl.DataFrame(table).with_columns(
        pl.col(pl.String).cast(pl.Categorical)
    ),
    "pyarrow": pa.table,
    "pyarrow chunked": lambda table: pa.concat_tables([pa.table(table)[:3], pa.table(table)[3:]]),
    "pyarrow dictionary": dictionary_encoded,
    "narwhals": lambda table: nw.from_native(pl.DataFrame(table)),
    "narwhals lazy": lambda table: nw.from_native(pl.LazyFrame(table)),
    "arrow stream": lambda table: OnlyArrowStream(pa.table(table)),
}
CSV_FILES = ("csv", "csv.gz", "tsv", "tsv.gz", "CSV")
PARQUET_FILES = ("parquet", "pq")
TABLES = ("sqlite", "postgresql")
LAKES = ("delta", "iceberg")
TYPED = ("parquet", *LAKES)
"""Kinds whose columns have a type that is known before a row is read."""
KINDS = (*IN_MEMORY, *CSV_FILES, *PARQUET_FILES, *TABLES, *LAKES)
FEW_KINDS = (
    "mapping of lists",
    "mapping of arrays",
    "pandas",
    "pandas nullable",
    "polars",
    "polars lazy",
    "pyarrow",
    "csv",
    "parquet",
    "sqlite",
    "postgresql",
    "delta",
    "iceberg",
)
"""One kind for each way in which values are represented."""
# What values mean in every kind of source is in tests/logs/conformance, and quick.
QUICK_KINDS = ["mapping of lists", "pandas", "csv", "parquet", "sqlite", "postgresql"]
EVERY_KIND = pytest.mark.parametrize("kind", quick_only(QUICK_KINDS, KINDS), indirect=True)
SOME_KINDS = pytest.mark.parametrize("kind", quick_only(QUICK_KINDS, FEW_KINDS), indirect=True)


def write_csv(path: Path, table: Table) -> Path:
    """Write a CSV file in which nothing but a missing value is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if ".tsv" in path.name else ",", lineterminator="\n")
    writer.writerow(table)
    for row in zip(*table.values(), strict=True):
        writer.writerow("" if is_missing(value) else value for value in row)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_parquet(path: Path, table: Table) -> Path:
    pq.write_table(pa.table(table), path)
    return path


def write_sqlite(path: Path, table: Table) -> str:
    """Write the table `log` of an SQLite file, with columns of no type; its URL."""
    names = ", ".join(f'"{name}"' for name in table)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"CREATE TABLE log ({names})")
        marks = ", ".join("?" * len(table))
        file.executemany(f"INSERT INTO log VALUES ({marks})", zip(*table.values(), strict=True))
    return f"sqlite:///{path}"


def postgres_type(values: list[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    names = {str: "TEXT", int: "BIGINT", bool: "BOOLEAN", float: "FLOAT8"}
    return "FLOAT8" if kinds == {int, float} else names.get(kinds.pop() if len(kinds) == 1 else str, "TEXT")


@pytest.fixture
def schema() -> Iterator[Schema]:
    name = fresh_schema()
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield Schema(connection, name, postgres_url())
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of source that `stored` makes; parametrise it with `EVERY_KIND` or `SOME_KINDS`."""
    name: str = request.param
    return name


@pytest.fixture
def stored(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[Table], Stored]:
    """Put rows into a source of the kind."""

    def store(table: Table) -> Stored:
        if kind in IN_MEMORY:
            return Stored(IN_MEMORY[kind](table))
        if kind in CSV_FILES:
            return Stored(write_csv(tmp_path / f"log.{kind}", table))
        if kind in PARQUET_FILES:
            return Stored(write_parquet(tmp_path / f"log.{kind}", table))
        if kind in LAKES:
            write = write_delta if kind == "delta" else write_iceberg
            return Stored(write(tmp_path / "log", table))
        if kind == "sqlite":
            return Stored(write_sqlite(tmp_path / "log.db", table), table="log")
        schema: Schema = request.getfixturevalue("schema")
        types = {name: postgres_type(values) for name, values in table.items()}
        return Stored(schema.url, table=schema.create("log", types, list(zip(*table.values(), strict=True))))

    return store
