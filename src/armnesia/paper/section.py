"""The contents of the report: sections with paragraphs, pictures and tables, and the claims of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armnesia.core.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOLDS, WITHIN_ERROR, FAILS = "holds", "holds within sampling error", "does not hold"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: what it says, what is true, and the verdict with its reason."""

    where: str
    text: str
    paper: str
    ours: str
    error: str
    verdict: str
    why: str


@dataclass(frozen=True)
class Table:
    """Rows under a header; verdicts are coloured, and columns of numbers are aligned right."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise InvalidInputError(
                    f"rows must have a cell for each of the {len(self.header)} columns; got {list(row)!r}"
                )


@dataclass(frozen=True)
class Section:
    """A part of the report: paragraphs, then pictures with one caption, then tables."""

    title: str
    paragraphs: Sequence[str] = ()
    pictures: Sequence["Figure"] = ()
    tables: Sequence[Table] = ()
    caption: str = ""


def with_error(value: float, error: float, digits: int = 5) -> str:
    """A number and its standard error, as text.

    >>> with_error(0.0123456, 0.0000789), with_error(1.5, 0.25, digits=2)
    ('0.01235 ± 0.00008', '1.50 ± 0.25')
    """
    return f"{value:.{digits}f} ± {error:.{digits}f}"
