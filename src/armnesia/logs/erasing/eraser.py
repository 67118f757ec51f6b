"""`SourceEraser`: what the erasers of all kinds of sources can do."""

from collections.abc import Iterable
from typing import Protocol

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan
from armnesia.logs.lakes.snapshot import reason_of

BLOCKS = "the file system may keep blocks of the old files until they are overwritten"
"""What remains of any file that was removed or replaced."""
OTHER_COLUMNS = "names in other columns of rows that stay are not looked for"


class SourceEraser(Protocol):
    """Deletes the rows of people at one source; one eraser at a time may work on a source.

    A plan is made and stored, then applied. After a crash, `finish` does what a stored plan says; what was
    prepared for one that was never stored is removed when the next one is made.
    """

    def check_rewritable(self) -> None:
        """Refuse, before rows have to be erased, what could not be written again, and missing rights."""

    def check_named_by(self, role: str) -> None:
        """Refuse, before rows have to be erased, a column of names or ids whose rows could not be deleted."""

    def plan(self, people: People) -> ErasurePlan | None:
        """Prepare an erasure without changing anything that readers see; None if there are no rows."""

    def finish(self, plan: ErasurePlan, people: People) -> object:
        """Delete the rows, once however often it is called, whatever came in since the plan was made."""

    def apply(self, plan: ErasurePlan, people: People) -> Erasure:
        """`finish` the plan, check that the rows are gone and no others, and say what remains."""

    def empty_plan(self) -> ErasurePlan:
        """A plan that deletes no rows: applied, it says what is left of rows that are gone already."""

    def discard(self, plan: ErasurePlan) -> None:
        """Remove what a plan has prepared and not put in place, before another plan is made."""

    def undo(self, plan: ErasurePlan) -> None:
        """Remove what a plan has prepared; refuse a plan that was applied in part."""

    def with_removals(self, plan: ErasurePlan) -> ErasurePlan:
        """The plan with what could not be found again if a purge were interrupted; it is stored before."""

    def purge(self, plan: ErasurePlan, people: People, *, ignore_retention: bool = False) -> Erasure:
        """Remove what still holds rows that were deleted, as far as retention allows, or at once.

        Refused is the purge of an erasure that was not applied.
        """


def rows_left(location: str) -> InvalidLogError:
    """Report an erasure after which rows of the people are still there."""
    return InvalidLogError(
        f"source {location!r} still has rows of the people to be erased: they came in meanwhile, or were left"
        " out; erase again"
    )


def not_applied() -> InvalidInputError:
    """Refuse to purge rows that are still there."""
    return InvalidInputError("an erasure is purged after it was applied; apply it first")


def failed(location: str, library: str, error: BaseException, names: Iterable[str] = ()) -> InvalidLogError:
    """Say why a library failed, by its own words unless they quote one of the names.

    >>> str(failed("delta:/logs", "deltalake", ValueError("no space left"), ["ann"]))
    "rows of 'delta:/logs' cannot be erased: deltalake failed (no space left)"
    >>> str(failed("delta:/logs", "deltalake", ValueError("cannot cast 'ann'"), ["ann"]))
    "rows of 'delta:/logs' cannot be erased: deltalake failed (ValueError)"
    """
    reason = reason_of(error)
    if any(name in str(error) for name in names):
        reason = type(error).__name__
    return InvalidLogError(f"rows of {location!r} cannot be erased: {library} failed ({reason})")


def rows_changed(location: str, consequence: str) -> InvalidLogError:
    """Report an erasure that would change, or has changed, rows of others."""
    return InvalidLogError(
        f"source {location!r} cannot be erased from: the other rows would not stay the same; {consequence}"
    )
