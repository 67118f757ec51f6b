"""What erasures at Delta and Iceberg tables have in common: commits, after which other rows must stay."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.memory import import_sparing
from armnesia.logs.columns import Columns
from armnesia.logs.erasing.eraser import BLOCKS, OTHER_COLUMNS, not_applied, rows_changed, rows_left
from armnesia.logs.erasing.lake_contents import named_in_present_files
from armnesia.logs.erasing.names_in_files import checksum, names_in
from armnesia.logs.erasing.parquet_dictionaries import named_in_dictionaries
from armnesia.logs.erasing.parquet_metadata import named_in_metadata
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.files.label_lookup import look_up
from armnesia.logs.lakes.source import LakeSource

Lake = TypeVar("Lake", bound=LakeSource)

_BY_VALUE = {
    "VARCHAR": "text",
    "TINYINT": "integers",
    "SMALLINT": "integers",
    "INTEGER": "integers",
    "BIGINT": "integers",
    "DECIMAL": "decimals",
    "DATE": "dates",
}
"""Types of columns in which a value is deleted by comparing it with itself."""


_LONGEST = timedelta(days=365_000)
NEVER_OVER = (
    "the table declares a retention that is never over, or that is not understood; only a purge that ignores"
    " it removes files"
)
NAMED = (
    "properties, comments, applications, branches, partitions or files of the table, as its log or its folder"
    " names them, name people"
)


class Deletion(NamedTuple):
    """The versions of a table, or the ids of its snapshots, before and after rows were deleted."""

    before: int | None
    after: int
    goes_on: bool = False
    """Whether the last commit says that others of the plan follow it."""


class DeletingCommit(NamedTuple):
    """The versions of a table before and after one commit, or several that were made at once."""

    before: int | None
    after: int
    may_leave_rows: bool = False
    """Whether it need not delete all rows of the people in the files that it replaces."""


class LakeEraser(ABC, Generic[Lake]):
    """A table of a lake; commits that delete rows have the token of their plan, and are known again by it."""

    _kind: ClassVar[str]

    def __init__(self, source: Lake) -> None:
        import_sparing("pyarrow")  # before anything else does
        self._name = str(source.description["location"])
        self._columns = Columns(**source.description["columns"])
        self._given = source

    def check_rewritable(self) -> None:
        """Refuse a table that must not lose rows, or that cannot be written or compared."""
        self._check_writable(self._given)

    def check_named_by(self, role: str) -> None:
        """Refuse a column whose values are not deleted by comparing them, or stand outside of rows."""
        check_type(self._given, role)
        self._check_column(self._given, role)

    def plan(self, people: People) -> ErasurePlan | None:
        """Look for the rows; refuse a table that has some and cannot be written. Nothing is written."""
        source = self._opened()
        self._check_people(source, people)
        if not names_in(source, people):
            return None
        self._check_writable(source)
        return self._new_plan(source)

    def _check_people(self, source: Lake, people: People) -> None:
        people.check_column(source)
        check_type(source, people.role)
        self._check_column(source, people.role)

    def finish(self, plan: ErasurePlan, people: People) -> Deletion | None:
        """Delete the rows by commits of the table, as far as those of this plan are not there already."""
        plan.check(self._kind, self._name)
        done = self._deletion_by(plan)
        if done is not None:
            self._check_made(plan, people)
        if done is None or done.goes_on:
            source = self._opened()
            self._check_people(source, people)
            names = names_in(source, people)
            if names:
                done = self._delete_checked(source, plan, people.role, names)
        return done

    def apply(self, plan: ErasurePlan, people: People) -> Erasure:
        """Finish the plan; refuse rows of the people that came in since."""
        done = self.finish(plan, people)
        if names_in(self._opened(), people):
            raise rows_left(self._name)
        return self._outcome_for(people, plan, done)

    def empty_plan(self) -> ErasurePlan:
        """A plan that deletes no rows."""
        return replace(self._new_plan(self._opened()), deletes=False)

    def discard(self, plan: ErasurePlan) -> None:
        """Nothing was prepared."""

    def undo(self, plan: ErasurePlan) -> None:
        """Refuse a plan that was applied; otherwise nothing was prepared."""
        plan.check(self._kind, self._name)
        if self._deletion_by(plan) is not None:
            raise InvalidInputError("an erasure that was applied cannot be undone; this one was")

    def with_removals(self, plan: ErasurePlan) -> ErasurePlan:
        """Nothing has to be noted."""
        return plan

    def purge(self, plan: ErasurePlan, people: People, *, ignore_retention: bool = False) -> Erasure:
        """Remove what only earlier versions of the table need.

        By default only what is older than the retention that the table declares is removed. At once means:
        readers of earlier versions, and writers that are about to commit, may fail.
        """
        plan.check(self._kind, self._name)
        if names_in(self._opened(), people):
            raise not_applied()
        done = self._deletion_by(plan)  # before it, or what tells of it, is removed
        self._remove_old(plan, at_once=ignore_retention)
        return self._outcome_for(people, plan, done)

    def _outcome_for(self, people: People, plan: ErasurePlan, done: Deletion | None) -> Erasure:
        """What remains, also in data files that other rows keep: metadata, and what readers do not see."""
        erasure = self._outcome(people, plan, done)
        source = self._opened()
        named = (
            *named_in_metadata(source.files, people),
            *named_in_dictionaries(source, people),
            *named_in_present_files(source, people),
        )
        if not named:
            return erasure
        return replace(erasure, state=SourceState.LOGICALLY_DELETED, remains=(*named, *erasure.remains))

    def _new_plan(self, source: Lake) -> ErasurePlan:
        return ErasurePlan.new(self._kind, self._name, source.snapshot.version)

    def _delete_checked(self, source: Lake, plan: ErasurePlan, role: str, names: frozenset[str]) -> Deletion:
        """Delete rows; take a commit back if it has changed others, and make no further ones then."""
        self._check_writable(source)  # as in the plan: the table may have changed since
        for made in self._delete(source, plan, role, names):
            replaced, written = source.changed_between(made.before, made.after)
            if not other_rows_stayed(replaced, written, role, names, made.may_leave_rows):
                raise rows_changed(self._name, self._take_back(made))
        done = self._deletion_by(plan)
        if done is None:
            raise rows_left(self._name)
        return done

    def _check_made(self, plan: ErasurePlan, people: People) -> None:
        """Check commits that are there already: the process that made one may have ended before it did.

        One whose versions cannot be read any more, or have other columns, is passed over.
        """
        source = self._opened()
        for made in self._commits_by(plan):
            try:
                replaced, written = source.changed_between(made.before, made.after)
                names = names_in(replaced, people)
                have_stayed = other_rows_stayed(replaced, written, people.role, names, True)
            except InvalidLogError:
                continue
            if not have_stayed:
                raise rows_changed(self._name, self._take_back(made))

    @abstractmethod
    def _opened(self) -> Lake:
        """The table at its last version."""

    @abstractmethod
    def _check_writable(self, source: Lake) -> None:
        """Refuse a table that must not lose rows, or that cannot be written or compared."""

    @abstractmethod
    def _check_column(self, source: Lake, role: str) -> None:
        """Refuse a column whose names stand outside of the rows, or that the library does not find."""

    @abstractmethod
    def _delete(
        self, source: Lake, plan: ErasurePlan, role: str, names: frozenset[str]
    ) -> Iterator[DeletingCommit]:
        """Delete the rows with these names by commits with the token of the plan, one after the other."""

    @abstractmethod
    def _deletion_by(self, plan: ErasurePlan) -> Deletion | None:
        """What the commits of a plan have deleted; None if there are none, or if they are forgotten."""

    @abstractmethod
    def _commits_by(self, plan: ErasurePlan) -> Iterator[DeletingCommit]:
        """The commits of a plan that the table still knows, and that were not taken back, in order."""

    @abstractmethod
    def _take_back(self, made: DeletingCommit) -> str:
        """Go back to the version before a commit, unless somebody has built on it; say which."""

    @abstractmethod
    def _remove_old(self, plan: ErasurePlan, *, at_once: bool) -> None:
        """Remove what only earlier versions need, after the retention of the table or at once."""

    @abstractmethod
    def _outcome(self, people: People, plan: ErasurePlan, done: Deletion | None) -> Erasure:
        """Look at what is there, and say what remains."""


def those_that_hold(sentences: Mapping[str, object]) -> list[str]:
    """The sentences of which it was found that they are true.

    >>> those_that_hold({"files remain": ["a.parquet"], "names remain": False})
    ['files remain']
    """
    return [sentence for sentence, holds in sentences.items() if holds]


def copies_of(is_local: bool, *others: str) -> tuple[str, ...]:
    """What a purge cannot reach, of a table on this machine or in an object store.

    >>> copies_of(False, "clones")[1]
    'copies of the table remain: clones, versions of the object store, backups'
    """
    kept = "snapshots of the file system" if is_local else "versions of the object store"
    copies = f"copies of the table remain: {', '.join((*others, kept, 'backups'))}"
    return (OTHER_COLUMNS, BLOCKS, copies) if is_local else (OTHER_COLUMNS, copies)


def retention_in(seconds: float) -> timedelta | None:
    """A time that a table declares; None if it is never over.

    >>> retention_in(90), retention_in(-1), retention_in(10**20)
    (datetime.timedelta(seconds=90), None, None)
    """
    return timedelta(seconds=seconds) if 0 <= seconds <= _LONGEST.total_seconds() else None


def check_type(source: LakeSource, role: str) -> None:
    """Refuse a column of which values cannot be handed over to the table's library without doubt."""
    type_ = source.named_column(role).type
    if type_ not in _BY_VALUE:
        raise InvalidLogError(
            f"{source.described(role)} must hold {', '.join(sorted(set(_BY_VALUE.values())))} for rows to be"
            f" erased; it holds {type_}: write the column as integers or text, ingest the source again, then"
            " erase"
        )


