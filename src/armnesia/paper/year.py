"""A year in which records arrive and are deleted every month, simulated with different strategies."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from armnesia.core.arrays import FloatArray, one_hot
from armnesia.core.randomness import generators
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import LCB
from armnesia.paper.comparisons import pick, with_error
from armnesia.paper.pictures import METHOD_STYLE
from armnesia.paper.protocol import estimated
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import DELTA, ENVIRONMENT, Run
from armnesia.plotting.panels import Panel, curves_of, picture_of_panels
from armnesia.privacy import Budget, Level
from armnesia.simulation import AcrossArms, FixedSample, RequestModel, Row, SeveralArms
from armnesia.simulation.parallel import Workers
from armnesia.unlearners import UNLEARNERS, Rollback, Tilt, Unlearner
from armnesia.unlearners.stream import Penalty, Stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MONTHS = 12
INITIAL_LOG, MONTHLY_LOG = (FixedSample.round_robin(n, ENVIRONMENT.n_actions) for n in (3000, 250))
"""The first records, and the new records of each month; the arms take turns, as in the paper."""
BUDGET = Budget(epsilon=1.0, delta=DELTA)
K, K_OF_MAIN_ARM, K_OF_OTHER_ARMS = 60, 48, 3
"""Records deleted each month: in all, of the arm that most requests are about, and of each other arm."""
_MOSTLY_OF_FIRST = (K_OF_MAIN_ARM, *[K_OF_OTHER_ARMS] * 4)
REQUESTS: dict[str, RequestModel] = {
    "hard": SeveralArms(dict(zip((0, 1, 2, 3, 4), _MOSTLY_OF_FIRST, strict=True))),
    "rival": SeveralArms(dict(zip((1, 0, 2, 3, 4), _MOSTLY_OF_FIRST, strict=True))),
    "even": AcrossArms(K),
}
"""The deletions of each month: mostly of the best arm, mostly of the second best, or of any records."""
_BLOCK = 50
"""Data sets that are simulated together."""
_SLOW, _SLOW_EVERY = ("gaussian", "centred_gaussian"), 10
"""Noise on all arms needs an integral per release: it is simulated in every tenth block."""


@dataclass(frozen=True)
class Strategy:
    """The unlearner that answers a year's requests (None deletes nothing), its colour, and the penalty."""

    unlearner: Unlearner | None
    style: str
    penalty: Penalty = "retained"


_PENALTIES: tuple[tuple[str, Penalty], ...] = (("", "retained"), (", frozen", "frozen"))
STRATEGIES: dict[str, Strategy] = {
    "no deletion": Strategy(None, "oracle"),
    "rollback": Strategy(Rollback(), "rollback"),
    **{
        name.replace("_", " ") + ending: Strategy(UNLEARNERS[name](), name, penalty)
        for name in (*_SLOW, "adaptive", "strict_adaptive", "frozen_rollback", "tilt")
        for ending, penalty in _PENALTIES
    },
    "tilt, share assumed": Strategy(Tilt(assumed_share=0.05, predictive="flat"), "tilt retained"),
}
"""Rollback is retraining. With a frozen penalty, deletions would raise its penalty in their month only."""
_TITLE = "A year of monthly deletions"
_PARAGRAPHS = (
    f"The log begins with {INITIAL_LOG.n} records. Every month {MONTHLY_LOG.n} come in, each arm in turn, and"
    f" then {K} are deleted as one request at (ε, δ) = ({BUDGET.epsilon:g}, 10⁻⁵). The arm released in"
    f" answer is served for the month. {K_OF_MAIN_ARM} of the deleted records are of the best arm (hard) or"
    " of the second best (rival), or every record is equally likely to be deleted (even). Which records of an"
    " arm are deleted does not depend on their rewards.",
    "With a retained penalty the statistics are rolled back and nothing else is kept. The gain of tilt and of"
    " frozen rollback then lasts one release, and in the hard case the loss grows as the best arm has fewer"
    " and fewer records. With a frozen penalty the numbers of deleted records are kept (level request_shape)."
    " Decisions then follow the one without any deletion, whether that is better or worse. In the rival case"
    " rollback is better: it raises the penalty of the second-best arm.",
    "At this budget Algorithm 2 and its strict version roll back. With a frozen penalty, each month's"
    " deletions then cost their penalty for that month only. Gaussian noise is added to all arms. Mixing"
    " takes requests of one arm only, and imitation rollback needs another learner: they are not shown.",
)


@dataclass(frozen=True, eq=False)
class YearResult:
    """Exact given each data set: `losses` (by month) are Σ p·gap, and `changes` are those of the served arm.

    Changes are expected of independent draws: Σ_t (1 − Σ_a p_{t−1}(a)·p_t(a)).
    """

    losses: FloatArray
    changes: FloatArray
    level: Level | None


def simulate(
    requests: RequestModel,
    those: Workers,
    strategies: Mapping[str, Strategy] = STRATEGIES,
    *,
    datasets: int,
    seed: int = 0,
) -> dict[str, YearResult]:
    """Simulate a year with every strategy on the same data sets; the workers do not change the result."""
    n_blocks = max(2, math.ceil(datasets / _BLOCK))
    fast = {name: strategy for name, strategy in strategies.items() if strategy.style not in _SLOW}
    strategies_of_blocks = [fast if block % _SLOW_EVERY else strategies for block in range(n_blocks)]
    work = partial(_simulate_block, requests, math.ceil(datasets / n_blocks))
    blocks = list(those.map(work, generators(seed, n_blocks), strategies_of_blocks))
    years = {name: [block[name] for block in blocks if name in block] for name in strategies}
    return {
        name: YearResult(
            np.concatenate([year.losses for year in each]),
            np.concatenate([year.changes for year in each]),
            each[0].level,
        )
        for name, each in years.items()
    }


