"""The contents of the report: sections with paragraphs, pictures and tables, and the claims of the paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from armnesia.core.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOLDS, WITHIN_ERROR, FAILS = "holds", "holds within sampling error", "does not hold"
DEPENDS = "depends on the reading"


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
    """A part of the report: paragraphs, then pictures by file name with one caption, then tables."""

    title: str
    paragraphs: Sequence[str] = ()
    pictures: Mapping[str, "Figure"] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    caption: str = ""
