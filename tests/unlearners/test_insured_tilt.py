"""Insured tilt: who the contenders are, what they get; a rule that sees deleted rewards is caught."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from armnesia import (
    KLLCB,
    LCB,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    Learner,
    Tilt,
    audit,
    feasible_reference,
)
from armnesia.auditing import small_worlds
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners.contenders import contenders
from armnesia.unlearners.tilt import lowest_rest
from armnesia.unlearners.tilt_reference import (
    among_contenders,
    best_reference,
    highest_allowed,
    insurance_price,
    insured_arms,
    knee,
)
from scripts.unlike_requests import of_several_arms
from tests.quick import examples, quick_only
from tests.unlearners.test_tilt import random_budget, random_worlds
from tests.unlearners.tilt_cases import LEARNER, LEARNERS, Floats, Ints, uniform


@pytest.mark.parametrize("learner", quick_only(LEARNERS[:1], LEARNERS), ids=lambda learner: learner.name)
@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (-3.0, 5.0)])
def test_the_contenders_are_the_arms_that_can_have_been_served(
    learner: MeanAndCountLearner, reward_range: tuple[float, float]
) -> None:
    """Three arms; every number of deleted rewards at the top of the range and at the bottom is tried.

    With KL bounds, whose scores are rounded, an arm that ties may be a contender too.
    """
    rng, low, high = np.random.default_rng(1), *reward_range
    sizes = set()
    for _ in range(60):
        kept = [[high] * a + [low] * b for a, b in rng.integers(0, 5, size=(3, 2))]
        shape = rng.integers(0, 4, size=3)
        retained = ArmStatistics.from_rewards(dict(enumerate(kept)), reward_range)
        logs = []
        for ones in itertools.product(*(range(k + 1) for k in shape)):
            deleted = {
                a: [high] * g + [low] * int(k - g) for a, (g, k) in enumerate(zip(ones, shape, strict=True))
            }
            data = retained.merge(ArmStatistics.from_rewards(deleted, reward_range))
            logs += [data] if data.total > 0 else []
        served, tied = set(), set()
        if logs:
            counts, sums = np.array([data.counts for data in logs]), np.array([data.sums for data in logs])
            together = ArmStatistics(retained.actions, counts, sums, reward_range)
            served = set(learner.decide(together).index.tolist())
            scores = learner.unit_scores(together)
            highest = scores.max(axis=-1, keepdims=True)
            tied = set(np.flatnonzero((scores >= highest - 2 * learner.score_rounding).any(axis=0)).tolist())
        if served:
            found = set(np.flatnonzero(contenders(learner, retained, shape)).tolist())
            assert served <= found <= (tied if learner.score_rounding else served)
            sizes.add(len(served))
    assert sizes == {1, 2, 3}


def test_a_score_that_falls_by_rounding_does_not_exclude_the_old_decision() -> None:
    """Two KL bounds that differ by 10⁻¹⁴: the one with the higher mean was computed as the lower one."""
    n, k, learner = 168_824, 17_330, KLLCB(confidence=1)
    retained = ArmStatistics((0, 1), np.array([n - k, n]), np.array([19_489 * 10**9, 36_818_999_999_999]))
    deleted = ArmStatistics((0, 1), np.array([k, 0]), np.array([k * 10**9 - 1, 0]))
    request = DeletionRequest(deleted, binary=False)
    assert learner.decide(retained.merge(deleted)).index == 0
    assert contenders(learner, retained, request.counts).tolist() == [True, True]
    release = Tilt().release(learner, retained.merge(deleted), request, Budget(epsilon=3.0, delta=0.0))
    assert release.probabilities[0] >= 1 - knee(Budget(epsilon=3.0, delta=0.0))


@pytest.mark.parametrize("count", [30, 10**5, 10**9, 10**14])
def test_kl_scores_fall_by_no_more_than_their_rounding_and_hoeffding_scores_never(count: int) -> None:
    rng = np.random.default_rng(6)
    start = rng.uniform(0, 1, size=3000) ** 3
    means = np.minimum(start[:, None] + rng.uniform(0, 1e-12, size=(3000, 2)).cumsum(axis=-1), 1.0)
    counts = np.array([count, count])
    for learner in (LCB(confidence=1), KLLCB(confidence=1)):
        scores = learner.lower_bounds(means, counts, 2)
        assert (scores[:, 0] - scores[:, 1]).max() <= learner.score_rounding / 5
    assert learner.with_frozen_penalty([1, 0]).score_rounding == learner.score_rounding > 0


def test_sums_beyond_64_bits_and_batches() -> None:
    billions = 10**10
    retained = ArmStatistics((0, 1), np.array([billions] * 2), np.array([4, 6], dtype=object) * 10**18)
    for k, expected in ((10**9, [False, True]), (10**10, [True, True])):
        assert contenders(LEARNER, retained, np.array([k, 0])).tolist() == expected
    small = ArmStatistics((0, 1), np.array([[10, 10], [10, 10]]), np.array([[4, 6], [6, 4]]) * 10**9)
    assert contenders(LEARNER, small, np.array([9, 0])).tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("seed", quick_only([0], range(6)))
@pytest.mark.parametrize("learner", [LEARNER, KLLCB(confidence=0.1)], ids=lambda learner: learner.name)
def test_the_old_decision_is_a_contender_and_kept_where_insured(seed: int, learner: Learner) -> None:
    """Random D and U, extreme rewards among them: P(kept) ≥ 1 − h, whatever the predictive says."""
    rng, insured_rows = np.random.default_rng(seed), 0
    for predictive in ("flat", uniform, lambda *given: np.roll(uniform(*given) * [3, 0, 0, 0], 1)):
        data, request = random_worlds(rng, 200, 4, 0.5)
        budget = Budget(epsilon=float(rng.uniform(1.5, 8)), delta=float(rng.choice([0.0, 1e-5, 0.1])))
        retained = data.without(request)
        possible = contenders(learner, retained, request.counts)  # type: ignore[arg-type]
        old = np.eye(4)[learner.decide(data).index] > 0
        some = retained.total > 0
        assert possible[old][some].all()
        price = insurance_price(possible.sum(axis=-1), budget)
        p = Tilt(predictive=predictive).release(learner, data, request, budget).probabilities
        rows = some & (price <= 0.02)
        assert (p[old][rows] >= 1 - knee(budget) - 1e-15).all()
        insured_rows += int((rows & (possible.sum(axis=-1) > 1)).sum())
    assert insured_rows > 50


def test_where_the_price_is_too_high_nothing_changes() -> None:
    rng = np.random.default_rng(3)
    world = random_worlds(rng, 200, 4, 0.5)
    several = contenders(LEARNER, world[0].without(world[1]), world[1].counts).sum(axis=-1) > 1
    for epsilon, delta in ((1.0, 1e-5), (0.3, 0.1), (1.8, 0.0)):
        budget = Budget(epsilon=epsilon, delta=delta)
        both = [Tilt(insurance=i).release(LEARNER, *world, budget).probabilities for i in (0.0, 0.02)]
        assert (both[0] == both[1])[several].all()


def test_without_insurance_it_is_the_best_reference_for_the_predictive_alone() -> None:
    rng = np.random.default_rng(4)
    data, request = random_worlds(rng, 100, 5, 0.4)
    retained, budget = data.without(request), Budget(epsilon=3.0, delta=1e-5)
    found = Tilt(insurance=0, predictive=uniform).reference(LEARNER, retained, budget, shape=request.counts)
    expected = best_reference(uniform(LEARNER, retained, request.counts), budget)
    some = (retained.total > 0) & (request.counts > 0).any(axis=-1)
    np.testing.assert_array_equal(found[some], expected[some])


def by_linear_program(q: Floats, insured: NDArray[np.bool_], epsilon: float, delta: float) -> float:
    """The largest Σ q_a·t_a over r ≥ h on the insured arms and t below the three lines; variables (r, t)."""
    m, grow = len(q), math.exp(epsilon)
    h, eye = (1 - delta) / (1 + grow), np.eye(m)
    solution = linprog(
        np.concatenate([np.zeros(m), -q]),
        A_ub=np.vstack([np.hstack([-grow * eye, eye]), np.hstack([-eye / grow, eye])]),
        b_ub=np.concatenate([np.full(m, delta), np.full(m, 1 - (1 - delta) / grow)]),
        A_eq=np.concatenate([np.ones(m), np.zeros(m)])[None, :],
        b_eq=[1.0],
        bounds=[(h if a else 0.0, 1.0) for a in insured] + [(None, 1.0)] * m,
        method="highs",
    )
    assert solution.fun is not None, solution.message
    return -float(solution.fun)


def test_the_insured_reference_is_the_optimum_of_the_linear_program_and_costs_at_most_the_price() -> None:
    rng, costly = np.random.default_rng(5), 0
    for _ in range(150):
        m = int(rng.integers(2, 9))
        budget = Budget(epsilon=float(rng.uniform(0, 5)), delta=float(rng.choice([0.0, 1e-5, 0.2])))
        insured = rng.random(m) < 0.6
        if not insured.any() or insured.sum() * knee(budget) > 1:
            continue
        q = np.where(insured, rng.dirichlet(np.full(m, rng.choice([0.05, 0.5, 5.0]))) + 1e-12, 0.0)
        q /= q.sum()
        r = best_reference(q, budget, insured)
        assert r.sum() == pytest.approx(1.0, abs=1e-12)
        assert (r[insured] >= knee(budget) - 1e-15).all()
        value = q @ highest_allowed(r, budget)
        assert value == pytest.approx(by_linear_program(q, insured, budget.epsilon, budget.delta), abs=1e-8)
        cost = float(q @ highest_allowed(best_reference(q, budget), budget) - value)
        price = float(insurance_price(insured.sum(), budget))
        assert cost <= price + 1e-12
        costly += cost > 0.5 * price > 0
    assert costly > 20  # the price is not an idle bound


def test_as_many_contenders_are_insured_as_the_price_allows() -> None:
    """Every insured arm has h, the cost is at most the insurance, and another arm would exceed it."""
    rng, partly = np.random.default_rng(7), 0
    for _ in range(400):
        m = int(rng.integers(3, 30))
        budget = Budget(epsilon=float(rng.uniform(0, 5)), delta=float(rng.choice([0.0, 1e-5, 0.2])))
        insurance, possible = float(rng.uniform(0, 0.1)), rng.random(m) < 0.7
        if not possible.any():
            continue
        q = among_contenders(rng.dirichlet(np.full(m, rng.choice([0.02, 0.5]))), possible)
        q, highest = q / q.sum(), rng.integers(0, 9, size=m) / 10
        insured = insured_arms(q, possible, highest, budget, insurance)
        alone, r = best_reference(q, budget), best_reference(q, budget, insured)
        h = knee(budget)
        assert (r[insured] >= h - 1e-15).all()
        assert r.sum() == pytest.approx(1.0, abs=1e-12)
        cost = float(q @ (highest_allowed(alone, budget) - highest_allowed(r, budget)))
        added = insured & (alone < h - 1e-12)
        assert cost <= added.sum() * h * math.exp(-budget.epsilon) + 1e-12
        assert cost <= insurance + 1e-12
        assert not (insured & ~possible).any()
        left = possible & ~insured & (alone < h - 1e-12)
        if insured.any() and left.any():
            too_much = (added.sum() + 1) * h * math.exp(-budget.epsilon) > insurance
            too_many = ((possible & (alone >= h - 1e-12)).sum() + added.sum() + 1) * h > 1
            assert too_much or too_many
            assert highest[added].min(initial=1) >= highest[left].max()
            partly += 1
        if insurance_price(possible.sum(), budget) <= insurance:
            assert (insured == possible).all()
    assert partly > 25


def test_a_second_requested_arm_does_not_turn_the_insurance_off() -> None:
    """300 of the best arm's records, better than the others, and 100 each of two more arms, at ε = 2."""
    case, budget = {0: (300, 0.2), 1: (100, 0.08), 2: (100, 0.06)}, Budget(epsilon=2.0, delta=1e-5)
    methods = {"none": None, "plain": Tilt(insurance=0), "insured": Tilt()}
    found = {name: loss for name, (loss, _) in of_several_arms(600, case, methods, budget, 500, 1).items()}
    assert found["plain"] > 0.02
    assert found["insured"] < found["none"] + 0.003  # it was that of the plain one; its error is 0.0003


