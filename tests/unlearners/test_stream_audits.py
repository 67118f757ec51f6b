"""Every release of a random stream is audited at the level that it claims, whatever came before it."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia import (
    UNLEARNERS,
    ArmStatistics,
    Audit,
    Budget,
    DeletionRequest,
    FrozenRollback,
    Learner,
    Level,
    Release,
    Rollback,
    Stream,
    Unlearner,
    audit,
    feasible_reference,
)
from armnesia.learners import LCB
from armnesia.unlearners.stream import Penalty
from tests.learners.bound_learners import bound_learner
from tests.quick import examples

BUDGETS = (
    Budget(epsilon=1.0, delta=1e-5),
    Budget(epsilon=0.5, delta=0.05),
    Budget(epsilon=20.0, delta=0.01),
)
PENALTIES: tuple[Penalty, ...] = ("retained", "frozen")
ACTIONS = (0, 1, 2)


def start(learner: str, penalty: Penalty) -> Stream:
    return Stream(bound_learner(learner, 0.05), ArmStatistics.empty(ACTIONS), penalty)


@dataclass
class Month:
    new: dict[int, list[int]]
    deleted: dict[int, int]
    budget: Budget


@st.composite
def months(draw: st.DrawFn, several_arms: bool) -> list[Month]:
    """Up to four months: up to 25 new records an arm, and how many are to go of each, oldest first."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        new = {arm: draw(st.lists(st.integers(0, 1), max_size=25)) for arm in ACTIONS}
        arms = ACTIONS if several_arms else (draw(st.sampled_from(ACTIONS)),)
        deleted = {arm: draw(st.integers(0, 12)) for arm in arms}
        found.append(Month(new, deleted, draw(st.sampled_from(BUDGETS))))
    return found


def audited(stream: Stream, unlearner: Unlearner, lived: list[Month]) -> list[tuple[Audit, Release]]:
    """Live the months; each release as the stream gives it, and the audit of the same."""
    there: dict[int, list[int]] = {arm: [] for arm in ACTIONS}
    found = []
    for month in lived:
        stream = stream.add(ArmStatistics.from_rewards(month.new))
        there = {arm: there[arm] + month.new[arm] for arm in ACTIONS}
        deleted = {arm: there[arm][: month.deleted.get(arm, 0)] for arm in ACTIONS}
        there = {arm: there[arm][len(deleted[arm]) :] for arm in ACTIONS}
        request = DeletionRequest.from_rewards(deleted)
        result = audit(unlearner, stream.current_learner, stream.statistics, request, month.budget)
        release, stream = stream.forget(unlearner, request, month.budget)
        found.append((result, release))
        assert stream.statistics == ArmStatistics.from_rewards(there)
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("unlearner", "learner", "penalty"),
    [
        *((name, "lcb", "frozen") for name, kind in UNLEARNERS.items() if LCB().supports(kind.needs)),
        ("rollback", "imitation", "retained"),
        ("imitation_rollback", "imitation", "retained"),
        pytest.param("tilt", "kl_lcb", "frozen", marks=pytest.mark.slow),
    ],
)
@examples(15)
@given(data=st.data())
def test_every_release_holds_at_its_level(
    unlearner: str, learner: str, penalty: Penalty, data: st.DataObject
) -> None:
    kind = UNLEARNERS[unlearner]
    lived = data.draw(months(kind.several_arms))
    stream = start(learner, penalty)
    for month, (result, release) in zip(lived, audited(stream, kind(), lived), strict=True):
        assert result.holds
        np.testing.assert_array_equal(release.probabilities, result.release.probabilities)
        assert release.probabilities.sum() == pytest.approx(1.0, abs=2e-12)
        assert release.guarantee.epsilon <= month.budget.epsilon
        assert release.guarantee.delta <= month.budget.delta
        own = result.guarantee.level
        assert release.guarantee.level is (
            Level.REQUEST_SHAPE if penalty == "frozen" and own is Level.RETAINED else own
        )


class ServesTheOldDecision(Rollback):
    """The planted fault: the request is ignored in the release."""

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        nothing = DeletionRequest(ArmStatistics.empty(statistics.actions))
        return super().release(learner, statistics, nothing, budget)


def test_the_audit_sees_an_unlearner_that_forgets_nothing() -> None:
    lived = [
        Month({0: [1] * 20, 1: [1] * 15 + [0] * 5, 2: []}, {}, BUDGETS[0]),
        Month({0: [], 1: [], 2: []}, {0: 15}, BUDGETS[0]),
    ]
    for penalty in PENALTIES:
        caught = [result.holds for result, _ in audited(start("lcb", penalty), ServesTheOldDecision(), lived)]
        assert caught == [True, False]
        sound = [result.holds for result, _ in audited(start("lcb", penalty), Rollback(), lived)]
        assert sound == [True, True]


def test_what_follows_a_frozen_deletion_tells_the_counts_and_so_is_not_retained() -> None:
    """The level that a frozen stream refuses to claim is really not held by what it serves later.

    Same records left; 30 deleted in one world, none in the other: the next decision differs.
    """
    kept = {0: [1] * 20, 1: [1] * 30}
    budget = Budget(epsilon=0, delta=0)
    served = []
    for more in ([1] * 30, []):
        first = ArmStatistics.from_rewards({0: kept[0] + more, 1: kept[1]})
        stream = Stream(LCB(confidence=0.05), first, "frozen")
        _, stream = stream.forget(Rollback(), DeletionRequest.from_rewards({0: more, 1: []}), budget)
        served.append(stream.decision().action)
    assert served == [0, 1]
    instances = [
        (
            ArmStatistics.from_rewards({0: kept[0] + more, 1: kept[1]}),
            DeletionRequest.from_rewards({0: more, 1: []}),
        )
        for more in ([1] * 30, [])
    ]
    learner = LCB(confidence=0.05)
    strict = feasible_reference(
        FrozenRollback(), learner, level="retained", budget=budget, instances=instances
    )
    shaped = feasible_reference(
        FrozenRollback(), learner, level="request_shape", budget=budget, instances=instances
    )
    assert (strict.holds, shaped.holds) == (False, True)
