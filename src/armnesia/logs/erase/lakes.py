"""What the erasers of tables in lakes share: one commit deletes, and is taken back if it changed others."""

import warnings
from abc import abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from armnesia.core.errors import ArmnesiaError, UnsupportedError
from armnesia.core.memory import import_sparing
from armnesia.logs.erase.eraser import Eraser, contents_of, not_erased
from armnesia.logs.lakes import LakeSource
from armnesia.logs.sql import INTEGERS, quoted
from armnesia.logs.statements import Chosen

_COMPARED = {"VARCHAR", "DECIMAL", "DATE", "FLOAT", "DOUBLE", *INTEGERS}
"""Types of names and ids that the libraries compare as DuckDB does."""


class LakeEraser[Opened: LakeSource](Eraser):
    """A table of which every commit makes a version."""

    library: ClassVar[str]

    def __init__(self, source: Opened) -> None:
        super().__init__(source)
        self._table = source

    def now(self) -> Opened:
        """The table at its last version."""
        last = type(self._table).at(self.source.location, self.source.columns, None)
        found = {name: getattr(last, name) for name in ("place", "state", "options", "stored")}
        return replace(self._table, **found)

    def check(self) -> None:
        """Refuse columns of names that the library could not compare."""
        super().check()
        with self.source.connection() as connection:
            columns = self.source.scan(connection).columns
        for role in ("user", "id"):
            name = self.source.columns.named().get(role)
            if name is not None and columns[name].type not in _COMPARED:
                raise UnsupportedError(
                    f"rows of {self.source.location!r} cannot be erased by the {role} column {name!r}, which"
                    f" holds {columns[name].type}: write it as text or integers"
                )

    def deleted(self, people: Chosen) -> int:
        """Delete by users, then by ids, each in one commit."""
        by_users, by_ids = Chosen(users=people.users), Chosen(ids=people.ids)
        return sum(self._deleted(role, each) for role, each in (("user", by_users), ("id", by_ids)))

    def _deleted(self, role: str, people: Chosen) -> int:
        source = self.now()
        values = _stored_values(source, role, people) if people != Chosen() else []
        if not values:
            return 0
        with self.in_words():
            before, after = self.commit(source, source.columns.named()[role], values)
        then, now = contents_of(before, people), contents_of(after, people)
        if then.others != now.others:
            with self.in_words():
                self.take_back(before)
            raise not_erased(
                self.source.location, "the rows of others did not stay the same; the commit was taken back"
            )
        return then.of_people - now.of_people

    @abstractmethod
    def commit(self, source: Opened, column: str, values: Collection[Any]) -> tuple[Opened, Opened]:
        """Delete the rows with these values; the table before and after."""

    @abstractmethod
    def take_back(self, before: Opened) -> None:
        """Make an earlier version the present one, if nothing was committed since."""

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Say in a sentence that the library failed; its own words may quote a name."""
        import_sparing("pyarrow")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except ArmnesiaError:
            raise
        except BaseException as error:
            kind = type(error).__name__
            if not isinstance(error, Exception) and kind != "PanicException":  # of Rust
                raise
            reason = f"{self.library} failed ({kind})"
            if kind in ("CommitFailedError", "CommitFailedException", "ValidationException"):
                reason = (
                    f"another writer was faster, or {self.library} cannot write such a table; erase again"
                )
            raise not_erased(self.source.location, reason) from None


def _stored_values(source: LakeSource, role: str, people: Chosen) -> list[Any]:
    """The values that name these people, in every spelling that the column has."""
    with source.connection() as connection:
        relation = source.relation(connection, {"log_stored": quoted(source.columns.named()[role])})
        is_chosen, parameters = relation.among(people)
        sql = f"SELECT DISTINCT log_stored FROM {relation.table} WHERE {is_chosen}"
        pieces = connection.stream(sql, {**relation.parameters, **parameters})
        return [value for piece in pieces for (value,) in piece]
