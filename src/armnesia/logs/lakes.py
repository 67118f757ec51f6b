"""Decisions in Delta and Iceberg tables, on this machine or in an object store.

The table's own library tells which version is the last when a source is opened: deltalake, or a catalog of
pyiceberg. From then on this version is read, by DuckDB's extensions, whatever happens to the table.
"""

import glob
import gzip
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError, UnknownCatalogError
from armnesia.core.memory import import_sparing
from armnesia.core.messages import listed
from armnesia.core.urls import may_hold_password, redacted
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, DuckDBConnection, connected
from armnesia.logs.files import SCHEMAS, misled_columns, top_columns, type_in_file
from armnesia.logs.source import Scan, Source, Version
from armnesia.logs.sql import Column, literal, qualified
from armnesia.logs.stores import is_remote, reach

METADATA_FILE = ".metadata.json"
_MAPPING = "delta.columnMapping"
_INTEGERS = ("byte", "short", "integer", "long")


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
            reach(connection, self.place)
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

    def _with_columns(self, connection: Connection, files: Sequence[str]) -> Self:
        """The same source with its columns; `files` are those with its rows."""
        described = connection.rows(f"DESCRIBE SELECT * FROM {self.scan(connection).table}")
        misled = misled_columns(connection, files) if files else set()
        # Files may know a column by another name, so that no column of text is trusted if one misleads.
        columns = {
            name: Column(qualified(name), type_, misleads=bool(misled)) for name, type_, *_ in described
        }
        return replace(self, stored=columns)

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
        fields = json.loads(opened.schema().to_json())["fields"]
        with made.connection() as connection:
            files = made._files(connection, opened)
            is_by_id = metadata.configuration.get(f"{_MAPPING}.mode") == "id"
            made._check_columns(connection, files, fields, is_by_id=is_by_id)
            made = made._with_columns(connection, files)
        for name in metadata.partition_columns:
            if made.stored[name].type == "BLOB":
                fault = InvalidLogError(f"partition {name!r} holds bytes, which DuckDB takes for text")
                made = replace(made, stored={**made.stored, name: Column("NULL", "BLOB", fault=fault)})
        return made

    def _files(self, connection: Connection, opened: Any) -> list[str]:
        """The files of the version; refuse a table that DuckDB cannot read, or whose files are gone."""
        sql = f"SELECT data_file FROM delta_list_files({literal(self.place)}{self.options})"
        try:
            files = [path for (path,) in connection.rows(sql)]
        except InvalidLogError:
            protocol = opened.protocol()
            features = listed(protocol.reader_features or ["none"])
            raise self._refused(
                f"DuckDB knows no such table; it needs version {protocol.min_reader_version} of the reader"
                f" protocol, and its features are {features}"
            ) from None
        gone = [path for path in files if not is_remote(path) and not os.path.exists(path)]
        if gone:
            raise self._refused(
                f"its file {gone[0]!r} is not there; DuckDB also looks in the wrong place if the name of a"
                " folder ends in a letter beyond ASCII"
            )
        return files

    def _check_columns(
        self, connection: Connection, files: Sequence[str], fields: Sequence[Any], *, is_by_id: bool
    ) -> None:
        """Refuse files in which DuckDB finds no values, or others, for a column of the table."""
        if not files:
            return
        names = {each["metadata"].get(f"{_MAPPING}.physicalName", each["name"]): each for each in fields}
        by_id = {each["metadata"].get(f"{_MAPPING}.id"): name for name, each in names.items()}
        for _, stored in connection.rows(SCHEMAS, {"files": list(map(glob.escape, files))}):
            for own in top_columns(stored):
                if is_by_id and by_id.get(own["field_id"], own["name"]) != own["name"]:
                    raise self._refused(
                        "its columns are mapped by id, and files have them under other names, where DuckDB"
                        " finds no values: write the table anew, or map its columns by name"
                    )
                declared = names.get(own["name"], {}).get("type")
                if declared in _INTEGERS and own["type"] not in ("INT32", "INT64"):  # 0.7 would be 1
                    raise self._refused(
                        f"a file has another type, {type_in_file(own)}, for a column of type {declared}:"
                        " write the table anew"
                    )


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
            return made._with_columns(connection, made._files(connection))

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

    def _files(self, connection: Connection) -> list[str]:
        """The files with rows; refuse what DuckDB reads wrongly."""
        sql = (
            f"SELECT file_path, content, file_format FROM iceberg_metadata({literal(self.place)}"
            f"{self.options}) WHERE status <> 'DELETED'"
        )
        files = []
        for path, content, format_ in connection.rows(sql):
            if content == "EQUALITY_DELETES":  # DuckDB deletes rows without a value too
                raise self._refused("it has equality deletes, which are not supported; compact it first")
            if content == "EXISTING":
                files.append(local_path(path))
                if format_ != "PARQUET":
                    raise self._refused(f"its files must be Parquet; {path!r} is {format_}")
        return files


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
    import_sparing("deltalake")
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
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust; it is in no module
            raise
        reason = "deltalake failed; does a process use it that was forked? Start processes by spawn"
    raise InvalidLogError(f"source {location!r} cannot be read: {reason}")


def iceberg_table(location: str) -> Any:
    """The table as a catalog of pyiceberg has it now."""
    catalog, *identifier = location.removeprefix("iceberg:").split(".")
    if not catalog or len(identifier) < 2 or not all(identifier) or may_hold_password(location):
        raise InvalidInputError(
            "an Iceberg table must be named iceberg:CATALOG.NAMESPACE.TABLE or"
            f" iceberg:PATH/metadata/….metadata.json; got {redacted(location)!r}"
        )
    import_sparing("pyarrow")  # which pyiceberg imports
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
