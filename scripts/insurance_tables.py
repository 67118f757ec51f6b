"""Print the tables of docs/theory.md on what tilt's insurance saves and costs: sub-optimality ×10⁵, δ = 10⁻⁵.

They are those in "Insured tilt", after one that compares tilt with noise (in "Centred Gaussian").
With one requested arm the values are exact (a sum over all data sets); with several they are sampled, and
the largest standard error of a row stands last. `python -m scripts.insurance_tables` takes a few minutes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armnesia import Budget, CentredGaussian, Rollback, Tilt, Unlearner
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import Decision, MeanAndCountLearner
from armnesia.privacy import Level
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate_all
from armnesia.unlearners.contenders import can_win, contenders, highest_scores, lowest_scores
from armnesia.unlearners.predictive import flat
from armnesia.unlearners.tilt_reference import (
    among_contenders,
    best_reference,
    insurance_price,
    insured_reference,
)
from scripts.unlike_requests import MEANS, losses, of_several_arms

DELTA = 1e-5
DATA_SETS = 20_000
BASIC: dict[str, Unlearner | None] = {
    "no deletion": None,
    "rollback": Rollback(),
    "`insurance=0`": Tilt(insurance=0),
    "insured": Tilt(insurance=1),
}
"""Insured at any price: at every ε shown, the default insures one requested arm only from 1.89 on."""


@dataclass(frozen=True)
class Ordered(Tilt):
    """Tilt, with the contenders insured in another order: by q, by deleted counts; or all of them or none."""

    order: str = "highest score"
    name: ClassVar[str] = "tilt in another order"
    level: ClassVar[Level] = Level.REQUEST_SHAPE

    def reference_probabilities(
        self,
        learner: MeanAndCountLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The reference of tilt with this order."""
        is_contender, q = contenders(learner, retained, shape), flat(learner, retained, shape)
        priority = {
            "all or none": None,
            "highest score": highest_scores(learner, retained, shape),
            "q": among_contenders(q, is_contender),
            "deleted records": np.broadcast_to(shape, q.shape).astype(np.float64),
        }[self.order]
        return insured_reference(q, is_contender, priority, budget, self.insurance)