INSURED = [Tilt(insurance=1), Tilt(predictive=uniform, insurance=1), Tilt(assumed_share=0.3, insurance=1)]


@pytest.mark.parametrize(
    "tilt", quick_only(INSURED[:1], [*INSURED, Tilt(), Tilt(predictive="empirical_bayes")])
)
@pytest.mark.parametrize("seed", quick_only([0], range(4)))
def test_the_audit_holds_on_random_data_and_requests(tilt: Tilt, seed: int) -> None:
    """Insured at any price, and by default; the seeds are not those of the plain tilt."""
    rng, insured = np.random.default_rng(100 + seed), 0
    for _ in range(8):
        m, budget = int(rng.integers(2, 8)), random_budget(rng)
        data, request = random_worlds(rng, 100, m, 0.5)
        result = audit(tilt, LEARNER, data, request, budget)
        assert result.holds, (m, budget, float(result.delta.max()) - budget.delta)
        insured += int(
            (
                result.reference
                != Tilt(tilt.assumed_share, tilt.predictive, insurance=0).reference(
                    LEARNER, data.without(request), budget, shape=request.counts
                )
            )
            .any(axis=-1)
            .sum()
        )
    assert insured > 20 or tilt.insurance < 1


def test_the_audit_holds_where_some_contenders_are_insured() -> None:
    rng, partly = np.random.default_rng(14), 0
    for _ in range(12):
        data, request = random_worlds(rng, 60, 6, 0.6)
        budget = Budget(epsilon=float(rng.uniform(1.9, 3)), delta=float(rng.choice([0.0, 1e-5])))
        guess = np.eye(6)[int(rng.integers(6))] + 1e-9
        tilt = Tilt(insurance=float(rng.uniform(0.005, 0.03)), predictive=lambda *_, guess=guess: guess)
        result = audit(tilt, LEARNER, data, request, budget)
        assert result.holds
        possible = contenders(LEARNER, data.without(request), request.counts)
        has_h = result.reference >= knee(budget) - 1e-12
        partly += int(((possible & has_h).sum(axis=-1) * (possible & ~has_h).sum(axis=-1) > 0).sum())
    assert partly > 50


