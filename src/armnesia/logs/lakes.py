"""Decisions in Delta and Iceberg tables, on this machine or in an object store.

The table's own library tells which version is the last when a source is opened: deltalake, or a catalog of
pyiceberg. From then on this version is read, by DuckDB's extensions, whatever happens to the table.
"""

import gzip
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError, UnknownCatalogError
from armnesia.core.urls import may_hold_password, redacted
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection
from armnesia.logs.source import Scan, Source, Version
from armnesia.logs.sql import Column, quoted
from armnesia.logs.stores import is_remote, reach

if TYPE_CHECKING:
    from armnesia.logs.erase.eraser import Eraser

METADATA_FILE = ".metadata.json"


@dataclass(frozen=True, eq=False)
class LakeSource(Source):
    """A table at the version that was the last when it was opened."""

    place: str = ""
    """The folder of a Delta table, or the file of metadata of an Iceberg table."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What `version` gives."""
    options: str = ""
    """How the extension is told which version to read."""
    stored: Mapping[str, Column] = field(default_factory=dict)
    kind: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]

    def scan(self, connection: Connection) -> Scan:
        """The columns of the table at its version."""
        reach(connection, self.place)
        for extension in self.extensions:
            connection.load(extension)
        # Bounds in a file leave NaN out; DuckDB would conclude that there is none.
        table = f"{self.kind}_scan({_literal(self.place)}, can_have_nan = true{self.options})"
        columns = self.stored
        if not columns:
            described = connection.rows(f"DESCRIBE SELECT * FROM {table}")
            columns = {name: Column(quoted(name), type_) for name, type_, *_ in described}
        return Scan(table, columns)

    def version(self) -> Version:
        """Which table it is, and which version of it."""
        return self.state

    def _described(self) -> "LakeSource":
        """The same source with its columns, which are looked up once."""
        with self.connection() as connection:
            return replace(self, stored=self.scan(connection).columns)


@dataclass(frozen=True, eq=False)
class DeltaSource(LakeSource):
    """A Delta table: `delta:PATH` or `delta:URL`."""

    kind: ClassVar[str] = "delta"
    extensions: ClassVar[tuple[str, ...]] = ("delta",)

    @classmethod
    def at(cls, location: Any, columns: Columns, table: str | None) -> "DeltaSource":
        """The table in a folder."""
        place = _place(location, "delta:")
        location = f"delta:{place}"
        opened = _delta_table(location, place)
        version, metadata = int(opened.version()), opened.metadata()
        state = {"table": str(metadata.id), "version": version}
        made = cls(location, columns, place=place, state=state, options=f", version = {version}")
        return made._described()

    def eraser(self) -> "Eraser":
        """What deletes rows of the table."""
        from armnesia.logs.erase.delta import DeltaEraser  # noqa: PLC0415

        return DeltaEraser(self)


@dataclass(frozen=True, eq=False)
class IcebergSource(LakeSource):
    """An Iceberg table: `iceberg:CATALOG.NAMESPACE.TABLE`, or `iceberg:` and a file of its metadata."""

    kind: ClassVar[str] = "iceberg"
    extensions: ClassVar[tuple[str, ...]] = ("avro", "iceberg")

    @classmethod
    def at(cls, location: Any, columns: Columns, table: str | None) -> "IcebergSource":
        """The table of a catalog, or one version of it for good."""
        if location.endswith(METADATA_FILE):
            place = _place(location, "iceberg:")
            location = f"iceberg:{place}"
        else:
            place = _plain(_iceberg_table(location).metadata_location)
        made = cls(location, columns, place=place)
        with made.connection() as connection:
            reach(connection, place)
            metadata, is_packed = made._metadata(connection)
        state = {
            "table": metadata["table-uuid"],
            "snapshot": metadata.get("current-snapshot-id"),
            "schema": metadata.get("current-schema-id"),
        }
        packed = ", metadata_compression_codec = 'gzip'" if is_packed else ""
        return replace(made, state=state, options=packed)._described()

    def _metadata(self, connection: Connection) -> tuple[dict[str, Any], bool]:
        """What the file of metadata says, and whether it is compressed."""
        ((data,),) = connection.rows(f"SELECT content FROM read_blob({_literal(self.place)})")
        is_packed = data[:2] == b"\x1f\x8b"
        try:
            found = json.loads(gzip.decompress(data) if is_packed else data)
            return dict(found), is_packed
        except ValueError:
            raise InvalidLogError(
                f"source {self.location!r} cannot be read: its metadata is no JSON"
            ) from None

    def eraser(self) -> "Eraser":
        """What deletes rows of the table."""
        from armnesia.logs.erase.iceberg import IcebergEraser  # noqa: PLC0415

        return IcebergEraser(self)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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


def _plain(uri: str) -> str:
    """A path on this machine without a scheme; any other URL as it is.

    >>> _plain("file:///logs/a%20b"), _plain("file:/logs/a"), _plain("s3://logs/a")
    ('/logs/a%20b', '/logs/a', 's3://logs/a')
    """
    return uri.removeprefix("file://") if uri.startswith("file://") else uri.removeprefix("file:")


def _delta_table(location: str, place: str) -> Any:
    """The table as deltalake opens it."""
    try:
        import deltalake  # noqa: PLC0415 (an extra)
        from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError.naming("Reading Delta tables", "lakes") from error
    try:
        return deltalake.DeltaTable(place)
    except TableNotFoundError:
        reason = "there is no folder _delta_log in it, and so no table"
    except Exception as error:
        reason = f"deltalake failed ({type(error).__name__})"
    raise InvalidLogError(f"source {location!r} cannot be read: {reason}")


def _iceberg_table(location: str) -> Any:
    """The table as a catalog of pyiceberg has it now."""
    catalog, *identifier = location.removeprefix("iceberg:").split(".")
    if not catalog or len(identifier) < 2 or not all(identifier) or may_hold_password(location):
        raise InvalidInputError(
            "an Iceberg table must be named iceberg:CATALOG.NAMESPACE.TABLE or"
            f" iceberg:PATH/metadata/….metadata.json; got {redacted(location)!r}"
        )
    try:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 (an extra)
        from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError.naming("Reading Iceberg tables of a catalog", "lakes") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load_catalog(catalog).load_table(tuple(identifier))
    except NoSuchTableError:
        reason = "the catalog has no such table"
    except Exception as error:
        if isinstance(error, ValueError) and "URI missing" in str(error):
            raise UnknownCatalogError(
                f"source {location!r}: pyiceberg found no catalog {catalog!r}; it looks for it in the first"
                " .pyiceberg.yaml of the folder PYICEBERG_HOME, the home folder and the working folder, and"
                f" in the environment (PYICEBERG_CATALOG__{catalog.upper()}__URI)"
            ) from None
        reason = f"its catalog failed ({type(error).__name__})"
    raise InvalidLogError(f"source {location!r} cannot be read: {reason}")
