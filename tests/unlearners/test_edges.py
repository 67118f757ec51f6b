"""The edges of every unlearner: nothing, everything, one arm, no noise, too much noise."""

import math
from collections.abc import Hashable, Sequence

import numpy as np
import pytest

from armnesia import (
    LCB,
    Adaptive,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    Gaussian,
    Imitation,
    ImitationRollback,
    Learner,
    Mixing,
    MultiSource,
    Release,
    Rollback,
    Unlearner,
)
from armnesia.core.errors import ImpossibleDeletionError, InvalidInputError

LEARNER = LCB(confidence=0.05, default_action="b")
BUDGET = Budget(epsilon=2.0, delta=1e-4)
ALL: list[tuple[Unlearner, Learner]] = [
    (Rollback(), LEARNER),
    (Rollback(), Imitation(default_action="b")),
    (ImitationRollback(), Imitation(default_action="b")),
    (Gaussian(), LEARNER),
    (Gaussian(sensitivity="paper", joint=False), LEARNER),
    (Adaptive(), LEARNER),
    (Adaptive.as_in_the_paper(), LEARNER),
    (MultiSource(), LEARNER),
    (Mixing(), LEARNER),
    (Mixing(ratio=0.0), LEARNER),
    (Mixing(rolled_back=1), LEARNER),
]
each = pytest.mark.parametrize(("unlearner", "learner"), ALL, ids=lambda value: repr(value)[:40])


def release(
    unlearner: Unlearner,
    data: Sequence[Sequence[float]],
    deleted: Sequence[Sequence[float]],
    budget: Budget = BUDGET,
    learner: Learner = LEARNER,
) -> Release:
    labels = "abcdef"
    whole: dict[Hashable, Sequence[float]] = dict(zip(labels, data, strict=False))
    by_label: dict[Hashable, Sequence[float]] = dict(zip(labels, deleted, strict=False))
    return unlearner.release(
        learner, ArmStatistics.from_rewards(whole), DeletionRequest.from_rewards(by_label), budget
    )


@each
def test_arms_without_records(unlearner: Unlearner, learner: Learner) -> None:
    """An empty arm scores −1, below an arm of 40 records however bad; noise can still make it win."""
    result = release(unlearner, [[], [0] * 40, []], [[], [0] * 4, []], learner=learner)
    assert result.probabilities[1] > 0.99
    assert result.probabilities[2] == 0  # the other empty arm ties with the first, which takes the tie


@each
def test_more_than_there_is_cannot_be_deleted(unlearner: Unlearner, learner: Learner) -> None:
    with pytest.raises(ImpossibleDeletionError, match="does not contain"):
        release(unlearner, [[1] * 5, [0] * 5], [[1] * 6, []], learner=learner)


def test_an_emptied_arm_is_noised_over_its_whole_fall() -> None:
    """k = N(a): from anywhere in [−b, 1 − b] to −1, so Δ = 2 − b where b < 1.5."""
    data, deleted = [[1] * 50, [1] * 60 + [0] * 40], [[1] * 50, []]
    b = [math.sqrt(math.log(2 / 0.05) / (2 * n)) for n in (50, 100)]
    sigma = BUDGET.gamma * (2 - b[0])
    z = ((1 - b[0]) - (0.6 - b[1])) / sigma
    result = release(Gaussian(), data, deleted)
    np.testing.assert_allclose(result.probabilities[0], 0.5 * math.erfc(-z / math.sqrt(2)), atol=1e-14)
    assert result.branch == Branch.GAUSSIAN
    for unlearner in (Adaptive(), MultiSource(threshold="paper")):
        rolled_back = release(unlearner, data, deleted)
        np.testing.assert_array_equal(rolled_back.probabilities, [0, 1])
        assert rolled_back.branch == Branch.TOO_MANY_DELETED


def test_nmin_at_most_kmax_rolls_back_even_if_no_arm_is_emptied() -> None:
    """N_min and k_max may be of different arms: 10 records of arm b, 12 deleted of arm a."""
    generous = Budget(epsilon=50, delta=0.1)
    data = [[1] * 40, [1] * 10, [1] * 20]
    result = release(MultiSource(), data, [[1] * 12, [1], []], generous)
    assert result.branch == Branch.TOO_MANY_DELETED
    np.testing.assert_array_equal(result.probabilities, [1, 0, 0])
    assert release(MultiSource(), data, [[1] * 9, [1], []], generous).branch == Branch.GAUSSIAN


