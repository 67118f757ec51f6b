"""Tilt's level is found without its own reference: on all small data sets, and with three arms."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from armnesia import (
    KLLCB,
    LCB,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    Learner,
    Level,
    Release,
    Tilt,
    Unlearner,
    audit,
    feasible_reference,
)
from armnesia.auditing import small_worlds
from armnesia.unlearners.contenders import contenders
from armnesia.unlearners.tilt_reference import knee
from tests.quick import quick_only
from tests.unlearners.tilt_cases import LEARNER, MODERATE, Floats, Ints, uniform

World = tuple[ArmStatistics, DeletionRequest]

BUDGETS = [MODERATE, Budget(epsilon=3.0, delta=1e-5), Budget(epsilon=0.0, delta=0.2)]


RECOMMENDED = Tilt(assumed_share=0.95)
TILTS = [
    Tilt(),
    Tilt(predictive="empirical_bayes"),
    Tilt(predictive=uniform),
    Tilt(assumed_share=0.3),
    RECOMMENDED,
    Tilt(assumed_share=0.95, predictive="nothing_or_share"),
    Tilt(predictive=uniform, insurance=1),
    Tilt(assumed_share=0.3, insurance=1),
]


@pytest.mark.parametrize("budget", quick_only([MODERATE], BUDGETS), ids=repr)
@pytest.mark.parametrize("unlearner", quick_only([Tilt(), Tilt(assumed_share=0.3), RECOMMENDED], TILTS))
def test_its_level_holds_on_every_small_data_set(unlearner: Unlearner, budget: Budget) -> None:
    """Its own reference is not used: some reference of its level serves all (D, U) with counts up to 4."""
    learner = LCB(confidence=0.5)
    result = feasible_reference(unlearner, learner, level=unlearner.level, budget=budget, max_count=4)
    assert result.holds
    assert result.branches[Branch.TILT] > 0.5 * result.n_instances
    assert audit(unlearner, learner, *small_worlds(4), budget).holds


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_with_the_shape_in_its_reference_it_is_refuted_at_retained(budget: Budget) -> None:
    learner = LCB(confidence=0.5)
    assert feasible_reference(Tilt(), learner, level="retained", budget=budget, max_count=4).refuted


def same_rest(rng: np.random.Generator, n_groups: int) -> list[World]:
    """Three arms: some D∖U and deleted counts, each with all the rewards that may have been deleted."""
    found = []
    for _ in range(n_groups):
        kept = [[1] * ones + [0] * zeros for ones, zeros in rng.integers(0, 5, size=(3, 2))]
        deleted_counts = rng.integers(0, 4, size=3)
        for ones in itertools.product(*(range(k + 1) for k in deleted_counts)):
            deleted = [[1] * g + [0] * int(k - g) for g, k in zip(ones, deleted_counts, strict=True)]
            log = {arm: kept[arm] + deleted[arm] for arm in range(3)}
            request = DeletionRequest.from_rewards(dict(enumerate(deleted)))
            found.append((ArmStatistics.from_rewards(log), request))
    return found


SHARED = Budget(epsilon=0.2, delta=1e-5)
"""So small that what is left of π(D) can be shared among the others in more ways than one."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("budget", quick_only([SHARED], [SHARED, *BUDGETS]), ids=repr)
@pytest.mark.parametrize("unlearner", quick_only([Tilt(), Tilt(assumed_share=0.3)], TILTS))
def test_its_level_holds_with_three_arms(unlearner: Unlearner, budget: Budget) -> None:
    instances = same_rest(np.random.default_rng(5), n_groups=12)
    for learner in (LCB(confidence=0.5), KLLCB(confidence=0.5)):
        found = feasible_reference(
            unlearner, learner, level=unlearner.level, budget=budget, instances=instances
        )
        assert found.holds, found.delta


