"""What the erasers of tables in lakes share: one commit deletes, and is taken back if it changed others."""

import warnings
from abc import abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from armnesia.core.errors import ArmnesiaError
from armnesia.core.memory import giving_back_memory
from armnesia.logs.erase.eraser import (
    Eraser,
    contents_of,
    load_pyarrow,
    not_erased,
    of_each_role,
    stored_values,
)
from armnesia.logs.lakes import LakeSource
from armnesia.logs.statements import Chosen

OTHER_FILES = (
    "files of the table that are not written again may name people in their names, in pages of dictionaries,"
    " in columns that were dropped, and in metadata"
)


class LakeEraser(Eraser):
    """A table of which every commit makes a version."""

    library: ClassVar[str]

    def __init__(self, source: LakeSource) -> None:
        super().__init__(source)
        self._table = source

    def now(self) -> LakeSource:
        """The table at its last version."""
        return self.at(self.source.location)

    def at(self, location: str) -> LakeSource:
        """The same columns of the version that a location stands for."""
        found = type(self._table).at(location, self.source.columns, None)
        read = {name: getattr(found, name) for name in ("place", "state", "options", "stored")}
        return replace(self._table, **read)

    def check(self) -> None:
        """Say first if a library is missing that a deletion needs."""
        super().check()
        load_pyarrow()

    def deleted(self, people: Chosen) -> int:
        """Delete by users, then by ids, each in one commit."""
        return sum(self._deleted(role, each) for role, each in of_each_role(people))

    def _deleted(self, role: str, people: Chosen) -> int:
        source = self.now()
        values = stored_values(source, role, people, lambda column: column.sql)
        if not values:  # ids of rows that were the users'
            return 0
        with self.in_words(), giving_back_memory():
            before, after = self.commit(source, source.columns.named()[role], values)
        (then, others), (now, others_now) = contents_of(before, people), contents_of(after, people)
        if others != others_now:
            is_last = self.now().state == after.state
            if is_last:
                with self.in_words():
                    self.take_back(before)
            done = "the commit was taken back" if is_last else "others have followed: restore the table"
            raise not_erased(self.source.location, f"the rows of others did not stay the same; {done}")
        return then - now

    @abstractmethod
    def commit(
        self, source: LakeSource, column: str, values: Collection[Any]
    ) -> tuple[LakeSource, LakeSource]:
        """Delete the rows with these values; the table before and after."""

    @abstractmethod
    def take_back(self, before: LakeSource) -> None:
        """Make the version before the present one again."""

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Say in a sentence that the library failed; its own words may quote a name."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except ArmnesiaError:
            raise
        except Exception as error:
            reason = (
                f"{self.library} failed ({type(error).__name__}); if another writer was faster, erase again"
            )
            raise not_erased(self.source.location, reason) from None