@dataclass(frozen=True)
class Plausible(Tilt):
    """Tilt that insures an arm only if it was served with some deleted mean of at most `most`."""

    most: float = 0.5
    name: ClassVar[str] = "tilt with plausible contenders"
    level: ClassVar[Level] = Level.REQUEST_SHAPE

    def reference_probabilities(
        self,
        learner: MeanAndCountLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The reference of tilt with these contenders."""
        before = retained.counts + shape
        sums = retained.sums + (shape * (self.most * UNIT)).astype(np.int64)
        highest = learner.unit_scores(ArmStatistics(retained.actions, before, sums))
        lowest = learner.unit_scores(ArmStatistics(retained.actions, before, retained.sums))
        q = flat(learner, retained, shape)
        return insured_reference(q, can_win(lowest, highest), highest, budget, self.insurance)


@dataclass(frozen=True)
class Worthwhile(Tilt):
    """Tilt that insures an arm only if it may have been ahead by `times` as much as it seems to be behind."""

    times: float = 2.0
    name: ClassVar[str] = "tilt with worthwhile contenders"
    level: ClassVar[Level] = Level.REQUEST_SHAPE

    def reference_probabilities(
        self,
        learner: MeanAndCountLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The reference of tilt with these contenders insured; those of one requested arm are two at most."""
        lowest, highest = (find(learner, retained, shape) for find in (lowest_scores, highest_scores))
        is_contender = can_win(lowest, highest)
        expected = learner.lower_bounds(retained.unit_means, retained.counts + shape, retained.n_actions)
        behind = expected.max(axis=-1, keepdims=True) - expected
        ahead = highest - lowest.max(axis=-1, keepdims=True)
        paid = insurance_price(is_contender.sum(axis=-1, keepdims=True), budget) <= self.insurance
        q = among_contenders(flat(learner, retained, shape), is_contender)
        return best_reference(q, budget, is_contender & paid & (ahead >= self.times * behind))


PLAUSIBLE: dict[str, Unlearner | None] = {
    "`insurance=0`": Tilt(insurance=0),
    **{f"deleted mean ≤ {most:g}": Plausible(most=most) for most in (0.15, 0.3, 0.5)},
    "ahead ≥ 2 × behind": Worthwhile(),
    "insured": Tilt(),
}
SEVERAL: dict[str, Unlearner | None] = {
    "no deletion": None,
    "`insurance=0`": Tilt(insurance=0),
    "all or none": Ordered(order="all or none"),
    "by q": Ordered(order="q"),
    "by deleted records": Ordered(order="deleted records"),
    "by highest score": Tilt(),
}
REQUESTS: dict[str, list[dict[int, tuple[int, float]]]] = {
    "unlike": [
        {0: (300, 0.2)},
        {0: (300, 0.2), 1: (30, 0.08)},
        {0: (300, 0.2), 1: (100, 0.08)},
        {0: (300, 0.2), 1: (100, 0.08), 2: (100, 0.06)},
        {0: (300, 0.2), 1: (200, 0.16)},
        {0: (120, 0.2), 1: (120, 0.08)},
        {0: (120, 0.2), 1: (120, 0.08), 2: (120, 0.06)},
        {0: (120, 0.2), 2: (300, 0.06)},
        {0: (120, 0.2), 4: (380, 0.02)},
    ],
    "alike": [
        {0: (100, 0.1), 1: (100, 0.08)},
        {0: (300, 0.1), 1: (100, 0.08)},
        {0: (100, 0.1), 1: (100, 0.08), 2: (100, 0.06)},
        {2: (100, 0.06), 3: (100, 0.04)},
        {2: (100, 0.06), 3: (100, 0.04), 4: (100, 0.02)},
    ],
    "worse": [{0: (200, 0.05), 1: (100, 0.08)}, {1: (200, 0.16), 2: (100, 0.06)}],
}
"""Deleted records and their mean, by arm, of 600 records per arm."""


def budget_of(epsilon: float) -> Budget:
    """With the tables' δ."""
    return Budget(epsilon=epsilon, delta=DELTA)


def row_of_one_arm(
    n: int,
    arm: int,
    k: int,
    epsilon: float,
    deleted_mean: float | None = None,
    means: tuple[float, ...] = tuple(MEANS),
) -> dict[str, float]:
    """The four losses of one request, ×10⁵; without a deleted mean the deleted records are like the others.

    >>> [round(loss) for loss in row_of_one_arm(50, 1, 40, 3.0, means=(0.9, 0.2)).values()]
    [0, 0, 1, 14]
    """
    if deleted_mean is None:
        world, model = Environment.bernoulli(means), FixedSample((n,) * len(means))
        found = evaluate_all(world, model, OneArm(arm, k), BASIC, budget_of(epsilon), protocol="exact")
        return {name: 1e5 * result.suboptimality for name, result in found.items()}
    kept_mean = max((n * means[arm] - k * deleted_mean) / (n - k), 0.0)
    by_name = losses(n, k, deleted_mean, kept_mean, BASIC, budget_of(epsilon), arm)
    return {name: 1e5 * loss for name, loss in by_name.items()}


EASY: list[tuple[str, int, int, int, float | None, tuple[float, ...], tuple[float, ...]]] = [
    # name, N, arm, k, deleted mean (None: like the others), ε, means
    ("1000 per arm, 80 of arm 2", 1000, 2, 80, None, (2.0, 3.0), tuple(MEANS)),
    ("600 per arm, 80 of arm 4", 600, 4, 80, None, (2.0, 3.0), tuple(MEANS)),
    ("600 per arm, 300 of arm 0, mean 0 / 0.20", 600, 0, 300, 0.0, (2.0, 3.0), tuple(MEANS)),
    ("600 per arm, 300 of arm 1, mean 0.15 / 0.01", 600, 1, 300, 0.15, (2.0, 3.0), tuple(MEANS)),
    ("two arms, 0.5 and 0.4, 2000 each, 1500 of the worse", 2000, 1, 1500, None, (2.0, 3.0), (0.5, 0.4)),
    ("two arms, 0.6 and 0.1, 2000 each, 1500 of the worse", 2000, 1, 1500, None, (2.0, 3.0), (0.6, 0.1)),
]


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a table, as Markdown.

    >>> table(["ε", "insured"], [[3, 292]])
    ['| ε | insured |', '| --- | --- |', '| 3 | 292 |']
    """
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(str(value) for value in line) + " |" for line in lines]


def shown(loss: float) -> str:
    """Two digits for small values.

    >>> shown(172.4), shown(0.76), shown(0.0)
    ('172', '0.76', '0')
    """
    return f"{loss:.0f}" if loss >= 10 else f"{loss:.2g}" if loss >= 0.005 else "0"


def cost_table() -> list[str]:
    """Where insurance is not needed."""
    rows: list[list[str]] = []
    for name, n, arm, k, deleted_mean, epsilons, means in EASY:
        for epsilon in epsilons:
            found = row_of_one_arm(n, arm, k, epsilon, deleted_mean, means)
            rows.append([name, f"{epsilon:g}", *map(shown, found.values())])
    return table(["records, request, mean deleted / kept", "ε", *BASIC], rows)


def threshold_table() -> list[str]:
    """What is saved and what is paid, by ε: a threshold insures from the ε on where it exceeds the price."""
    rows = []
    for epsilon in (1.0, 1.5, 2.0, 2.25, 2.5, 3.0, 4.0):
        price = float(insurance_price(np.array(2), budget_of(epsilon)))
        cells = [
            row_of_one_arm(600, 0, 300, epsilon, 0.2),
            row_of_one_arm(600, 0, 120, epsilon, 0.2),
            row_of_one_arm(600, 0, 300, epsilon),
            row_of_one_arm(1000, 2, 80, epsilon),
            row_of_one_arm(600, 4, 80, epsilon),
        ]
        pairs = [f"{shown(cell['`insurance=0`'])} → {shown(cell['insured'])}" for cell in cells]
        rows.append([f"{epsilon:g}", f"{price:.4f}", *pairs])
    header = ["600, 300 of arm 0, 0.20 / 0.00", "600, 120 of arm 0, 0.20 / 0.075", "600, 300 of arm 0"]
    return table(["ε", "price", *header, "1000, 80 of arm 2", "600, 80 of arm 4"], rows)


def plausible_table() -> list[str]:
    """Contenders that need an implausible deleted mean are not insured."""
    rows = []
    for name, n, arm, k, mean in (
        ("600, 300 of arm 0, 0.20 / 0.00", 600, 0, 300, 0.2),
        ("600, 120 of arm 0, 0.20 / 0.075", 600, 0, 120, 0.2),
        ("600, 60 of arm 0, 0.60 / 0.044", 600, 0, 60, 0.6),
        ("600, 60 of arm 0, 1.00 / 0.00", 600, 0, 60, 1.0),
        ("1000, 80 of arm 2", 1000, 2, 80, 0.06),
        ("600, 200 of arm 2", 600, 2, 200, 0.06),
        ("600, 80 of arm 4", 600, 4, 80, 0.02),
    ):
        kept_mean = max((n * MEANS[arm] - k * mean) / (n - k), 0.0)
        for epsilon in (2.0, 3.0):
            found = losses(n, k, mean, kept_mean, PLAUSIBLE, budget_of(epsilon), arm)
            rows.append([name, f"{epsilon:g}", *(shown(1e5 * loss) for loss in found.values())])
    return table(["N, request, mean deleted / kept", "ε", *PLAUSIBLE], rows)


UNLIKE: list[tuple[int, int, float, float, float]] = [
    # N, k, deleted mean, kept mean, ε
    (600, 300, 0.2, 0.0, 3.0),
    (600, 300, 0.2, 0.0, 2.0),
    (600, 120, 0.2, 0.075, 3.0),
    (200, 80, 0.15, 0.2 / 3, 3.0),
    (200, 80, 0.15, 0.2 / 3, 2.0),
    (600, 300, 0.1, 0.1, 3.0),
    (200, 80, 0.1, 0.1, 1.0),
    (200, 80, 0.05, 0.4 / 3, 3.0),
]


def unlike_table() -> list[str]:
    """Deletions from the best arm, with the default's insurance."""
    methods: dict[str, Unlearner | None] = {
        "no deletion": None,
        "`insurance=0`": Tilt(insurance=0),
        "insured": Tilt(),
    }
    rows: list[list[str]] = []
    for n, k, deleted_mean, kept_mean, epsilon in UNLIKE:
        found = losses(n, k, deleted_mean, kept_mean, methods, budget_of(epsilon))
        name = f"{n}, {k}, {deleted_mean:.2f} / {_mean(kept_mean)}"
        rows.append([name, f"{epsilon:g}", *(shown(1e5 * loss) for loss in found.values())])
    return table(["N, k, deleted / retained mean", "ε", *methods], rows)


def _mean(value: float) -> str:
    """With two digits, and more where it needs them."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.4f}".rstrip("0")


def noise_table() -> list[str]:
    """Tilt without insurance beside Gaussian noise, where the deleted records were better than the others."""
    methods: dict[str, Unlearner | None] = {
        "no deletion": None,
        "tilt": Tilt(),
        "centred Gaussian": CentredGaussian(),
    }
    rows: list[list[str]] = []
    for epsilon in (1.0, 1.5, 2.0, 3.0):
        found = losses(600, 300, 0.2, 0.0, methods, budget_of(epsilon))
        rows.append([f"{epsilon:g}", *(shown(1e5 * loss) for loss in found.values())])
    return table(["ε", *methods], rows)


def table_of_several(epsilon: float) -> list[str]:
    """Requests of several arms, with the contenders insured in several orders."""
    rows: list[list[object]] = []
    for kind, requests in REQUESTS.items():
        sums: dict[str, list[float]] = {}
        for request in requests:
            found = of_several_arms(600, request, SEVERAL, budget_of(epsilon), DATA_SETS, seed=1)
            for name, (loss, _) in found.items():
                sums.setdefault(name, []).append(loss)
            error = max(error for _, error in found.values())
            rows.append(
                [text_of(request), *(shown(1e5 * loss) for loss, _ in found.values()), shown(1e5 * error)]
            )
        rows.append([f"mean, {kind}", *(shown(1e5 * float(np.mean(each))) for each in sums.values()), ""])
    return table([f"deleted (mean), ε = {epsilon:g}", *SEVERAL, "±"], rows)


def text_of(request: Mapping[int, tuple[int, float]]) -> str:
    """As text.

    >>> text_of({0: (300, 0.2), 1: (30, 0.08)})
    '300 of arm 0 (0.2), 30 of arm 1 (0.08)'
    """
    return ", ".join(f"{k} of arm {arm} ({mean:g})" for arm, (k, mean) in request.items())


def main() -> None:
    for make in (noise_table, cost_table, threshold_table, plausible_table, unlike_table):
        print(*make(), "", sep="\n", flush=True)
    for epsilon in (2.0, 3.0):
        print(*table_of_several(epsilon), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