def _simulate_block(
    requests: RequestModel, size: int, rng: np.random.Generator, strategies: Mapping[str, Strategy]
) -> dict[str, YearResult]:
    """New records each month, and the deletion of randomly chosen records at its end."""
    statistics = initial = _draw_records(INITIAL_LOG, rng, size)
    months = []
    for _ in range(MONTHS):
        new = _draw_records(MONTHLY_LOG, rng, size)
        statistics = statistics.merge(new)
        deleted, _ = requests.draw_deleted(rng, statistics.counts)
        ones = statistics.sums // UNIT
        deleted_ones = rng.hypergeometric(ones, statistics.counts - ones, deleted)
        records = ArmStatistics(statistics.actions, deleted, deleted_ones * UNIT)
        request = DeletionRequest(records, binary=True)
        statistics = statistics.without(request)
        months.append((new, request))
    return {name: _apply(strategy, initial, months) for name, strategy in strategies.items()}


def _draw_records(model: FixedSample, rng: np.random.Generator, size: int) -> ArmStatistics:
    counts = model.draw_counts(rng, size)
    sums = [arm.draw_sums(rng, counts[:, place]) for place, arm in enumerate(ENVIRONMENT.arms)]
    return ArmStatistics(tuple(range(ENVIRONMENT.n_actions)), counts, np.stack(sums, axis=-1))


def _apply(
    strategy: Strategy, initial: ArmStatistics, months: list[tuple[ArmStatistics, DeletionRequest]]
) -> YearResult:
    """Apply one strategy; the release that answers the request of a month is served in that month."""
    stream = Stream(LCB(confidence=1 / INITIAL_LOG.n), initial, strategy.penalty)
    before = one_hot(stream.decision().index, ENVIRONMENT.n_actions)
    losses, changes, level = [], np.zeros(len(before)), None
    for new, request in months:
        stream = stream.add(new)
        if strategy.unlearner is None:
            p = one_hot(stream.decision().index, ENVIRONMENT.n_actions)
        else:
            release, stream = stream.forget(strategy.unlearner, request, BUDGET)
            p, level = release.probabilities, release.guarantee.level
        losses.append(p @ ENVIRONMENT.gaps)
        changes += 1 - (before * p).sum(axis=-1)
        before = p
    return YearResult(np.stack(losses, axis=-1), changes, level)


def mean_and_error(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Over the data sets, which are independent."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))


def year_section(run: Run) -> Section:
    """Simulate the years, and describe the results."""
    plan = run.plan
    datasets = max(2, plan.datasets // (125 if plan.quick else 50))  # a year is twelve releases per strategy
    found = {
        name: simulate(requests, run.workers, datasets=datasets, seed=plan.seed)
        for name, requests in REQUESTS.items()
    }
    largest = float(ENVIRONMENT.gaps.max())
    rows = [
        plan.cell(
            ("year", requests, "month", month),
            *(INITIAL_LOG.n + month * MONTHLY_LOG.n, AcrossArms(K), {}),
            epsilon=BUDGET.epsilon,
        ).row(name, estimated(value, error, largest, len(year.losses), np.array([value])))
        for requests, by_strategy in found.items()
        for name, year in by_strategy.items()
        for month, (value, error) in enumerate(zip(*mean_and_error(year.losses), strict=True), start=1)
    ]
    run.rows += rows
    return Section(_TITLE, _PARAGRAPHS, {"year": picture_of_year(rows)}, [_table(found, datasets)])


def picture_of_year(rows: Sequence[Row]) -> "Figure":
    """Sub-optimality by month; a colour for each method, a line for each penalty."""
    looks = {}
    for name, strategy in STRATEGIES.items():
        line = "-" if strategy.penalty == "frozen" else (0, (5, 2))
        label = f"{name}, retained" if f"{name}, frozen" in STRATEGIES else name
        looks[name] = label, {**METHOD_STYLE[strategy.style][1], "linestyle": line}
    panels = [
        Panel(
            f"Requests: {requests}",
            *("month", "sub-optimality (log scale)"),
            curves_of(pick(rows, panel=requests), "x", looks),
            y_log=True,
            scale_group="",
        )
        for requests in REQUESTS
    ]
    note = (
        "Solid: penalties frozen. Dashed: penalties of the records that are left. Bands: ± 2 standard errors."
    )
    return picture_of_panels([panels], title=_TITLE, note=note, row_height=4.5)


def _shown(values: FloatArray, digits: int = 5) -> str:
    value, error = mean_and_error(values)
    return with_error(float(value), float(error), digits)


def _table(found: Mapping[str, Mapping[str, YearResult]], datasets: int) -> Table:
    rows: list[list[object]] = [
        [
            *(requests, name.removesuffix(", frozen")),
            *(STRATEGIES[name].penalty if year.level else "", year.level or ""),
            *(_shown(year.losses.mean(axis=1)), _shown(year.losses[:, -1]), _shown(year.changes, digits=2)),
        ]
        for requests, by_strategy in found.items()
        for name, year in by_strategy.items()
    ]
    header = ["requests", "method", "penalty", "level"]
    header += ["year's average", f"month {MONTHS}", "changes per year"]
    caption = (
        "Expected sub-optimality, and how often the served arm is expected to change: exact given each data"
        f" set, ± is one standard error over {datasets:,} of them (Gaussian:"
        f" {len(found['hard']['gaussian'].losses):,})."
    )
    return Table(header, rows, caption=caption)
