"""Cells: settings in which several methods are evaluated on the same data; finished ones are kept on disk."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from armnesia.core.version import __version__
from armnesia.paper.protocol import paper_protocol
from armnesia.paper.settings import DELTA, ENVIRONMENT, unlearner_named
from armnesia.privacy import Budget
from armnesia.simulation import (
    AcrossArms,
    DataModel,
    DistributionModel,
    Evaluation,
    FixedSample,
    RequestModel,
    SeveralArms,
    evaluate_all,
)
from armnesia.simulation.parallel import workers

RESULTS_VERSION = 3
"""Raise this when a change of the code changes results: cells kept by older code are then evaluated again."""

Row = dict[str, Any]
"""One row of the results: a method in a setting."""


@dataclass(frozen=True)
class Cell:
    """A point of a figure: its place in the figure, the setting, the methods and the protocol.

    If `epsilon` is given, the budget is (ε, δ), γ follows from it, and `gamma` is ignored. If `people` is
    positive, that many records are drawn from all arms for deletion, and `deletions` is empty.
    """

    figure: str
    panel: str
    varied: str
    x: float
    n: int
    deletions: tuple[tuple[int, int], ...]
    gamma: float
    methods: tuple[str, ...]
    protocol: str
    c_star: float | None = None
    datasets: int = 200_000
    seed: int = 0
    epsilon: float | None = None
    people: int = 0

    @property
    def key(self) -> str:
        """Identifies a finished cell: everything that its result depends on, including the code's version."""
        methods = {name: repr(unlearner_named(name)) for name in self.methods}
        return json.dumps(
            {**asdict(self), "methods": methods, "version": [__version__, RESULTS_VERSION]}, sort_keys=True
        )

    @property
    def model(self) -> DataModel:
        """M_f with equal counts, or M_d with coverage C*."""
        if self.c_star is None:
            return FixedSample.round_robin(self.n, ENVIRONMENT.n_actions)
        return DistributionModel.with_coverage(
            self.n, n_actions=ENVIRONMENT.n_actions, best=ENVIRONMENT.best, c_star=self.c_star
        )

    @property
    def request(self) -> RequestModel:
        """Deletion of records of given arms, or of records drawn from all arms."""
        return AcrossArms(self.people) if self.people else SeveralArms(dict(self.deletions))

    @property
    def budget(self) -> Budget:
        """The budget (ε, δ), or the one with the paper's γ."""
        return _budget(self.gamma, self.epsilon)


@cache  # a few budgets serve all cells, and reading ε off the curve takes 10 ms
def _budget(gamma: float, epsilon: float | None) -> Budget:
    return Budget.from_gamma(gamma, delta=DELTA) if epsilon is None else Budget(epsilon=epsilon, delta=DELTA)


def run_cell(cell: Cell) -> list[Row]:
    """Evaluate all methods of a cell; one row each."""
    if cell.protocol == "paper":
        results = paper_protocol(cell.model, dict(cell.deletions), _methods(cell), cell.gamma, seed=cell.seed)
    else:
        # Under M_d, sampled data sets give a smaller error in equal time than exact values of sampled counts.
        exact = cell.protocol == "exact" and cell.c_star is None
        results = evaluate_all(
            ENVIRONMENT,
            cell.model,
            cell.request,
            _methods(cell),
            cell.budget,
            protocol="exact" if exact else "sampled",
            datasets=cell.datasets,
            seed=cell.seed,
        )
    return [_row(cell, name, result) for name, result in results.items()]


def _methods(cell: Cell) -> dict[str, Any]:
    return {name: unlearner_named(name) for name in cell.methods}


def _row(cell: Cell, name: str, result: Evaluation) -> Row:
    return {
        "figure": cell.figure,
        "panel": cell.panel,
        "model": "fixed" if cell.c_star is None else "distribution",
        "varied": cell.varied,
        "x": cell.x,
        "n": cell.n,
        "arms": " ".join(str(arm) for arm, _ in cell.deletions) or "any",
        "k": cell.people or max(k for _, k in cell.deletions),
        "gamma": cell.budget.gamma,
        "epsilon": cell.budget.epsilon,
        "c_star": cell.c_star,
        "method": name,
        "suboptimality": result.suboptimality,
        "standard_error": result.standard_error,
        "protocol": result.protocol,
        "datasets": result.datasets,
        "short_share": result.short_share,
        "blocks": result.blocks.tolist(),
    }


@dataclass
class CellStore:
    """Finished cells, in a file with one JSON object per line; an incomplete line is an unfinished cell."""

    path: Path | None = None
    finished: dict[str, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self.finished[entry["cell"]] = entry["rows"]

    def add(self, cell: Cell, rows: list[Row]) -> None:
        """Keep the rows of a cell, on disk first."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The newline comes first, because the last line may be incomplete.
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps({"cell": cell.key, "rows": rows}))
        self.finished[cell.key] = rows


def run_cells(
    cells: Sequence[Cell],
    store: CellStore,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Evaluate the cells that are not in the store, and return the rows of all cells, in order."""
    todo = list({cell.key: cell for cell in cells if cell.key not in store.finished}.values())
    with workers(n_jobs if len(todo) > 1 else 1) as those:
        for number, (cell, rows) in enumerate(those.finished(run_cell, todo), start=1):
            store.add(cell, rows)
            if progress is not None:
                progress(number, len(todo))
    return [row for cell in cells for row in store.finished[cell.key]]
