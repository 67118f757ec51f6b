"""Insured tilt at level `retained`: contenders by enumerating old logs, the bound, and a planted fault."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from armnesia import (
    LCB,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    Tilt,
    audit,
)
from armnesia import feasible_reference as feasible
from armnesia.auditing import small_worlds
from armnesia.core.errors import InvalidInputError
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner, PenaltyLearner
from armnesia.unlearners.contenders import contenders, contenders_up_to
from armnesia.unlearners.tilt import most_deleted, tilted
from armnesia.unlearners.tilt_reference import among_contenders, best_reference, insurance_price, knee
from tests.quick import quick_only
from tests.unlearners.test_tilt import random_worlds
from tests.unlearners.tilt_cases import LEARNER, LEARNERS, Floats, Ints, uniform

LOOSE = Budget(epsilon=0.2, delta=0.01)
SHARES = (0.1, 0.3, 0.5, 0.75, 0.95)


@dataclass(frozen=True, kw_only=True)
class Staircase(PenaltyLearner):
    """A penalty in steps: as zeros are added, the score falls within a step and rises at the next."""

    name: ClassVar[str] = "staircase"

    def penalty(self, counts: ArrayLike, n_actions: int) -> Floats:
        """0.5 below 20 records, then 0.35, from 60 records on 0.2, and from 900 on 0."""
        return np.array([0.5, 0.35, 0.2, 0.0])[np.searchsorted([20, 60, 900], counts, side="right")]


def exactly_most(left: int, share: float) -> int:
    """The largest k with k ≤ ρ(N + k), by fractions."""
    exact = Fraction(share).limit_denominator(1000)
    return int(exact / (1 - exact) * left)


def test_the_most_deleted_records_of_a_share() -> None:
    counts = np.array([*range(300), 10**6, 10**9])
    for share in (*SHARES, 0.01, 1 / 3, 0.99):
        assert most_deleted(counts, share).tolist() == [exactly_most(int(n), share) for n in counts]
    with pytest.raises(
        InvalidInputError, match=r"assumed_share must be so small that an arm had at most 1e\+18 records"
    ):
        most_deleted(np.array([10**9]), 1 - 1e-12)


def old_logs(left: int, ones: int, most: int) -> list[tuple[int, int]]:
    """(count, ones) of an arm before any deletion of at most `most` records."""
    return [(left + k, ones + g) for k in range(most + 1) for g in range(k + 1)]


@pytest.mark.parametrize("learner", quick_only(LEARNERS[:1], LEARNERS), ids=lambda learner: learner.name)
@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (-3.0, 5.0)])
def test_the_contenders_are_the_arms_that_were_served_in_some_old_log(
    learner: MeanAndCountLearner, reward_range: tuple[float, float]
) -> None:
    """Three arms; every log from which at most the share was deleted, and the decision on each of them."""
    rng, sizes = np.random.default_rng(1), set()
    for _ in range(40):
        left = rng.integers(0, 5, size=3)
        ones, share = rng.binomial(left, rng.uniform(size=3)), float(rng.choice([0.1, 0.3, 0.5]))
        if not left.any():
            continue
        most = [exactly_most(int(n), share) for n in left]
        before = np.array(
            list(product(*(old_logs(*map(int, arm)) for arm in zip(left, ones, most, strict=True))))
        )
        logs = ArmStatistics((0, 1, 2), before[..., 0], before[..., 1] * UNIT, reward_range)
        served = np.unique(learner.decide(logs).index).tolist()
        retained = ArmStatistics((0, 1, 2), left, ones * UNIT, reward_range)
        found = contenders_up_to(learner, retained, most_deleted(left, share))
        if learner.score_rounding:  # then an arm that ties may be a contender too
            scores = learner.unit_scores(logs)
            near = (scores >= scores.max(axis=-1, keepdims=True) - 2 * learner.score_rounding).any(axis=0)
            assert found[served].all()
            assert near[found].all()
        else:
            assert np.flatnonzero(found).tolist() == served
        sizes.add(len(served))
    assert sizes == {1, 2, 3}


@pytest.mark.parametrize("learner", quick_only(LEARNERS[:1], LEARNERS), ids=lambda learner: learner.name)
def test_the_lowest_score_is_not_that_of_the_most_zeros(learner: MeanAndCountLearner) -> None:
    """Larger arms, all pairs of old scores; with the most zeros only, contenders would be missed for LCB."""
    rng, missed = np.random.default_rng(2), 0
    for _ in range(60):
        left = np.append(rng.integers(1, 30, size=2), 0)
        ones, most = rng.binomial(left, rng.uniform(size=3)), np.append(rng.integers(0, 60, size=2), 0)
        logs = [np.array(old_logs(*map(int, arm))) for arm in zip(left, ones, most, strict=True)]
        scores = []
        for arm, before in enumerate(logs):
            counts, sums = np.zeros((2, len(before), 3), dtype=np.int64)
            counts[:, arm], sums[:, arm] = before.T
            scores.append(learner.unit_scores(ArmStatistics((0, 1, 2), counts, sums * UNIT))[:, arm])
        first, second = scores[0][:, None], scores[1]  # the third arm has no records and scores −1
        assert (np.maximum(first, second) > -1).all()
        served = [bool((first >= second).any()), bool((second > first).any()), False]
        retained = ArmStatistics((0, 1, 2), left, ones * UNIT)
        assert contenders_up_to(learner, retained, most).tolist() == served
        missed += contenders(learner, retained, most).tolist() != served
    assert missed > 0 or learner is not LEARNERS[0]


@pytest.mark.parametrize("largest", quick_only([60], [60, 1500]))
def test_no_contender_is_missed_where_the_score_falls_and_rises_repeatedly(largest: int) -> None:
    """Two arms, all old scores: exact for few counts; for many the score to beat is at most 0.01 too low."""
    rng, learner, others = np.random.default_rng(5), Staircase(), 0
    for _ in range(60):
        left = rng.integers(1, largest, size=2)
        ones, most = rng.binomial(left, rng.uniform(size=2)), np.array([0, rng.integers(0, largest)])
        extremes = []
        for arm in range(2):
            n = left[arm] + np.arange(most[arm] + 1)
            penalty = learner.penalty(n, 2)
            lowest, highest = ones[arm] / n - penalty, (ones[arm] + n - left[arm]) / n - penalty
            extremes.append((lowest.min(), highest.max()))
        (low_first, high_first), (low_second, high_second) = extremes
        retained = ArmStatistics((0, 1), left, ones * UNIT)
        found = contenders_up_to(learner, retained, most)
        served, near = (
            np.array([high_first >= low_second - margin, high_second > low_first - margin])
            for margin in (0.0, 0.0 if largest < 256 else 0.01)
        )
        assert found[served].all()
        assert near[found].all()
        others += int((~served).sum())
    assert others > 10  # not every arm is a contender


def test_the_learners_of_the_package_are_searched_and_a_subclass_with_another_penalty_is_not() -> None:
    class Steps(LCB):
        def penalty(self, counts: ArrayLike, n_actions: int) -> Floats:
            return Staircase().penalty(counts, n_actions)

    assert all(learner.score_falls_then_rises for learner in LEARNERS)
    assert not Steps(confidence=0.5).score_falls_then_rises
    assert not Staircase().with_frozen_penalty([3, 0]).score_falls_then_rises


def test_sums_beyond_64_bits_and_batches() -> None:
    retained = ArmStatistics((0, 1), np.array([10**10] * 2), np.array([4, 6], dtype=object) * 10**18)
    for k, expected in ((10**9, [False, True]), (10**10, [True, True])):
        assert contenders_up_to(LEARNER, retained, np.array([k, k])).tolist() == expected
    small = ArmStatistics((0, 1), np.array([[10, 10], [10, 10]]), np.array([[4, 6], [6, 4]]) * UNIT)
    assert contenders_up_to(LEARNER, small, np.array([9, 9])).tolist() == [[True, True], [True, True]]
    assert contenders_up_to(LEARNER, small, np.array([0, 0])).tolist() == [[False, True], [True, False]]


def within_share(data: ArmStatistics, request: DeletionRequest, share: float) -> NDArray[np.bool_]:
    return np.asarray(
        (request.counts <= share * data.counts + 1e-9).all(axis=-1) & (data.without(request).total > 0)
    )


def never_right(learner: MeanAndCountLearner, retained: ArmStatistics, shape: Ints) -> Floats:
    """A predictive that is certain of the arm with the lowest score."""
    return np.asarray(np.eye(retained.n_actions)[np.argmin(learner.unit_scores(retained), axis=-1)])


@pytest.mark.parametrize("learner", quick_only(LEARNERS[:1], LEARNERS[:2]), ids=lambda x: x.name)
@pytest.mark.parametrize("share", quick_only([0.5], [0.3, 0.5]))
def test_every_request_of_at_most_the_share_keeps_the_old_decision(
    learner: MeanAndCountLearner, share: float
) -> None:
    """All logs of two arms with up to four records, all requests, the worst predictive: P(kept) ≥ 1 − h."""
    data, request = small_worlds(4)
    budget, inside = Budget(epsilon=3.0, delta=1e-5), within_share(data, request, share)
    tilt = Tilt(assumed_share=share, predictive=never_right)
    p = tilt.release(learner, data, request, budget).probabilities
    old = np.eye(2)[learner.decide(data).index] > 0
    kept, least = p[old], 1 - knee(budget)
    assert (kept[inside] >= least - 1e-15).all()
    assert inside.sum() > 500
    assert (kept[inside] < least + 1e-9).any()  # the bound is attained
    assert (kept[~inside] < 0.01).any()  # larger requests are not insured
    uninsured = Tilt(assumed_share=share, predictive=never_right, insurance=0)
    assert (uninsured.release(learner, data, request, budget).probabilities[old][inside] < 0.01).any()


@pytest.mark.parametrize("seed", quick_only([0], range(4)))
def test_the_old_decision_is_kept_on_random_data_where_the_price_allows(seed: int) -> None:
    rng, insured_rows = np.random.default_rng(seed), 0
    for predictive in ("by_counts", uniform, never_right):
        data, request = random_worlds(rng, 300, 4, 0.4)
        budget = Budget(epsilon=float(rng.uniform(1.5, 6)), delta=float(rng.choice([0.0, 1e-5])))
        share = float(rng.choice(SHARES))
        retained, old = data.without(request), np.eye(4)[LEARNER.decide(data).index] > 0
        possible = contenders_up_to(LEARNER, retained, most_deleted(retained.counts, share))
        inside = within_share(data, request, share)
        assert possible[old][inside].all()
        affordable = insurance_price(possible.sum(axis=-1), budget) <= 0.02
        p = Tilt(assumed_share=share, predictive=predictive).release(LEARNER, data, request, budget)
        rows = inside & affordable
        assert (p.probabilities[old][rows] >= 1 - knee(budget) - 1e-15).all()
        insured_rows += int((rows & (possible.sum(axis=-1) > 1)).sum())
    assert insured_rows > 20


INSURED = [
    Tilt(assumed_share=0.5, predictive=never_right, insurance=1),
    Tilt(assumed_share=0.95, predictive="by_counts", insurance=1),
    Tilt(assumed_share=0.95, predictive="equal_counts"),
]


@pytest.mark.parametrize("tilt", quick_only(INSURED[1:2], INSURED))
def test_the_reference_depends_on_the_records_left_only_and_the_level_holds(tilt: Tilt) -> None:
    """All logs and requests with the same D∖U have the same reference; some reference serves each group."""
    learner, worlds = LCB(confidence=0.5), small_worlds(4)
    for budget in (Budget(epsilon=3.0, delta=1e-5), LOOSE):
        result = audit(tilt, learner, *worlds, budget)
        assert result.holds
        left = worlds[0].without(worlds[1])
        keys = np.concatenate([left.counts, left.sums], axis=-1)
        groups, group_of = np.unique(keys, axis=0, return_inverse=True)
        assert len(groups) < len(keys) / 10
        order = np.argsort(group_of.ravel(), kind="stable")
        same = np.diff(group_of.ravel()[order]) == 0
        assert (np.diff(result.reference[order], axis=0)[same] == 0).all()
        assert feasible(tilt, learner, level="retained", budget=budget, max_count=4).holds


class InsuresByTheRequest(Tilt):
    """A planted fault: the contenders are those of the deleted counts, which `retained` does not see."""

    def answer(
        self,
        learner: MeanAndCountLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[Floats, str]:
        possible = contenders(learner, retained, request.counts)
        q = among_contenders(uniform(learner, retained, request.counts), possible)
        old = np.eye(retained.n_actions)[learner.decide(statistics).index]
        r = best_reference(q, budget, possible)
        return tilted(r, old, learner.unit_scores(statistics), budget), Branch.TILT


@pytest.mark.parametrize("budget", quick_only([LOOSE], [LOOSE, Budget(epsilon=0.5, delta=1e-5)]), ids=repr)
def test_contenders_of_the_deleted_counts_are_caught(budget: Budget) -> None:
    """By the level's linear program and by the audit; at `request_shape` the same rule would be sound."""
    learner, wrong = LCB(confidence=0.5), InsuresByTheRequest(0.5, uniform, insurance=1)
    assert feasible(wrong, learner, level="retained", budget=budget, max_count=4).refuted
    assert not audit(wrong, learner, *small_worlds(4), budget).holds
    assert feasible(wrong, learner, level="request_shape", budget=budget, max_count=4).holds
    assert audit(Tilt(0.5, uniform, insurance=1), learner, *small_worlds(4), budget).holds


@pytest.mark.parametrize("seed", quick_only([0], range(4)))
def test_the_audit_holds_on_random_data_and_requests(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    for tilt in INSURED:
        for epsilon, delta in ((0.1, 0.0), (1.0, 1e-5), (3.0, 1e-5), (12.0, 0.0), (700.0, 1e-5)):
            m = int(rng.integers(2, 7))
            result = audit(
                tilt, LEARNER, *random_worlds(rng, 40, m, 0.5), Budget(epsilon=epsilon, delta=delta)
            )
            assert result.holds, (tilt, epsilon, delta, float(result.delta.max()))
