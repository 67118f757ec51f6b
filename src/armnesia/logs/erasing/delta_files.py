"""The files of a Delta table that its present version does not need: old data files, and its log."""

import re
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.logs.lakes.delta import DeltaLog

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
_FILE = 2
"""The type of a file in what deltalake lists."""


class DeltaFolder:
    """The folder of a Delta table, on this machine or in an object store."""

    def __init__(self, log: DeltaLog) -> None:
        from deltalake._internal import DeltaFileSystemHandler  # noqa: PLC0415 (public only with pyarrow)

        self._log = log
        self._files: Any = DeltaFileSystemHandler(log.address)

    def unlisted_files(self) -> set[str]:
        """Data files that the present version does not have, and files of changes."""
        listed = {unquote(path) for path in self._log.table.get_add_actions().column("path").to_pylist()}
        found = {each.path for each in self._found("") if not _is_hidden(each.path)}
        return found - listed

    def hidden_files(self) -> set[str]:
        """Files outside of the log that readers pass by, and that may hold rows."""
        hidden = (each.path for each in self._found("") if _is_hidden(each.path))
        return {path for path in hidden if not path.startswith(_LOG) and not _WITHOUT_ROWS.fullmatch(path)}

    def further_log_files(self) -> set[str]:
        """Files in the folder of the log that are not of a version, and may have statistics."""
        every = {each.path for each in self._found(_LOG)} - {path for _, path in self._log_entries()}
        return {path for path in every if not _OF_THE_LOG.fullmatch(path)}

    def oldest_commit(self) -> int:
        """The first version whose entry of the log is there."""
        return min(version for version, _ in self._log_entries())

    def remove_data_files(self, *, at_once: bool) -> None:
        """Remove files that only earlier versions have, after the retention of the table or at once."""
        table = self._log.table
        refuse_absolute_paths(self._log)
        if at_once:
            # Full: also files of versions that the log no longer tells of. Deltalake would take files of
            # deletion vectors for such, and the table would lose them.
            is_full = not any(file.removed for file in self._log.snapshot().files)
            table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=is_full)
        else:
            table.vacuum(dry_run=False)

    def remove_log_entries(self) -> None:
        """Remove the entries of the log before the present version, whose checkpoint replaces them.

        Not if the table declares that its log is never cleaned up. The oldest are removed first, so that what
        is left after an interruption is a log without gaps.
        """
        table = self._log.table
        if table.metadata().configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
            return
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

        with pyarrow.parquet.ParquetFile(self._files.open_input_file(path)) as file:
            if "sidecar" not in file.schema_arrow.names:
                return False
            return bool(file.read(["sidecar"])["sidecar"].drop_null())

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(path)

    def _log_entries(self) -> list[tuple[int, str]]:
        """Files of the log and their versions."""
        found = ((_VERSION.match(each.path), each.path) for each in self._found(_LOG))
        return [(int(version[1]), path) for version, path in found if version]

    def _found(self, folder: str) -> list[Any]:
        found = self._files.get_file_info_selector(folder, allow_not_found=True, recursive=True)
        return [each for each in found if int(each.type) == _FILE]


def refuse_absolute_paths(log: DeltaLog) -> None:
    """Refuse a table whose log names files by absolute paths: deltalake would take them for old files."""
    paths = log.table.get_add_actions().column("path").to_pylist()
    if any(urlsplit(path).scheme or path.startswith("/") for path in paths):
        raise UnsupportedError(
            f"rows of {log.location!r} cannot be erased: its log names files by absolute paths, which"
            " deltalake would remove as old ones; write the table again"
        )


def _is_hidden(path: str) -> bool:
    """Whether readers of the table pass a file by.

    >>> [_is_hidden(path) for path in ("part-0.parquet", "_delta_log/0.json", "_change_data/part-1.parquet")]
    [False, True, False]
    """
    if path.startswith(_CHANGES):
        return False
    return any(part.startswith(("_", ".")) and "=" not in part for part in path.split("/"))
