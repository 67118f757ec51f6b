"""Learners with frozen penalties: scores by hand, sensitivity by trying every deletion, and refusals."""

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import ArrayLike

from armnesia import (
    KLLCB,
    LCB,
    Adaptive,
    ArmStatistics,
    Branch,
    Budget,
    ConfidenceLearner,
    DeletionRequest,
    FrozenPenalty,
    FrozenRollback,
    Gaussian,
    Imitation,
    Learner,
    StrictAdaptive,
    Tilt,
    Unlearner,
    audit,
    feasible_reference,
)
from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.learners import CountsOnlyLearner, MeanAndCountLearner, PenaltyLearner

UNIT = 10**9  # the package holds rewards in 10⁻⁹ of their range
TAU = 0.05


def hoeffding(count: int, m: int) -> float:
    return math.sqrt(math.log(m / TAU) / (2 * count))


def test_scores_are_the_mean_left_less_the_penalty_of_all_there_ever_were() -> None:
    statistics = ArmStatistics.from_rewards({"A": [1, 0, 1], "B": [1], "C": []})
    learner = LCB(confidence=TAU).with_frozen_penalty([7, 0, 5])
    expected = [2 / 3 - hoeffding(10, 3), 1 - hoeffding(1, 3), -1.0]
    np.testing.assert_allclose(learner.unit_scores(statistics), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("plain", [LCB(confidence=TAU), KLLCB(confidence=TAU)], ids=lambda one: one.name)
def test_each_data_set_of_a_batch_has_its_own_counts(plain: ConfidenceLearner) -> None:
    counts, deleted_before = np.array([[8, 5], [8, 5], [0, 2]]), np.array([[0, 0], [4, 30], [9, 0]])
    sums = np.array([[3, 2], [3, 2], [0, 1]]) * UNIT
    batch = plain.with_frozen_penalty(deleted_before).unit_scores(ArmStatistics(("A", "B"), counts, sums))
    for row in range(3):
        one = plain.with_frozen_penalty(deleted_before[row])
        alone = one.unit_scores(ArmStatistics(("A", "B"), counts[row], sums[row]))
        np.testing.assert_array_equal(batch[row], alone)
    np.testing.assert_array_equal(batch[0], plain.unit_scores(ArmStatistics(("A", "B"), counts[0], sums[0])))
    assert (batch[1] > batch[0]).all()


@pytest.mark.parametrize(
    ("count", "deleted_before"), [*product((1, 2, 5, 7), (0, 1, 20)), (3, 1), (4, 2), (6, 1000)]
)
def test_the_sensitivity_is_the_most_that_any_deletion_moves_the_score(
    count: int, deleted_before: int
) -> None:
    """Zeros and ones are the extremes of every reward: trying them all finds the exact maximum."""
    learner = LCB(confidence=TAU).with_frozen_penalty([deleted_before, 0])

    def score(records: int, ones: int) -> float:
        statistics = ArmStatistics((0, 1), np.array([records, 1]), np.array([ones, 0]) * UNIT)
        return float(learner.unit_scores(statistics)[0])

    for deleted in range(1, count + 1):
        moves = [
            abs(score(count, ones) - score(count - deleted, ones - deleted_ones))
            for ones in range(count + 1)
            for deleted_ones in range(max(0, deleted - (count - ones)), min(ones, deleted) + 1)
        ]
        claimed = learner.sensitivity([count, 1], [deleted, 0], n_actions=2)
        assert claimed[0] == pytest.approx(max(moves), abs=1e-12)
        assert claimed[1] == 0


class TrustingFrozenPenalty(FrozenPenalty):
    """The planted fault: as if the deleted records steadied the mean as well."""

    def sensitivity(self, counts: ArrayLike, deleted: ArrayLike, n_actions: int) -> FloatArray:
        assert isinstance(self.inner, PenaltyLearner)
        return self.inner.sensitivity(np.asarray(counts) + self.deleted_counts, deleted, n_actions)


N, K = 1000, 20
BUDGET = Budget(epsilon=1, delta=0.01)


def worst_case(learner: FrozenPenalty) -> tuple[ArmStatistics, DeletionRequest]:
    """Arm 0 loses its ones and keeps zeros; the rival's score is where the noise reveals the most."""
    deleted_before = int(learner.deleted_counts[0])
    before, after = K / N - hoeffding(N + deleted_before, 2), -hoeffding(N - K + deleted_before, 2)
    sigma = BUDGET.gamma * float(learner.sensitivity([N, N], [K, 0], 2)[0])
    rival = (before + after) / 2 + BUDGET.epsilon * sigma**2 / (before - after)
    mean = rival + hoeffding(N, 2)
    assert 0 < mean < 1
    statistics = ArmStatistics((0, 1), np.array([N, N]), np.array([K * UNIT, round(mean * N * UNIT)]))
    return statistics, DeletionRequest.from_rewards({0: [1] * K, 1: []})


@pytest.mark.parametrize("deleted_before", [0, 300, 5000])
def test_noise_for_a_frozen_penalty_is_enough_and_not_too_much(deleted_before: int) -> None:
    learner = LCB(confidence=TAU).with_frozen_penalty([deleted_before, 0])
    result = audit(Gaussian(), learner, *worst_case(learner), BUDGET)
    assert 0.999 * BUDGET.delta < result.delta <= BUDGET.delta
    assert result.holds


def test_a_sensitivity_that_trusts_what_is_gone_is_caught() -> None:
    sound = LCB(confidence=TAU).with_frozen_penalty([3000, 0])
    faulty = TrustingFrozenPenalty(inner=sound.inner, deleted_counts=sound.deleted_counts)
    caught = audit(Gaussian(), faulty, *worst_case(faulty), BUDGET)
    assert not caught.holds
    assert caught.delta > 10 * BUDGET.delta
    assert audit(Gaussian(), sound, *worst_case(faulty), BUDGET).holds


@pytest.mark.parametrize("unlearner", [Adaptive(), StrictAdaptive()], ids=lambda one: one.name)
def test_algorithm_2_switches_where_the_frozen_penalties_balance(unlearner: Unlearner) -> None:
    """2·b(N−k+g) = 2·b(N+g) + γΔ/√(2π), with the g of the served arm, in a batch as for one log."""
    counts, deleted = np.array([400, 300]), np.array([60, 0])
    deleted_before = np.array([[0, 900], [200, 0], [2000, 50]])
    sums = np.array([300, 60]) * UNIT
    statistics = ArmStatistics((0, 1), np.tile(counts, (3, 1)), np.tile(sums, (3, 1)))
    records = ArmStatistics((0, 1), np.tile(deleted, (3, 1)), np.tile([45 * UNIT, 0], (3, 1)))
    balances = []
    for g in deleted_before[:, 0]:
        rise = hoeffding(400 - 60 + g, 2) - hoeffding(400 + g, 2)
        balances.append(2 * math.sqrt(2 * math.pi) * rise / (60 / 400 + rise))
    learner = LCB(confidence=TAU).with_frozen_penalty(deleted_before)
    for row, balance in enumerate(balances):
        for factor in (0.999, 1.001):
            budget = Budget.from_gamma(factor * balance, delta=0.01)
            release = unlearner.release(learner, statistics, DeletionRequest(records), budget)
            expected = [budget.gamma < other for other in balances]
            assert [branch == Branch.GAUSSIAN for branch in release.branch] == expected
            alone = unlearner.release(
                LCB(confidence=TAU).with_frozen_penalty(deleted_before[row]),
                ArmStatistics((0, 1), counts, sums),
                DeletionRequest(ArmStatistics((0, 1), deleted, np.array([45 * UNIT, 0]))),
                budget,
            )
            assert alone.branch == (Branch.GAUSSIAN if factor < 1 else Branch.STRICT_BUDGET)


@pytest.mark.parametrize("unlearner", [Gaussian(), FrozenRollback(), Tilt()], ids=lambda one: one.name)
def test_a_reference_exists_on_all_small_logs(unlearner: Unlearner) -> None:
    """One vector is close to the releases of all requests that the reference cannot distinguish."""
    learner = LCB(confidence=0.5).with_frozen_penalty([3, 1])
    budget = Budget(epsilon=0.5, delta=0.05)
    found = feasible_reference(unlearner, learner, level="request_shape", budget=budget, max_count=3)
    assert found.holds


def test_equal_if_the_learner_and_the_counts_are() -> None:
    one = LCB(confidence=TAU).with_frozen_penalty([3, 0])
    assert one == LCB(confidence=TAU).with_frozen_penalty(np.array([3, 0]))
    assert hash(one) == hash(LCB(confidence=TAU).with_frozen_penalty([3, 0]))
    assert one != LCB(confidence=TAU).with_frozen_penalty([2, 0])
    assert one != LCB(confidence=0.5).with_frozen_penalty([3, 0])
    assert one != one.inner
    assert one.with_frozen_penalty([2, 0]) == LCB(confidence=TAU).with_frozen_penalty([2, 0])


def test_what_a_learner_is_otherwise_stays() -> None:
    plain = LCB(confidence=TAU, default_action="B")
    frozen = plain.with_frozen_penalty([1, 1])
    empty = ArmStatistics.empty(["A", "B"])
    assert frozen.decide(empty).action == "B"
    assert frozen.bind(empty) is frozen
    assert not frozen.deleted_counts.flags.writeable
    assert frozen.unfrozen is plain
    assert plain.unfrozen is plain


@pytest.mark.parametrize("plain", [LCB(confidence=TAU), KLLCB(confidence=TAU)], ids=lambda one: one.name)
def test_it_supports_what_the_inner_learner_supports(plain: ConfidenceLearner) -> None:
    frozen = plain.with_frozen_penalty([1, 1])
    for kind in (Learner, CountsOnlyLearner, MeanAndCountLearner, PenaltyLearner):
        assert frozen.supports(kind) is plain.supports(kind)
    assert frozen.supports(PenaltyLearner) is (plain.name == "lcb")


def test_refusals_are_one_clear_sentence() -> None:
    with pytest.raises(
        UnsupportedError,
        match="needs a learner that scores by mean and count, such as 'lcb'; got 'imitation'",
    ):
        Imitation().with_frozen_penalty([1])
    with pytest.raises(InvalidInputError, match="has no confidence yet"):
        LCB().with_frozen_penalty([1])
    for wrong in ([-1, 0], [0.5, 1.0], 3):
        with pytest.raises(InvalidInputError, match="deleted_counts must be whole numbers, 0 or more"):
            LCB(confidence=TAU).with_frozen_penalty(wrong)
    statistics = ArmStatistics.from_rewards({0: [1, 0], 1: [1]})
    request = DeletionRequest.from_rewards({0: [1], 1: []})
    with pytest.raises(UnsupportedError, match=r"sensitivity is known.*got 'kl_lcb with a frozen penalty'"):
        Gaussian().release(
            KLLCB(confidence=TAU).with_frozen_penalty([1, 0]),
            statistics,
            request,
            Budget(epsilon=1, delta=0.1),
        )
