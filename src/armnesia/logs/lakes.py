"""Decisions in Delta and Iceberg tables, on this machine or in an object store.

The table's own library tells which version is the last when a source is opened: deltalake, or a catalog of
pyiceberg. From then on this version is read, by DuckDB's extensions, whatever happens to the table.
"""

import glob
import gzip
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError, UnknownCatalogError
from armnesia.core.urls import is_remote, may_hold_password, redacted
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, DuckDBConnection, connected
from armnesia.logs.refusals import in_words
from armnesia.logs.source import Scan, Source, Version
from armnesia.logs.sql import Column, literal, qualified

METADATA_FILE = ".metadata.json"


@dataclass(frozen=True, eq=False)
class LakeSource(Source):
    """A table at the version that was the last when it was opened."""

    place: str = ""
    """The folder of a Delta table, or the file of metadata of an Iceberg table."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What `version` gives."""
    options: str = ""
    """How the extension is told which version to read, and how."""
    stored: Mapping[str, Column] = field(default_factory=dict)
    kind: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]

    @contextmanager
    def connection(self) -> Iterator[DuckDBConnection]:
        """A connection that reads this kind of tables, where this one is."""
        with connected(self.location) as connection:
            connection.reach(self.place)
            for extension in self.extensions:
                connection.load(extension)
            yield connection

    def scan(self, connection: Connection) -> Scan:
        """The columns of the table at its version."""
        # Bounds in a file leave NaN out; DuckDB would conclude that there is none.
        return Scan(
            f"{self.kind}_scan({literal(self.place)}, can_have_nan = true{self.options})", self.stored
        )

    def version(self) -> Version:
        """Which table it is, and which version of it."""
        return self.state

    def _with_columns(self, connection: Connection) -> Self:
        """The same source with its columns."""
        described = connection.rows(f"DESCRIBE SELECT * FROM {self.scan(connection).table}")
        return replace(self, stored={name: Column(qualified(name), type_) for name, type_, *_ in described})

    def _refused(self, reason: str) -> InvalidLogError:
        return InvalidLogError(f"source {self.location!r} cannot be read: {reason}")


@dataclass(frozen=True, eq=False)
class DeltaSource(LakeSource):
    """A Delta table: `delta:PATH` or `delta:URL`."""

    kind: ClassVar[str] = "delta"
    erased_by: ClassVar[tuple[str, ...]] = ("delta", "DeltaEraser")
    extensions: ClassVar[tuple[str, ...]] = ("delta",)

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "DeltaSource":
        """The table in a folder."""
        place = _place(location, "delta:")
        opened = delta_table(f"delta:{place}", place)
        number, metadata = int(opened.version()), opened.metadata()
        state = {"table": str(metadata.id), "version": number}
        made = cls(f"delta:{place}", columns, place=place, state=state, options=f", version = {number}")
        if metadata.configuration.get("delta.columnMapping.mode") == "id":
            raise made._refused(
                "its columns are mapped by id, where DuckDB finds no values in some tables: write the table"
                " anew, or map its columns by name"
            )
        with made.connection() as connection:
            return made._with_columns(connection)._with_faults(connection, opened.schema().fields)

    def _with_faults(self, connection: Connection, fields: Any) -> Self:
        """Refuse columns that files have with types whose values DuckDB would change: 0.7 would be 1."""
        listing = f"SELECT data_file FROM delta_list_files({literal(self.place)}{self.options})"
        files = [glob.escape(path) for (path,) in connection.rows(listing)]
        rows = "read_parquet($files, union_by_name = true, hive_partitioning = false)"
        found = connection.rows(f"DESCRIBE SELECT * FROM {rows}", {"files": files}) if files else []
        in_files, stored = {name: type_ for name, type_, *_ in found}, dict(self.stored)
        for each in fields:
            name, type_ = each.name, stored[each.name].full_type
            has = in_files.get(each.metadata.get("delta.columnMapping.physicalName", name), type_)
            fits = f"SELECT can_cast_implicitly(NULL::{has}, NULL::{type_})"
            if has != type_ and connection.rows(fits) != [(True,)]:
                fault = self._refused(f"column {name!r} is {type_}, and {has} in a file: write it again")
                stored[name] = replace(stored[name], fault=fault)
        return replace(self, stored=stored)


