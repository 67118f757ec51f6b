"""The audit finds planted faults, and sound unlearners use nearly all of their budget."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from armnesia import (
    LCB,
    ArmStatistics,
    Branch,
    Budget,
    Decision,
    DeletionRequest,
    Gaussian,
    Guarantee,
    Learner,
    MultiSource,
    Release,
    audit,
    privacy_curve,
)
from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.learners import PenaltyLearner
from armnesia.unlearners.noise_based import NoisePlan

UNIT = 10**9  # the package holds rewards in 10⁻⁹ of their range
TAU = 0.01
LEARNER = LCB(confidence=TAU)
N, K = 1000, 20


def worst_case(epsilon: float, gamma: float) -> tuple[ArmStatistics, DeletionRequest]:
    """The instance that uses up noise of γ at ε: the score falls by all of Δ, and the rival sits right.

    Arm 0 loses its K ones and keeps zeros. Against σ = γΔ the worst event is "score above x" with
    x = (f + f′)/2 + ε·σ²/Δ, so the other arm, which carries no noise, is given the score x.
    """
    b = [math.sqrt(math.log(2 / TAU) / (2 * n)) for n in (N, N - K)]
    before, after = K / N - b[0], -b[1]
    delta = before - after
    rival = (before + after) / 2 + epsilon * gamma**2 * delta
    mean = rival + b[0]
    assert 0 < mean < 1
    statistics = ArmStatistics((0, 1), np.array([N, N]), np.array([K * UNIT, round(mean * N * UNIT)]))
    return statistics, DeletionRequest.from_rewards({0: [1] * K, 1: []})


@dataclass(frozen=True)
class TooQuiet(Gaussian):
    """The planted fault: 90 % of the noise that its guarantee needs."""

    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        plan = super().plan(learner, counts, deleted, decision, budget)
        return replace(plan, sigma=0.9 * plan.sigma)


BUDGETS = [Budget(epsilon=5, delta=1e-5), Budget(epsilon=1, delta=0.01), Budget(epsilon=1, delta=1e-5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_the_worst_case_uses_nearly_all_of_the_budget_and_no_more(budget: Budget) -> None:
    result = audit(Gaussian(), LEARNER, *worst_case(budget.epsilon, budget.gamma), budget)
    assert 0.999 * budget.delta < result.delta <= budget.delta
    assert result.holds
    assert result.delta == result.delta_forward
    assert result.smallest_epsilon == pytest.approx(budget.epsilon, rel=1e-3)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_ten_percent_too_little_noise_is_caught(budget: Budget) -> None:
    instance = worst_case(budget.epsilon, 0.9 * budget.gamma)
    result = audit(TooQuiet(), LEARNER, *instance, budget)
    assert not result.holds
    assert result.delta > 1.1 * budget.delta
    assert result.delta == pytest.approx(privacy_curve(0.9 * budget.gamma).delta(budget.epsilon), rel=1e-3)
    assert result.smallest_epsilon > budget.epsilon
    assert audit(Gaussian(), LEARNER, *instance, budget).holds  # the same instance clears the sound one


def test_the_classic_calibration_is_caught_where_it_is_false() -> None:
    """ε = 12, δ = 1e-5: refused by the package; built by force, its true δ is several times the claimed."""
    with pytest.raises(InvalidInputError, match="classic calibration is false"):
        Budget.classic(epsilon=12, delta=1e-5)
    forced = Budget(epsilon=12, delta=1e-5)
    sound = forced.gamma
    object.__setattr__(forced, "gamma", math.sqrt(2 * math.log(1.25 / 1e-5)) / 12)
    assert forced.gamma < sound
    result = audit(Gaussian(), LEARNER, *worst_case(12, forced.gamma), forced)
    assert not result.holds
    assert result.delta > 2 * forced.delta


@dataclass(frozen=True)
class AsPrinted(MultiSource):
    """The printed pseudo-code: a served arm with γ ≥ γ₀ keeps its old score and gets no noise."""

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        proved = super().release(learner, statistics, request, budget)
        if proved.branch != Branch.STRICT_BUDGET:
            return proved
        served = int(learner.decide(statistics).index)
        scores = learner.unit_scores(statistics.without(request))
        scores[served] = learner.unit_scores(statistics)[served]
        return replace(proved, probabilities=np.eye(len(scores))[int(np.argmax(scores))])


def test_the_printed_multi_source_pseudo_code_is_caught() -> None:
    """Arm 0 is served for the ones that are deleted; printed, it still is."""
    statistics = ArmStatistics.from_rewards({0: [1] * 70 + [0] * 30, 1: [1] * 60 + [0] * 40, 2: [0] * 50})
    request = DeletionRequest.from_rewards({0: [1] * 30, 1: [], 2: [0] * 3})
    budget = Budget(epsilon=1, delta=1e-5)
    printed = audit(AsPrinted(), LEARNER, statistics, request, budget)
    assert printed.release.branch == Branch.STRICT_BUDGET
    assert not printed.holds
    assert (float(printed.delta), float(printed.smallest_epsilon)) == (1.0, math.inf)
    assert audit(MultiSource(), LEARNER, statistics, request, budget).delta == 0


@dataclass(frozen=True)
class OverclaimingSeparateNoise(Gaussian):
    """σ_a = γΔ_a on each arm, claimed at the budget: true for one requested arm only."""

    joint: bool = False

    def guarantee(self, request: DeletionRequest, budget: Budget) -> Guarantee:
        return Guarantee(budget.epsilon, budget.delta, self.level)


@pytest.mark.parametrize(("arms", "share"), [(2, 0.067), (10, 0.1)])
def test_separate_noise_on_several_arms_does_not_meet_the_budget(arms: int, share: float) -> None:
    """Arm 0 loses ones and keeps zeros, the others lose zeros and keep ones: all scores move at once."""
    count, budget = 30_000, Budget(epsilon=1, delta=1e-5)
    k = round(share * count)
    first = np.arange(arms) == 0
    removed = ArmStatistics(tuple(range(arms)), np.full(arms, k), np.where(first, k, 0) * UNIT)
    left = ArmStatistics(tuple(range(arms)), np.full(arms, count - k), np.where(first, 0, count - k) * UNIT)
    instance = left.merge(removed), DeletionRequest(removed, binary=True)
    caught = audit(OverclaimingSeparateNoise(), LEARNER, *instance, budget)
    assert not caught.holds
    assert caught.delta > 10 * budget.delta
    honest = audit(Gaussian(joint=False), LEARNER, *instance, budget)
    assert honest.holds  # it reports the larger δ, and that one is true
    assert honest.delta == caught.delta
    assert audit(Gaussian(), LEARNER, *instance, budget).holds
    if arms == 2:  # with two arms this instance is nearly the worst: the reported δ is tight
        assert honest.delta > 0.85 * honest.guarantee.delta
