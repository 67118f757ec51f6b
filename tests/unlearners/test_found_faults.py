"""Regression tests."""

import numpy as np
import pytest

from armnesia import (
    LCB,
    ArmStatistics,
    Budget,
    DeletionRequest,
    Gaussian,
    ImitationRollback,
    Mixing,
)
from armnesia.core.errors import ImpossibleDeletionError, InvalidInputError, UnsupportedError
from armnesia.unlearners.noisy_argmax import noisy_argmax
from tests.quick import quick_only

BUDGET = Budget(epsilon=1.0, delta=1e-5)
STATISTICS = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
REQUEST = DeletionRequest.from_rewards({"A": [1] * 6 + [0] * 4, "B": []})


@pytest.mark.parametrize("number", quick_only([4, 50], [4, 8, 20, 50, 200, 1000]))
def test_many_equal_noised_arms_share_the_chance_equally(number: int) -> None:
    """The maximum of many noises is sharp; by symmetry each of them wins with probability 1/number."""
    chances = noisy_argmax(np.full(number, 0.3), np.full(number, 0.01))
    assert np.abs(chances - 1 / number).max() < 1e-14
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("rolled_back", [2.5, True, -1, np.int64(-1), "3"])
def test_a_strange_number_to_roll_back_is_refused(rolled_back: object) -> None:
    with pytest.raises(InvalidInputError, match="rolled_back must be a whole number"):
        Mixing(rolled_back=rolled_back)  # type: ignore[arg-type]


def test_numpy_integers_are_whole_numbers_to_roll_back() -> None:
    learner = LCB().bind(STATISTICS)
    as_numpy = Mixing(rolled_back=np.int64(4)).release(learner, STATISTICS, REQUEST, BUDGET)  # type: ignore[arg-type]
    as_python = Mixing(rolled_back=4).release(learner, STATISTICS, REQUEST, BUDGET)
    assert np.array_equal(as_numpy.probabilities, as_python.probabilities)


@pytest.mark.parametrize("percent", range(101))
def test_a_ratio_in_per_cent_of_a_hundred_records_is_that_many(percent: int) -> None:
    assert Mixing(ratio=percent / 100).rolled_back_first(np.array([100, 0])).tolist() == [percent, 0]


def test_mixing_of_many_records_is_a_probability_vector() -> None:
    """The weights of 10⁵ possible choices carry rounding of their own."""
    n = 200_000
    statistics = ArmStatistics(("A", "B"), np.array([n, n]), np.array([n // 2, n // 2 - 10]) * 10**9)
    deleted = ArmStatistics(("A", "B"), np.array([n // 2, 0]), np.array([n // 4, 0]) * 10**9)
    p = (
        Mixing()
        .release(LCB().bind(statistics), statistics, DeletionRequest(deleted, True), BUDGET)
        .probabilities
    )
    assert p.sum() == pytest.approx(1.0, abs=1e-14)
    assert p.max() <= 1.0


def test_a_part_that_is_larger_than_the_request_is_refused_before_anything_is_computed() -> None:
    part = DeletionRequest.from_rewards({"A": [1] * 12, "B": []})
    small = ArmStatistics.from_rewards({"A": [1] * 10, "B": [0]})
    request = DeletionRequest.from_rewards({"A": [1] * 3, "B": []})
    with pytest.raises(ImpossibleDeletionError):
        Mixing(rolled_back=part, sensitivity="paper").release(LCB().bind(small), small, request, BUDGET)


def test_an_empty_request_needs_no_noise_even_at_delta_0() -> None:
    nothing = DeletionRequest(ArmStatistics.empty(["A", "B"]))
    release = Gaussian().release(LCB().bind(STATISTICS), STATISTICS, nothing, Budget(epsilon=1, delta=0))
    assert release.probabilities.tolist() == [1.0, 0.0]


def test_the_reference_of_imitation_rollback_refuses_other_learners_too() -> None:
    with pytest.raises(UnsupportedError, match="imitation"):
        ImitationRollback().reference(LCB(confidence=0.1), STATISTICS, BUDGET)
