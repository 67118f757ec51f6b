"""Every kind of source: how rows are written to it, and what it then holds."""

import csv
import gzip
import io
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import deltalake
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

from tests.databases import fresh_schema, postgres_url
from tests.logs.conformance.expected import is_missing
from tests.logs.lake_tables import iceberg_catalog, static_name
from tests.logs.spark import spark

Held = dict[str, list[Any]]
"""The values of each column, as a source holds them."""


class Column(NamedTuple):
    """Values, their type in Arrow and Parquet, and in PostgreSQL where it is no obvious one."""

    values: list[Any]
    type: pa.DataType
    postgres: str | None = None


Rows = dict[str, Column]


class Stored(NamedTuple):
    """A source that was written: its name or the object, what it holds, and the table in a database."""

    source: Any
    held: Held
    table: str | None = None


@dataclass
class Place:
    """Where sources are written: a folder, a catalog of Iceberg tables, and a schema on a server."""

    folder: Path
    made: dict[Any, Stored] = field(default_factory=dict)

    def path(self, ending: str = "") -> Path:
        """A new path, in a new folder."""
        path = self.folder / uuid.uuid4().hex / f"log{ending}"
        path.parent.mkdir()
        return path

    def directory(self) -> Path:
        path = self.path()
        path.mkdir()
        return path

    @cached_property
    def catalog(self) -> SqlCatalog:
        return iceberg_catalog(self.folder / "lake")

    @cached_property
    def schema(self) -> str:
        name = fresh_schema()
        self.connection.execute(f"CREATE SCHEMA {name}")
        return name

    @cached_property
    def connection(self) -> psycopg.Connection[Any]:
        return psycopg.connect(postgres_url(), autocommit=True)

    def close(self) -> None:
        if "schema" in self.__dict__:
            self.connection.execute(f"DROP SCHEMA {self.schema} CASCADE")
        if "connection" in self.__dict__:
            self.connection.close()


def arrow(rows: Rows) -> pa.Table:
    arrays = [pa.array(column.values, column.type, from_pandas=False) for column in rows.values()]
    return pa.Table.from_arrays(arrays, names=list(rows))


def as_arrow(rows: Rows) -> Held:
    return {name: arrow({name: column})[0].to_pylist() for name, column in rows.items()}


def as_pandas(rows: Rows) -> Held:
    """A column of integers with a missing value becomes one of floats."""
    held = as_arrow(rows)
    for name, column in rows.items():
        if pa.types.is_integer(column.type) and None in column.values:
            held[name] = [None if value is None else float(value) for value in held[name]]
    return held


def as_csv(rows: Rows) -> Held:
    """Everything is text; an empty field is a missing value."""
    return {
        name: [None if is_missing(value) or value == "" else _csv_text(value) for value in values]
        for name, values in as_arrow(rows).items()
    }


def _csv_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_sqlite(rows: Rows) -> Held:
    """It has integers, floats and text; a NaN is NULL."""
    return {name: [_sqlite_value(value) for value in values] for name, values in as_arrow(rows).items()}


def _sqlite_value(value: Any) -> Any:
    if is_missing(value):
        return None
    return int(value) if isinstance(value, bool) else float(value) if isinstance(value, Decimal) else value


def in_memory(rows: Rows) -> Held:
    return {name: column.values for name, column in rows.items()}


