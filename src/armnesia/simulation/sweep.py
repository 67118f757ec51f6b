"""Sweeps: unlearners over a grid of settings, as one tidy table; finished settings are kept on disk."""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import product
from numbers import Real
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.errors import InvalidInputError, MissingExtraError, UnsupportedError
from armnesia.core.files import atomic_write
from armnesia.core.messages import any_of
from armnesia.learners import Learner
from armnesia.privacy import Budget
from armnesia.simulation.environment import Environment
from armnesia.simulation.estimates import Evaluation
from armnesia.simulation.evaluation import bound_learner, evaluate_all
from armnesia.simulation.models import DataModel, DistributionModel, FixedSample
from armnesia.simulation.parallel import Workers, workers
from armnesia.simulation.requests import AcrossArms, Choice, RequestModel, SeveralArms
from armnesia.unlearners import UNLEARNERS, Unlearner

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

RESULTS_VERSION = 1
"""Raise this when a change of the code changes results: cells kept by older code are then evaluated again."""
ORACLE = "oracle"
"""The name of no deletion."""

_OPTIONS = ("learner", "confidence", "protocol", "accuracy", "datasets", "seed")
"""The fields of a cell that are options of its evaluation."""

Row = dict[str, Any]
"""A method in a setting: what was asked, the value with its error, and how it was computed."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A setting: unlearners that are evaluated on the same data sets. `labels` are columns of their own."""

    environment: Environment
    model: DataModel
    request: RequestModel
    unlearners: Mapping[str, Unlearner | None]
    budget: Budget
    learner: Learner | str | None = None
    confidence: float | None = None
    protocol: str = "auto"
    accuracy: float = 0.01
    datasets: int | None = None
    seed: int = 0
    labels: Mapping[str, Any] = field(default_factory=dict)
    evaluate: Callable[..., Mapping[str, Evaluation]] = evaluate_all

    @property
    def key(self) -> str:
        """Everything that the rows depend on, as text; refused if that includes code of somebody else.

        The code of armnesia is known by its version. Other code can change, unseen in any name or parameter.
        """
        return json.dumps([RESULTS_VERSION, _content(self)])

    def rows(self) -> list[Row]:
        """Evaluate all unlearners; one row each, also of one that this setting does not allow."""
        refused: Row = {}
        try:
            results = self._evaluated(self.unlearners)
        except UnsupportedError:  # of one of them: which, a trial of each says
            for name, unlearner in self.unlearners.items():
                try:
                    self._evaluated({name: unlearner}, datasets=1)
                except UnsupportedError as reason:
                    refused[name] = f"not possible here: {reason}"
            possible = {name: each for name, each in self.unlearners.items() if name not in refused}
            results = self._evaluated(possible) if possible else {}
        return [self.row(name, results.get(name), refused.get(name, "")) for name in self.unlearners]

    def _evaluated(
        self, unlearners: Mapping[str, Unlearner | None], **changes: Any
    ) -> Mapping[str, Evaluation]:
        options = {name: getattr(self, name) for name in _OPTIONS}
        case = self.environment, self.model, self.request, dict(unlearners), self.budget
        return self.evaluate(*case, **{**options, **changes})

    def row(self, method: str, result: Evaluation | None, note: str = "") -> Row:
        """The row of one unlearner; without a result, the note says why there is none."""
        learner = bound_learner(self.unlearners.get(method), self.model.n, self.learner)
        low, high = (None, None) if result is None else result.interval
        if result is not None and result.short_share:
            where = (
                "every data set" if result.short_share >= 1 else f"{result.short_share:.2g} of the data sets"
            )
            note = f"an arm has fewer records than are requested in {where}: all are deleted"
        by_chance = self.model if isinstance(self.model, DistributionModel) else None
        return {
            "environment": _named(self.environment),
            **self.labels,
            "model": "distribution" if by_chance else "fixed",
            "n": self.model.n,
            **_described(self.request),
            "c_star": round(by_chance.c_star(self.environment), 9) if by_chance else None,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "gamma": self.budget.gamma,
            "learner": learner.name,
            "confidence": self.confidence or getattr(learner, "confidence", None),
            "method": method,
            "suboptimality": getattr(result, "suboptimality", None),
            "standard_error": getattr(result, "standard_error", None),
            "low": low,
            "high": high,
            "protocol": getattr(result, "protocol", None),
            "datasets": getattr(result, "datasets", None),
            "short_share": getattr(result, "short_share", None),
            "seed": self.seed,
            "note": note,
            "blocks": [] if result is None else result.blocks.tolist(),
        }