@pytest.mark.sampled(4)
@pytest.mark.parametrize("epsilon", [30.0, 700.0, 745.0, math.inf])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1.0])
def test_the_audit_holds_where_the_first_pieces_are_tiny(epsilon: float, delta: float) -> None:
    world = random_worlds(np.random.default_rng(12), 200, 4, 0.7)
    for tilt in INSURED:
        result = audit(tilt, LEARNER, *world, Budget(epsilon=epsilon, delta=delta))
        assert np.isfinite(result.release.probabilities).all()
        assert result.holds


@pytest.mark.parametrize("tilt", quick_only([Tilt(insurance=1)], [*INSURED, Tilt()]))
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 12.0])
def test_both_directions_hold_in_forty_digits(tilt: Tilt, epsilon: float) -> None:
    """p and r are taken as they are; what a sum of doubles misses, 10⁻¹⁵, is all that may be missing."""
    data, request = random_worlds(np.random.default_rng(13), 60, 4, 0.6)
    for delta in (0.0, 1e-5):
        result = audit(tilt, LEARNER, data, request, Budget(epsilon=epsilon, delta=delta))
        with mpmath.workdps(40):
            grow = mpmath.exp(mpmath.mpf(epsilon))
            for p, r in zip(result.release.probabilities.tolist(), result.reference.tolist(), strict=True):
                for first, second in ((p, r), (r, p)):
                    pairs = zip(map(mpmath.mpf, first), map(mpmath.mpf, second), strict=True)
                    missing = sum(max(a - grow * b, mpmath.mpf(0)) for a, b in pairs)
                    assert missing <= mpmath.mpf(delta) + mpmath.mpf(1e-15)


