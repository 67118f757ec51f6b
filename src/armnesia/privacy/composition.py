"""One budget for several releases: what d releases of (ε₀, δ₀) guarantee together, and how to split (ε, δ).

The exact answer for releases of which nothing but (ε₀, δ₀) is known is the optimal composition theorem of
Kairouz, Oh and Viswanath (2015, Theorem 3.3): the worst case is d independent randomised responses.
"""

import math
from typing import Literal, TypeAlias, get_args

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.special import gammaln
from armnesia.privacy.budget import Budget
from armnesia.privacy.curve import check_delta, check_epsilon

Composition: TypeAlias = Literal["best", "even", "optimal"]
"""How a budget is split: evenly, by the optimal composition theorem, or by the better of both."""

# Relative; above the rounding error of the sum, which grows with d, so that δ is never understated.
_LEAST_MARGIN = 1e-9
_MARGIN_PER_RELEASE = 1e-14
_HALVINGS = 60


def composed_delta(*, epsilon_each: float, delta_each: float, number: int, epsilon: float) -> float:
    """The smallest δ at ε of `number` releases, each (ε₀, δ₀), whatever they are.

    It is 1 − (1−δ₀)^d·(1 − Σ_j C(d,j)·p^j·(1−p)^{d−j}·(1 − e^{ε − (2j−d)ε₀})₊) with p = e^{ε₀}/(1+e^{ε₀}).

    >>> composed_delta(epsilon_each=0.1, delta_each=0.0, number=10, epsilon=1.0)
    0.0
    >>> round(composed_delta(epsilon_each=0.1, delta_each=0.0, number=100, epsilon=3.0), 6)
    0.001361
    """
    check_epsilon(epsilon_each)
    check_delta(delta_each)
    check_epsilon(epsilon)
    _check_number(number)
    if math.isinf(epsilon) or number == 0:
        return 0.0
    if math.isinf(epsilon_each) or delta_each == 1:
        return 1.0
    ones = np.arange(number + 1, dtype=np.float64)
    losses = (2 * ones - number) * epsilon_each
    # ln p and ln(1−p), without cancellation
    log_p, log_q = -math.log1p(math.exp(-epsilon_each)), -epsilon_each - math.log1p(math.exp(-epsilon_each))
    log_ways = gammaln(number + 1.0) - gammaln(ones + 1) - gammaln(number - ones + 1)
    chances = np.exp(log_ways + ones * log_p + (number - ones) * log_q)
    # d·(ε/d) can exceed ε by rounding
    beyond = losses > epsilon * (1 + 1e-14)
    inner = float((chances[beyond] * -np.expm1(epsilon - losses[beyond])).sum())
    none_fails = number * math.log1p(-delta_each)
    margin = max(_LEAST_MARGIN, _MARGIN_PER_RELEASE * number)
    return min(1.0, (-math.expm1(none_fails) + math.exp(none_fails) * inner) * (1 + margin))


def split_evenly(budget: Budget, number: int) -> Budget:
    """The budget (ε/d, δ/d) of each of d releases: basic composition.

    >>> split_evenly(Budget(epsilon=1.0, delta=1e-5), 20)
    Budget(epsilon=0.05, delta=5.0...e-07)
    """
    _check_number(number)
    if number <= 1:
        return budget
    return Budget(epsilon=budget.epsilon / number, delta=budget.delta / number)


def split_optimally(budget: Budget, number: int) -> Budget:
    """The largest ε₀ with which d releases of (ε₀, δ/2d) are (ε, δ) in all, by the optimal composition.

    Half of δ is given to the releases; the other half pays for a larger ε₀. Without δ it is the even split.

    >>> split_optimally(Budget(epsilon=1.0, delta=1e-5), 100)
    Budget(epsilon=0.0260..., delta=5.0...e-08)
    """
    _check_number(number)
    if number <= 1:
        return budget
    even = split_evenly(budget, number)
    if budget.delta == 0 or budget.epsilon == 0 or math.isinf(budget.epsilon):
        return even
    delta_each = even.delta / 2

    def enough(epsilon_each: float) -> bool:
        total = composed_delta(
            epsilon_each=epsilon_each, delta_each=delta_each, number=number, epsilon=budget.epsilon
        )
        return total <= budget.delta

    low, high = even.epsilon, budget.epsilon
    if enough(high):
        return Budget(epsilon=high, delta=delta_each)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return Budget(epsilon=low, delta=delta_each)


def split_budget(budget: Budget, number: int, composition: Composition = "best") -> Budget:
    """The budget of each of d releases that are (ε, δ) in all.

    "best" is the even split, or the optimal one where it is better: its ε₀ is larger, and it needs no more
    Gaussian noise.

    >>> split_budget(Budget(epsilon=1.0, delta=1e-5), 5)
    Budget(epsilon=0.2, delta=2.0...e-06)
    >>> split_budget(Budget(epsilon=1.0, delta=1e-5), 100)
    Budget(epsilon=0.0260..., delta=5.0...e-08)
    """
    if composition not in get_args(Composition):
        raise InvalidInputError(
            f"composition must be one of {', '.join(get_args(Composition))}; got {composition!r}"
        )
    if composition == "even":
        return split_evenly(budget, number)
    optimal = split_optimally(budget, number)
    if composition == "optimal" or optimal is budget:
        return optimal
    even = split_evenly(budget, number)
    better = optimal.epsilon > even.epsilon and optimal.gamma <= even.gamma
    return optimal if better else even


def _check_number(number: int) -> None:
    if not isinstance(number, int | np.integer) or number < 0:
        raise InvalidInputError(f"number must be a whole number of releases, 0 or more; got {number!r}")
