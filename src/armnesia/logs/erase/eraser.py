"""`Eraser`: deletes the rows of people at one source.

Every step can be repeated: whatever was interrupted, even by a kill, is run again and does the rest. Nothing
is planned or stored. A new kind of source has one subclass with `deleted` and, if it keeps old rows, `purge`.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from armnesia.core.errors import (
    InvalidInputError,
    InvalidLogError,
    MissingExtraError,
    UnsupportedError,
)
from armnesia.logs.lakes import LakeSource
from armnesia.logs.refusals import in_words
from armnesia.logs.source import Source
from armnesia.logs.sql import Column
from armnesia.logs.statements import Chosen


class Eraser(ABC):
    """Deletes the rows of people at a source; one eraser at a time may work on it.

    The people are users or ids as the source's relation gives them: in the normal form, if it has one.
    """

    remains: ClassVar[tuple[str, ...]] = (
        "the file system may keep blocks of the old files until they are overwritten",
        "backups and copies of the source keep the rows",
        "names in other columns of rows that stay are not looked for",
    )
    """What may remain after `purge`: fixed sentences."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @property
    def keeps_old_rows(self) -> bool:
        """Whether files or earlier versions hold deleted rows until `purge` removes them."""
        return type(self).purge is not Eraser.purge

    def now(self) -> Source:
        """The source as it is now, where the opened one stands for an earlier state."""
        return self.source

    def check(self) -> None:
        """Refuse a source from which rows cannot be erased, before anything is promised or changed."""
        if self.source.where:
            raise UnsupportedError(
                "rows cannot be erased at a source that is read with conditions: rows of the same people that"
                f" do not satisfy {str(self.source.where[0])!r} would stay; open the source without them"
            )

    def find(self, people: Chosen) -> int:
        """The number of rows of these people, as the source is now."""
        source = self.now()
        for role in people.by_role():
            if role not in source.columns.named():
                raise InvalidInputError(f"rows of given {role}s need the {role} column; the source has none")
        return sum(tally.number for tally in source.tallies((0.0, 1.0), chosen=people))

    def delete(self, people: Chosen) -> int:
        """Delete the rows of these people and no others; the number of rows that this call has deleted."""
        self.check()
        if not self.find(people):
            return 0
        number = self.deleted(people)
        if self.find(people):
            raise InvalidLogError(
                f"source {self.source.location!r} still has rows of the people to be erased: they came in"
                " meanwhile; erase again"
            )
        return number

    @abstractmethod
    def deleted(self, people: Chosen) -> int:
        """Delete rows that are there, after `check`; refuse if other rows would change. Their number."""

    def purge(self, *, ignore_retention: bool = False) -> bool:
        """Remove versions and files that still hold deleted rows; whether none is left.

        Those that are left are younger than the retention that the source declares.
        """
        return True


def not_erased(place: str, reason: str) -> InvalidLogError:
    """Refuse to erase rows, or report why it did not work.

    >>> print(not_erased("/logs/a.parquet", "it is a link; give the file itself"))
    rows of '/logs/a.parquet' cannot be erased: it is a link; give the file itself
    """
    return InvalidLogError(f"rows of {place!r} cannot be erased: {reason}")


def load_pyarrow() -> None:
    """Import pyarrow, by which files are written; say which extra has it."""
    with MissingExtraError.unless_installed("Erasing rows of files and tables in lakes", "erase"):
        import pyarrow  # noqa: F401, PLC0415 (an extra)


def contents_of(source: Source, people: Chosen) -> tuple[int, tuple[int, int]]:
    """The number of rows of these people, and that of all others, with a check-sum of all their columns.

    >>> from armnesia.logs.source import open_source
    >>> source = open_source({"action": ["A", "A"], "reward": [1, 0], "user": ["7", "70"]})
    >>> contents_of(source, Chosen(users=["7"]))
    (1, (1, ...))
    """
    with source.reading({"log_digest": "hash(*COLUMNS(*))"}) as reading:
        is_chosen, parameters = reading.among(people)
        sql = (
            "SELECT count(*) FILTER (is_chosen), count(*) FILTER (NOT is_chosen),"
            " sum(log_digest) FILTER (NOT is_chosen)"
            f" FROM (SELECT log_digest, coalesce({is_chosen}, false) AS is_chosen FROM {reading.table})"
        )
        ((of_people, others, digest),) = reading.connection.rows(sql, parameters)
    return int(of_people), (int(others), int(digest or 0))


def stored_values(source: Source, role: str, people: Chosen, written: Callable[[Column], str]) -> list[Any]:
    """The values that name these people, in every spelling that the column has, as SQL writes them.

    >>> from armnesia.core.identifiers import UserType
    >>> from armnesia.logs.source import open_source
    >>> source = open_source({"action": ["A", "A"], "reward": [1, 0], "user": ["+7", "70"]})
    >>> people, source = Chosen(users=["7"]), source.named_by(UserType.INTEGER)
    >>> stored_values(source, "user", people, lambda column: column.sql)
    ['+7']
    """
    with source.connection() as connection:
        column = source.scan(connection).columns[source.columns.named()[role]]
    with source.reading({"log_stored": written(column)}) as reading:
        is_chosen, parameters = reading.among(Chosen(**{f"{role}s": people.by_role()[role]}))
        sql = f"SELECT DISTINCT log_stored FROM {reading.table} WHERE {is_chosen}"
        return [value for piece in reading.connection.stream(sql, parameters) for (value,) in piece]


OTHER_FILES = (
    "files of the table that are not written again may name people in their names, in pages of dictionaries,"
    " in columns that were dropped, and in metadata"
)


class LakeEraser(Eraser):
    """A table of which every commit makes a version."""

    source: LakeSource
    library: ClassVar[str]

    def now(self) -> LakeSource:
        """The table at its last version."""
        return self.at(self.source.location)

    def at(self, location: str) -> LakeSource:
        """The same columns of the version that a location stands for."""
        found = type(self.source).at(location, self.source.columns, None)
        read = {name: getattr(found, name) for name in ("place", "state", "options", "stored")}
        return replace(self.source, **read)

    def check(self) -> None:
        """Say first if a library is missing that a deletion needs."""
        super().check()
        load_pyarrow()

    def deleted(self, people: Chosen) -> int:
        """Delete by users, then by ids, each in one commit."""
        return sum(self._deleted(role, people) for role in people.by_role())

    def _deleted(self, role: str, people: Chosen) -> int:
        source = self.now()
        values = stored_values(source, role, people, lambda column: column.sql)
        if not values:  # ids of rows that were the users'
            return 0
        with self.in_words():
            before, after = self.commit(source, source.columns.named()[role], values)
        (then, others), (now, others_now) = contents_of(before, people), contents_of(after, people)
        if others != others_now:
            raise not_erased(
                self.source.location,
                f"the rows of others did not stay the same; restore the version before, {before.state}",
            )
        return then - now

    @abstractmethod
    def commit(
        self, source: LakeSource, column: str, values: Collection[Any]
    ) -> tuple[LakeSource, LakeSource]:
        """Delete the rows with these values; the table before and after."""

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Say in a sentence that the library failed."""
        failed = f"{self.library} failed ({{}}); if another writer was faster, erase again"
        said = f"rows of {self.source.location!r} cannot be erased"
        with warnings.catch_warnings(action="ignore"), in_words(said, failed):
            yield
