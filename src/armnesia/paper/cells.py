"""The unit of work: one setting, several methods on the same data. Finished cells are kept on disk."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from armnesia import __version__
from armnesia.paper.protocol import paper_protocol
from armnesia.paper.settings import DELTA, ENVIRONMENT, method
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
from armnesia.simulation.parallel import worker_pool

NUMBERS = 2
"""Raise this when a change of the code changes numbers: kept results of before are then computed anew."""

Row = dict[str, Any]
"""One line of the tidy results: a method in a setting."""


@dataclass(frozen=True)
class Cell:
    """A point of a figure: where it belongs, the setting, the methods, and how it is evaluated.

    With `epsilon` the budget is (ε, δ) and γ the noise that it needs, whatever `gamma` says. With `people`
    that many records are deleted, whatever their arm, and `deletions` is empty.
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
        """What a finished cell is found by: everything that its result depends on, the code's version too."""
        methods = {name: repr(method(name)) for name in self.methods}
        return json.dumps(
            {**asdict(self), "methods": methods, "version": [__version__, NUMBERS]}, sort_keys=True
        )

    @property
    def model(self) -> DataModel:
        """M_f with equal counts, or M_d with the given coverage."""
        if self.c_star is None:
            return FixedSample.round_robin(self.n, ENVIRONMENT.n_actions)
        return DistributionModel.with_coverage(
            self.n, n_actions=ENVIRONMENT.n_actions, best=ENVIRONMENT.best, c_star=self.c_star
        )

    @property
    def request(self) -> RequestModel:
        """Records of given arms, or of random people."""
        return AcrossArms(self.people) if self.people else SeveralArms(dict(self.deletions))

    @property
    def budget(self) -> Budget:
        """Fixed by ε, or by γ as in the paper."""
        if self.epsilon is None:
            return Budget.from_gamma(self.gamma, delta=DELTA)
        return Budget(epsilon=self.epsilon, delta=DELTA)


def run_cell(cell: Cell) -> list[Row]:
    """Evaluate all methods of a cell; one tidy row each."""
    if cell.protocol == "paper":
        results = paper_protocol(cell.model, dict(cell.deletions), _methods(cell), cell.gamma, seed=cell.seed)
    else:
        # In the distribution model sampling whole data sets gives the smaller error for the same time.
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
    return {name: method(name) for name in cell.methods}


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
class Store:
    """Finished cells in a file of one JSON object a line; a torn last line is a cell not finished."""

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

    def keep(self, cell: Cell, rows: list[Row]) -> None:
        """Remember a cell, on disk first."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A line of its own, also after one that was torn off.
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps({"cell": cell.key, "rows": rows}))
        self.finished[cell.key] = rows


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Evaluate what is not in the store yet, and return the rows of all cells, in order."""
    todo = list({cell.key: cell for cell in cells if cell.key not in store.finished}.values())
    with ExitStack() as stack:
        done: Iterable[tuple[Cell, list[Row]]] = ((cell, run_cell(cell)) for cell in todo)
        if n_jobs > 1 and len(todo) > 1:
            done = _in_parallel(stack.enter_context(worker_pool(n_jobs)), todo)
        for number, (cell, rows) in enumerate(done, start=1):
            store.keep(cell, rows)
            if progress is not None:
                progress(number, len(todo))
    return [row for cell in cells for row in store.finished[cell.key]]


def _in_parallel(pool: ProcessPoolExecutor, cells: list[Cell]) -> Iterator[tuple[Cell, list[Row]]]:
    running = {pool.submit(run_cell, cell): cell for cell in cells}
    for finished in as_completed(running):
        yield running[finished], finished.result()
