"""Erasing rows of an Iceberg table: by a delete of pyiceberg, whose snapshot does not say whom it was about.

The entries of deleted files stay in the manifests of that snapshot, with the lowest and highest value of each
column. A purge therefore adds an empty snapshot, which drops them, before all earlier snapshots expire.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.core.errors import ArmnesiaError, InvalidLogError, MissingExtraError, UnsupportedError
from armnesia.core.files import may_write
from armnesia.core.messages import listed
from armnesia.logs.erasing.eraser import failed
from armnesia.logs.erasing.iceberg_deletion import delete_rows, same_retention
from armnesia.logs.erasing.iceberg_expiry import expire, expiry_of, oldest_age, stale_statistics
from armnesia.logs.erasing.iceberg_files import TableFiles, has_deleted_entries
from armnesia.logs.erasing.iceberg_folders import METADATA, names_below
from armnesia.logs.erasing.iceberg_sharing import refuse_shared_files
from armnesia.logs.erasing.lake_contents import hold_more_than_positions, may_hold_people
from armnesia.logs.erasing.lake_eraser import (
    NAMED,
    NEVER_OVER,
    DeletingCommit,
    Deletion,
    LakeEraser,
    copies_of,
    marked_rows,
    those_that_hold,
    values_of,
)
from armnesia.logs.erasing.lake_folders import refuse_links
from armnesia.logs.erasing.names_in_texts import named_in, texts_in
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.lakes.files import NOTHING
from armnesia.logs.lakes.iceberg import (
    METADATA_FILE,
    WITHOUT_VALUES,
    IcebergMetadata,
    IcebergSource,
    local_path,
    without_remarks,
)

_TOKEN = "armnesia-erasure"
_COUNT = re.compile(
    "(added|deleted|removed|changed|total)-([a-z]+-)*(files|records|deletes|dvs|size|count) [0-9]+"
)
"""Numbers of files, rows and bytes in the summary of a snapshot."""
_WRITTEN_FORMATS = (1, 2)
_NOT_LISTED = (
    "not all folders that the table writes to could be looked through for files that no snapshot refers to:"
    " the storage does not list them, a property names a folder outside of the table's (write.data.path), its"
    " metadata are incomplete, or another table is in the same folder"
)
_NOT_READABLE = (
    "files of metadata that the table lists as earlier ones, or that are in its folder, cannot be read, so"
    " that nothing is removed that others do not name: remove those that are empty, or that no table needs"
)
_KEPT_BY_NUMBER = (
    "the table or a branch declares how many snapshots stay whatever their age (min-snapshots-to-keep); they"
    " expire after later commits, or by a purge that ignores it"
)
_STRANGE = (
    "files at the location of the table that its metadata do not name hold deleted rows, or cannot be looked"
    " into; they may be of somebody else, and are not removed; remove those that nothing needs"
)
_WITH_ROWS = (
    "files of position deletes hold more than positions, which may be of people, or cannot be looked into;"
    " write the table again without them"
)


class IcebergEraser(LakeEraser[IcebergSource]):
    """An Iceberg table of a catalog."""

    _kind = "iceberg"

    def __init__(self, source: IcebergSource) -> None:
        super().__init__(source)
        if self._name.endswith(METADATA_FILE):
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: a file of metadata is one version for good; name"
                " the table by its catalog, iceberg:CATALOG.NAMESPACE.TABLE"
            )
        root = local_path(str(source.history.table.metadata.location))
        refuse_links(self._name, root, (file.location for file in source.snapshot.files))

    def _opened(self) -> IcebergSource:
        return IcebergSource(self._name, self._columns, table=None, whole_rows=False)

    def _metadata(self) -> IcebergMetadata:
        return IcebergMetadata(self._name)

    @contextmanager
    def _failures_in_words(self, names: frozenset[str] = frozenset()) -> Iterator[None]:
        """Refuse the erasure if pyiceberg fails, which passes on what catalogs and storages raise."""
        try:
            with without_remarks():
                yield
        except ArmnesiaError:
            raise
        except Exception as error:
            raise failed(self._name, "pyiceberg", error, names) from None

    def _check_writable(self, source: IcebergSource) -> None:
        version = source.history.table.metadata.format_version
        if version not in _WRITTEN_FORMATS:
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: pyiceberg writes tables of the format versions 1"
                f" and 2; this one has {version}"
            )
        self._refuse_unwritable_folders(source)
        read = dict(source.compared_files.columns)
        changed = source.history.changed_types
        missing = sorted(name for name, versions in changed.items() if versions and read[name] == NOTHING)
        if missing:
            raise InvalidLogError(
                f"rows of {self._name!r} cannot be erased: whether others stay as they are could not be"
                f" checked, because it cannot be told which of its types {listed(missing, 3)} has in each"
                " file; write the table again"
            )

    def _refuse_unwritable_folders(self, source: IcebergSource) -> None:
        """Refuse a table on this machine if files could not be written beside its own."""
        table = source.history.table
        root = local_path(str(table.metadata.location))
        own = map(local_path, (str(table.metadata_location), *(file.path for file in source.snapshot.files)))
        folders = {os.path.dirname(path) for path in own if path and root and path.startswith(f"{root}/")}
        if not all(map(may_write, folders)):
            raise UnsupportedError(  # without the path, which may be the value of a partition
                f"rows of {self._name!r} cannot be erased: a folder at the location of the table that has its"
                " files may not be written to by this user"
            )

    def _check_column(self, source: IcebergSource, role: str) -> None:
        column, table = source.columns.named()[role], source.history.table
        if "." in column:  # stands for a field of a structure
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: pyiceberg does not find rows by a column with a"
                f" point in its name, {column!r}; rename it, ingest the source again, then erase"
            )
        number = table.schema().find_field(column).field_id
        shown = [
            str(field.transform)
            for spec in table.specs().values()
            for field in spec.fields
            if field.source_id == number and not str(field.transform).startswith(WITHOUT_VALUES)
        ]
        if shown:
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: the table is or was partitioned by {column!r}"
                f" ({shown[0]}), so that names of folders and manifests name people"
            )

    def _delete(
        self, source: IcebergSource, plan: ErasurePlan, role: str, names: frozenset[str]
    ) -> Iterator[DeletingCommit]:
        """Delete by names, which the snapshot does not have."""
        try:
            import pyarrow  # noqa: F401, PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("Erasing rows of Iceberg tables", "erase") from error
        from pyiceberg import expressions  # noqa: PLC0415 (an extra)

        column, values = source.columns.named()[role], values_of(source, role, names)
        is_in: Any = expressions.In
        with self._failures_in_words(names):
            delete_rows(source.history.table, is_in(column, set(values)), {_TOKEN: plan.token})
        yield from self._commits_by(plan)

    def _commits_by(self, plan: ErasurePlan) -> Iterator[DeletingCommit]:
        done, table = self._deletion_by(plan), self._metadata().table
        snapshot = table.current_snapshot()
        while done is not None and snapshot is not None:  # others are not of the table any more
            if snapshot.snapshot_id == done.after:
                yield DeletingCommit(done.before, done.after)
                return
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)

    def _take_back(self, made: DeletingCommit) -> str:
        table = self._metadata().table
        if table.current_snapshot().snapshot_id != made.after:
            return f"snapshot {made.after} was not taken back, others have followed it"
        with self._failures_in_words():
            table.manage_snapshots().rollback_to_snapshot(made.before).commit()
        return f"the table was rolled back to snapshot {made.before}"

    def with_removals(self, plan: ErasurePlan) -> ErasurePlan:
        """Also note files outside of the table's folders, which nothing names after snapshots expired."""
        table = self._metadata().table
        self._check_purge(table, plan)
        with self._failures_in_words():
            noted = TableFiles(table).elsewhere()
        return replace(plan, removals=tuple(sorted({*plan.removals, *noted})))

    def _check_purge(self, table: Any, plan: ErasurePlan) -> None:
        """Refuse to remove files that others need, or that are links, before anything is changed."""
        if table.properties.get("gc.enabled", "true").lower() == "false":
            raise UnsupportedError(
                f"files of {self._name!r} cannot be removed: the table declares gc.enabled=false, as tables"
                " do that share files with others"
            )
        with self._failures_in_words():
            files = TableFiles(table).removable(plan.removals)
            refuse_links(self._name, None, filter(None, map(local_path, files)))
            refuse_shared_files(self._name, table, files)

    def _remove_old(self, plan: ErasurePlan, *, at_once: bool) -> None:
        """Let earlier snapshots expire, and remove the files that nothing refers to any more."""
        table = self._metadata().table
        self._check_purge(table, plan)
        age = timedelta(0) if at_once else oldest_age(table)
        with self._failures_in_words():
            current = table.current_snapshot()
            if current is not None and has_deleted_entries(current, table.io):
                # A snapshot without rows leaves out the entries of files that were deleted before it.
                with same_retention(table), table.transaction() as transaction:
                    transaction.update_snapshot().fast_append().commit()
            expire(table, at_once=at_once)
            if age is None:
                return
            files = TableFiles(table)
            until = None if at_once else datetime.now(UTC) - age
            files.remove(files.unreferenced(plan.removals), until=until)

    def _deletion_by(self, plan: ErasurePlan) -> Deletion | None:
        """There may be two snapshots: one drops whole files, one writes others again."""
        table = self._metadata().table
        made = [each for each in table.snapshots() if _property(each, _TOKEN) == plan.token]
        if not made:
            return None
        made.sort(key=lambda each: each.sequence_number or 0)
        return Deletion(made[0].parent_snapshot_id, made[-1].snapshot_id)

    def _outcome(self, people: People, plan: ErasurePlan, done: Deletion | None) -> Erasure:
        source = self._opened()
        table, current = source.history.table, source.snapshot.version
        earlier = [each for each in table.snapshots() if each.snapshot_id != current]
        with self._failures_in_words():
            files = TableFiles(table)
            unreferenced = files.unreferenced(plan.removals)
            has_entries = current is not None and has_deleted_entries(table.current_snapshot(), table.io)
            paths = (file.path for file in source.snapshot.files)
            texts = _texts_of([table.metadata, *files.earlier_metadata])
            is_named = named_in((*texts, *names_below(table), *paths), people)
        # Files of metadata hold no rows, and are looked into for names.
        old_files = [each for each in unreferenced if not each.is_strange and each.kind != METADATA]
        others = [each for each in unreferenced if each.is_strange]
        strange = [source.history.file_at(each.location, each.size) for each in others]
        is_strange = None in strange or may_hold_people(source, [each for each in strange if each], people)
        deletes = source.history.delete_files()
        has_rows = None in deletes or hold_more_than_positions(
            source, [each for each in deletes if each], people
        )
        age, ends = oldest_age(table), list(expiry_of(table).values())
        has_files = bool(old_files or stale_statistics(table))
        remains = list(_sentences(table, current, bool(earlier), has_files, has_entries))
        is_readable = files.are_all_readable
        is_unseen = is_readable and not files.are_all_seen
        remains += those_that_hold(
            {
                _NOT_READABLE: not is_readable,
                _NOT_LISTED: is_unseen,
                _STRANGE: is_strange,
                _WITH_ROWS: has_rows,
                NAMED: is_named,
                NEVER_OVER: earlier and age is None,
                _KEPT_BY_NUMBER: age is not None and None in ends,
            }
        )
        is_purged = files.are_all_seen and not (earlier or has_files or is_strange or has_rows or is_named)
        state = SourceState.PURGED if is_purged else SourceState.LOGICALLY_DELETED
        before, after = (plan.version, None) if done is None else done[:2]
        copies = copies_of(local_path(str(table.metadata.location)) is not None)
        if age is not None:
            ends += [each.changed + age for each in old_files if each.changed is not None]
        known = [end for end in ends if end is not None]
        due = max(known).replace(microsecond=0) + timedelta(seconds=1) if known == ends and known else None
        return Erasure(state, before, after, (*remains, *marked_rows(source), *copies), due)


