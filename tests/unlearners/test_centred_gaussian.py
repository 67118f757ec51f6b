"""The centred Gaussian: half the sensitivity, the same level, and nothing left out of the noise."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from armnesia import (
    LCB,
    ArmStatistics,
    Branch,
    Budget,
    CentredGaussian,
    Decision,
    DeletionRequest,
    Gaussian,
    Level,
    audit,
    feasible_reference,
    privacy_curve,
)
from armnesia.auditing import small_worlds
from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.learners import PenaltyLearner
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate
from armnesia.unlearners.centred_gaussian import centred_scores
from armnesia.unlearners.noise_based import NoisePlan
from tests.quick import quick_only

TAU = 0.01
LEARNER = LCB(confidence=TAU)
BUDGETS = [Budget(epsilon=5, delta=1e-5), Budget(epsilon=1, delta=0.01), Budget(epsilon=1, delta=1e-5)]


@dataclass(frozen=True)
class HalfTheNoise(CentredGaussian):
    """The planted fault."""

    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        plan = super().plan(learner, counts, deleted, decision, budget)
        return replace(plan, sigma=plan.sigma / 2)


def test_the_sensitivity_is_the_largest_change_over_all_small_data_sets() -> None:
    """|score of D − imputed score| is at most k/(2N), and equal to it for equal deleted rewards."""
    statistics, request = small_worlds(5)
    change = np.abs(
        LEARNER.unit_scores(statistics) - centred_scores(LEARNER, statistics.without(request), request.counts)
    )
    bound = request.counts / (2 * np.maximum(statistics.counts, 1))
    assert (change <= bound + 1e-15).all()
    extreme = (request.sums == 0) | (request.sums == request.counts * 10**9)
    np.testing.assert_allclose(change[extreme], bound[extreme], rtol=0, atol=1e-15)


def test_the_figures_of_the_docs() -> None:
    """N = 200, k = 80 of five arms, τ = 1/1000: 0.442 falls to 0.200."""
    learner, counts, deleted = LCB(confidence=1e-3), np.full(5, 200), np.array([80, 0, 0, 0, 0])
    budget = Budget.from_gamma(1.0, delta=1e-5)
    sigma = [
        method.plan(learner, counts, deleted, None, budget).sigma[0]
        for method in (Gaussian(), CentredGaussian())
    ]
    assert sigma == [pytest.approx(0.442, abs=5e-4), pytest.approx(0.2, abs=1e-12)]


def test_one_requested_arm_is_a_normal_probability() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    learner = LCB(confidence=0.1)
    release = CentredGaussian().release(learner, statistics, request, budget)
    sigma = 3.730631634816 * 10 / 200
    assert release.probabilities[0] == pytest.approx(norm.cdf((0.6 - 0.5) / sigma), abs=1e-9)
    reference = CentredGaussian().reference(
        learner, statistics.without(request), budget, shape=request.counts
    )
    assert reference[0] == pytest.approx(norm.cdf((0.55 - 0.5) / sigma), abs=1e-9)  # (50 + 10/2)/100
    assert release.branch == Branch.GAUSSIAN
    assert release.guarantee.level is Level.REQUEST_SHAPE


def test_two_requested_arms_are_calibrated_jointly() -> None:
    """P(arm 0 has the highest score), as the probability of two correlated normal differences."""
    budget = Budget(epsilon=2.0, delta=1e-3)
    statistics = ArmStatistics.from_rewards(
        {0: [1] * 12 + [0] * 8, 1: [1] * 20 + [0] * 20, 2: [1] * 15 + [0] * 15}
    )
    request = DeletionRequest.from_rewards({0: [1] * 5, 1: [0] * 4, 2: []})
    scores = [12 / 20, 20 / 40, 15 / 30] - np.sqrt(np.log(3 / TAU) / (2 * np.array([20, 40, 30])))
    sigma = math.sqrt(2) * budget.gamma * np.array([5 / 40, 4 / 80])
    differences = [scores[0] - scores[1], scores[0] - scores[2]]
    covariance = [[sigma[0] ** 2 + sigma[1] ** 2, sigma[0] ** 2], [sigma[0] ** 2, sigma[0] ** 2]]
    wins = multivariate_normal.cdf(differences, cov=covariance)
    release = CentredGaussian().release(LEARNER, statistics, request, budget)
    assert release.probabilities[0] == pytest.approx(wins, abs=1e-7)


def test_the_reference_is_the_release_with_rewards_in_the_middle() -> None:
    """In a world where every deleted reward was 1/2, nothing distinguishes the two."""
    statistics, request = small_worlds(4)
    retained, budget = statistics.without(request), BUDGETS[0]
    halves = ArmStatistics(request.actions, request.counts, request.counts * (10**9 // 2))
    in_the_middle = CentredGaussian().release(
        LEARNER, retained.merge(halves), DeletionRequest(halves), budget
    )
    reference = CentredGaussian().reference(LEARNER, retained, budget, shape=request.counts)
    np.testing.assert_allclose(reference, in_the_middle.probabilities, rtol=0, atol=1e-13)


def worst_case(epsilon: float, gamma: float) -> tuple[ArmStatistics, DeletionRequest]:
    """Arm 0 loses 20 ones and keeps 980 zeros; the rival sits where noise of γ·k/(2N) hides the least."""
    n, k = 1000, 20
    before, imputed, delta = k / n, k / (2 * n), k / (2 * n)
    mean = (before + imputed) / 2 + epsilon * gamma**2 * delta
    assert 0 < mean < 1
    statistics = ArmStatistics((0, 1), np.array([n, n]), np.array([k * 10**9, round(mean * n * 10**9)]))
    return statistics, DeletionRequest.from_rewards({0: [1] * k, 1: []})


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_the_worst_case_uses_nearly_all_of_the_budget_and_no_more(budget: Budget) -> None:
    result = audit(CentredGaussian(), LEARNER, *worst_case(budget.epsilon, budget.gamma), budget)
    assert result.holds
    assert 0.999 * budget.delta < result.delta <= budget.delta
    assert result.smallest_epsilon == pytest.approx(budget.epsilon, rel=1e-3)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_half_the_noise_is_refuted(budget: Budget) -> None:
    instance = worst_case(budget.epsilon, budget.gamma / 2)
    result = audit(HalfTheNoise(), LEARNER, *instance, budget)
    assert not result.holds
    assert result.delta == pytest.approx(privacy_curve(budget.gamma / 2).delta(budget.epsilon), rel=1e-3)
    assert audit(
        CentredGaussian(), LEARNER, *instance, budget
    ).holds  # the same instance clears the sound one


@pytest.mark.parametrize("noise", [1.0, 0.5])
@pytest.mark.parametrize("forward", [True, False])
def test_two_arms_that_move_at_once_use_the_whole_budget_in_either_direction(
    forward: bool, noise: float
) -> None:
    """The scores of two arms move apart by k/N, and their difference has noise of 2·γ·k/(2N): ratio 1/γ."""
    n, k, budget = 20_000, 400, Budget(epsilon=1, delta=1e-5)
    shift = k / n
    apart = shift / 2 - budget.epsilon * (noise * budget.gamma) ** 2 * shift  # where the noise hides least
    # In the world with the larger difference it is `apart`: that of D (forward) or the imputed one.
    high, low = (k, 0) if forward else (0, k)
    imputed = apart - shift if forward else apart
    left = [n // 2 - k // 2, n // 2 - k // 2 - round(imputed * n)]
    removed = ArmStatistics((0, 1), np.array([k, k]), np.array([high, low]) * 10**9)
    statistics = ArmStatistics((0, 1), np.array([n - k, n - k]), np.array(left) * 10**9).merge(removed)
    method = CentredGaussian() if noise == 1 else HalfTheNoise()
    result = audit(method, LEARNER, statistics, DeletionRequest(removed, binary=True), budget)
    assert result.holds is (noise == 1)
    assert result.delta == (result.delta_forward if forward else result.delta_backward)
    assert result.delta == pytest.approx(privacy_curve(noise * budget.gamma).delta(1.0), rel=0.01)


@pytest.mark.parametrize(
    ("budget", "confidence"),
    quick_only([(Budget(epsilon=1.0, delta=0.05), 0.5)], [(b, c) for b in BUDGETS for c in (0.01, 0.5)]),
    ids=repr,
)
def test_it_holds_on_every_small_data_set(budget: Budget, confidence: float) -> None:
    found = feasible_reference(
        CentredGaussian(), LCB(confidence=confidence), level="request_shape", budget=budget, max_count=5
    )
    assert found.holds
    assert not found.refuted
    assert found.branches["gaussian"] > 1000


@pytest.mark.slow
def test_no_reference_saves_half_the_noise_and_no_noise_saves_the_level_retained() -> None:
    budget, learner = Budget(epsilon=1.0, delta=0.05), LCB(confidence=0.5)
    faulty = feasible_reference(HalfTheNoise(), learner, level="request_shape", budget=budget, max_count=4)
    assert faulty.refuted
    assert feasible_reference(
        CentredGaussian(), learner, level="request_shape", budget=budget, max_count=4
    ).holds
    assert feasible_reference(
        CentredGaussian(), learner, level="retained", budget=budget, max_count=4
    ).refuted


def test_an_emptied_arm_gets_noise_too() -> None:
    """Its reference mean is 1/2; with the score −1 of an arm without records it could not be certified."""
    budget = Budget(epsilon=1.0, delta=1e-5)
    statistics = ArmStatistics.from_rewards({0: [1] * 40, 1: [1, 0] * 20})
    request = DeletionRequest.from_rewards({0: [1] * 40, 1: []})
    result = audit(CentredGaussian(), LEARNER, statistics, request, budget)
    sigma = budget.gamma / 2
    assert result.release.probabilities[0] == pytest.approx(norm.cdf(0.5 / sigma), abs=1e-12)
    np.testing.assert_allclose(result.reference, [0.5, 0.5], atol=1e-12)
    assert result.holds


def test_infinite_noise_is_refused() -> None:
    statistics, request = worst_case(1.0, 1.0)
    with pytest.raises(InvalidInputError, match="centred_gaussian adds Gaussian noise, and this budget"):
        CentredGaussian().release(LEARNER, statistics, request, Budget(epsilon=1.0, delta=0.0))


def test_it_beats_the_plain_mechanism_in_the_paper_s_settings() -> None:
    """Exactly evaluated, and the sampled protocol agrees within four standard errors (1 in 16,000)."""
    environment = Environment.bernoulli([0.10, 0.08, 0.06, 0.04, 0.02])
    model, request = FixedSample.round_robin(1000, 5), OneArm(0, 80)
    for epsilon, figures in ((1.0, (1208, 1195)), (3.0, (1190, 1156)), (5.0, (1174, 1121))):
        budget = Budget(epsilon=epsilon, delta=1e-5)
        plain, centred = (
            evaluate(environment, model, request, method, budget, protocol="exact").suboptimality
            for method in (Gaussian(), CentredGaussian())
        )
        assert (round(plain * 1e5), round(centred * 1e5)) == figures  # those of docs/theory.md
    drawn = evaluate(
        environment,
        model,
        request,
        CentredGaussian(),
        budget,
        protocol="sampled",
        datasets=4000,
        seed=3,
    )
    assert abs(drawn.suboptimality - centred) < 4 * drawn.standard_error


def test_it_adds_no_more_noise_than_gaussian_and_at_most_half_if_an_arm_keeps_records() -> None:
    rng, budget, emptied = np.random.default_rng(3), BUDGETS[0], 0
    for _ in range(200):
        counts = rng.integers(1, 40, size=3)
        deleted = rng.integers(0, counts + 1)
        if not 0 < deleted.sum() < counts.sum():
            continue
        centred, plain = (
            method.checked_plan(LEARNER, counts, deleted, None, budget).sigma
            for method in (CentredGaussian(), Gaussian())
        )
        share = np.where(deleted < counts, 0.5, 1.0)
        assert (centred <= share * plain * (1 + 1e-12)).all()
        emptied += int((deleted == counts).sum())
    assert emptied > 0