def _content(value: Any) -> Any:
    """A value in plain JSON: equal for two values only if they are the same to the last digit."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
        return [value.dtype.str, value.tolist()]
    if isinstance(value, list | tuple):
        return [_content(each) for each in value]
    if isinstance(value, Mapping):
        return {"": [[_content(key), _content(each)] for key, each in value.items()]}
    definition = value if isinstance(value, FunctionType) else type(value)
    name = f"{definition.__module__}.{definition.__qualname__}"
    if name.startswith("armnesia.") and "<" not in name:  # neither a lambda nor local
        if definition is value:
            return name
        if is_dataclass(value):
            return {name: [_content(getattr(value, each.name)) for each in fields(value)]}
    raise InvalidInputError(
        "only settings made of armnesia's own unlearners, learners and rewards can be kept on disk, because"
        f" other code may change unseen; got {name}: leave `out` away"
    )


def _described(request: RequestModel) -> Row:
    """The arms of a request, the records deleted of each of them (the most), and how they are chosen."""
    if isinstance(request, SeveralArms):
        arms, k = " ".join(map(str, request.deletions)), max(request.deletions.values())
    else:
        arms, k = str(getattr(request, "arm", "any")), getattr(request, "k", None)  # type: ignore[assignment]
    return {"arms": arms, "k": k, "choice": request.choice}


@dataclass
class CellStore:
    """Finished cells, in a file with one JSON object per line; an incomplete line is an unfinished cell."""

    path: Path
    finished: dict[str, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self.finished[entry["cell"]] = entry["rows"]

    def add(self, key: str, rows: list[Row]) -> None:
        """Keep the rows of a cell, on disk first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The newline comes first, because the last line may be incomplete.
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({"cell": key, "rows": rows}))
        self.finished[key] = rows


def run_cells(
    cells: Sequence[Cell], store: CellStore | None, those: Workers, progress: Progress | None = None
) -> list[Row]:
    """The rows of all cells, in order; with a store, only those that are not in it are evaluated."""
    keys: Sequence[Any] = range(len(cells)) if store is None else [cell.key for cell in cells]
    finished: dict[Any, list[Row]] = {} if store is None else dict(store.finished)
    todo = {key: cell for key, cell in zip(keys, cells, strict=True) if key not in finished}
    for number, ((key, _), rows) in enumerate(those.finished(_rows_of, list(todo.items())), start=1):
        finished[key] = rows
        if store is not None:
            store.add(key, rows)
        if progress is not None:
            progress(number, len(todo))
    return [row for key in keys for row in finished[key]]


def _rows_of(item: tuple[Any, Cell]) -> list[Row]:
    return item[1].rows()


