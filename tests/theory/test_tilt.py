"""Tilt's chance of keeping the old decision: no reference does better, and the bound is attained."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia import LCB, Tilt
from armnesia.core.arrays import IntArray, one_hot
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.privacy import Budget
from armnesia.simulation import Environment, exact_release, predictive_error
from armnesia.theory import chance_of_keeping, lower_fixed, tilt_upper
from armnesia.unlearners.predictive import flat
from armnesia.unlearners.tilt import best_reference, highest_allowed
from tests.simulation.all_data_sets import AllDataSets
from tests.theory.domination import Case, check

budgets = st.builds(Budget, epsilon=st.floats(0, 6), delta=st.sampled_from([0.0, 1e-5, 0.1]))


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6), budgets, st.integers(0, 2**32 - 1))
def test_no_reference_keeps_more(weights: list[float], budget: Budget, seed: int) -> None:
    """Against two thousand random references, the predictive itself and all single arms."""
    q = np.array(weights) / sum(weights)
    rng = np.random.default_rng(seed)
    others = np.vstack([rng.dirichlet(np.full(len(q), 0.5), size=2000), q, np.eye(len(q))])
    kept = (q * highest_allowed(others, budget)).sum(axis=-1)
    assert chance_of_keeping(q, budget) >= kept.max() - 1e-12


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8), budgets)
def test_the_bound_holds_for_every_predictive(weights: list[float], budget: Budget) -> None:
    q = np.array(weights) / sum(weights)
    bound = tilt_upper(contenders=len(q), budget=budget, predictive_error=0.0)
    assert bound.holds
    assert 1 - chance_of_keeping(q, budget) <= bound.value + 1e-12


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1)), min_size=2, max_size=6).filter(
        lambda pairs: sum(true for _, true in pairs) > 0.01
    ),
    budgets,
)
def test_the_bound_holds_for_every_wrong_predictive(pairs: list[tuple[float, float]], budget: Budget) -> None:
    """Tilt is prepared for q, and π(D) follows another distribution."""
    q, true = (np.array(column) / sum(column) for column in zip(*pairs, strict=True))
    kept = float(true @ highest_allowed(best_reference(q, budget), budget))
    error = float(np.abs(q - true).sum() / 2)
    bound = tilt_upper(contenders=len(q), budget=budget, predictive_error=min(error, 1.0))
    assert 1 - kept <= bound.value + 1e-12


def fixed(means: list[float], left: int, deleted: int, other: int) -> tuple[Environment, IntArray, IntArray]:
    return Environment.bernoulli(means), np.array([left + deleted, other]), np.array([deleted, 0])


def excess(environment: Environment, counts: IntArray, deleted: IntArray, budget: Budget) -> float:
    """What the shipped tilt adds to the sub-optimality of no deletion, exactly."""
    learner = LCB(confidence=1 / int(counts.sum()))
    tilt, nothing = (
        exact_release(environment, counts, deleted, unlearner, learner, budget)
        for unlearner in (Tilt(), None)
    )
    return float((tilt - nothing) @ environment.gaps)


def test_the_condition_on_the_predictive_is_reported_as_unmet() -> None:
    """One record is left of 501: tilt exceeds the bound more than twice, which was reported as proved."""
    budget = Budget(epsilon=1.5, delta=0.0)
    case = fixed([0.6, 0.5], left=1, deleted=500, other=20_000)
    without = tilt_upper(contenders=2, budget=budget, largest_gap=0.1)
    assert excess(*case, budget) > 2.2 * without.value
    assert not without.holds
    assert [condition.text for condition in without.unmet] == [
        "the predictive q is right: not known; give predictive_error"
    ]
    error = predictive_error(*case, LCB(confidence=1 / 20_501))
    proved = tilt_upper(contenders=2, budget=budget, largest_gap=0.1, predictive_error=error)
    assert proved.holds
    assert excess(*case, budget) <= proved.value


def test_with_the_error_of_the_predictive_the_bound_dominates_and_is_not_far_above() -> None:
    cases: list[Case] = []
    for left, epsilon in product((1, 20, 100), (0.5, 1.0, 1.5, 3.0)):
        budget = Budget(epsilon=epsilon, delta=0.0)
        for means in ([0.6, 0.5], [0.5, 0.6]):
            case = fixed(means, left=left, deleted=100, other=1_000)
            error = predictive_error(*case, LCB(confidence=1 / (left + 1_100)))
            bound = tilt_upper(contenders=2, budget=budget, largest_gap=0.1, predictive_error=error)
            cases.append((bound, excess(*case, budget), 0.1))
    check(cases, least=15, tight=0.5)


@pytest.mark.parametrize(
    ("means", "counts", "deleted"),
    [
        ([0.6, 0.4], [4, 3], [2, 0]),
        ([0.6, 0.4], [3, 4], [0, 3]),
        ([0.5, 0.5, 0.5], [3, 3, 3], [0, 1, 0]),  # ties
        ([0.7, 0.2, 0.5], [4, 1, 2], [4, 0, 0]),  # emptied
        ([0.6, 0.4], [3, 3], [0, 0]),
        ([0.3], [4], [2]),
    ],
)
def test_the_error_of_the_predictive_is_the_average_over_every_data_set(
    means: list[float], counts: list[int], deleted: list[int]
) -> None:
    """P(π(D) | D∖U) counted over all data sets with the same records left."""
    learner, every = LCB(confidence=0.3), AllDataSets(means, counts, deleted)
    retained = every.statistics.without(every.request)
    q = flat(learner, retained, every.request.counts)
    decisions = one_hot(learner.decide(every.statistics).index, len(means))
    if not any(deleted):
        q = decisions
    error = 0.0
    for sums in np.unique(retained.sums, axis=0):
        alike = (retained.sums == sums).all(axis=-1)
        weight = every.weights[alike].sum()
        true = every.weights[alike] @ decisions[alike] / weight
        error += weight * np.abs(q[alike][0] - true).sum() / 2
    found = predictive_error(Environment.bernoulli(means), np.array(counts), np.array(deleted), learner)
    assert found == pytest.approx(error, abs=1e-12)


def test_the_error_of_the_predictive_is_refused_where_it_is_not_known() -> None:
    environment, learner = Environment.bernoulli([0.6, 0.5]), LCB(confidence=0.1)
    for deleted in ([1, 1], [3, 2]):
        with pytest.raises(UnsupportedError, match="a request for one arm, and records that are left"):
            predictive_error(environment, np.array([3, 2]), np.array(deleted), learner)


@pytest.mark.parametrize("contenders", [1, 2, 3, 5, 50])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0, 5.0])
def test_the_bound_is_the_formula_and_is_attained(contenders: int, epsilon: float) -> None:
    """At δ = 0: e^−ε(c−1)/c or 1 − e^ε/c; attained by the uniform predictive where c ≤ 1 + e^ε."""
    budget = Budget(epsilon=epsilon, delta=0.0)
    c = contenders
    few = c <= 1 + math.exp(epsilon)
    expected = math.exp(-epsilon) * (c - 1) / c if few else 1 - math.exp(epsilon) / c
    assert tilt_upper(contenders=c, budget=budget).value == pytest.approx(expected, abs=1e-12)
    uniform = 1 - chance_of_keeping(np.full(c, 1 / c), budget)
    assert uniform == pytest.approx(expected, abs=1e-12)


def test_it_falls_as_the_lower_bound_does() -> None:
    """Both by e^−ε: their ratio does not depend on ε (δ = 0, two contenders)."""
    ratios = []
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        upper = tilt_upper(contenders=2, budget=Budget(epsilon=epsilon, delta=0.0)).value
        lower = lower_fixed(n=2000, n_arm=1000, k=100, epsilon=epsilon, delta=0.0).value
        ratios.append(upper / lower)
    assert ratios == pytest.approx([ratios[0]] * 4)


def test_bad_numbers() -> None:
    with pytest.raises(InvalidInputError, match=r"predictive_error must be .* between 0 and 1.*got 1.5"):
        tilt_upper(contenders=2, budget=Budget(epsilon=1, delta=0), predictive_error=1.5)
    with pytest.raises(InvalidInputError, match="contenders"):
        tilt_upper(contenders=0, budget=Budget(epsilon=1, delta=0))
    right = tilt_upper(contenders=2, budget=Budget(epsilon=1, delta=0), predictive_error=0.0)
    assert right.holds
    large = tilt_upper(contenders=2, budget=Budget(epsilon=1, delta=0), predictive_error=0.0, largest_gap=2.0)
    assert not large.holds