LEVEL_BUDGETS = [
    Budget(epsilon=3.0, delta=1e-5),
    Budget(epsilon=2.0, delta=0.0),
    Budget(epsilon=0.2, delta=0.01),
]


@pytest.mark.parametrize("budget", quick_only(LEVEL_BUDGETS[:1], LEVEL_BUDGETS), ids=repr)
@pytest.mark.parametrize("tilt", quick_only(INSURED[:1], [*INSURED, Tilt()]))
def test_its_level_holds_on_every_small_data_set(tilt: Tilt, budget: Budget) -> None:
    """By linear programming, without its own reference."""
    learner = LCB(confidence=0.5)
    result = feasible_reference(tilt, learner, level=tilt.level, budget=budget, max_count=4)
    assert result.holds
    assert result.branches[Branch.TILT] > 0.5 * result.n_instances
    assert audit(tilt, learner, *small_worlds(4), budget).holds


class InsuresWhatTheDataShow(Tilt):
    """A planted fault: the contenders are found with the deleted rewards, so only π(D) is one."""

    def answer(
        self,
        learner: MeanAndCountLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[Floats, str]:
        seen = contenders(learner, statistics, np.zeros_like(statistics.counts))
        q = among_contenders(uniform(learner, retained, request.counts), seen)
        r = best_reference(q, budget, seen)
        kept = (seen * r).sum(axis=-1, keepdims=True)
        left_over = lowest_rest(kept, 1 - kept, budget)
        others = np.where(seen, 0.0, r)
        scale = left_over / np.maximum(others.sum(axis=-1, keepdims=True), 1e-300)
        return np.where(seen, 1 - left_over, others * scale), Branch.TILT


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=0.2, delta=0.01), Budget(epsilon=0.5, delta=1e-5)], ids=repr
)
def test_contenders_found_with_the_deleted_rewards_are_caught(budget: Budget) -> None:
    """By the level's linear program and by the audit; the sound rule passes both."""
    learner, wrong = LCB(confidence=0.5), InsuresWhatTheDataShow(predictive=uniform, insurance=1)
    assert feasible_reference(wrong, learner, level="request_shape", budget=budget, max_count=4).refuted
    assert not audit(wrong, learner, *small_worlds(4), budget).holds
    sound = Tilt(predictive=uniform, insurance=1)
    assert feasible_reference(sound, learner, level="request_shape", budget=budget, max_count=4).holds
    assert audit(sound, learner, *small_worlds(4), budget).holds


