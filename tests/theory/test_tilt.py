"""Tilt's chance of keeping the old decision: no reference does better, and the bound is attained."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget
from armnesia.theory import chance_of_keeping, lower_fixed, tilt_upper
from armnesia.unlearners.tilt import highest_allowed

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
    assert 1 - chance_of_keeping(q, budget) <= tilt_upper(contenders=len(q), budget=budget).value + 1e-12


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
    with pytest.raises(InvalidInputError, match="contenders"):
        tilt_upper(contenders=0, budget=Budget(epsilon=1, delta=0))
    assert not tilt_upper(contenders=2, budget=Budget(epsilon=1, delta=0), largest_gap=2.0).holds
