"""Print the table of docs/theory.md on the least price of insurance: what any unlearner must pay.

k of the N records of one of the paper's five arms are deleted. In one request they were better than the
others, and the unlearner must not lose more than a target there. In five more requests, one for each arm,
they were like the others: tilt without insurance is the measure there. The reference sees N, k, the sum that
is left of the requested arm and the sum that it needs to be served; it may not know which arm is which. Its
probability of the requested arm, and those of the releases, are the unknowns of a linear program. It is
generous: it may use the true means. `python -m scripts.least_price` takes some minutes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.stats import binom

from armnesia import Budget, Tilt, Unlearner
from armnesia.core.arrays import BoolArray
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate
from scripts.insurance_tables import budget_of, shown, table
from scripts.unlike_requests import GAPS, LABELS, MEANS, Floats, Ints, losses

_LEFT_OUT = 1e-9
"""States that change no loss by more than this are left out."""


@dataclass(frozen=True)
class Unlike:
    """A request of records of the best arm that are better than the others, and the most to lose, ×10⁵."""

    n: int
    k: int
    deleted_mean: float
    kept_mean: float
    epsilon: float
    target: float


CASES = (
    Unlike(600, 300, 0.2, 0.0, 3.0, 300),
    Unlike(600, 300, 0.2, 0.0, 2.0, 470),
    Unlike(600, 120, 0.2, 0.075, 3.0, 275),
    Unlike(200, 80, 0.15, 0.2 / 3, 3.0, 600),
    Unlike(600, 60, 1.0, 0.0, 3.0, 300),
)


@dataclass(frozen=True, eq=False)
class Loss:
    """`fixed` + Σ `if_served`·p₁ + Σ `if_not`·p₀, by kept sum (rows) and needed sum (columns), ×10⁵.

    p₁ and p₀ are the probabilities that the requested arm is released if it was served on D, and if not.
    """

    fixed: float
    if_served: Floats
    if_not: Floats

    @classmethod
    def of(cls, n: int, k: int, arm: int, deleted_mean: float, kept_mean: float) -> "Loss":
        """Of a request for k records of this arm.

        >>> loss = Loss.of(20, 8, arm=0, deleted_mean=0.1, kept_mean=0.1)
        >>> bool(loss.if_served.max() <= 0)  # to release the best arm is no loss
        True
        """
        chances, gaps = _needed(n, arm)
        kept = np.arange(n - k + 1)
        served = binom.sf(np.arange(n + 2) - kept[:, None] - 1, k, deleted_mean)
        weights = 1e5 * binom.pmf(kept, n - k, kept_mean)[:, None] * chances
        more = weights * (GAPS[arm] - gaps)
        return cls(float((weights * gaps).sum()), more * served, more * (1 - served))


def _needed(n: int, arm: int) -> tuple[Floats, Floats]:
    """P(the arm needs this sum to be served), and the mean gap of the best other arm then."""
    chances, gaps = np.zeros(n + 2), np.zeros(n + 2)
    for rival in set(LABELS) - {arm}:
        weight = binom.pmf(np.arange(n + 1), n, MEANS[rival])
        for other in set(LABELS) - {arm, rival}:
            weight = weight * binom.cdf(np.arange(n + 1) - (other < rival), n, MEANS[other])
        needed = np.arange(n + 1) + (arm > rival)  # ties go to the first arm
        chances[needed] += weight
        gaps[needed] += weight * GAPS[rival]
    return chances, gaps / np.maximum(chances, 1e-300)


def alike(n: int, k: int, arm: int, unlearner: Unlearner, budget: Budget) -> float:
    """The exact loss of an unlearner, ×10⁵, where the deleted records are like the others."""
    world, model = Environment.bernoulli(MEANS.tolist()), FixedSample((n,) * len(MEANS))
    return 1e5 * evaluate(world, model, OneArm(arm, k), unlearner, budget, protocol="exact").suboptimality


def least_price(case: Unlike, *, rising: bool) -> float:
    """The least that the worst of the five requests must lose, in multiples of tilt without insurance.

    With `rising`, the reference must not give the requested arm less where its own sum is higher, or where
    it needs less. Every target can be reached: an unlearner that always releases the requested arm loses
    nothing in the first request.

    >>> case = Unlike(20, 8, 0.2, 0.05, 3.0, target=4000)
    >>> round(least_price(case, rising=True), 3) >= round(least_price(case, rising=False), 3)
    True
    >>> round(least_price(Unlike(20, 8, 0.2, 0.05, 3.0, target=1), rising=False), 2)
    5.8
    """
    budget = budget_of(case.epsilon)
    unlike = Loss.of(case.n, case.k, 0, case.deleted_mean, case.kept_mean)
    others = [Loss.of(case.n, case.k, arm, MEANS[arm], MEANS[arm]) for arm in LABELS]
    plain = [alike(case.n, case.k, arm, Tilt(insurance=0), budget) for arm in LABELS]
    size = np.sum([np.abs(loss.if_served) + np.abs(loss.if_not) for loss in (unlike, *others)], axis=0)
    matters = np.ix_(*(_range(size.max(axis=axis) > _LEFT_OUT) for axis in (1, 0)))
    states = int(size[matters].size)
    rows, most = _private(states, budget)
    if rising:
        more = _in_order(np.arange(states).reshape(size[matters].shape), states)
        rows, most = [*rows, more], [*most, np.zeros(more.shape[0])]
    for loss, scale, ratio, limit in (
        (unlike, 1.0, 0.0, case.target),
        *((loss, 1 / base, -1.0, 0.0) for loss, base in zip(others, plain, strict=True)),
    ):
        releases = np.concatenate([loss.if_served[matters].ravel(), loss.if_not[matters].ravel()])
        rows.append(sp.csr_array(np.concatenate([np.zeros(states), scale * releases, [ratio]])[None]))
        most.append(np.array([limit - scale * loss.fixed]))
    cost = np.zeros(3 * states + 1)
    cost[-1] = 1.0
    bounds = [(0.0, 1.0)] * (3 * states) + [(0.0, None)]
    # The stubs of linprog do not know sparse arrays.
    constraints: Any = sp.vstack(rows)
    found = linprog(cost, A_ub=constraints, b_ub=np.concatenate(most), bounds=bounds, method="highs-ipm")
    if found.fun is None:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return float(found.fun)


def _range(marked: BoolArray) -> Ints:
    places = np.flatnonzero(marked)
    return np.arange(places[0], places[-1] + 1)


def _private(states: int, budget: Budget) -> tuple[list[sp.csr_array], list[Floats]]:
    """(ε, δ) in both directions, of both releases against the reference; unknowns: r, p₁, p₀, the ratio."""
    up, one, none = np.exp(budget.epsilon), sp.eye_array(states), sp.csr_array((states, states))
    rows, most = [], []
    for place in (1, 2):
        for of_reference, of_release, limit in (
            (-up, 1.0, budget.delta),
            (1.0, -up, budget.delta),
            (up, -1.0, up - 1 + budget.delta),
            (-1.0, up, up - 1 + budget.delta),
        ):
            blocks = [of_reference * one, none, none, sp.csr_array((states, 1))]
            blocks[place] = of_release * one
            rows.append(sp.csr_array(sp.hstack(blocks)))
            most.append(np.full(states, limit))
    return rows, most


def _in_order(place: Ints, states: int) -> sp.csr_array:
    """r rises with the kept sum and falls with the needed one: r of the lower place − r of the higher ≤ 0."""
    lower = np.concatenate([place[:-1].ravel(), place[:, 1:].ravel()])
    higher = np.concatenate([place[1:].ravel(), place[:, :-1].ravel()])
    row, sign = np.arange(lower.size), np.ones(lower.size)
    entries = np.concatenate([sign, -sign]), (np.tile(row, 2), np.concatenate([lower, higher]))
    return sp.csr_array(entries, shape=(lower.size, 3 * states + 1))


def row_of(case: Unlike) -> list[str]:
    """A row of the table."""
    budget, methods = budget_of(case.epsilon), {"0": Tilt(insurance=0), "insured": Tilt()}
    name = f"{case.n}, {case.k}, {case.deleted_mean:.2f} / {case.kept_mean:.4g}"
    found = losses(case.n, case.k, case.deleted_mean, case.kept_mean, methods, budget)
    paid = [
        alike(case.n, case.k, arm, Tilt(), budget) / alike(case.n, case.k, arm, Tilt(insurance=0), budget)
        for arm in LABELS
    ]
    least = (least_price(case, rising=rising) for rising in (False, True))
    return [
        *(name, f"{case.epsilon:g}", f"{case.target:g}"),
        *(shown(1e5 * loss) for loss in found.values()),
        *(f"{ratio:.3f}" for ratio in (max(paid), *least)),
    ]


def price_table() -> list[str]:
    """What the default pays and what any unlearner must pay, for every case."""
    header = ["N, k, deleted / kept mean", "ε", "to lose at most", "`insurance=0`", "insured"]
    prices = ["price, insured", "least price", "least price, if r rises"]
    return table([*header, *prices], (row_of(case) for case in CASES))


if __name__ == "__main__":
    print(*price_table(), sep="\n")