def test_its_level_holds_with_three_arms_some_of_which_are_insured() -> None:
    """By linear programming; the insurance pays for one of two contenders at this ε."""
    learner, budget = LCB(confidence=0.5), Budget(epsilon=2.0, delta=1e-5)
    instances = same_rest(np.random.default_rng(6), n_groups=8)
    partly = Tilt(predictive=lambda *_: np.array([1.0, 0.0, 0.0]))
    found = feasible_reference(partly, learner, level=partly.level, budget=budget, instances=instances)
    assert found.holds, found.delta
    insured = set()
    for data, request in instances:
        left = data.without(request)
        if left.total > 0 and contenders(learner, left, request.counts).all():
            r = partly.reference(learner, left, budget, shape=request.counts)
            insured.add(tuple((r >= knee(budget) - 1e-12).tolist()))
    assert insured & {(True, True, False), (True, False, True)}


class TheNextBestTakesAll(Tilt):
    """A planted fault: all that is left goes to the best of the other arms, more than e^ε·r_a or not."""

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        right = super().release(learner, statistics, request, budget)
        rows, old = np.arange(len(statistics.counts)), learner.decide(statistics).index
        scores = learner.unit_scores(statistics).copy()
        scores[rows, old] = -np.inf
        p = np.zeros_like(right.probabilities)
        p[rows, old] = right.probabilities[rows, old]
        p[rows, np.argmax(scores, axis=-1)] += 1 - p[rows, old]
        return Release(right.actions, p, right.branch, right.guarantee)


def test_a_wrong_share_with_three_arms_is_refuted() -> None:
    instances = same_rest(np.random.default_rng(5), n_groups=12)
    learner = LCB(confidence=0.5)
    wrong = TheNextBestTakesAll(predictive=uniform)
    assert feasible_reference(
        wrong, learner, level="request_shape", budget=SHARED, instances=instances
    ).refuted


def test_the_default_predictive_follows_from_the_assumed_share() -> None:
    assert Tilt().resolved().predictive == "flat"
    assert RECOMMENDED.resolved() == Tilt(assumed_share=0.95, predictive="by_counts")
    assert replace(Tilt(), assumed_share=0.95) == RECOMMENDED
    for chosen in (Tilt(assumed_share=0.95, predictive="flat"), Tilt(predictive="by_counts")):
        assert chosen.resolved() == chosen


def test_the_assumed_share_sets_the_level_and_nothing_of_the_request_matters_to_the_reference() -> None:
    assert (Tilt().level, Tilt(assumed_share=0.3).level) == (Level.REQUEST_SHAPE, Level.RETAINED)
    statistics, request = small_worlds(4)
    retained = statistics.without(request)
    release = Tilt(assumed_share=0.3).release(LEARNER, statistics, request, MODERATE)
    assert release.guarantee.level is Level.RETAINED
    seen_shapes: list[Ints] = []

    def recording(learner: Learner, left: ArmStatistics, shape: Ints) -> Floats:
        seen_shapes.append(shape)
        return uniform(learner, left, shape)

    for shape in (None, request.counts, 5 * request.counts):
        Tilt(assumed_share=0.3, predictive=recording).reference(LEARNER, retained, MODERATE, shape=shape)
        np.testing.assert_array_equal(seen_shapes.pop(), retained.counts * 3 // 7)


def test_with_an_assumed_share_an_empty_request_is_answered_like_any_other() -> None:
    """Its reference may not know that nothing was deleted: what is released is not called unchanged."""
    statistics = ArmStatistics.from_rewards({"a": [1] * 51 + [0] * 49, "b": [1] * 50 + [0] * 50})
    nothing = DeletionRequest.from_rewards({"a": [], "b": []})
    assert Tilt().release(LEARNER, statistics, nothing, MODERATE).branch == Branch.UNCHANGED
    tilt = Tilt(assumed_share=0.3, predictive="flat")  # by counts it would know that nothing was deleted
    result = audit(tilt, LEARNER, statistics, nothing, MODERATE)
    assert result.holds
    assert result.release.branch == Branch.TILT
    assert 0.5 < result.release.probabilities[0] < 0.95
