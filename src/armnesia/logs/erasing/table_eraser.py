"""What erasures at tables of databases have in common: one transaction, in which other rows must stay."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, TypeVar

from armnesia.core.errors import InvalidLogError
from armnesia.logs.erasing.eraser import rows_changed, rows_left
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.manifests import source_name
from armnesia.logs.tables.source import TableSource

Connection = TypeVar("Connection")
NAMED_BY_DEFINITION = (
    "what the database says of the table has a word that is a name of somebody who was forgotten: its"
    " definition, comments, types and partitions, an index, constraint, policy or trigger, or a view; create"
    " it again without the name"
)


class TableEraser(ABC, Generic[Connection]):
    """A table of a database, which deletes rows in one transaction."""

    _kind: ClassVar[str]
    _remains: ClassVar[tuple[str, ...]]
    """What still holds rows after they were deleted."""

    def __init__(self, source: TableSource) -> None:
        self._location = source_name(source.description)
        self._table = source.quoted_table
        self._read = source.named_to_read()

    def check_named_by(self, role: str) -> None:
        """Nothing can be told by the type: rows are found as they are read."""

    def plan(self, people: People) -> ErasurePlan | None:
        """Look for the rows; nothing of the table is changed."""
        with self._connected() as connection:
            return self.empty_plan() if self._names(connection, people) else None

    def finish(self, plan: ErasurePlan, people: People) -> None:
        """Delete the rows in one transaction."""
        plan.check(self._kind, self._location)
        with self._writing() as connection:
            names = self._names(connection, people)
            if names:
                self._delete(connection, people, names)
            if self._names(connection, people):
                raise rows_left(self._location)

    def apply(self, plan: ErasurePlan, people: People) -> Erasure:
        """Finish the plan; the transaction has looked whether rows are left."""
        self.finish(plan, people)
        return Erasure(SourceState.LOGICALLY_DELETED, remains=self._remains)

    def empty_plan(self) -> ErasurePlan:
        """A plan that deletes no rows."""
        return ErasurePlan.new(self._kind, self._location)

    def with_removals(self, plan: ErasurePlan) -> ErasurePlan:
        """Nothing has to be noted."""
        return plan

    def discard(self, plan: ErasurePlan) -> None:
        """Nothing was prepared."""

    def undo(self, plan: ErasurePlan) -> None:
        """Nothing was prepared."""
        plan.check(self._kind, self._location)

    def _delete_checked(self, connection: Any, condition: str, parameters: Sequence[Any] = ()) -> None:
        """Delete rows; refuse, before the transaction is committed, if a trigger or rule changed others."""
        others = self._checksum(connection, f"NOT coalesce(({condition}), false)", parameters)
        connection.execute(f"DELETE FROM {self._read} WHERE {condition}", tuple(parameters))
        self._finish_triggers(connection)
        if self._checksum(connection, "true", ()) != others:
            if self._checksum(connection, condition, parameters)[0]:
                raise InvalidLogError(
                    f"source {self._location!r} cannot be erased from: a trigger or rule of the table keeps"
                    " the rows, or brings them back; nothing was changed"
                )
            raise rows_changed(self._location, "nothing was changed")

    def _finish_triggers(self, connection: Connection) -> None:
        """Let triggers run now that would run when the transaction is committed."""

    @abstractmethod
    def check_rewritable(self) -> None:
        """Refuse a table of which this user may not delete rows."""

    @abstractmethod
    def _connected(self) -> AbstractContextManager[Connection]:
        """Connect to the database; refuse the erasure if it fails."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Connection]:
        """Connect, and commit at the end what was done, unless something was raised."""

    @abstractmethod
    def _names(self, connection: Connection, people: People) -> frozenset[str]:
        """The values of the column that are names of these people."""

    @abstractmethod
    def _delete(self, connection: Connection, people: People, names: frozenset[str]) -> None:
        """Delete the rows with these names, by `_delete_checked`."""

    @abstractmethod
    def _checksum(self, connection: Connection, condition: str, parameters: Sequence[Any]) -> tuple[int, int]:
        """The number of rows, and a sum over them that another value in any column changes."""
