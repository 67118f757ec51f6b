"""Greedy and UCB against plain computations, and the mechanisms whose proofs look at the count."""

import math
from itertools import product

import numpy as np
import pytest

import armnesia as am
from armnesia.core.errors import UnsupportedError
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners.contenders import contenders_up_to
from tests.auditing.test_large_counts import close_races

UNIT = 10**9
STATISTICS = am.ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1, 0, 0, 0], "C": []})
REQUEST = am.DeletionRequest.from_rewards({"A": [1] * 10, "B": [0], "C": []})
BUDGET = am.Budget(epsilon=1.0, delta=1e-5)


def test_scores_are_those_of_a_plain_computation() -> None:
    assert am.Greedy().unit_scores(STATISTICS).tolist() == [0.6, 0.25, -1.0]
    width = math.log(3 / 0.1) / 2
    expected = [0.6 + math.sqrt(width / 100), 0.25 + math.sqrt(width / 4), -1.0]
    assert am.UCB(confidence=0.1).unit_scores(STATISTICS).tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("learner", [am.Greedy(), am.UCB(confidence=0.1)])
def test_noise_never_pays_where_rollback_costs_no_penalty(learner: am.Learner) -> None:
    statistics = STATISTICS.without(REQUEST.records)
    for kind in (am.Adaptive, am.StrictAdaptive, am.MultiSource):
        request = am.DeletionRequest.from_rewards({"A": [1] * 10, "B": [], "C": []})
        release = kind().release(learner, STATISTICS, request, BUDGET)
        expected = learner.decide(STATISTICS.without(request.records)).index
        assert release.probabilities[expected] == 1.0
    release = am.Rollback().release(learner, STATISTICS, REQUEST, BUDGET)
    assert release.probabilities[learner.decide(statistics).index] == 1.0


def test_the_paper_s_threshold_is_refused_for_greedy() -> None:
    request = am.DeletionRequest.from_rewards({"A": [1] * 10, "B": [], "C": []})
    with pytest.raises(UnsupportedError, match="the paper's threshold is for the penalty of 'lcb'"):
        am.Adaptive.as_in_the_paper().release(am.Greedy(), STATISTICS, request, BUDGET)


@pytest.mark.parametrize("learner", [am.Greedy(), am.UCB(confidence=0.5)])
def test_an_assumed_share_conceals_the_counts_of_a_request(learner: am.Learner) -> None:
    budget, tilt = am.Budget(epsilon=1.0, delta=1e-3), am.Tilt(assumed_share=0.3)
    assert am.feasible_reference(tilt, learner, level="retained", budget=budget, max_count=3).holds


@pytest.mark.parametrize("frozen", [None, (7, 0)])
@pytest.mark.parametrize("learner", [am.Greedy(), am.UCB(confidence=0.5), am.UCB(confidence=1e-31)])
def test_no_arm_that_was_served_is_left_out_of_the_contenders(
    learner: MeanAndCountLearner, frozen: tuple[int, int] | None
) -> None:
    """Every deletion of at most three zeros and ones of each arm."""
    if frozen is not None:
        learner = learner.with_frozen_penalty(frozen)
    most, checked = np.array([3, 3]), 0
    for (n, ones), (n_other, ones_other) in product(
        [(0, 0), (1, 1), (5, 1), (5, 5), (40, 30), (200, 5)], repeat=2
    ):
        retained = am.ArmStatistics((0, 1), np.array([n, n_other]), np.array([ones, ones_other]) * UNIT)
        if not n + n_other:
            continue
        deletions = [(k, s) for k in range(4) for s in range(k + 1)]
        pairs = np.array(list(product(deletions, repeat=2)))
        before = am.ArmStatistics(
            (0, 1), retained.counts + pairs[..., 0], retained.sums + pairs[..., 1] * UNIT
        )
        served = set(learner.decide(before).index.tolist())
        marked = contenders_up_to(learner, retained, most)
        assert all(marked[arm] for arm in served)
        checked += len(served) == 1 and not marked.all()
    assert checked  # not all arms are always marked


@pytest.mark.parametrize("learner", [am.Greedy(), am.UCB(confidence=0.01), am.UCB(confidence=1e-200)])
@pytest.mark.parametrize("unlearner", [am.Gaussian(), am.CentredGaussian()])
def test_noise_covers_the_rounding_of_a_bonus_too(learner: am.Learner, unlearner: am.Unlearner) -> None:
    for n in (10**3, 10**15):
        statistics, request = close_races(n, 1, two_arms=True)
        assert am.audit(unlearner, learner, statistics, request, BUDGET).holds