def write_csv(path: Path, held: Mapping[str, Iterable[Any]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if ".tsv" in path.name else ",", lineterminator="\n")
    writer.writerow(held)
    writer.writerows(zip(*held.values(), strict=True))
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_parquet(path: Path, table: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write_sqlite(path: Path, held: Held) -> str:
    """The table `log`, with columns of no type."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"CREATE TABLE log ({', '.join(map(quoted, held))})")
        marks = ", ".join("?" * len(held))
        file.executemany(f"INSERT INTO log VALUES ({marks})", zip(*held.values(), strict=True))
    return f"sqlite:///{path}"


def write_postgres(place: Place, types: Mapping[str, str], held: Held) -> str:
    table = f"{place.schema}.log_{uuid.uuid4().hex}"
    typed = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
    place.connection.execute(f"CREATE TABLE {table} ({typed})")
    with place.connection.cursor() as cursor:
        marks = ", ".join(["%s"] * len(types))
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", list(zip(*held.values(), strict=True)))
    return table


def postgres_type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamptz"
    return {
        pa.int64(): "bigint",
        pa.uint64(): "numeric(20)",
        pa.float64(): "float8",
        pa.float32(): "float4",
        pa.string(): "text",
        pa.bool_(): "boolean",
        pa.date32(): "date",
        pa.uuid(): "uuid",
        pa.binary(): "bytea",
    }[type_]


def _parquet_parts(rows: Rows, place: Place, names: tuple[str, str], glob: str = "") -> Stored:
    folder, table = place.directory(), arrow(rows)
    half = (len(table) + 1) // 2
    for name, part in zip(names, (table[:half], table[half:]), strict=True):
        write_parquet(folder / name, part)
    return Stored(str(folder / glob) if glob else str(folder), as_arrow(rows))


def _csv(rows: Rows, place: Place) -> Stored:
    held = as_csv(rows)
    return Stored(write_csv(place.path(".csv"), held), held)


def _delta(rows: Rows, place: Place) -> Stored:
    path = place.path()
    deltalake.write_deltalake(str(path), arrow(rows))
    return Stored(f"delta:{path}", as_arrow(rows))


def _iceberg(rows: Rows, place: Place) -> Stored:
    table = arrow(rows)
    written = place.catalog.create_table(f"logs.t{uuid.uuid4().hex}", schema=table.schema)
    written.append(table)
    return Stored(static_name(written), as_arrow(rows))


def _sqlite(rows: Rows, place: Place) -> Stored:
    held = as_sqlite(rows)
    return Stored(write_sqlite(place.path(".db"), held), held, "log")


def _postgres(rows: Rows, place: Place) -> Stored:
    types = {name: column.postgres or postgres_type(column.type) for name, column in rows.items()}
    held = as_arrow(rows)
    return Stored(postgres_url(), held, write_postgres(place, types, held))


def _spark(rows: Rows, place: Place) -> Stored:
    spark()
    return Stored(f"spark:parquet.`{write_parquet(place.path('.parquet'), arrow(rows))}`", as_arrow(rows))


def _in_pandas(rows: Rows, _: Place) -> Stored:
    return Stored(arrow(rows).to_pandas(), as_pandas(rows))


_LACKS = {
    "SQLite table": ("decimal", "date", "timestamp", "extension<arrow.uuid>", "uint"),
    "Delta": ("extension<arrow.uuid>", "uint", "decimal256"),
    "Iceberg": ("uint", "decimal256"),
    "Spark": ("extension<arrow.uuid>", "decimal256"),
    "polars": ("extension<arrow.uuid>", "decimal256"),
}
"""How types begin in Arrow that a kind of source does not have."""


def lacking(kind: str, rows: Rows) -> bool:
    """Whether rows cannot be written to a kind of source."""
    return any(str(column.type).startswith(_LACKS.get(kind, ())) for column in rows.values())


KINDS: dict[str, Callable[[Rows, Place], Stored]] = {
    "mapping": lambda rows, _: Stored(in_memory(rows), in_memory(rows)),
    "pandas": _in_pandas,
    "polars": lambda rows, _: Stored(pl.from_arrow(arrow(rows)), as_arrow(rows)),
    "Arrow": lambda rows, _: Stored(arrow(rows), as_arrow(rows)),
    "CSV": _csv,
    "Parquet file": lambda rows, place: Stored(
        write_parquet(place.path(".parquet"), arrow(rows)), as_arrow(rows)
    ),
    "Parquet folder": lambda rows, place: _parquet_parts(rows, place, ("a.parquet", "b.parquet")),
    "partitioned folder": lambda rows, place: _parquet_parts(
        rows, place, ("part=1/a.parquet", "part=2/a.parquet")
    ),
    "glob": lambda rows, place: _parquet_parts(rows, place, ("x/a.parquet", "y/b.parquet"), "*/*.parquet"),
    "Delta": _delta,
    "Iceberg": _iceberg,
    "SQLite table": _sqlite,
    "PostgreSQL table": _postgres,
    "Spark": _spark,
}
PARQUET = ("Parquet file", "Parquet folder", "partitioned folder", "glob")
