"""Erasing rows of a Delta table: by merges, then by the removal of files and of the log before them."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.core.errors import ArmnesiaError, InvalidLogError, MissingExtraError, UnsupportedError
from armnesia.core.messages import listed
from armnesia.logs.erasing.delta_commits import (
    GOES_ON,
    removed_with_statistics,
    texts_of_remarks,
    texts_of_state,
    texts_of_statistics,
    values_of_kind,
    words_that_may_name,
)
from armnesia.logs.erasing.delta_deletion import RowDeletion, commits_by
from armnesia.logs.erasing.delta_files import DeltaFolder, refuse_absolute_paths
from armnesia.logs.erasing.delta_writing import refuse_unwritable_folders, try_merge
from armnesia.logs.erasing.eraser import failed
from armnesia.logs.erasing.lake_contents import may_hold_people
from armnesia.logs.erasing.lake_eraser import (
    NAMED,
    NEVER_OVER,
    DeletingCommit,
    Deletion,
    LakeEraser,
    copies_of,
    marked_rows,
    retention_in,
    those_that_hold,
)
from armnesia.logs.erasing.lake_folders import refuse_links
from armnesia.logs.erasing.names_in_texts import named_in
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.lakes.delta import DeltaLog, DeltaSource
from armnesia.logs.lakes.files import NOTHING

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_LONGEST_SECONDS = 2**63 // 1000
"""As milliseconds of 64 bits."""
_RETENTION = ("delta.deletedFileRetentionDuration", "interval 1 week")
_HIDDEN = (
    "hidden files or folders (names that begin with _ or a dot) in the folder of the table may hold rows;"
    " remove them"
)
_UNLISTED = (
    "files that the present version of the table does not have are in its folder, and hold deleted rows or"
    " cannot be looked into; a purge removes those that the log of the table names, after their retention;"
    " remove others that nothing needs"
)
_UNREADABLE = (
    "folders below that of the table cannot be read by this user, and may hold rows; give the right to read"
    " them, or remove them"
)
_STATISTICS = (
    "a checkpoint of the log has statistics of removed files, whose lowest and highest values may be"
    " of these people, or it names them in those of other files; such entries are there until a checkpoint is"
    " written after the retention of removed files"
)
_PARTITIONS = (
    "the log names removed files by the values of partitions that no file of the table is in any more; they"
    " are there until a checkpoint is written after the retention of removed files"
)
_FURTHER = (
    "further files in the folder of the log may name people: sidecars of checkpoints, or commits that were"
    " not finished"
)


class DeltaEraser(LakeEraser[DeltaSource]):
    """A Delta table in a folder or an object store."""

    _kind = "delta"

    def __init__(self, source: DeltaSource) -> None:
        super().__init__(source)
        log = source.history
        refuse_absolute_paths(log)
        refuse_links(self._name, log.address if log.is_local else None)
        retention = log.table.metadata().configuration.get(*_RETENTION)
        if (_seconds_of(retention) or 0) > _LONGEST_SECONDS:
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: the table declares {_RETENTION[0]} ="
                f" {retention!r}, by which deltalake can write no checkpoint; declare a shorter one"
            )

    def _opened(self) -> DeltaSource:
        return DeltaSource(self._name, self._columns, table=None, whole_rows=False)

    @contextmanager
    def _failures_in_words(self, names: frozenset[str] = frozenset()) -> Iterator[None]:
        """Refuse the erasure if deltalake fails, which passes on what object stores raise."""
        try:
            yield
        except ArmnesiaError:
            raise
        except Exception as error:
            raise failed(self._name, "deltalake", error, names) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
                raise
            raise failed(self._name, "deltalake", error, names) from None

    def _check_column(self, source: DeltaSource, role: str) -> None:
        column = source.columns.named()[role]
        if column in source.columns_in_paths:
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: the table is partitioned by {column!r}, so that"
                " names of folders and entries of the log name people"
            )

    def _check_writable(self, source: DeltaSource) -> None:
        log = source.history
        if log.table.metadata().configuration.get("delta.appendOnly", "false").lower() == "true":
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: the table declares delta.appendOnly, which forbids"
                " to delete rows"
            )
        with self._failures_in_words():
            try_merge(log)
        refuse_unwritable_folders(log, source.snapshot.files)
        self._check_comparable(source)

    def _check_comparable(self, source: DeltaSource) -> None:
        """Refuse a table of which it could not be told afterwards whether other rows stayed as they were."""
        files = source.compared_files
        read = dict(files.columns)
        missing = [each.name for each in source.snapshot.columns if each.type and read[each.name] == NOTHING]
        if not missing:
            try:
                files.query(f"SELECT * FROM {files.table} LIMIT 0")
            except InvalidLogError:
                missing = [each.name for each in source.snapshot.columns if each.nested_type]
        if missing:
            raise InvalidLogError(
                f"rows of {self._name!r} cannot be erased: whether others stay as they are could not be"
                f" checked, because not all files have {listed(missing, 3)} in the type of the table; write"
                " the table again"
            )

    def _delete(
        self, source: DeltaSource, plan: ErasurePlan, role: str, names: frozenset[str]
    ) -> Iterator[DeletingCommit]:
        """Merge with a table in memory that has the names."""
        try:
            import pyarrow  # noqa: F401, PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("Erasing rows of Delta tables", "erase") from error
        with self._failures_in_words(names):
            yield from RowDeletion(plan, role, names).merges(source)

    def _take_back(self, made: DeletingCommit) -> str:
        log = DeltaLog(self._name)
        if log.table.version() != made.after:
            return f"version {made.after} was not taken back, others have followed it"
        with self._failures_in_words():
            log.table.restore(made.before)
        return f"version {made.before} was restored"

    def _remove_old(self, plan: ErasurePlan, *, at_once: bool) -> None:
        """Remove data files and, at once, the entries of the log before the present version."""
        log = DeltaLog(self._name)
        folder, retention = DeltaFolder(log), _retention(log)
        with self._failures_in_words():
            if at_once:
                folder.remove_data_files(until=None)
                folder.remove_log_entries()
            elif retention is not None:
                folder.remove_data_files(until=datetime.now(UTC) - retention)

    def _deletion_by(self, plan: ErasurePlan) -> Deletion | None:
        made = commits_by(plan, DeltaLog(self._name), plan.version or 0)
        if not made:
            return None
        first, last = min(made), max(made)
        return Deletion(first - 1, last, bool(values_of_kind(made[last], "commitInfo", GOES_ON)))

    def _commits_by(self, plan: ErasurePlan) -> Iterator[DeletingCommit]:
        log = DeltaLog(self._name)
        made = commits_by(plan, log, plan.version or 0)
        found, added_later = list[int](), set[str]()
        for version in range(log.table.version(), min(made, default=log.table.version() + 1) - 1, -1):
            actions = made[version] if version in made else log.actions_of(version) or []
            # Files that were removed come back only if an earlier version is restored.
            if version in made and added_later.isdisjoint(values_of_kind(actions, "remove", "path")):
                found.append(version)
            added_later.update(values_of_kind(actions, "add", "path"))
        for version in reversed(found):
            yield DeletingCommit(version - 1, version)

    def _outcome(self, people: People, plan: ErasurePlan, done: Deletion | None) -> Erasure:
        source = self._opened()
        log, folder = source.history, DeltaFolder(source.history)
        gone_in = log.table.version()
        if done is not None:
            gone_in = done.after
        elif not plan.deletes and plan.version is not None:
            gone_in = plan.version
        with self._failures_in_words():
            hidden, further = folder.hidden_files(), folder.further_log_files()
            unlisted = folder.unlisted_files()
            is_named = named_in((*texts_of_state(folder.state_actions()), *folder.paths()), people)
            unreadable, has_partitions = folder.has_unreadable_folders(), folder.has_former_partitions()
            kept = removed_with_statistics(folder.checkpoint_actions(gone_in))
            bounds = texts_of_statistics(folder.checkpoint_actions(gone_in), _stored_name(source, people))
            in_statistics = named_in(bounds, people)
            by_anybody = folder.times_of_removal(unlisted) if done is None else []
        # Known by no time or version: clocks differ, and later files may hold later rows of the same people.
        old = may_hold_people(source, [log.file_at(*each) for each in sorted(unlisted.items())], people)
        removed_at: list[datetime] = []
        if old:
            removed_at += by_anybody if done is None else _removed_by(plan, log, done)
        removed_at += _removed_at([{"remove": each} for each in kept]) if in_statistics else []
        retention = _retention(log)
        is_kept = old and retention is None
        remains = those_that_hold(
            {
                _UNLISTED: old,
                _HIDDEN: hidden,
                _UNREADABLE: unreadable,
                NAMED: is_named,
                NEVER_OVER: is_kept,
            }
        )
        remains += [*marked_rows(source), *_named_in_log(source, folder.oldest_commit(), gone_in, people)]
        remains += those_that_hold(
            {_STATISTICS: kept or in_statistics, _PARTITIONS: has_partitions, _FURTHER: further}
        )
        is_left = old or hidden or is_named or unreadable or in_statistics
        state = SourceState.LOGICALLY_DELETED if is_left else SourceState.PURGED
        due = None if retention is None or not removed_at else max(removed_at) + retention
        before, after = (None, None) if done is None else done[:2]
        return Erasure(state, before, after, (*remains, *copies_of(log.is_local, "clones")), due)


def _stored_name(source: DeltaSource, people: People) -> str | int | None:
    """What statistics call the column of people."""
    column = source.columns.named()[people.role]
    return next(each.stored_as for each in source.snapshot.columns if each.name == column)


def _named_in_log(source: DeltaSource, oldest: int, gone_in: int, people: People) -> Iterator[str]:
    """Whether what is there of the log may name people whose rows were gone in a version."""
    log, last = source.history, source.history.table.version()
    if oldest < gone_in:
        yield f"the log still has version {oldest} and later ones, whose statistics of files may name people"
    stored = _stored_name(source, people)
    words, texts = set[str](), set[str]()
    for version in range(max(oldest, gone_in), last + 1):
        actions = log.actions_of(version) or []
        words |= set(words_that_may_name(actions))
        texts |= set(texts_of_remarks(actions, stored))
    if named_in(texts, people):
        words.add("remarks or statistics")
    if words:
        yield f"entries of the log that are still there may name people ({', '.join(sorted(words))})"


def _removed_at(actions: Sequence[dict[str, Any]]) -> list[datetime]:
    """When the files of a commit were removed from the table."""
    times = values_of_kind(actions, "remove", "deletionTimestamp")
    return [datetime.fromtimestamp(each / 1000, UTC).replace(microsecond=0) for each in times]


def _removed_by(plan: ErasurePlan, log: DeltaLog, done: Deletion) -> list[datetime]:
    """When the commits of a plan have removed files."""
    made = commits_by(plan, log, done.after - 1 if done.before is None else done.before, done.after)
    return [at for actions in made.values() for at in _removed_at(actions)]


def _retention(log: DeltaLog) -> timedelta | None:
    """How long removed files stay, as the table declares or by default; None if that is never over."""
    return retention_of(log.table.metadata().configuration.get(*_RETENTION))


def retention_of(text: str) -> timedelta | None:
    """Read an interval of a table's properties; None if it is not understood, or longer than any time.

    >>> retention_of("interval 1 week"), retention_of("interval 36 hours"), retention_of("soon")
    (datetime.timedelta(days=7), datetime.timedelta(days=1, seconds=43200), None)
    >>> retention_of("interval 99999999999999 days")
    """
    seconds = _seconds_of(text)
    return None if seconds is None else retention_in(seconds)


def _seconds_of(text: str) -> int | None:
    found = re.fullmatch(r"\s*(?:interval\s+)?(\d+)\s+([a-z]+?)s?\s*", text, re.IGNORECASE)
    if found is None or found[2].lower() not in _UNITS:
        return None
    return int(found[1]) * _UNITS[found[2].lower()]
