"""Exact evaluation of frozen rollback and tilt, against every data set there is and the values to reach."""

import numpy as np
import pytest

from armnesia import LCB, Adaptive, ArmStatistics, Budget, FrozenRollback, Gaussian, Rollback, Tilt, Unlearner
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.learners import Decision, MeanAndCountLearner, PenaltyLearner
from armnesia.simulation import (
    DistributionModel,
    Environment,
    FixedSample,
    OneArm,
    SeveralArms,
    evaluate,
    evaluate_all,
    exact_release,
)
from armnesia.simulation import exact_tilt_of_two as two_arms
from tests.simulation.all_data_sets import AllDataSets

PAPER = Environment.bernoulli([0.10, 0.08, 0.06, 0.04, 0.02])


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "unlearner",
    [FrozenRollback(), Tilt(), Tilt(insurance=0), Tilt(insurance=1)],
    ids=["frozen", "tilt", "not insured", "always insured"],
)
@pytest.mark.parametrize(
    ("means", "counts", "deleted"),
    [
        ([0.6, 0.4], [4, 3], [2, 0]),
        ([0.6, 0.4], [3, 4], [0, 3]),
        ([0.5, 0.5, 0.5], [3, 3, 3], [0, 1, 0]),  # ties everywhere
        ([0.7, 0.2, 0.5], [4, 1, 2], [4, 0, 0]),  # emptied
        ([0.7, 0.2, 0.5], [2, 0, 3], [0, 0, 2]),
        ([0.3], [4], [2]),
        ([0.6, 0.4], [3, 3], [0, 0]),
        ([0.0, 1.0], [3, 2], [1, 0]),
        ([0.6, 0.4], [2, 2], [2, 2]),
        ([0.6, 0.4], [5, 3], [2, 1]),  # both arms, no rival
        ([0.6, 0.4], [3, 3], [3, 2]),
        ([0.5, 0.5, 0.5], [3, 3, 2], [2, 1, 0]),
        ([0.5, 0.5, 0.5], [3, 2, 3], [1, 0, 2]),
        ([0.4, 0.3, 0.8], [1, 3, 3], [0, 3, 1]),
        ([0.2, 0.6, 0.5, 0.4], [1, 3, 1, 3], [0, 2, 0, 2]),
    ],
)
@pytest.mark.parametrize("budget", [(0.0, 0.0), (1.0, 1e-5), (0.3, 0.2), (2.0, 1e-5), (6.0, 0.0)])
def test_exact_is_the_average_over_every_data_set(
    unlearner: Unlearner,
    means: list[float],
    counts: list[int],
    deleted: list[int],
    budget: tuple[float, float],
) -> None:
    learner, allowed = LCB(confidence=0.3), Budget(epsilon=budget[0], delta=budget[1])
    brute = AllDataSets(means, counts, deleted).released(unlearner, learner, allowed)
    exact = exact_release(
        Environment.bernoulli(means), np.array(counts), np.array(deleted), unlearner, learner, allowed
    )
    assert exact == pytest.approx(brute, abs=1e-12)


def test_frozen_rollback_is_exact_for_several_arms() -> None:
    means, counts, deleted = [0.6, 0.5, 0.4], [3, 3, 2], [1, 2, 0]
    learner, nothing = LCB(confidence=0.3), Budget(epsilon=0.0, delta=0.0)
    brute = AllDataSets(means, counts, deleted).released(FrozenRollback(), learner, nothing)
    exact = exact_release(
        Environment.bernoulli(means), np.array(counts), np.array(deleted), FrozenRollback(), learner, nothing
    )
    assert exact == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "at_most"),
    [(1000, 80, 1.0, 0.0067), (1000, 80, 3.0, 0.0056), (2000, 80, 1.0, 0.0037), (3000, 500, 3.0, 0.0025)],
)
def test_tilt_loses_little_where_rollback_loses_much(n: int, k: int, epsilon: float, at_most: float) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-5)
    found = evaluate(PAPER, FixedSample.round_robin(n, 5), OneArm(0, k), Tilt(), budget)
    assert found.standard_error == 0
    assert found.suboptimality <= at_most


def test_the_numbers_of_the_readme() -> None:
    """80 of the best arm's 200 records: no deletion, rollback, Algorithm 2, frozen rollback, tilt."""
    budget = Budget(epsilon=1.0, delta=1e-5)
    methods = {
        "oracle": None,
        "rollback": Rollback(),
        "adaptive": Adaptive.as_in_the_paper(),
        "frozen": FrozenRollback(),
        "tilt": Tilt(),
    }
    found = evaluate_all(PAPER, FixedSample.round_robin(1000, 5), OneArm(0, 80), methods, budget)
    shown = {name: f"{result.suboptimality:.4f}" for name, result in found.items()}
    assert shown == {
        "oracle": "0.0054",
        "rollback": "0.0190",
        "adaptive": "0.0190",
        "frozen": "0.0068",
        "tilt": "0.0062",
    }


