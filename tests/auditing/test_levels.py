"""Which unlearner holds which level, over every small data set, and two that do not hold theirs."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from armnesia import (
    LCB,
    Adaptive,
    ArmStatistics,
    Branch,
    Budget,
    CentredGaussian,
    Decision,
    DeletionRequest,
    Gaussian,
    Imitation,
    Learner,
    Level,
    Mixing,
    MultiSource,
    Rollback,
    Unlearner,
    audit,
    feasible_reference,
)
from armnesia.auditing import small_worlds
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.learners import PenaltyLearner
from armnesia.unlearners.noise_based import NoisePlan
from tests.quick import quick_only

NOISY = [
    Gaussian(),
    Gaussian(sensitivity="paper"),
    CentredGaussian(),
    Adaptive(),
    Adaptive.as_in_the_paper(),
    MultiSource(threshold="paper"),
    Mixing(),
    Mixing(ratio=0.0, sensitivity="paper"),
]
NOISE_BRANCHES = [Branch.GAUSSIAN, Branch.MIXING, Branch.GAUSSIAN_AND_ROLLBACK]


@pytest.mark.slow
@pytest.mark.parametrize("unlearner", quick_only([Mixing()], NOISY), ids=repr)
@pytest.mark.parametrize(
    ("budget", "confidence"),
    quick_only(
        [(Budget(epsilon=1.0, delta=0.05), 0.5)],
        [(Budget(epsilon=1.0, delta=0.05), 0.5), (Budget(epsilon=5.0, delta=1e-5), 1.0)],
    ),
    ids=repr,
)
def test_every_noisy_unlearner_holds_its_level_on_every_small_data_set(
    unlearner: Unlearner, budget: Budget, confidence: float
) -> None:
    """All data sets of two arms with up to five records each, all requests; noise is really drawn in many."""
    learner = LCB(confidence=confidence)
    result = feasible_reference(unlearner, learner, level=unlearner.level, budget=budget, max_count=5)
    assert result.holds
    statistics, request = small_worlds(5, several_arms=unlearner.several_arms)
    release = unlearner.release(learner, statistics, request, budget)
    assert result.n_instances == len(statistics.counts)
    noised = np.isin(release.branch.astype(str), NOISE_BRANCHES)
    assert noised.mean() > 0.2
    certain = release.probabilities.max(axis=-1) > 1 - 1e-6
    assert (noised & ~certain).mean() > 0.1
    # The unlearner's own reference is one of those that the search minimises over.
    assert audit(unlearner, learner, statistics, request, budget).holds


@pytest.mark.parametrize("unlearner", NOISY, ids=repr)
def test_no_noisy_unlearner_holds_the_strictest_level(unlearner: Unlearner) -> None:
    """Their noise, or their memory of π(D), tells that something was deleted."""
    budget = Budget(epsilon=5.0, delta=1e-5)
    assert not feasible_reference(
        unlearner, LCB(confidence=1.0), level="retained", budget=budget, max_count=3
    ).holds


@dataclass(frozen=True)
class MuchTooQuiet(Gaussian):
    """A planted fault: a third of the noise."""

    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        plan = super().plan(learner, counts, deleted, decision, budget)
        return replace(plan, sigma=plan.sigma / 3)


def test_a_fault_is_found_without_the_unlearner_s_own_reference() -> None:
    """No reference exists for it, so its own is none either."""
    budget, learner = Budget(epsilon=1.0, delta=0.05), LCB(confidence=0.5)
    faulty = feasible_reference(MuchTooQuiet(), learner, level="request_shape", budget=budget, max_count=4)
    assert not faulty.holds
    assert feasible_reference(Gaussian(), learner, level="request_shape", budget=budget, max_count=4).holds


def one_arm(ones: int, zeros: int) -> list[int]:
    return [1] * ones + [0] * zeros


def test_algorithm_2_does_not_hold_at_request_shape() -> None:
    """Same D∖U, same k: 81 ones among the deleted serve arm 0 (noise), 100 zeros do not (rollback).

    With r the reference's probability of arm 1: r ≤ δ from the second, 1 − p ≤ e^ε·r + δ from the first,
    so that δ ≥ (1 − p)/(1 + e^ε), which r = δ attains.
    """
    budget, learner = Budget(epsilon=5, delta=1e-5), LCB(confidence=1 / 2500)
    unlearner = Adaptive(threshold="paper")
    other = one_arm(1745, 605)
    instances = []
    for deleted in (one_arm(81, 19), one_arm(0, 100)):
        statistics = ArmStatistics.from_rewards({0: one_arm(50, 0) + deleted, 1: other})
        instances.append((statistics, DeletionRequest.from_rewards({0: deleted, 1: []})))
    releases = [unlearner.release(learner, *instance, budget) for instance in instances]
    assert [release.branch for release in releases] == [Branch.GAUSSIAN, Branch.NOT_SERVED]
    p = float(releases[0].probabilities[0])
    assert p == pytest.approx(0.5027, abs=1e-4)
    np.testing.assert_array_equal(releases[1].probabilities, [1, 0])

    result = feasible_reference(unlearner, learner, level="request_shape", budget=budget, instances=instances)
    assert not result.holds
    assert result.delta == pytest.approx((1 - p) / (1 + math.exp(5)), rel=1e-6)
    assert result.delta == pytest.approx(0.00333, abs=5e-6)
    assert len(result.witness.instances) == 2
    # A reference that sees π(D) can distinguish the two, and each alone is served perfectly.
    seeing_decision = feasible_reference(
        unlearner, learner, level="original_decision", budget=budget, instances=instances
    )
    assert (seeing_decision.holds, seeing_decision.delta, seeing_decision.n_groups) == (True, 0.0, 2)


class AlwaysTheOldDecision(Unlearner):
    """Forgets nothing: releases π(D) whatever is deleted."""

    name: ClassVar[str] = "always"
    level: ClassVar[Level] = Level.ORIGINAL_DECISION

    needs_budget: ClassVar[bool] = False

    def answer(
        self,
        learner: Learner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str]:
        return np.eye(statistics.n_actions)[learner.decide(statistics).index], Branch.ROLLBACK

    def reference_probabilities(
        self,
        learner: Learner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        assert original_decision is not None
        return np.eye(retained.n_actions)[original_decision.index]


def test_doing_nothing_holds_at_original_decision_and_nowhere_else() -> None:
    """The paper's level is empty: the one who forgets nothing is (0, 0) there."""
    nothing, learner = Budget(epsilon=0, delta=0), LCB(confidence=0.5)
    generous = Budget(epsilon=5, delta=0.1)
    idle = AlwaysTheOldDecision()
    seen = feasible_reference(idle, learner, level="original_decision", budget=nothing, max_count=4)
    assert (seen.holds, seen.delta) == (True, 0.0)
    assert audit(idle, learner, *small_worlds(4), nothing).holds
    for level in ("retained", "request_shape"):
        result = feasible_reference(idle, learner, level=level, budget=generous, max_count=4)
        assert not result.holds
        assert result.delta == pytest.approx(0.5, abs=1e-9)  # two opposite certain releases


@pytest.mark.parametrize("level", ["request_shape", "original_decision"])
def test_a_level_that_says_everything_is_refused(level: str) -> None:
    """Imitation depends on counts alone, so a reference that sees the shape sees everything."""
    with pytest.raises(UnsupportedError, match=f"level {level} is empty for the learner 'imitation'"):
        feasible_reference(
            Rollback(), Imitation(), level=level, budget=Budget(epsilon=1, delta=0), max_count=2
        )
