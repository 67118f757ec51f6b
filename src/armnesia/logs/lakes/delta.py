"""Decisions in a Delta table, `delta:PATH` or `delta:URL`: deltalake reads the log, DuckDB the data files."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from armnesia.core.errors import InvalidLogError, MissingExtraError
from armnesia.core.memory import import_sparing
from armnesia.core.messages import listed
from armnesia.logs.lakes.files import LakeFiles, open_columns
from armnesia.logs.lakes.manifest import Commit, Effect
from armnesia.logs.lakes.snapshot import (
    DataFile,
    TableColumn,
    TableSnapshot,
    digest_of,
    reason_of,
    root_of,
    table_address,
    unreadable_table,
)
from armnesia.logs.lakes.source import LakeSource
from armnesia.logs.lakes.storage import RemoteStorage
from armnesia.logs.lakes.types import list_type, map_type, struct_type

_READ_FEATURES = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
"""Table features that concern readers, as far as they are known here."""
_MAPPING = "delta.columnMapping"
_TYPES = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
_UNCLEAR_PARTITIONS = {"binary", "timestamp"}
"""Types whose values the log may hold in several spellings, or without a time zone."""
_FILE_ACTIONS = {"add", "remove"}
_OTHER_ACTIONS = {"commitInfo", "metaData", "protocol", "txn", "cdc", "domainMetadata"}
"""Actions that change no row by themselves; what changes of columns is seen in the schema."""


class DeltaSource(LakeSource):
    """A Delta table in a folder, or in an object store that deltalake reads."""

    history: "DeltaLog"

    def _open(self, name: str) -> "DeltaLog":
        return DeltaLog(name)

    @property
    def compared_files(self) -> LakeFiles:
        """Also with structures that got fields later: older files have none of these."""
        return open_columns(self._grouped, set(self.columns.wanted()), by_name=True)


class DeltaLog:
    """The log of a Delta table, at a version of it, by default the last when it is opened."""

    def __init__(self, name: str, version: int | None = None) -> None:
        self.location, self._uri, self._is_local = table_address(name, "delta:")
        self._table = self._open(version)
        self._version = int(self._table.version())
        self._storage = None if self._is_local else RemoteStorage(self._remote_file)

    def _open(self, version: int | None) -> Any:
        try:
            import_sparing("deltalake")
            import deltalake  # noqa: PLC0415 (an extra)
            from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtraError.naming("Reading Delta tables", "lakes") from error
        with self.failures_in_words():
            try:
                return deltalake.DeltaTable(self._uri, version=version)
            except TableNotFoundError:
                is_gone = self._is_local and not os.path.isdir(self._uri)
                missing = "folder of this name" if is_gone else "folder _delta_log, and so no log"
                raise self._refused(f"there is no {missing}") from None

    @contextmanager
    def failures_in_words(self) -> Iterator[None]:
        """Refuse the table if deltalake fails, which passes on what object stores and its kernel raise."""
        try:
            yield
        except InvalidLogError:
            raise
        except Exception as error:
            raise self._refused(reason_of(error)) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
                raise
            raise self._refused("deltalake failed (PanicException)") from None

    def _refused(self, reason: str) -> InvalidLogError:
        return unreadable_table(self.location, "a Delta", reason)

    def _remote_file(self, path: str) -> Any:
        from deltalake._internal import DeltaFileSystemHandler  # noqa: PLC0415 (public only with pyarrow)

        return DeltaFileSystemHandler(self._uri).open_input_file(path)

    @property
    def table(self) -> Any:
        """The table of deltalake."""
        return self._table

    @property
    def address(self) -> str:
        """The path or URL of the table's folder."""
        return self._uri

    @property
    def is_local(self) -> bool:
        """Whether the folder is on this machine."""
        return self._is_local

    def file_at(self, path: str, size: int) -> DataFile:
        """A file in the folder, by its path there, as if it were of the table."""
        if self._storage is None:
            return DataFile(path, os.path.join(self._uri, path), size)
        return DataFile(path, self._storage.location_of(path, size), size)

    def at(self, version: int | None) -> "DeltaLog":
        """The log at another version."""
        return DeltaLog(self.location, version)

    def snapshot(self) -> TableSnapshot:
        """The columns and the files; refuse a table with features that are not known here."""
        features = self._features()
        metadata = self._table.metadata()
        mode = metadata.configuration.get(f"{_MAPPING}.mode", "none")
        if mode not in ("none", "name", "id") or (mode != "none" and "columnMapping" not in features):
            raise self._refused(
                f"its columns are mapped by {mode!r}, which its protocol does not provide for"
            )
        schema = self._table.schema().to_json()
        partitions = list(metadata.partition_columns)
        return TableSnapshot(
            "delta",
            self.location,
            str(metadata.id),
            self._version,
            tuple(_columns(json.loads(schema)["fields"], partitions, mode)),
            tuple(self._files("deletionVectors" in features)),
            digest_of(json.dumps([json.loads(schema), partitions, mode], sort_keys=True)),
            storage=self._storage,
            root=root_of(self._uri),
            columns_in_paths=frozenset(partitions),
        )

    def _features(self) -> set[str]:
        """The features that a reader must know; refuse others."""
        protocol = self._table.protocol()
        features = set(protocol.reader_features or ())
        if protocol.min_reader_version == 2:
            features.add("columnMapping")
        unknown = sorted(features - _READ_FEATURES)
        if protocol.min_reader_version > 3:
            raise self._refused(
                f"it needs version {protocol.min_reader_version} of the reader protocol; known is 3"
            )
        if unknown:
            raise self._refused(f"it has table features that are not supported: {listed(unknown)}")
        return features

    def _files(self, has_vectors: bool) -> Iterator[DataFile]:
        with self.failures_in_words():
            actions = self._table.get_add_actions()
            removed = self._removed_rows() if has_vectors else {}
        names = actions.schema.names
        columns = [actions.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")]
        values = actions.column("partition").to_pylist() if "partition" in names else [{}] * len(actions)
        for path, size, n_rows, partition in zip(*columns, values, strict=True):
            place = self._place_of(path)
            location = place if self._storage is None else self._storage.location_of(place, size)
            yield DataFile(path, location, size, n_rows, partition, removed.pop(place, ""))
        if removed:
            raise self._refused(
                f"it has a deletion vector of a file that it does not have: {listed(removed, 1)}"
            )

    def _place_of(self, path: str) -> str:
        """Where a file is, whose path in the log is percent-encoded; refuse one outside of the table."""
        parts = urlsplit(path)
        place = unquote(path)
        if parts.scheme == "file" and self._is_local:
            place = unquote(parts.path)
            if os.path.realpath(place).startswith(os.path.join(os.path.realpath(self._uri), "")):
                return place
        if parts.scheme or os.path.isabs(place) or ".." in place.split("/"):
            raise self._refused(f"its file {path!r} belongs to another table, as in a shallow clone")
        return os.path.join(self._uri, place) if self._is_local else place

    def _removed_rows(self) -> dict[str, str]:
        """The positions of removed rows, by the place of the file that they are in."""
        from arro3.core import list_flatten, list_offsets  # noqa: PLC0415 (needed by deltalake)

        root = self._table.table_uri
        found = {}
        for batch in self._table.deletion_vectors():
            uris, masks = batch.column("filepath").to_pylist(), batch.column("selection_vector")
            kept, offsets = np.asarray(list_flatten(masks)), np.asarray(list_offsets(masks)).tolist()
            for uri, start, end in zip(uris, offsets[:-1], offsets[1:], strict=True):
                place = unquote(urlsplit(uri).path) if self._is_local else unquote(uri.removeprefix(root))
                found[place] = ",".join(map(str, np.flatnonzero(~kept[start:end]).tolist()))
        return {place: rows for place, rows in found.items() if rows}

    def commits_since(self, version: int | None) -> list[Commit] | None:
        """The commits after a version; None if it is none of an earlier one, or if the log was cleaned up."""
        if version is None or version > self._version:
            return None
        commits: list[Commit] = []
        rows_of: dict[str, int | None] | None = None
        for number in range(version + 1, self._version + 1):
            actions = self.actions_of(number)
            if actions is None:
                return None
            if rows_of is None and _lacks_numbers(actions):
                rows_of = self._rows_per_file(number - 1)
            commits.append(_commit(number, actions, rows_of or {}))
            if rows_of is not None:
                rows_of |= {each["path"]: _number_of_rows(each) for each in _of_kind(actions, "add")}
        return commits

    def _rows_per_file(self, version: int) -> dict[str, int | None]:
        """How many rows each file had at a version, as far as the log still says."""
        try:
            files = self.at(version).snapshot().files
        except InvalidLogError:
            return {}  # the log before this version was cleaned up
        return {each.path: None if each.n_rows is None else each.n_rows - each.n_removed for each in files}

    def actions_of(self, version: int) -> list[dict[str, Any]] | None:
        """The actions of a commit; None if its file is gone."""
        try:
            return actions_in(self.read(f"_delta_log/{version:020}.json"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._refused(f"commit {version} cannot be read ({type(error).__name__})") from None

    def read(self, path: str) -> bytes:
        """What a file in the folder holds."""
        if self._is_local:
            with open(os.path.join(self._uri, path), "rb") as local:
                return local.read()
        file = self._remote_file(path)
        return bytes(file.read(file.size()))


def actions_in(data: bytes) -> list[dict[str, Any]]:
    """The actions in a file of the log, one in each line.

    >>> [set(each) for each in actions_in('{"txn": "ann\\u2028lee"}\\n{"commitInfo": {}}\\n'.encode())]
    [{'txn'}, {'commitInfo'}]
    """
    # Not by splitlines(), which also splits at characters that a name in the statistics may have.
    return [json.loads(line) for line in data.decode().split("\n") if line.strip()]


def _columns(fields: list[dict[str, Any]], partitions: list[str], mode: str) -> Iterator[TableColumn]:
    for each in fields:
        name, declared, metadata = each["name"], each["type"], each["metadata"]
        type_, stored = _sql_type(declared), name
        if mode != "none":
            stored = metadata[f"{_MAPPING}.{'id' if mode == 'id' else 'physicalName'}"]
        if name in partitions:
            stored = None
            if declared in _UNCLEAR_PARTITIONS:
                declared, type_ = f"{declared} as a partition column", None
        shown = declared if isinstance(declared, str) else declared["type"]
        nested = None if isinstance(declared, str) else _sql_type(declared, in_files=mode != "none")
        required = stored is not None and not each["nullable"]
        yield TableColumn(name, shown, type_, stored, required, nested_type=nested)


def _sql_type(declared: Any, *, in_files: bool = False) -> str | None:
    """A type of a Delta schema in DuckDB's SQL; None if it is not supported.

    Fields have the names of the table, or those that they have in files if the table maps columns.

    >>> _sql_type("decimal(9,2)"), _sql_type({"type": "array", "elementType": "long"}), _sql_type("variant")
    ('DECIMAL(9,2)', 'BIGINT[]', None)
    """
    if isinstance(declared, str):
        is_decimal = re.fullmatch(r"decimal\(\d+,\d+\)", declared)
        return declared.upper() if is_decimal else _TYPES.get(declared)
    if declared["type"] == "array":
        return list_type(_sql_type(declared["elementType"], in_files=in_files))
    if declared["type"] == "map":
        inner = (_sql_type(declared[each], in_files=in_files) for each in ("keyType", "valueType"))
        return map_type(*inner)
    return struct_type(
        (
            each["metadata"][f"{_MAPPING}.physicalName"] if in_files else each["name"],
            _sql_type(each["type"], in_files=in_files),
        )
        for each in declared["fields"]
    )


def _of_kind(actions: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [action[kind] for action in actions if kind in action]


def _lacks_numbers(actions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a commit that changes no data, as it says, does not say how many rows it removed."""
    removed = _of_kind(actions, "remove")
    return any(not each.get("dataChange", True) and _number_of_rows(each) is None for each in removed)


def _commit(
    version: int, actions: Sequence[Mapping[str, Any]], rows_of: Mapping[str, int | None] | None = None
) -> Commit:
    """What a commit did, by what its actions say of themselves, and by how many rows files had before it.

    >>> _commit(3, [{"add": {"path": "a", "dataChange": True}}, {"commitInfo": {}}]).effect
    <Effect.APPENDED: 'appended'>
    >>> removed = {"remove": {"path": "a", "dataChange": False}}
    >>> added = {"add": {"path": "b", "dataChange": False, "stats": '{"numRecords": 7}'}}
    >>> _commit(3, [removed, added], {"a": 7}).effect, _commit(3, [removed, added], {"a": 8}).effect
    (<Effect.REARRANGED: 'rearranged'>, <Effect.CHANGED: 'changed'>)
    """
    named = [(kind, value) for action in actions for kind, value in action.items()]
    files = [(kind, value) for kind, value in named if kind in _FILE_ACTIONS]
    added = frozenset(value["path"] for kind, value in files if kind == "add")
    removed = frozenset(value["path"] for kind, value in files if kind == "remove")
    changes = {kind for kind, value in files if value.get("dataChange", True)}
    if {kind for kind, _ in named} - _FILE_ACTIONS - _OTHER_ACTIONS:
        effect = Effect.CHANGED
    elif not files:
        effect = Effect.NOTHING
    elif not changes:
        effect = Effect.REARRANGED if _same_number_of_rows(files, rows_of or {}) else Effect.CHANGED
    else:
        effect = Effect.APPENDED if not removed and len(changes) == 1 else Effect.CHANGED
    return Commit(version, effect, added, removed)


def _same_number_of_rows(
    files: list[tuple[str, Mapping[str, Any]]], rows_of: Mapping[str, int | None]
) -> bool:
    """Whether it is known that as many rows were added as removed."""
    total = 0
    for kind, value in files:
        number = _number_of_rows(value)
        if number is None and kind == "remove":
            number = rows_of.get(value["path"])
        if number is None:
            return False
        total += number if kind == "add" else -number
    return total == 0


def _number_of_rows(action: Mapping[str, Any]) -> int | None:
    try:
        number = json.loads(action["stats"])["numRecords"]
        return int(number) - int((action.get("deletionVector") or {}).get("cardinality", 0))
    except (LookupError, TypeError, ValueError):
        return None
