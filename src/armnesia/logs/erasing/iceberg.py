"""Erasing rows of an Iceberg table: by a delete of pyiceberg, whose snapshot does not say whom it was about.

The entries of deleted files stay in the manifests of that snapshot, with the lowest and highest value of each
column. A purge therefore adds an empty snapshot, which drops them, before all earlier snapshots expire.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.core.errors import ArmnesiaError, MissingExtraError, UnsupportedError
from armnesia.core.messages import all_of
from armnesia.logs.erasing.eraser import failed
from armnesia.logs.erasing.iceberg_files import TableFiles, has_deleted_entries
from armnesia.logs.erasing.lake_rows import Deletion, LakeEraser, check_type, marked_rows, values_of
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.lakes.iceberg import METADATA_FILE, IcebergMetadata, IcebergSource, without_remarks

_TOKEN = "armnesia-erasure"
_FIVE_DAYS = 432_000_000
"""In milliseconds."""
_WITHOUT_NAMES = ("bucket", "void")
"""Transforms of a partition that do not show the value."""
_NOT_LISTED = (
    "not all folders that the table writes to could be looked through for files that no snapshot refers to:"
    " the storage does not list them, a property names a folder outside of the table's (write.data.path), its"
    " metadata are incomplete, or another table is in the same folder"
)
_DOUBTFUL = (
    "files that no snapshot refers to may hold rows and are not removed: they are outside of the folders data"
    " and metadata, or the table may refer to them by another location; remove those that nothing needs"
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
        with self._failures_in_words():
            noted = TableFiles(table).elsewhere()
        return replace(plan, removals=tuple(sorted({*plan.removals, *noted})))

    def _remove_old(self, plan: ErasurePlan, *, at_once: bool) -> None:
        """Let earlier snapshots expire, and remove the files that nothing refers to any more."""
        table = self._metadata().table
        if table.properties.get("gc.enabled", "true").lower() == "false":
            raise UnsupportedError(
                f"files of {self._name!r} cannot be removed: the table declares gc.enabled=false, as tables"
                " do that share files with others"
            )
        with self._failures_in_words():
            current = table.current_snapshot()
            if current is not None and has_deleted_entries(current, table.io):
                # A snapshot without rows leaves out the entries of files that were deleted before it.
                with table.transaction() as transaction, transaction.update_snapshot().fast_append():
                    pass
            _expire(table, timedelta(0) if at_once else _oldest_age(table))
            files = TableFiles(table)
            until = None if at_once else datetime.now(UTC) - _oldest_age(table)
            files.remove(files.unreferenced(plan.removals), until=until)

    def _deletion_by(self, plan: ErasurePlan) -> Deletion | None:
        """There may be two snapshots: one drops whole files, one writes others again."""
        table = self._metadata().table
        made = [each for each in table.snapshots() if _property(each, _TOKEN) == plan.token]
        if not made:
            return None
        made.sort(key=lambda each: each.sequence_number or 0)
        return Deletion(made[0].parent_snapshot_id, made[-1].snapshot_id)

    def _outcome(self, plan: ErasurePlan, done: Deletion | None) -> Erasure:
        source = self._opened()
        table, current = source.history.table, source.snapshot.version
        earlier = [each for each in table.snapshots() if each.snapshot_id != current]
        with self._failures_in_words():
            files = TableFiles(table)
            old_files = files.unreferenced(plan.removals)
            is_named = current is not None and has_deleted_entries(table.current_snapshot(), table.io)
        remains = list(_sentences(table, current, bool(earlier), bool(old_files), is_named))
        if not files.are_all_seen:
            remains.append(_NOT_LISTED)
        if any(each.is_doubtful for each in old_files):
            remains.append(_DOUBTFUL)
        is_purged = files.are_all_seen and not earlier and not old_files
        state = SourceState.PURGED if is_purged else SourceState.LOGICALLY_DELETED
        before, after = (plan.version, None) if done is None else done
        due = None
        if earlier:
            youngest = max(each.timestamp_ms for each in earlier)
            due = datetime.fromtimestamp(youngest // 1000 + 1, UTC) + _oldest_age(table)
        return Erasure(state, before, after, (*remains, *marked_rows(source), _COPIES), due)


def _sentences(
    table: Any, current: int | None, has_snapshots: bool, has_files: bool, is_named: bool
) -> Iterator[str]:
    """Where rows or names remain."""
    if has_snapshots:
        yield (
            "earlier snapshots of the table, with the files that only they have, are there until they expire"
        )
    others = sorted(name for name, each in table.metadata.refs.items() if each.snapshot_id != current)
    if others:
        yield f"branches or tags keep earlier snapshots: {all_of(map(repr, others))}"
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


def _oldest_age(table: Any) -> timedelta:
    """How old a snapshot becomes before it expires, as the table declares or by Iceberg's default."""
    age = table.properties.get("history.expire.max-snapshot-age-ms", str(_FIVE_DAYS))
    return timedelta(milliseconds=int(age))


def _property(snapshot: Any, name: str) -> str | None:
    return None if snapshot is None or snapshot.summary is None else snapshot.summary.get(name)