@pytest.mark.slow
@pytest.mark.parametrize("insurance", [0.0, 0.02])
def test_tilt_for_two_arms_is_exact_and_as_good(insurance: float) -> None:
    """Sampled within four standard errors: a false alarm in 6·10⁻⁵ of all seeds."""
    budget, request, model = (
        Budget(epsilon=3.0, delta=1e-5),
        SeveralArms({0: 80, 1: 80}),
        FixedSample.round_robin(1000, 5),
    )
    tilt = Tilt(insurance=insurance)
    exact = evaluate(PAPER, model, request, tilt, budget)
    assert (exact.protocol, exact.standard_error) == ("exact", 0.0)
    assert exact.suboptimality <= 0.0057
    found = evaluate(PAPER, model, request, tilt, budget, protocol="sampled", datasets=100_000)
    assert abs(found.suboptimality - exact.suboptimality) < 4 * found.standard_error
    assert found.standard_error < 0.00004


def test_what_is_too_much_for_the_sum_over_two_arms_is_sampled() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    for model, request in (
        (FixedSample.round_robin(1000, 5), SeveralArms({0: 8, 1: 8, 2: 8})),
        (FixedSample.round_robin(5000, 5), SeveralArms({0: 300, 1: 201})),
        (FixedSample.round_robin(50_000, 5), SeveralArms({0: 80, 1: 80})),
    ):
        with pytest.raises(UnsupportedError, match=r"exact evaluation of tilt .*use the sampled protocol"):
            evaluate(PAPER, model, request, Tilt(), budget, protocol="exact")
    few = SeveralArms({0: 2, 1: 2})
    by_chance = evaluate(PAPER, DistributionModel(60, (0.2,) * 5), few, Tilt(), budget, datasets=20)
    assert by_chance.protocol == "sampled"


@pytest.mark.parametrize(
    "tilt",
    [
        Tilt(assumed_share=0.2),
        Tilt(predictive="empirical_bayes"),
        Tilt(predictive=lambda *_: np.full(5, 0.2)),
    ],
)
def test_other_tilts_are_sampled(tilt: Tilt) -> None:
    case = PAPER, FixedSample.round_robin(500, 5), OneArm(0, 10), tilt, Budget(epsilon=1, delta=1e-5)
    with pytest.raises(UnsupportedError, match="use the sampled protocol"):
        evaluate(*case, protocol="exact")
    assert evaluate(*case, datasets=20).protocol == "sampled"


class EvenTilt(Tilt):
    """Tilt with a reference of its own, which the formula for tilt does not have."""

    def reference_probabilities(
        self,
        learner: MeanAndCountLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """All arms alike."""
        return np.full(retained.counts.shape, 1 / retained.n_actions)


class GuessingGaussian(Gaussian):
    """Gaussian noise with a decision of its own, which it does not declare by `guesses_decision`."""

    def decision_seen(
        self, learner: PenaltyLearner, retained: ArmStatistics, shape: IntArray, original: Decision | None
    ) -> Decision | None:
        """The decision on D∖U."""
        return learner.decide(retained)


@pytest.mark.parametrize("unlearner", [EvenTilt(), GuessingGaussian()])
def test_a_subclass_that_answers_in_its_own_way_is_not_evaluated_by_the_formula(unlearner: Unlearner) -> None:
    budget, model, request = Budget(epsilon=1.0, delta=1e-5), FixedSample((200, 200)), OneArm(0, 80)
    world = Environment.bernoulli([0.6, 0.5])
    with pytest.raises(UnsupportedError, match=r"exact evaluation does not know .*use the sampled protocol"):
        evaluate(world, model, request, unlearner, budget, protocol="exact")
    assert evaluate(world, model, request, unlearner, budget, datasets=100).protocol == "sampled"


@pytest.mark.slow
def test_what_the_sum_over_two_arms_leaves_out_is_negligible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bound, for as many states as it takes; and a sum that leaves out nothing."""
    assert 7 * two_arms._MOST_STATES * two_arms._LEFT_OUT < 1e-8
    model, request = FixedSample.round_robin(250, 5), SeveralArms({0: 20, 1: 20})

    def loss() -> float:
        return evaluate(PAPER, model, request, Tilt(), Budget(epsilon=2.0, delta=1e-5)).suboptimality

    found = loss()
    monkeypatch.setattr(two_arms, "_LEFT_OUT", 0.0)
    assert abs(loss() - found) < 1e-14