@dataclass(frozen=True, eq=False)
class IcebergSource(LakeSource):
    """An Iceberg table: `iceberg:CATALOG.NAMESPACE.TABLE`, or `iceberg:` and a file of its metadata."""

    kind: ClassVar[str] = "iceberg"
    erased_by: ClassVar[tuple[str, ...]] = ("iceberg", "IcebergEraser")
    extensions: ClassVar[tuple[str, ...]] = ("avro", "iceberg")

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "IcebergSource":
        """The table of a catalog as it is now, or one version of a table for good."""
        if location.endswith(METADATA_FILE):
            place = _place(location, "iceberg:")
            location = f"iceberg:{place}"
        else:
            place = local_path(iceberg_table(location).metadata_location)
        made = cls(location, columns, place=place)
        with made.connection() as connection:
            metadata, is_packed = made._metadata(connection)
            names = {"table": "table-uuid", "snapshot": "current-snapshot-id", "schema": "current-schema-id"}
            state = {name: metadata.get(key) for name, key in names.items()}
            packed = ", metadata_compression_codec = 'gzip'" if is_packed else ""
            made = replace(made, state=state, options=packed)
            made._check_files(connection)
            return made._with_columns(connection)

    def _metadata(self, connection: Connection) -> tuple[dict[str, Any], bool]:
        """What the file of metadata says, and whether it is compressed."""
        found = connection.rows(f"SELECT content FROM read_blob({literal(glob.escape(self.place))})")
        if not found:
            raise self._refused("there is no such file")
        data = found[0][0]
        is_packed = data[:2] == b"\x1f\x8b"
        try:
            return dict(json.loads(gzip.decompress(data) if is_packed else data)), is_packed
        except (OSError, ValueError):
            raise self._refused("its metadata is no JSON") from None

    def _check_files(self, connection: Connection) -> None:
        """Refuse what DuckDB reads wrongly."""
        sql = (
            f"SELECT file_path, content, file_format FROM iceberg_metadata({literal(self.place)}"
            f"{self.options}) WHERE status <> 'DELETED'"
        )
        for path, content, format_ in connection.rows(sql):
            if content == "EQUALITY_DELETES":  # DuckDB deletes rows without a value too
                raise self._refused("it has equality deletes, which are not supported; compact it first")
            if content == "EXISTING" and format_ != "PARQUET":
                raise self._refused(f"its files must be Parquet; {path!r} is {format_}")


def _place(name: str, scheme: str) -> str:
    """The absolute path, or the URL, of a table; refuse one with credentials.

    >>> _place("delta:/logs/../clicks", "delta:"), _place("delta:s3://logs/clicks", "delta:")
    ('/clicks', 's3://logs/clicks')
    """
    place = name.removeprefix(scheme).removeprefix("file://")
    if not place or may_hold_password(place.partition("://")[2] or place) or "?" in place.partition("://")[2]:
        raise InvalidInputError(
            f"a table must be named {scheme}PATH or {scheme}URL, without credentials, which belong into the"
            f" environment; got {scheme}{redacted(place)}"
        )
    return place if is_remote(place) else os.path.abspath(os.path.expanduser(place))


def local_path(uri: str) -> str:
    """A path on this machine without a scheme; any other URL as it is.

    >>> local_path("file:///logs/a%20b"), local_path("file:/logs/a"), local_path("s3://logs/a")
    ('/logs/a%20b', '/logs/a', 's3://logs/a')
    """
    return uri.removeprefix("file://") if uri.startswith("file://") else uri.removeprefix("file:")


def delta_table(location: str, place: str) -> Any:
    """The table as deltalake opens it."""
    with MissingExtraError.unless_installed("Reading Delta tables", "lakes"):
        import deltalake  # noqa: PLC0415 (an extra)
    reasons = {"TableNotFoundError": "there is no folder _delta_log in it, so no table"}
    said = f"source {location!r} cannot be read"
    with warnings.catch_warnings(action="ignore"), in_words(said, "deltalake failed ({})", reasons):
        return deltalake.DeltaTable(place)


def iceberg_table(location: str) -> Any:
    """The table as a catalog of pyiceberg has it now."""
    catalog, *identifier = location.removeprefix("iceberg:").split(".")
    if not catalog or len(identifier) < 2 or not all(identifier) or may_hold_password(location):
        raise InvalidInputError(
            "an Iceberg table must be named iceberg:CATALOG.NAMESPACE.TABLE or"
            f" iceberg:PATH/metadata/….metadata.json; got {redacted(location)!r}"
        )
    with MissingExtraError.unless_installed("Reading Iceberg tables of a catalog", "lakes"):
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 (an extra)
    reasons = {"NoSuchTableError": "its catalog has no such table"}
    said = f"source {location!r} cannot be read"
    with warnings.catch_warnings(action="ignore"), in_words(said, "its catalog failed ({})", reasons):
        try:
            found = load_catalog(catalog)
        except ValueError as error:
            if "URI missing" not in str(error):
                raise
            raise UnknownCatalogError(
                f"source {location!r}: pyiceberg found no catalog {catalog!r}; it looks for it in the first"
                " .pyiceberg.yaml of the folder PYICEBERG_HOME, the home folder and the working folder, and"
                f" in the environment (PYICEBERG_CATALOG__{catalog.upper()}__URI)"
            ) from None
        return found.load_table(tuple(identifier))