def values_of(source: LakeSource, role: str, names: frozenset[str]) -> list[Any]:
    """The values of a column, in its own type, that have these names."""
    column = source.named_column(role)
    found = look_up(column, names)
    sql = f"SELECT DISTINCT {column.name} FROM {source.files.table} WHERE {found.condition}"
    return [value for (value,) in source.files.query(sql, **found.parameters)]


def other_rows_stayed(
    replaced: LakeSource, written: LakeSource, role: str, names: frozenset[str], may_leave_rows: bool = False
) -> bool:
    """Whether files that replaced others have all their rows except those with the names, which may be left.

    Both are what `LakeSource.changed_between` gives, without the files that both versions have.
    """
    left_out = look_up(replaced.named_column(role), names)
    left = look_up(written.named_column(role), names) if may_leave_rows else None
    return checksum(replaced.compared_files, left_out) == checksum(written.compared_files, left)


def marked_rows(source: LakeSource) -> tuple[str, ...]:
    """A sentence if files hold rows that are only marked as deleted, which nobody can find by name."""
    if not any(file.removed for file in source.snapshot.files):
        return ()
    return (
        "files of the table hold rows that an earlier deletion has only marked (deletion vectors or position"
        " deletes); these may be of the same people, and stay until the files are written again",
    )
