"""One reproduction in progress: its plan, the cells finished so far and the results that it will write."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from armnesia.paper.section import Claim
from armnesia.paper.settings import Plan
from armnesia.simulation import Cell, CellStore, Row, run_cells
from armnesia.simulation.parallel import Workers

Progress = Callable[[str, int, int], None]
"""Called with the label of a part, the number of its finished cells and the number of all its cells."""


@dataclass
class Run:
    """What the sections of the report are computed with, and where they leave result rows and claims."""

    plan: Plan
    workers: Workers
    store: CellStore | None = None
    progress: Progress | None = None
    rows: list[Row] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    label: str = ""

    def evaluate(self, cells: Sequence[Cell]) -> list[Row]:
        """Evaluate cells, reporting the progress; finished ones come from the store."""
        report = None if self.progress is None else partial(self.progress, self.label)
        return run_cells(cells, self.store, self.workers, report)

    def evaluate_and_record(self, cells: Sequence[Cell]) -> list[Row]:
        """Evaluate cells and add their rows to the results that are written to disk."""
        rows = self.evaluate(cells)
        self.rows += rows
        return rows
