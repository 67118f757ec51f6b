"""One reproduction in progress: its plan, the cells finished so far and the results that it will write."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from armnesia.paper.cells import Cell, CellStore, Row, run_cells
from armnesia.paper.plan import Plan
from armnesia.paper.section import Claim

Progress = Callable[[str, int, int], None]
"""Called with the label of a part, the number of its finished cells and the number of all its cells."""


@dataclass
class Run:
    """What the sections of the report are computed with, and where they leave result rows and claims."""

    out: Path
    plan: Plan
    n_jobs: int = 1
    progress: Progress | None = None
    rows: list[Row] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    label: str = ""

    def __post_init__(self) -> None:
        self.store = CellStore(self.out / "cells.jsonl")

    @property
    def pictures(self) -> Path:
        """The folder for the pictures."""
        return self.out / "figures"

    def evaluate(self, cells: Sequence[Cell]) -> list[Row]:
        """Evaluate cells, reporting the progress; finished ones come from the store."""
        report = None if self.progress is None else partial(self.progress, self.label)
        return run_cells(cells, self.store, n_jobs=self.n_jobs, progress=report)

    def evaluate_and_record(self, cells: Sequence[Cell]) -> list[Row]:
        """Evaluate cells and add their rows to the results that are written to disk."""
        rows = self.evaluate(cells)
        self.rows += rows
        return rows