@pytest.mark.parametrize(
    "unlearner", [Gaussian(), Gaussian(joint=False), Adaptive(), Mixing(ratio=0)], ids=repr
)
@pytest.mark.parametrize(
    "budget", [Budget(epsilon=math.inf, delta=1e-5), Budget(epsilon=1, delta=1)], ids=repr
)
def test_a_budget_that_promises_nothing_serves_the_old_decision(unlearner: Unlearner, budget: Budget) -> None:
    """σ = 0: the decision of D, though D∖U prefers the other arm."""
    data, deleted = [[1] * 30 + [0] * 30, [1] * 25 + [0] * 35], [[1] * 20, []]
    result = release(unlearner, data, deleted, budget)
    np.testing.assert_array_equal(result.probabilities, [1, 0])
    assert result.guarantee.is_vacuous
    assert "promises nothing" in str(result.guarantee)
    np.testing.assert_array_equal(release(Rollback(), data, deleted, budget).probabilities, [0, 1])


@pytest.mark.parametrize("unlearner", [Gaussian(), Mixing(), Mixing(ratio=0.0)], ids=repr)
def test_delta_zero_is_refused_where_noise_is_needed(unlearner: Unlearner) -> None:
    data, deleted = [[1] * 30, [1] * 20], [[1] * 4, []]
    with pytest.raises(InvalidInputError, match="needs an infinite amount; choose delta > 0"):
        release(unlearner, data, deleted, Budget(epsilon=1, delta=0))


def test_delta_zero_is_accepted_where_nothing_is_noised() -> None:
    strict = Budget(epsilon=1, delta=0)
    for unlearner in (Mixing(), Gaussian()):
        nothing = release(unlearner, [[1] * 9, [0]], [[], []], strict)
        np.testing.assert_array_equal(nothing.probabilities, [1, 0])
    rolled_back = release(Mixing(), [[1] * 30, [1] * 20], [[], [1] * 4], strict)
    assert rolled_back.branch == Branch.NOT_SERVED


@pytest.mark.parametrize("unlearner", [Adaptive(), Adaptive.as_in_the_paper(), MultiSource()], ids=repr)
def test_delta_zero_makes_the_adaptive_algorithms_roll_back(unlearner: Unlearner) -> None:
    data, deleted = [[1] * 30 + [0] * 30, [1] * 25 + [0] * 35], [[1] * 20, []]
    result = release(unlearner, data, deleted, Budget(epsilon=1, delta=0))
    assert result.branch == Branch.STRICT_BUDGET
    np.testing.assert_array_equal(result.probabilities, [0, 1])
    assert (result.guarantee.epsilon, result.guarantee.delta) == (1, 0)


def test_an_infinite_noise_is_refused_by_the_reference_too() -> None:
    statistics = ArmStatistics.from_rewards({"a": [1] * 30, "b": [1] * 20})
    with pytest.raises(InvalidInputError, match="needs an infinite amount"):
        Gaussian().reference(LEARNER, statistics, Budget(epsilon=1, delta=0), shape=np.array([3, 0]))


def test_the_branch_says_why() -> None:
    """Every reason for a rollback, one example each."""
    loose, data = Budget(epsilon=30, delta=0.01), [[1] * 40 + [0] * 10, [1] * 20 + [0] * 20]
    many, few = [[1] * 20, []], [[], [1] * 5]
    assert release(Rollback(), data, many).branch == Branch.ROLLBACK
    assert release(Adaptive(), data, many, loose).branch == Branch.GAUSSIAN
    assert release(Adaptive(), data, few, loose).branch == Branch.NOT_SERVED
    assert release(Adaptive(threshold_scale=0), data, many, loose).branch == Branch.STRICT_BUDGET
    assert release(Mixing(), data, many, loose).branch == Branch.MIXING
    assert release(Mixing(ratio=0), data, many, loose).branch == Branch.GAUSSIAN
    assert release(Mixing(ratio=1), data, many, loose).branch == Branch.ROLLBACK
    assert release(Mixing(), data, few, loose).branch == Branch.NOT_SERVED
    paper, nearly_all = Gaussian(sensitivity="paper"), [1] * 40 + [0] * 7
    assert release(paper, data, [nearly_all, []], loose).branch == Branch.NO_SENSITIVITY
    assert release(paper, data, [nearly_all, [1]], loose).branch == Branch.GAUSSIAN_AND_ROLLBACK