@examples(60)
@given(st.lists(st.tuples(*[st.integers(0, 20)] * 4), min_size=2, max_size=5), st.data())
def test_the_reference_is_the_same_for_all_deleted_rewards(
    arms: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    """D∖U and shape alone: with other deleted rewards it does not change."""
    shape = np.array([a[2] for a in arms])
    retained = ArmStatistics.from_rewards({i: [1] * a[0] + [0] * a[1] for i, a in enumerate(arms)})
    budget = Budget(epsilon=data.draw(st.sampled_from([2.0, 3.0])), delta=1e-5)
    tilt = Tilt(insurance=data.draw(st.sampled_from([0.02, 1])))
    reference = tilt.reference(LEARNER, retained, budget, shape=shape)
    for _ in range(3):
        ones: Ints = np.array([data.draw(st.integers(0, int(k))) for k in shape])
        removed = {
            i: [1] * int(g) + [0] * int(k - g) for i, (g, k) in enumerate(zip(ones, shape, strict=True))
        }
        request = DeletionRequest.from_rewards(removed)
        result = audit(tilt, LEARNER, retained.merge(request), request, budget)
        np.testing.assert_array_equal(result.reference, reference)
        assert result.holds


@pytest.mark.parametrize(("insurance", "expected"), [(0.02, [1, 0]), (0.49, [1, 0]), (0.5, [0.5, 0.5])])
def test_without_a_budget_the_likeliest_arm_is_released_unless_insurance_pays_half(
    insurance: float, expected: list[float]
) -> None:
    statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    request = DeletionRequest.from_rewards({"A": [1] * 30, "B": []})
    nothing, learner = Budget(epsilon=0.0, delta=0.0), LCB(confidence=0.1)
    released = Tilt(insurance=insurance).release(learner, statistics, request, nothing).probabilities
    assert sorted(released.tolist(), reverse=True) == pytest.approx(expected)
