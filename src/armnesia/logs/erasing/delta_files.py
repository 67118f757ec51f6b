"""The files of a Delta table that its present version does not need: old data files, and its log."""

import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.logs.erasing.delta_commits import says_nothing, values_of_kind
from armnesia.logs.erasing.lake_folders import has_unreadable_folders, unlinked_files, unlinked_folders
from armnesia.logs.lakes.delta import DeltaLog, actions_in

_LOG = "_delta_log/"
_CHANGES = "_change_data/"
_VERSION = re.compile(rf"{_LOG}(\d{{20}})\.")
_SIDECARS = f"{_LOG}_sidecars/"
_UNFINISHED = re.compile(rf"{_LOG}[^/]*\.tmp")
_OF_THE_LOG = re.compile(rf"{_LOG}(_last_checkpoint|\.s3-optimization-\d+|(.*/)?\.[^/]*\.crc)")
"""Files that hold no statistics; checksums of Hadoop are of blocks of bytes."""
_WITHOUT_ROWS = re.compile(
    r"(.*/)?(_SUCCESS|_(started|committed)_\d+|\.[^/]*\.crc|_symlink_format_manifest/(.*/)?manifest)"
)
"""Hidden files of writers that hold no row."""
_OTHER_TABLE = re.compile(r"(.+/)(?:_delta_log/[^/]*|metadata/[^/]*\.metadata\.json(?:\.gz)?)")
_STAGED = re.compile(r"(.*/)?part-[^/]*\.parquet#\d+")
"""Files that deltalake was writing when it was killed; it gives them their names when they are complete."""
_FILE = 2
"""The type of a file in what deltalake lists."""


