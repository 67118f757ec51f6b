"""What (ε, δ) against a reference leaves between two possible contents of the deleted records.

Checked against linear programs over all references, and against every pair of small data sets.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from armnesia.auditing.small_worlds import small_worlds
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB
from armnesia.privacy import Budget, Guarantee, Level, hockey_stick
from armnesia.unlearners import FrozenRollback, Gaussian, Rollback, Tilt, Unlearner


def largest_excess(epsilon: float, delta: float, n_arms: int) -> float:
    """max p(A) − e^{2ε}·q(A) over A and all p, q that lie within (ε, δ) of some reference r."""
    sets = [
        np.array(each, dtype=float)
        for size in range(1, n_arms)
        for each in set(itertools.permutations([1] * size + [0] * (n_arms - size)))
    ]
    up, none = math.exp(epsilon), np.zeros(n_arms)
    within = [
        row
        for each in sets
        for row in (
            np.concatenate([each, none, -up * each]),  # p(B) ≤ e^ε·r(B) + δ
            np.concatenate([-up * each, none, each]),
            np.concatenate([none, each, -up * each]),  # and the same of q
            np.concatenate([none, -up * each, each]),
        )
    ]
    vectors = np.kron(np.eye(3), np.ones(n_arms))
    found = [
        linprog(
            -np.concatenate([each, -math.exp(2 * epsilon) * each, none]),
            A_ub=np.array(within),
            b_ub=np.full(len(within), delta),
            A_eq=vectors,
            b_eq=np.ones(3),
            method="highs",
        )
        for each in sets
    ]
    assert all(each.success for each in found)
    return -min(float(each.fun or 0) for each in found)


@pytest.mark.parametrize("n_arms", [2, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-5, 0.01, 0.04, 0.3])
def test_two_contents_lie_as_far_apart_as_the_property_says(
    epsilon: float, delta: float, n_arms: int
) -> None:
    guarantee = Guarantee(epsilon, delta, Level.REQUEST_SHAPE)
    twice, between = guarantee.between_contents
    assert twice == 2 * epsilon
    excess = largest_excess(epsilon, delta, n_arms)
    assert excess <= between + 1e-7  # the tolerance of the solver
    if delta <= 1 / (2 + math.exp(epsilon)):
        assert excess == pytest.approx(between, abs=1e-7)
        assert excess > 2 * delta or epsilon == 0  # (2ε, 2δ) would be false


def test_the_factor_of_the_odds_is_attained() -> None:
    """At δ = 0: 88 % at ε = 1, 99.75 % at ε = 3. At any ε below 2ε some pair differs."""
    for epsilon, belief in ((1.0, 0.8808), (3.0, 0.9975)):
        low, factor = 1 / (1 + math.exp(epsilon)), math.exp(epsilon)
        reference, p = np.array([low, 1 - low]), np.array([factor * low, low])
        q = np.array([low / factor, 1 - low / factor])
        for each in (p, q):
            assert hockey_stick(each, reference, epsilon) <= 1e-15
            assert hockey_stick(reference, each, epsilon) <= 1e-15
        assert p[0] / (p[0] + q[0]) == pytest.approx(belief, abs=5e-5)
        assert hockey_stick(p, q, 2 * epsilon) <= 1e-15
        assert hockey_stick(p, q, 1.99 * epsilon) > 1e-4


LEARNER = LCB(confidence=0.5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("unlearner", [FrozenRollback(), Gaussian(), Tilt(), Tilt(insurance=0.0)])
@pytest.mark.parametrize("epsilon", [0.5, 2.5])
def test_no_two_contents_of_a_small_log_lie_further_apart(unlearner: Unlearner, epsilon: float) -> None:
    """All pairs of data sets of two arms, up to 4 records each, with the same other records and shape."""
    statistics, request = small_worlds(4)
    release = unlearner.release(LEARNER, statistics, request, Budget(epsilon=epsilon, delta=1e-3))
    twice, between = release.guarantee.between_contents
    left = statistics.without(request)
    seen = np.concatenate([left.counts, left.sums, request.counts], axis=-1)
    worst, pairs = 0.0, 0
    membership = np.unique(seen, axis=0, return_inverse=True)[1]
    for number in range(membership.max() + 1):
        own = release.probabilities[membership == number]
        pairs += len(own) * (len(own) - 1)
        worst = max(worst, float(hockey_stick(own[:, None], own[None], twice).max()))
    assert pairs == 28_224
    assert worst <= between + 1e-12


def test_tilt_attains_it_on_a_log() -> None:
    """300 of 800 records of A are deleted: ones in one content, zeros in the other."""
    budget = Budget(epsilon=3.0, delta=1e-5)

    def release(ones: int) -> tuple[np.ndarray, tuple[float, float]]:
        deleted = {"A": [1] * ones + [0] * (300 - ones), "B": []}
        log = {"A": [1] * 200 + [0] * 300 + deleted["A"], "B": [1] * 300 + [0] * 300}
        statistics = ArmStatistics.from_rewards(log)
        found = Tilt().release(
            LCB(confidence=0.01), statistics, DeletionRequest.from_rewards(deleted), budget
        )
        return found.probabilities, found.guarantee.between_contents

    (high, (twice, between)), (low, _) = release(300), release(0)
    assert hockey_stick(high, low, twice) == pytest.approx(between, rel=1e-9)
    assert high[0] / (high[0] + low[0]) == pytest.approx(0.9975, abs=5e-5)


def test_a_release_at_zero_may_differ_from_retraining() -> None:
    """Frozen rollback tells no two contents apart, and serves A where retraining on the rest serves B."""
    deleted = {"A": [1] * 108 + [0] * 72, "B": []}
    statistics = ArmStatistics.from_rewards(
        {"A": [1] * 12 + [0] * 8 + deleted["A"], "B": [1] * 55 + [0] * 45}
    )
    request, exact = DeletionRequest.from_rewards(deleted), Budget(epsilon=0.0, delta=0.0)
    learner = LCB(confidence=0.01)
    frozen, retrained = (
        each.release(learner, statistics, request, exact) for each in (FrozenRollback(), Rollback())
    )
    assert frozen.guarantee.between_contents == (0.0, 0.0)
    assert (frozen.probabilities.tolist(), retrained.probabilities.tolist()) == ([1.0, 0.0], [0.0, 1.0])
