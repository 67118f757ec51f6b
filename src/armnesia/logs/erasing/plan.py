"""What an erasure is going to do, as a value that can be stored, and what it has done."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from armnesia.core.errors import InvalidInputError
from armnesia.core.files import Stamp
from armnesia.core.randomness import secret_bytes

_TOKEN_BYTES = 12


class FileSwap(NamedTuple):
    """A file of a log, and the file beside it that takes its place."""

    path: str
    old: Stamp
    staged: str
    new: Stamp


@dataclass(frozen=True)
class ErasurePlan:
    """An erasure that is prepared, without names, rewards or numbers of rows.

    It is stored before anything is touched, so that an erasure that was interrupted can be finished.

    >>> plan = ErasurePlan("parquet", "/logs/*.parquet", "5f2a",
    ...     files=(FileSwap("/logs/a.parquet", Stamp(812, 1), "/logs/.a", Stamp(790, 2)),))
    >>> ErasurePlan.from_dict(plan.to_dict()) == plan
    True
    """

    kind: str
    location: str
    token: str
    """A random text by which the changes of this plan are known again."""
    version: int | None = None
    """Of a table of a lake: the version, or the id of the snapshot, that the plan was made for."""
    files: tuple[FileSwap, ...] = ()
    """The files to be replaced, if files are."""
    deletes: bool = True
    """Whether it deletes rows. One that does not was made when there were none, in `version` of a table."""
    removals: tuple[str, ...] = ()
    """Files that a purge removes if nothing refers to them, and that could not be found again without it."""

    @classmethod
    def new(cls, kind: str, location: str, version: int | None = None) -> "ErasurePlan":
        """A plan with a token of its own."""
        return cls(kind, location, secret_bytes(_TOKEN_BYTES).hex(), version)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON."""
        files = [[path, list(old), staged, list(new)] for path, old, staged, new in self.files]
        return {**vars(self), "files": files, "removals": list(self.removals)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ErasurePlan":
        """Read what `to_dict` has written."""
        try:
            files = tuple(
                FileSwap(path, Stamp(*old), staged, Stamp(*new)) for path, old, staged, new in values["files"]
            )
            return cls(**{**values, "files": files, "removals": tuple(values.get("removals", ()))})
        except (LookupError, TypeError, ValueError):
            raise InvalidInputError(
                "a plan of an erasure must have kind, location, token, version and files"
                f" [[path, [size, changed], staged, [size, changed]], …]; got {sorted(values)}"
            ) from None

    @property
    def replaced(self) -> dict[str, Stamp]:
        """The files to be replaced, and the stamps of those that take their places."""
        return {swap.path: swap.new for swap in self.files}

    def check(self, kind: str, location: str) -> None:
        """Refuse a plan of another source."""
        if (self.kind, self.location) != (kind, location):
            raise InvalidInputError(
                f"the plan must be of {kind} source {location!r}; it is of {self.kind} source"
                f" {self.location!r}"
            )


class SourceState(StrEnum):
    """How far an erasure at a source has gone."""

    UNTOUCHED = "untouched"
    LOGICALLY_DELETED = "logically deleted"
    """Readers no longer see the rows; earlier versions, or files, still hold them."""
    PURGED = "purged"
    """What held the rows is gone, except what `remains` names."""


@dataclass(frozen=True)
class Erasure:
    """What has been done at a source.

    >>> Erasure(SourceState.PURGED, 3, 4, ("backups keep the rows",)).to_dict()
    {'state': 'purged', 'before': 3, 'after': 4, 'remains': ['backups keep the rows'], 'due': None}
    """

    state: SourceState
    before: int | None = None
    """Of a table of a lake: the version, or the id of the snapshot, before the rows were deleted."""
    after: int | None = None
    """The version, or the id of the snapshot, that deleted them."""
    remains: tuple[str, ...] = ()
    """Where rows or names may remain, one sentence for each place."""
    due: datetime | None = None
    """From when on a purge respects the retention that the table declares."""

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON."""
        due = None if self.due is None else self.due.isoformat()
        return {**vars(self), "state": self.state.value, "remains": list(self.remains), "due": due}