class DeltaFolder:
    """The folder of a Delta table, on this machine or in an object store; links in it are not followed."""

    def __init__(self, log: DeltaLog) -> None:
        from deltalake._internal import DeltaFileSystemHandler  # noqa: PLC0415 (public only with pyarrow)

        self._log = log
        self._root = log.address if log.is_local else None
        self._files: Any = DeltaFileSystemHandler(log.address)

    def unlisted_files(self) -> dict[str, int]:
        """Data files that the present version does not have, files of changes and of others; their sizes."""
        found, listed = self._found(""), self._listed()
        return {path: size for path, size in found.items() if path not in listed and not _is_hidden(path)}

    def unnamed_files(self) -> dict[str, int]:
        """Data files that no entry of the log names, without files of changes; their sizes."""
        named = self._removed_files()
        found = self.unlisted_files().items()
        return {path: n for path, n in found if path not in named and not path.startswith(_CHANGES)}

    def times_of_removal(self, paths: Container[str]) -> list[datetime]:
        """When these files were removed from the table, as far as the log says."""
        return [at for path, at in self._removed_files().items() if path in paths and at is not None]

    def remove_files(self, paths: Iterable[str]) -> None:
        """Remove files, wherever they are in the folder."""
        for path in paths:
            self._remove(path)

    def hidden_files(self) -> set[str]:
        """Files outside of the log that readers pass by, and that may hold rows."""
        hidden = (path for path in self._found("") if _is_hidden(path))
        return {path for path in hidden if not path.startswith(_LOG) and not _WITHOUT_ROWS.fullmatch(path)}

    def further_log_files(self) -> set[str]:
        """Files in the folder of the log that are not of a version, and may have statistics."""
        every = self._found(_LOG).keys() - {path for _, path in self._log_entries()}
        return {path for path in every if not _OF_THE_LOG.fullmatch(path)}

    def oldest_commit(self) -> int:
        """The first version whose entry of the log is there."""
        return min(version for version, _ in self._log_entries())

    def paths(self) -> set[str]:
        """The names of all files and folders outside of the log."""
        folders = () if self._root is None else unlinked_folders(self._root)
        return {path for path in (*self._found(""), *folders) if not f"{path}/".startswith(_LOG)}

    def state_actions(self) -> Iterator[dict[str, Any]]:
        """The actions of the last checkpoint, and of all commits after it."""
        entries = self._log_entries()
        last = max((version for version, path in entries if ".checkpoint." in path), default=0)
        return self._actions(path for version, path in entries if version >= last)

    def checkpoint_actions(self, since: int) -> Iterator[dict[str, Any]]:
        """The actions of all checkpoints of a version and later ones."""
        entries = self._log_entries()
        return self._actions(path for version, path in entries if version >= since and ".checkpoint." in path)

    def has_former_partitions(self) -> bool:
        """Whether the log still names removed files of partitions that no file of the table is in now."""
        if not self._log.table.metadata().partition_columns:
            return False
        listed, present, removed = self._listed(), set[Any](), set[Any]()
        for action in self._actions(path for _, path in self._log_entries()):
            for kind, found in (("add", present), ("remove", removed)):
                file = action.get(kind) or {}
                path = unquote(file.get("path") or "")
                if path and (kind == "remove" or path in listed):
                    values = dict(file.get("partitionValues") or {})  # of removed files, they are optional
                    found |= {os.path.dirname(path), *([tuple(sorted(values.items()))] if values else ())}
        return not removed <= present

    def has_unreadable_folders(self) -> bool:
        """Whether folders below that of the table cannot be looked into."""
        return self._root is not None and has_unreadable_folders(self._root)

    def remove_data_files(self, *, until: datetime | None) -> None:
        """Remove files that only earlier versions have, if they were removed from the table until a time.

        None stands for all of them, also files of changes, and what writers have left unfinished. Other files
        than those that the log of the table names are not touched: they may be of somebody else.
        """
        refuse_absolute_paths(self._log)
        removed = self._removed_files()  # first: what is committed meanwhile is no old file
        there = self._found("").keys()
        self._log.table.update_incremental()
        old = {path for path, at in removed.items() if until is None or (at is not None and at <= until)}
        old = (old & there) - self._listed()
        others = {folder for folder in _tables_below(there) if any(path.startswith(folder) for path in old)}
        if others:
            raise UnsupportedError(
                f"files of {self._log.location!r} cannot be removed: another table is in the same folder, at"
                f" {min(others)!r}, and may need them; move it"
            )
        if until is None:
            below = tuple(_tables_below(there))
            left = {path for path in there if path.startswith(_CHANGES) or _STAGED.fullmatch(path)}
            old |= {path for path in left - self._listed() if not path.startswith(below)}
        self.remove_files(sorted(old))
        self._remove_empty_folders(removed)

    def _remove_empty_folders(self, paths: Iterable[str]) -> None:
        """Remove the folders of files that the log names, if nothing is in them: they are named by values."""
        if self._root is None:
            return
        there, above = set(unlinked_folders(self._root)), set[str]()
        for path in paths:
            parts = path.split("/")[:-1]
            above |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
        for folder in sorted(above & there, key=len, reverse=True):
            with suppress(OSError):  # it is not empty, or a writer has just put a file there
                os.rmdir(os.path.join(self._root, folder))

    def _removed_files(self) -> dict[str, datetime | None]:
        """All files that the log names, and when each was last removed from the table, if it was.

        A file of changes is never part of the table: its time is that of its commit.
        """
        found: dict[str, datetime | None] = {}
        sidecars = [path for path in self._found(_LOG) if path.startswith(_SIDECARS)]
        for entry in (*(path for _, path in self._log_entries()), *sidecars):
            is_commit = entry.endswith(".json")
            actions: Any = list(self._actions([entry])) if is_commit else self._actions([entry])
            committed = values_of_kind(actions, "commitInfo", "timestamp") if is_commit else []
            for action in actions:
                for kind in ("add", "remove", "cdc"):
                    file = action.get(kind) or {}
                    path, at = file.get("path"), file.get("deletionTimestamp")
                    if kind == "cdc":
                        at = max(committed, default=None)
                    if path is not None and not is_absolute(path):
                        times = [found.get(unquote(path)), None if at is None else _moment(at)]
                        found[unquote(path)] = max((each for each in times if each is not None), default=None)
        return found

    def _actions(self, paths: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The actions in files of the log."""
        for path in paths:
            if path.endswith(".parquet"):
                yield from self._stored_actions(path)
            elif path.endswith(".json"):
                yield from actions_in(self._log.read(path))

    def _stored_actions(self, path: str) -> Iterator[dict[str, Any]]:
        import pyarrow.parquet  # noqa: PLC0415 (an extra)

        with pyarrow.parquet.ParquetFile(self._opened(path)) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()

    def _opened(self, path: str) -> Any:
        if self._root is not None:
            return os.path.join(self._root, path)
        return self._files.open_input_file(path)

    def _listed(self) -> set[str]:
        """The data files of the present version."""
        return {unquote(path) for path in self._log.table.get_add_actions().column("path").to_pylist()}

    def remove_log_entries(self) -> None:
        """Remove the entries of the log before the present version, whose checkpoint replaces them.

        Not if the table declares that its log is never cleaned up. The entry of the present version stays, so
        that one that changes nothing is added before. The oldest are removed first, so that what is left
        after an interruption is a log without gaps.
        """
        table = self._log.table
        if table.metadata().configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
            return
        table.update_incremental()
        if not says_nothing(self._log.actions_of(table.version()) or [{}]):
            columns = table.metadata().partition_columns
            table.create_write_transaction([], mode="append", schema=table.schema(), partition_by=columns)
            table.update_incremental()
        version = table.version()
        table.create_checkpoint()
        entries = self._log_entries()
        if not any(number == version and ".checkpoint" in path for number, path in entries):
            raise InvalidLogError(
                f"the log of {self._log.location!r} cannot be shortened: no checkpoint was made"
            )
        for _, path in sorted(each for each in entries if each[0] < version):
            self._remove(path)
        needed = any(self._has_sidecars(path) for number, path in entries if number == version)
        for path in sorted(self.further_log_files()):
            if _UNFINISHED.fullmatch(path) or (path.startswith(_SIDECARS) and not needed):
                self._remove(path)

    def _has_sidecars(self, path: str) -> bool:
        """Whether an entry of the log may be a checkpoint that needs other files."""
        if ".checkpoint." not in path:
            return False
        if not path.endswith(".parquet"):
            return True
        import pyarrow.parquet  # noqa: PLC0415 (an extra)

        with pyarrow.parquet.ParquetFile(self._opened(path)) as file:
            if "sidecar" not in file.schema_arrow.names:
                return False
            return bool(file.read(["sidecar"])["sidecar"].drop_null())

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            if self._root is None:
                self._files.delete_file(path)
            else:
                os.unlink(os.path.join(self._root, path))

    def _log_entries(self) -> list[tuple[int, str]]:
        """Files of the log and their versions."""
        found = ((_VERSION.match(path), path) for path in self._found(_LOG))
        return [(int(version[1]), path) for version, path in found if version]

    def _found(self, folder: str) -> dict[str, int]:
        """The files in a folder and below it, and their sizes."""
        if self._root is not None:
            below = unlinked_files(os.path.join(self._root, folder))
            return {f"{folder}{each.path}": each.size for each in below}
        found = self._files.get_file_info_selector(folder, allow_not_found=True, recursive=True)
        return {each.path: int(each.size) for each in found if int(each.type) == _FILE}


def is_absolute(path: str) -> bool:
    """Whether a path in a log is not one in the folder of the table.

    >>> is_absolute("s3://lake/a.parquet"), is_absolute("/lake/a.parquet"), is_absolute("day%3D1/a.parquet")
    (True, True, False)
    """
    return bool(urlsplit(path).scheme) or path.startswith("/")


def _tables_below(paths: Iterable[str]) -> set[str]:
    """The folders of other tables, of Delta or Iceberg, among the files below that of a table.

    >>> _tables_below(["_delta_log/0.json", "a/b/_delta_log/0.json", "c/metadata/v1.metadata.json"]) == {
    ...     "a/b/", "c/"}
    True
    """
    found = (_OTHER_TABLE.fullmatch(path) for path in paths)
    return {each[1] for each in found if each}


def _moment(milliseconds: int) -> datetime:
    """A time of the log; one that no clock shows is not over."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return datetime.max.replace(tzinfo=UTC)


def refuse_absolute_paths(log: DeltaLog) -> None:
    """Refuse a table whose log names files by absolute paths: deltalake would take them for old files."""
    paths = log.table.get_add_actions().column("path").to_pylist()
    if any(map(is_absolute, paths)):
        raise UnsupportedError(
            f"rows of {log.location!r} cannot be erased: its log names files by absolute paths, which may"
            " be files of others; write the table again"
        )


def _is_hidden(path: str) -> bool:
    """Whether readers of the table pass a file by.

    >>> [_is_hidden(path) for path in ("part-0.parquet", "_delta_log/0.json", "_change_data/part-1.parquet")]
    [False, True, False]
    """
    if path.startswith(_CHANGES):
        return False
    return any(part.startswith(("_", ".")) and "=" not in part for part in path.split("/"))