def _sentences(
    table: Any, current: int | None, has_snapshots: bool, has_files: bool, is_named: bool
) -> Iterator[str]:
    """Where rows or names remain."""
    if has_snapshots:
        yield (
            "earlier snapshots of the table, with the files that only they have, are there until they expire"
        )
    if any(each.snapshot_id != current for each in table.metadata.refs.values()):
        yield "branches or tags keep earlier snapshots"  # without their names, which may be of people
    if has_files:
        yield "files that no snapshot refers to are there until they are removed"
    if is_named:
        yield (
            "manifests of the present snapshot have entries of deleted files, whose lowest and highest values"
            " may name people"
        )


def _texts_of(versions: Sequence[Any]) -> Iterator[str]:
    """What versions of the metadata of a table say besides its files and numbers."""
    for metadata in versions:
        yield from texts_in([dict(metadata.properties), list(metadata.refs), str(metadata.location)])
        for spec in metadata.partition_specs:
            yield from (field.name for field in spec.fields)
    # They share most of these.
    for schema in {each.schema_id: each for metadata in versions for each in metadata.schemas}.values():
        yield from texts_in(json.loads(schema.model_dump_json()))
    for snapshot in {each.snapshot_id: each for metadata in versions for each in metadata.snapshots}.values():
        summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
        yield from texts_in({name: text for name, text in summary.items() if not _is_count(name, text)})


def _property(snapshot: Any, name: str) -> str | None:
    return None if snapshot is None or snapshot.summary is None else snapshot.summary.get(name)


def _is_count(name: str, text: str) -> bool:
    """Whether an entry of a snapshot's summary is one of its numbers.

    >>> _is_count("added-records", "70001"), _is_count("added-by", "70001"), _is_count("added-by", "ann")
    (True, False, False)
    """
    return _COUNT.fullmatch(f"{name} {text}") is not None
