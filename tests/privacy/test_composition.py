"""The composition of releases: against dp-accounting, against products written out, and as a split."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget, composed_delta, split_budget
from armnesia.privacy.composition import split_evenly, split_optimally


def randomised_response(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """The worst pair of distributions that is (ε, δ)-indistinguishable."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return [delta, (1 - delta) * p, (1 - delta) * (1 - p), 0], [
        0,
        (1 - delta) * (1 - p),
        (1 - delta) * p,
        delta,
    ]


def written_out(epsilon_each: float, delta_each: float, number: int, epsilon: float) -> float:
    """δ of the product, summed over all 4^d outcomes."""
    p, r = randomised_response(epsilon_each, delta_each)
    outcomes = list(itertools.product(range(4), repeat=number))
    return math.fsum(
        max(math.prod(p[i] for i in outcome) - math.exp(epsilon) * math.prod(r[i] for i in outcome), 0.0)
        for outcome in outcomes
    )


@pytest.mark.parametrize("number", [1, 2, 3, 5])
@pytest.mark.parametrize(("epsilon_each", "delta_each"), [(0.0, 0.01), (0.3, 0.0), (0.5, 0.02), (2.0, 1e-3)])
def test_composed_delta_is_that_of_the_worst_product(
    number: int, epsilon_each: float, delta_each: float
) -> None:
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.7):
        expected = written_out(epsilon_each, delta_each, number, epsilon)
        found = composed_delta(
            epsilon_each=epsilon_each, delta_each=delta_each, number=number, epsilon=epsilon
        )
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-15)
        assert found >= expected - 1e-15


@pytest.mark.parametrize("number", [2, 20, 100, 1000])
def test_composed_delta_agrees_with_dp_accounting(number: int) -> None:
    """dp-accounting rounds losses up to a grid: its δ is at least ours, and at the next step of ε less."""
    each = common.DifferentialPrivacyParameters(0.05, 1e-7)
    step = 1e-4
    accounted = privacy_loss_distribution.from_privacy_parameters(
        each, value_discretization_interval=step
    ).self_compose(number)
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        found = composed_delta(epsilon_each=0.05, delta_each=1e-7, number=number, epsilon=epsilon)
        expected = accounted.get_delta_for_epsilon(epsilon)
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-9), epsilon


@pytest.mark.parametrize("number", [1, 2, 5, 20, 100, 3000])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (3.0, 1e-5), (0.1, 1e-2), (8.0, 1e-9)])
@pytest.mark.parametrize("composition", ["best", "even", "optimal"])
def test_a_split_budget_is_the_whole_one_in_all(
    number: int, epsilon: float, delta: float, composition: str
) -> None:
    each = split_budget(Budget(epsilon=epsilon, delta=delta), number, composition)  # type: ignore[arg-type]
    total = composed_delta(epsilon_each=each.epsilon, delta_each=each.delta, number=number, epsilon=epsilon)
    assert total <= delta * (1 + 2e-9)


def test_the_optimal_split_cannot_be_larger() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    for number in (2, 20, 100):
        each = split_optimally(budget, number)
        more = composed_delta(
            epsilon_each=each.epsilon * (1 + 1e-6), delta_each=each.delta, number=number, epsilon=1.0
        )
        assert more > budget.delta


def test_the_optimal_split_is_used_where_it_is_better() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    for number in (2, 5, 20, 100, 1000):
        even, optimal, best = (
            split_evenly(budget, number),
            split_optimally(budget, number),
            split_budget(budget, number),
        )
        assert best.epsilon >= even.epsilon
        assert best.gamma <= even.gamma
        assert best in (even, optimal)
    chosen = [
        number for number in range(2, 40) if split_budget(budget, number) != split_evenly(budget, number)
    ]
    assert chosen == list(range(14, 40))
    assert split_budget(budget, 1000).epsilon > 5 * split_evenly(budget, 1000).epsilon


def test_the_edges_of_a_split() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    assert split_budget(budget, 0) is budget
    assert split_budget(budget, 1) is budget
    assert split_budget(Budget(epsilon=1.0, delta=0.0), 4) == Budget(epsilon=0.25, delta=0.0)
    assert split_budget(Budget(epsilon=0.0, delta=0.0), 4) == Budget(epsilon=0.0, delta=0.0)
    assert split_budget(Budget(epsilon=math.inf, delta=0.0), 4).epsilon == math.inf
    assert composed_delta(epsilon_each=math.inf, delta_each=0.0, number=2, epsilon=1.0) == 1.0
    assert composed_delta(epsilon_each=1.0, delta_each=0.0, number=0, epsilon=0.0) == 0.0
    assert composed_delta(epsilon_each=1.0, delta_each=0.0, number=2, epsilon=math.inf) == 0.0
    for number in range(1, 400):  # d·(ε/d) is not always ε
        assert composed_delta(epsilon_each=1.0 / number, delta_each=0.0, number=number, epsilon=1.0) == 0.0


def test_what_cannot_be_split_is_refused() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    with pytest.raises(
        InvalidInputError, match="number must be a whole number of releases, 0 or more; got -1"
    ):
        split_budget(budget, -1)
    with pytest.raises(InvalidInputError, match="composition must be one of best, even, optimal; got 'odd'"):
        split_budget(budget, 2, "odd")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="number must be a whole number"):
        composed_delta(epsilon_each=1.0, delta_each=0.0, number=2.5, epsilon=1.0)  # type: ignore[arg-type]


def with_thirty_digits(epsilon_each: float, number: int, epsilon: float) -> mpmath.mpf:
    """The sum over all outcomes but those more than 12 standard deviations from the mean."""
    with mpmath.workdps(30):
        each, log_gamma = mpmath.mpf(epsilon_each), mpmath.loggamma
        p = 1 / (1 + mpmath.exp(-each))
        middle, far = int(number * p), int(6 * math.sqrt(number))
        first, last = max(0, middle - far), min(number, middle + far)
        ways = log_gamma(number + 1) - log_gamma(first + 1) - log_gamma(number - first + 1)
        chance = mpmath.exp(ways + first * mpmath.log(p) + (number - first) * mpmath.log(1 - p))
        allowed, total = mpmath.exp(epsilon - (2 * first - number) * each), mpmath.mpf(0)
        step = mpmath.exp(-2 * each)
        for ones in range(first, last + 1):
            total += chance * max(1 - allowed, 0)
            chance *= p / (1 - p) * (number - ones) / (ones + 1)
            allowed *= step
        return total


@pytest.mark.parametrize(("number", "epsilon"), [(1000, 0.05), (1_000_000, 0.5)])
def test_delta_is_not_understated_by_rounding(number: int, epsilon: float) -> None:
    found = composed_delta(epsilon_each=1e-3, delta_each=0.0, number=number, epsilon=epsilon)
    expected = with_thirty_digits(1e-3, number, epsilon)
    assert expected < found < expected * (1 + 2e-8)


def test_a_large_number_is_computed_without_overflow() -> None:
    found = composed_delta(epsilon_each=1e-3, delta_each=0.0, number=1_000_000, epsilon=0.5)
    # Nearly a Gaussian mechanism with a mean of d·ε₀²/2 = 0.5 and a standard deviation of √d·ε₀ = 1.
    z = np.linspace(-12, 12, 400_001)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    expected = np.trapezoid(density * np.maximum(1 - np.exp(0.5 - (0.5 + z)), 0.0), z)
    assert found == pytest.approx(float(expected), rel=2e-3)
