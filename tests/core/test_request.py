"""Deletion requests: their properties, and what is refused."""

from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from armnesia.core.errors import ImpossibleDeletionError, InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT


def test_a_request_counts_the_records_to_forget_of_every_arm() -> None:
    request = DeletionRequest.from_rewards({"A": [5, 1], "B": [], "C": [2]}, reward_range=(1, 5))
    assert request.actions == ("A", "B", "C")
    assert request.counts.tolist() == [2, 0, 1]
    assert request.sums.tolist() == [UNIT, 0, UNIT // 4]
    assert request.reward_range == (1.0, 5.0)
    assert request.touched.tolist() == [True, False, True]
    assert request.n_sources == 2
    assert not request.is_empty


def test_an_empty_request_touches_nothing_and_deletes_nothing() -> None:
    request = DeletionRequest.from_rewards({"A": [], "B": []})
    log = ArmStatistics.from_rewards({"A": [1], "B": [0.5]})
    assert request.is_empty
    assert request.n_sources == 0
    assert log.without(request) == log


def test_what_is_left_is_that_of_the_statistics_asked_about() -> None:
    request = DeletionRequest.from_rewards({"A": [1], "B": []})
    logs = [ArmStatistics.from_rewards({"A": [1] * number, "B": [0]}) for number in (1, 2, 3)]
    for log in (*logs, *logs, logs[0], logs[0]):
        assert request.taken_from(log) == log.without(request.records)
    with pytest.raises(ImpossibleDeletionError, match="would remove records that it does not contain"):
        request.taken_from(ArmStatistics.from_rewards({"A": [], "B": [0]}))


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0]), st.booleans()), max_size=12))
def test_deleting_a_request_leaves_what_was_not_requested(rows: list[tuple[int, float, bool]]) -> None:
    def rewards_of(chosen: tuple[bool, ...]) -> dict[Hashable, ArrayLike]:
        return {arm: [r for a, r, requested in rows if a == arm and requested in chosen] for arm in range(3)}

    log = ArmStatistics.from_rewards(rewards_of((False, True)))
    request = DeletionRequest.from_rewards(rewards_of((True,)))
    assert log.without(request) == ArmStatistics.from_rewards(rewards_of((False,)))
    assert log.without(request).merge(request) == log
    assert request.n_sources == len({arm for arm, _, requested in rows if requested})


@pytest.mark.parametrize(
    ("rewards", "reward_range", "binary"),
    [
        ([0, 1, 1], (0, 1), True),
        ([], (0, 1), True),  # nothing in it that is not an end of the range
        ([1, 5], (1, 5), True),
        ([1, 3, 5], (1, 5), False),
        ([0.5, 0.5], (0, 1), False),  # the sum is whole, the rewards are not
        ([1 - 1e-12], (0, 1), True),  # held as the highest unit, and what is held is what is deleted
        ([1 - 1e-8], (0, 1), False),
    ],
)
def test_a_request_is_binary_if_every_reward_is_an_end_of_the_range(
    rewards: list[float], reward_range: tuple[float, float], binary: bool
) -> None:
    request = DeletionRequest.from_rewards({"A": rewards, "B": []}, reward_range)
    assert request.binary is binary


def test_sums_that_are_not_whole_cannot_be_called_binary() -> None:
    fractional = ArmStatistics.from_rewards({"A": [0.5], "B": [1]})
    assert DeletionRequest(fractional).binary is False
    with pytest.raises(InvalidInputError, match="binary must be False: the sums are not whole numbers"):
        DeletionRequest(fractional, binary=True)


def test_sums_beyond_int64_are_checked_too() -> None:
    count = 10**10
    whole = ArmStatistics(("A",), np.array([count]), np.array([count * UNIT], dtype=object))
    fractional = ArmStatistics(("A",), np.array([count]), np.array([count * UNIT - 1], dtype=object))
    assert DeletionRequest(whole, binary=True).binary
    with pytest.raises(InvalidInputError, match="binary must be False"):
        DeletionRequest(fractional, binary=True)


def test_a_batch_of_requests_answers_for_each_data_set() -> None:
    records = ArmStatistics(("A", "B"), np.array([[2, 0], [0, 0], [1, 3]]), np.zeros((3, 2), dtype=np.int64))
    request = DeletionRequest(records, binary=True)
    assert request.n_sources.tolist() == [1, 0, 2]
    assert request.is_empty.tolist() == [False, True, False]
    assert request.touched.tolist() == [[True, False], [False, False], [True, True]]


def test_requests_are_values() -> None:
    one = DeletionRequest.from_rewards({"A": [1, 0], "B": []})
    same = DeletionRequest.from_rewards({"A": [0, 1], "B": []})
    assert one == same
    assert hash(one) == hash(same)
    assert one != DeletionRequest(one.records)  # not known to be binary: not the same request
    with pytest.raises(InvalidInputError, match="actions differ"):
        ArmStatistics.empty(["A", "C"]).without(one)
