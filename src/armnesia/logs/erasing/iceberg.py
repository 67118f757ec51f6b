"""Erasing rows of an Iceberg table: by a delete of pyiceberg, whose snapshot does not say whom it was about.

The entries of deleted files stay in the manifests of that snapshot, with the lowest and highest value of each
column. A purge therefore adds an empty snapshot, which drops them, before all earlier snapshots expire.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.core.errors import ArmnesiaError, MissingExtraError, UnsupportedError
from armnesia.logs.erasing.eraser import failed
from armnesia.logs.erasing.iceberg_files import TableFiles, has_deleted_entries
from armnesia.logs.erasing.iceberg_folders import names_below
from armnesia.logs.erasing.iceberg_sharing import refuse_shared_files
from armnesia.logs.erasing.lake_contents import may_hold_people
from armnesia.logs.erasing.lake_folders import refuse_links
from armnesia.logs.erasing.lake_rows import (
    NAMED,
    NEVER_OVER,
    Deletion,
    LakeEraser,
    check_type,
    marked_rows,
    retention_in,
    those_that_hold,
    values_of,
)
from armnesia.logs.erasing.names_in_texts import named_in, texts_in
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.lakes.iceberg import (
    METADATA_FILE,
    IcebergMetadata,
    IcebergSource,
    local_path,
    without_remarks,
)

_TOKEN = "armnesia-erasure"
_FIVE_DAYS = 432_000_000
"""In milliseconds."""
_COUNTS = re.compile("(added|deleted|removed|changed|total)-")
"""Beginnings of names in the summary of a snapshot whose values are numbers."""
_WITHOUT_NAMES = ("bucket", "void")
"""Transforms of a partition that do not show the value."""
_NOT_LISTED = (
    "not all folders that the table writes to could be looked through for files that no snapshot refers to:"
    " the storage does not list them, a property names a folder outside of the table's (write.data.path), its"
    " metadata are incomplete, or another table is in the same folder"
)
_STRANGE = (
    "files at the location of the table that its metadata do not name hold deleted rows, or cannot be looked"
    " into; they may be of somebody else, and are not removed; remove those that nothing needs"
)
_COPIES = "copies of the table remain: versions of the object store, backups"


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

    def _check_table(self, source: IcebergSource, people: People) -> None:
        """Refuse a table in which names stand outside of its rows."""
        column = people.check_column(source)
        check_type(source, people.role)
        table = source.history.table
        number = table.schema().find_field(column).field_id
        shown = [
            str(field.transform)
            for spec in table.specs().values()
            for field in spec.fields
            if field.source_id == number and not str(field.transform).startswith(_WITHOUT_NAMES)
        ]
        if shown:
            raise UnsupportedError(
                f"rows of {self._name!r} cannot be erased: the table is or was partitioned by {column!r}"
                f" ({shown[0]}), so that names of folders and manifests name people"
            )

    def _delete(self, source: IcebergSource, plan: ErasurePlan, role: str, names: frozenset[str]) -> None:
        """Delete by names, which the snapshot does not have."""
        try:
            import pyarrow  # noqa: F401, PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("Erasing rows of Iceberg tables", "erase") from error
        from pyiceberg import expressions  # noqa: PLC0415 (an extra)

        column, values = source.columns.named()[role], values_of(source, role, names)
        is_in: Any = expressions.In
        with self._failures_in_words(names):
            source.history.table.delete(is_in(column, set(values)), snapshot_properties={_TOKEN: plan.token})

    def _take_back(self, done: Deletion) -> str:
        table = self._metadata().table
        if table.current_snapshot().snapshot_id != done.after:
            return f"snapshot {done.after} was not taken back, others have followed it"
        with self._failures_in_words():
            table.manage_snapshots().rollback_to_snapshot(done.before).commit()
        return f"the table was rolled back to snapshot {done.before}"

    def with_removals(self, plan: ErasurePlan) -> ErasurePlan:
        """Also note files outside of the table's folders, which nothing names after snapshots expired."""
        table = self._metadata().table
        self._check_purge(table)
        with self._failures_in_words():
            noted = TableFiles(table).elsewhere()
        return replace(plan, removals=tuple(sorted({*plan.removals, *noted})))

    def _check_purge(self, table: Any) -> None:
        """Refuse to remove files that others need, or that are links, before anything is changed."""
        if table.properties.get("gc.enabled", "true").lower() == "false":
            raise UnsupportedError(
                f"files of {self._name!r} cannot be removed: the table declares gc.enabled=false, as tables"
                " do that share files with others"
            )
        with self._failures_in_words():
            files = TableFiles(table).only_of_earlier_snapshots()
            refuse_links(self._name, None, filter(None, map(local_path, files)))
            refuse_shared_files(self._name, table, files)

    def _remove_old(self, plan: ErasurePlan, *, at_once: bool) -> None:
        """Let earlier snapshots expire, and remove the files that nothing refers to any more."""
        table = self._metadata().table
        self._check_purge(table)
        age = timedelta(0) if at_once else _oldest_age(table)
        with self._failures_in_words():
            current = table.current_snapshot()
            if current is not None and has_deleted_entries(current, table.io):
                # A snapshot without rows leaves out the entries of files that were deleted before it.
                with table.transaction() as transaction, transaction.update_snapshot().fast_append():
                    pass
            if age is None:
                return
            _expire(table, age)
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
            is_named = named_in((*_texts_of(table), *names_below(table), *paths), people)
        old_files = [each for each in unreferenced if not each.is_strange]
        others = [each for each in unreferenced if each.is_strange]
        strange = [source.history.file_at(each.location, each.size) for each in others]
        is_strange = None in strange or may_hold_people(source, [each for each in strange if each], people)
        age = _oldest_age(table)
        remains = list(_sentences(table, current, bool(earlier), bool(old_files), has_entries))
        is_unseen, is_kept = not files.are_all_seen, bool(earlier) and age is None
        remains += those_that_hold(
            {_NOT_LISTED: is_unseen, _STRANGE: is_strange, NAMED: is_named, NEVER_OVER: is_kept}
        )
        is_purged = files.are_all_seen and not (earlier or old_files or is_strange or is_named)
        state = SourceState.PURGED if is_purged else SourceState.LOGICALLY_DELETED
        before, after = (plan.version, None) if done is None else done
        due = None
        if earlier and age is not None:
            youngest = max(each.timestamp_ms for each in earlier)
            due = datetime.fromtimestamp(youngest // 1000 + 1, UTC) + age
        return Erasure(state, before, after, (*remains, *marked_rows(source), _COPIES), due)


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


def _expire(table: Any, age: timedelta) -> None:
    """Let all snapshots of an age expire that are no head of a branch and have no tag."""
    kept = {reference.snapshot_id for reference in table.metadata.refs.values()}
    until = datetime.now(UTC) - age
    old = [
        each.snapshot_id
        for each in table.snapshots()
        if each.snapshot_id not in kept and datetime.fromtimestamp(each.timestamp_ms / 1000, UTC) <= until
    ]
    if old:
        table.maintenance.expire_snapshots().by_ids(old).commit()


def _oldest_age(table: Any) -> timedelta | None:
    """How old a snapshot becomes before it expires, as declared or by default; None if it never does."""
    age = str(table.properties.get("history.expire.max-snapshot-age-ms", _FIVE_DAYS)).strip()
    return retention_in(int(age) / 1000) if re.fullmatch(r"[0-9]{1,20}", age) else None


def _texts_of(table: Any) -> Iterator[str]:
    """What the metadata of a table say besides its files and numbers."""
    metadata = table.metadata
    yield from texts_in([dict(metadata.properties), list(metadata.refs), str(metadata.location)])
    for schema in metadata.schemas:
        yield from texts_in(json.loads(schema.model_dump_json()))
    for spec in metadata.partition_specs:
        yield from (field.name for field in spec.fields)
    for snapshot in metadata.snapshots:
        summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
        yield from texts_in({name: text for name, text in summary.items() if not _COUNTS.match(name)})


def _property(snapshot: Any, name: str) -> str | None:
    return None if snapshot is None or snapshot.summary is None else snapshot.summary.get(name)
