"""Streams whose decisions offer only some of their arms, against logs that have these arms alone."""

from typing import Any

import numpy as np
import pytest

from armnesia import (
    LCB,
    ArmStatistics,
    Budget,
    DeletionRequest,
    Gaussian,
    Imitation,
    ImitationRollback,
    Mixing,
    Rollback,
    StrictAdaptive,
    Tilt,
)
from armnesia.core.errors import InvalidInputError
from armnesia.unlearners import Unlearner, release_jointly
from armnesia.unlearners.joint import budget_of_each
from armnesia.unlearners.stream import Stream

ACTIONS = ("A", "B", "C", "D")
METHODS = [Rollback(), Gaussian(), StrictAdaptive(), Tilt(), Mixing(), ImitationRollback()]
BUDGET = Budget(epsilon=1.0, delta=0.01)
OFFERED = np.array([[True, False, True, True], [True, True, False, False], [True, False, True, True]])
COUNTS = np.array([[60, 90, 55, 0], [40, 50, 70, 30], [30, 80, 32, 25]])
ONES = np.array([[35, 85, 30, 0], [20, 28, 69, 20], [17, 70, 15, 15]])
LOST = np.array([[12, 20, 0, 0], [0, 9, 30, 1], [0, 7, 0, 0]])
LOST_ONES = np.array([[10, 20, 0, 0], [0, 7, 30, 1], [0, 7, 0, 0]])
"""The last decision loses records of an arm only that it does not offer."""


def statistics(counts: Any, ones: Any, arms: Any = slice(None)) -> ArmStatistics:
    actions = tuple(np.array(ACTIONS)[arms].tolist())
    return ArmStatistics(actions, counts[..., arms], ones[..., arms] * 10**9)


def request(row: int, arms: Any = slice(None)) -> DeletionRequest:
    return DeletionRequest(statistics(LOST[row], LOST_ONES[row], arms), binary=True)


def learner_of(unlearner: Unlearner) -> Any:
    return Imitation() if unlearner.name == "imitation_rollback" else LCB(confidence=0.05)


@pytest.mark.parametrize("unlearner", METHODS, ids=repr)
@pytest.mark.parametrize("row", range(3))
def test_a_release_is_that_of_a_log_with_the_offered_arms_alone(unlearner: Unlearner, row: int) -> None:
    learner, arms = learner_of(unlearner), np.flatnonzero(OFFERED[row])
    stream = Stream(learner, statistics(COUNTS[row], ONES[row]), offered=OFFERED[row])
    alone = statistics(COUNTS[row], ONES[row], arms)
    seen = DeletionRequest(
        statistics(np.where(OFFERED[row], LOST[row], 0), np.where(OFFERED[row], LOST_ONES[row], 0)), True
    )
    found, _ = stream.forget(unlearner, seen, BUDGET)
    expected = unlearner.release(learner, alone, request(row, arms), BUDGET)
    assert found.actions == ACTIONS
    assert np.array_equal(found.probabilities[arms], expected.probabilities)
    assert not found.probabilities[~OFFERED[row]].any()
    assert (found.guarantee, found.branch) == (expected.guarantee, expected.branch)
    assert stream.decision().action == learner.decide(alone).action
    assert stream.remove(request(row)).statistics == stream.statistics.without(request(row))


@pytest.mark.parametrize("penalty", ["retained", "frozen"])
@pytest.mark.parametrize("unlearner", METHODS[:4], ids=repr)
def test_decisions_with_other_arms_share_one_budget(unlearner: Unlearner, penalty: Any) -> None:
    learner = LCB(confidence=0.05)
    gone = np.array([[3, 1, 0, 0], [0, 5, 2, 0], [1, 1, 4, 0]]) if penalty == "frozen" else None
    stream = Stream(learner, statistics(COUNTS, ONES), penalty, gone, OFFERED)
    whole = DeletionRequest(statistics(LOST, LOST_ONES), binary=True)
    found, later = stream.forget_jointly(unlearner, whole, BUDGET)
    each = budget_of_each(unlearner, BUDGET, 2, "best")  # the third decision has nothing to forget
    assert (found.n_sharing, found.each, found.touched.tolist()) == (2, each, [True, True, False])
    for row, arms in enumerate(map(np.flatnonzero, OFFERED)):
        own = learner if gone is None else learner.with_frozen_penalty(gone[row][arms])
        alone = statistics(COUNTS[row], ONES[row], arms)
        expected = unlearner.release(own, alone, request(row, arms), each).probabilities
        assert np.allclose(found.probabilities[row][arms], expected, rtol=0, atol=1e-12)
        assert not found.probabilities[row][~OFFERED[row]].any()
        assert stream.decision().action[row] == own.decide(alone).action
    assert np.array_equal(later.statistics.counts, COUNTS - LOST)
    assert gone is None or np.array_equal(np.asarray(later.deleted_counts), gone + LOST)


def test_where_all_decisions_offer_all_arms_nothing_changes() -> None:
    learner, all_offered = LCB(confidence=0.05), np.ones((3, 4), dtype=bool)
    whole = DeletionRequest(statistics(LOST, LOST_ONES), binary=True)
    stream = Stream(learner, statistics(COUNTS, ONES), offered=all_offered)
    assert stream == Stream(learner, statistics(COUNTS, ONES))
    found, _ = stream.forget_jointly(Tilt(), whole, BUDGET)
    expected = release_jointly(Tilt(), learner, stream.statistics, whole, BUDGET)
    assert np.array_equal(found.probabilities, expected.probabilities)


def test_the_default_is_the_first_offered_arm_where_the_default_action_is_not_offered() -> None:
    nothing = ArmStatistics.empty(ACTIONS)
    learner = LCB(confidence=0.05, default_action="C")
    for offered, arm in (("BCD", "C"), ("BD", "B")):
        mask = np.array([action in offered for action in ACTIONS])
        decision = Stream(learner, nothing, offered=mask).decision()
        assert (decision.action, bool(decision.no_data)) == (arm, True)


@pytest.mark.parametrize("offered", [[True, False], [1, 0, 1, 1], [False] * 4, "ABCD"])
def test_an_offer_that_says_nothing_of_an_arm_is_refused(offered: Any) -> None:
    with pytest.raises(InvalidInputError, match="offered must"):
        Stream(LCB(confidence=0.05), ArmStatistics.empty(ACTIONS), offered=np.array(offered))