@dataclass(frozen=True, eq=False)
class Sweep:
    """The rows of a sweep, in the order of the settings."""

    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it, without the means of the blocks."""
        return {"rows": [{name: row[name] for name in row if name != "blocks"} for row in self.rows]}

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame with one line for each row."""
        return self._frame("pandas")

    def to_polars(self) -> "polars.DataFrame":
        """The same, of polars."""
        return self._frame("polars")  # type: ignore[no-any-return]

    def _frame(self, library: str) -> Any:
        try:
            module = __import__(library)
        except ImportError:
            raise MissingExtraError(f"A data frame of {library} needs it: pip install {library}") from None
        types = {"infer_schema_length": None} if library == "polars" else {}  # some rows have no value
        return module.DataFrame(list(self.to_dict()["rows"]), **types)

    def write_csv(self, path: Path) -> None:
        """Write a CSV file with a header; numbers keep all digits."""
        rows = self.to_dict()["rows"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            atomic_write(path, replace=True) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def plot(self, x: str | None = None) -> "Figure":
        """Draw sub-optimality over a column, one curve for each method and a panel for each other setting.

        Without `x` it is the number column with the most values. Needs the extra `plots`.
        """
        from armnesia.plotting.panels import picture_of_rows  # noqa: PLC0415 (an extra)

        return picture_of_rows(self.rows, x)


def sweep(
    unlearners: Any,
    environments: Any,
    *,
    n: Any,
    k: Any,
    arms: Any = 0,
    choice: Choice | list[Choice] = "random",
    model: str | list[str] = "fixed",
    c_star: float | list[float] = 5.0,
    epsilon: Any = None,
    gamma: Any = None,
    delta: float | list[float] = 1e-5,
    learner: Any = None,
    confidence: Any = None,
    protocol: str = "auto",
    accuracy: float = 0.01,
    datasets: int | None = None,
    seed: int | list[int] = 0,
    n_jobs: int | None = None,
    progress: Progress | bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Sweep:
    """Evaluate unlearners over the Cartesian product of settings; each argument is a value or a list.

    `unlearners`: names (`"oracle"` deletes nothing) and instances, or a mapping from labels to them.
    `environments`: an `Environment` or the means of Bernoulli arms, a list of them, or a mapping from labels.
    `arms`: the arm that loses k records, a tuple of arms that lose k each, or "any" (k random records). The
    data model is `"fixed"` with about equal counts, or `"distribution"` with coverage `c_star`. Give
    `epsilon`, or `gamma` for noise, unless no unlearner needs a budget. The unlearners of a setting share
    their data sets, settings their seed. With a folder `out`, finished settings are kept there, and a sweep
    that was interrupted goes on; it takes armnesia's own unlearners, learners and rewards alone. The
    unlearners of a setting go through `evaluate_all`, whose `protocol`, `accuracy` and `datasets` these are:
    without `datasets`, what is drawn for one depends on the others. What is not possible is a row without a
    value; its `note` says why.

    >>> means = [0.10, 0.08, 0.06, 0.04, 0.02]
    >>> found = sweep(["oracle", "rollback"], means, n=[1000, 2000], k=80, epsilon=1, n_jobs=1)
    >>> [(row["n"], row["method"], round(row["suboptimality"], 6)) for row in found.rows[1:]]
    [(1000, 'rollback', 0.019004), (2000, 'oracle', 0.003194), (2000, 'rollback', 0.008367)]
    """
    methods = _methods(unlearners)
    if epsilon is None and gamma is None and not any(each and each.needs_budget for each in methods.values()):
        epsilon = delta = 0.0
    if (epsilon is None) == (gamma is None):
        raise InvalidInputError("give either epsilon or gamma, as a number or a list of numbers")
    budgets = [
        Budget(epsilon=level, delta=part) if gamma is None else Budget.from_gamma(level, delta=part)
        for level, part in product(_listed(epsilon if gamma is None else gamma), _listed(delta))
    ]
    taus = _listed(confidence)
    rules = [  # a confidence is of the learners that have one
        (rule, tau)
        for rule in _listed(learner)
        for tau in (taus if hasattr(bound_learner(None, 1, rule), "confidence") else [None])
    ]
    coverages = _listed(c_star)
    kinds = [  # C* does not change the fixed model
        (kind, coverage)
        for kind in _listed(model)
        for coverage in (coverages if kind == "distribution" else coverages[:1])
    ]
    settings = product(
        _environments(environments),
        kinds,
        *map(_listed, (n, arms, k, choice)),
        budgets,
        rules,
        _listed(seed),
    )
    cells = [
        Cell(
            environment=environment,
            model=data_model(kind, size, environment, coverage),
            request=_request(which, count, how, environment),
            unlearners=methods,
            budget=budget,
            learner=rule,
            confidence=tau,
            protocol=protocol,
            accuracy=accuracy,
            datasets=datasets,
            seed=start,
            labels=labels,
        )
        for (
            (labels, environment),
            (kind, coverage),
            size,
            which,
            count,
            how,
            budget,
            (rule, tau),
            start,
        ) in settings
    ]
    store = None if out is None else CellStore(Path(out) / "cells.jsonl")
    jobs = n_jobs or os.cpu_count() or 1
    with workers(jobs if len(cells) > 1 else 1) as those:
        return Sweep(tuple(run_cells(cells, store, those, _told if progress is True else progress or None)))


def data_model(kind: str, n: int, environment: Environment, c_star: float) -> DataModel:
    """The fixed model with about equal counts, or the distribution model with this coverage."""
    if kind == "fixed":
        return FixedSample.round_robin(n, environment.n_actions)
    if kind != "distribution":
        raise InvalidInputError(f"model must be 'fixed' or 'distribution'; got {kind!r}")
    return DistributionModel.with_coverage(
        n, n_actions=environment.n_actions, best=environment.best, c_star=c_star
    )


def _request(arms: Any, k: int, choice: Choice, environment: Environment) -> RequestModel:
    if arms == "any":
        return AcrossArms(k, choice)
    which = arms if isinstance(arms, tuple) else (arms,)
    if not all(isinstance(arm, int) and 0 <= arm < environment.n_actions for arm in which):
        last = environment.n_actions - 1
        raise InvalidInputError(f"arms must be from 0 to {last}, a tuple of them or 'any'; got {arms!r}")
    return SeveralArms(dict.fromkeys(which, k), choice)


def _environments(given: Any) -> list[tuple[dict[str, str], Environment]]:
    """Environments with their labels; in a list they are named by their means."""
    if isinstance(given, Mapping):
        named: Iterable[tuple[Any, Any]] = given.items()
    elif isinstance(given, Environment) or all(isinstance(each, Real) for each in given):
        return [({}, _environment(given))]
    else:
        named = [(_named(one), one) for one in map(_environment, given)]
    return [({"environment": label}, _environment(each)) for label, each in _labelled(named, "environments")]


def _environment(given: Any) -> Environment:
    return given if isinstance(given, Environment) else Environment.bernoulli(given)


def _named(environment: Environment) -> str:
    return " ".join(f"{mean:g}" for mean in environment.means)


def _methods(given: Any) -> dict[str, Unlearner | None]:
    """Unlearners by label; None deletes nothing."""
    pairs = given.items() if isinstance(given, Mapping) else [(_name(each), each) for each in _listed(given)]
    return {label: _unlearner(each) for label, each in _labelled(pairs, "unlearners")}


def _labelled(pairs: Iterable[tuple[Any, Any]], what: str) -> list[tuple[str, Any]]:
    """The pairs with their labels as text; equal labels are refused."""
    found = [(str(label), each) for label, each in pairs]
    labels = [label for label, _ in found]
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidInputError(
                f"{what} of one name need labels, such as {{'first': …, 'second': …}}; got {label!r} twice"
            )
    return found


def _name(unlearner: Any) -> str:
    return ORACLE if unlearner is None else getattr(unlearner, "name", unlearner)


def _unlearner(given: Any) -> Unlearner | None:
    if given is None or given == ORACLE:
        return None
    if isinstance(given, str):
        if given not in UNLEARNERS:
            raise InvalidInputError(f"unlearner must be {any_of([ORACLE, *UNLEARNERS])}; got {given!r}")
        return UNLEARNERS[given]()
    if not isinstance(given, Unlearner):
        raise InvalidInputError(f"unlearners must be names, Unlearners or None; got {given!r}")
    return given


def _listed(value: Any) -> list[Any]:
    """A list of one value, or of the given ones; a tuple is one value (of `arms`)."""
    if isinstance(value, str | tuple | Mapping) or not isinstance(value, Iterable):
        return [value]
    values = [each.item() if hasattr(each, "item") else each for each in value]
    if not values:
        raise InvalidInputError("a list of a sweep must not be empty")
    return values


def _told(done: int, total: int) -> None:
    """Progress as a line on stderr."""
    print(f"\r{done:,} of {total:,} settings", end="\n" if done == total else "", file=sys.stderr, flush=True)
