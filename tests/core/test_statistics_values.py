"""Statistics as values: the user's reward scale, equality, immutability, and what is refused."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from armnesia.core.errors import ArmnesiaError, ImpossibleDeletionError, InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT

RATINGS = ArmStatistics.from_rewards({"A": [4, 5, 3], "B": [1, 2], "C": []}, reward_range=(1, 5))


def test_means_and_gaps_are_on_the_scale_of_the_rewards() -> None:
    assert RATINGS.means[:2].tolist() == [4.0, 1.5]
    assert RATINGS.gaps[:2].tolist() == [0.0, 2.5]
    assert RATINGS.unit_means.tolist() == [0.75, 0.125, 0.0]
    assert RATINGS.total == 5
    assert RATINGS.n_actions == 3


def test_an_arm_without_records_has_no_mean_and_no_gap() -> None:
    assert np.isnan(RATINGS.means[2])
    assert np.isnan(RATINGS.gaps[2])
    nothing = ArmStatistics.empty(["A", "B"], (1, 5))
    assert np.isnan(nothing.means).all()
    assert np.isnan(nothing.gaps).all()


def test_an_empty_arm_is_never_the_best_one_even_where_all_rewards_are_negative() -> None:
    losses = ArmStatistics.from_rewards({"A": [-3], "B": [-1], "C": []}, reward_range=(-4, 0))
    assert losses.gaps[:2].tolist() == [2.0, 0.0]


def test_the_log_of_any_kind_gives_its_own_statistics() -> None:
    class SomeLog:
        def statistics(self) -> ArmStatistics:
            return RATINGS

    assert ArmStatistics.from_log(SomeLog()) is RATINGS


@pytest.mark.parametrize(
    ("held", "deleted", "message"),
    [
        pytest.param(
            [0.5], [0, 0], "'B' has count 1 and sum 500000000, .*; deleting count 2 and sum 0 ", id="count"
        ),
        pytest.param(
            [0.5, 0],
            [0.75],
            "'B' has count 2 and sum 500000000, .*; deleting count 1 and sum 750000000 ",
            id="sum too small",
        ),
        pytest.param(
            [1, 1],
            [0.25],
            "'B' has count 2 and sum 2000000000, .*; deleting count 1 and sum 250000000 ",
            id="sum too large",
        ),
    ],
)
def test_deleting_what_was_never_there_is_refused_by_name(
    held: list[float], deleted: list[float], message: str
) -> None:
    log = ArmStatistics.from_rewards({"A": [1, 0], "B": held})
    with pytest.raises(
        ImpossibleDeletionError, match=f"action {message}would remove records that it does not contain"
    ):
        log.without(ArmStatistics.from_rewards({"A": [1], "B": deleted}))


def test_one_impossible_data_set_refuses_the_whole_batch() -> None:
    batch = ArmStatistics(("A", "B"), np.array([[2, 2], [2, 0]]), np.array([[0, 0], [0, 0]]))
    with pytest.raises(ImpossibleDeletionError, match=r"action 'B' has count \(several data sets\)"):
        batch.without(ArmStatistics(("A", "B"), np.array([0, 1]), np.array([0, 0])))


def test_an_impossible_deletion_beyond_int64_is_refused_too() -> None:
    few = ArmStatistics(("A",), np.array([10]), np.array([10 * UNIT]))
    many = ArmStatistics(("A",), np.array([10**11]), np.array([10**20], dtype=object))
    with pytest.raises(ImpossibleDeletionError, match="deleting count 100000000000 and sum"):
        few.without(many)


@pytest.mark.parametrize("operation", ["merge", "without"])
def test_other_actions_or_reward_ranges_are_refused(operation: str) -> None:
    log = ArmStatistics.from_rewards({"A": [1], "B": [0]})
    act = getattr(log, operation)
    with pytest.raises(InvalidInputError, match=r"actions differ: 'A', 'B' here, 'B', 'A' given"):
        act(ArmStatistics.empty(["B", "A"]))
    with pytest.raises(InvalidInputError, match=r"reward_range differs: \(0.0, 1.0\) here, \(0.0, 2.0\)"):
        act(ArmStatistics.empty(["A", "B"], (0, 2)))


def test_index_of_names_the_actions_it_knows() -> None:
    statistics = ArmStatistics.empty(["A", ("B", 2), 3])
    assert [statistics.index_of(label) for label in ("A", ("B", 2), 3)] == [0, 1, 2]
    with pytest.raises(InvalidInputError, match=r"action 'Z' is not one of 'A', \('B', 2\), 3"):
        statistics.index_of("Z")
    with pytest.raises(InvalidInputError, match="action 'Z' is not one of"):
        statistics.add("Z", 1.0)


def test_values_never_change() -> None:
    counts, sums = np.array([3, 1]), np.array([5, 5])
    statistics = ArmStatistics(("A", "B"), counts, sums)
    counts[0] = sums[0] = 0  # the caller's arrays are the caller's
    assert (statistics.counts.tolist(), statistics.sums.tolist()) == ([3, 1], [5, 5])
    for array in (statistics.counts, statistics.sums):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(FrozenInstanceError):
        statistics.counts = counts  # type: ignore[misc]
    before = repr(statistics)
    statistics.add("A", 0.5)
    statistics.merge(statistics)
    statistics.without(statistics)
    assert repr(statistics) == before


def test_equality_and_hash_follow_the_content() -> None:
    parts = RATINGS.counts.copy(), RATINGS.sums.astype(object), (1, 5), RATINGS.products
    same = ArmStatistics(RATINGS.actions, *parts)
    assert same == RATINGS
    assert hash(same) == hash(RATINGS)
    others: list[object] = [
        ArmStatistics(("C", "B", "A"), RATINGS.counts, RATINGS.sums, (1, 5)),
        ArmStatistics(RATINGS.actions, RATINGS.counts, RATINGS.sums, (1, 6)),
        ArmStatistics(RATINGS.actions, RATINGS.counts + 1, RATINGS.sums, (1, 5)),
        replace(RATINGS, products=None),
        RATINGS.add("B", 1),
        ArmStatistics(RATINGS.actions, RATINGS.counts[None], RATINGS.sums[None], (1, 5)),
        "not statistics",
    ]
    assert [other == RATINGS for other in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("counts", "sums", "message"),
    [
        ([1.0, 2.0], [0, 0], "counts must be whole numbers.*float64"),
        ([True, False], [0, 0], "counts must be whole numbers.*bool"),
        ([1, 2, 3], [0, 0, 0], r"for each of the 2 actions; got int64 of shape \(3,\)"),
        (4, 0, r"got int64 of shape \(\)"),
        ([1, 2], [0.0, 0.5], "sums must be whole numbers of reward units; got float64"),
        ([1, 2], [True, False], "sums must be whole numbers of reward units; got bool"),
        ([1, 2], np.array([1, 0.5], dtype=object), "sums must be whole numbers of reward units"),
        ([1, 2], [0], r"sums must have the shape of counts, \(2,\); got \(1,\)"),
        ([1, 2], [0, 10**30], r"sums must lie between 0 and count"),
        ([1, -2], [0, 0], "statistics of action 'B' are impossible"),
        ([1, -(10**10)], [0, 0], "statistics of action 'B' are impossible"),  # −10¹⁹ units wrap in int64
        ([1, 2], [-1, 0], "statistics of action 'A' are impossible"),
        ([1, 2], [UNIT + 1, 0], "statistics of action 'A' are impossible"),
        ([0, 2], [1, 0], "statistics of action 'A' are impossible"),
        ([1, 10**10], np.array([0, 10**19 + 1], dtype=object), "statistics of action 'B' are impossible"),
    ],
)
def test_what_cannot_be_statistics_is_refused(counts: Any, sums: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ArmStatistics(("A", "B"), np.asarray(counts), np.asarray(sums))


def test_refusals_are_both_armnesia_errors_and_value_errors() -> None:
    assert issubclass(ImpossibleDeletionError, InvalidInputError)
    assert issubclass(InvalidInputError, ArmnesiaError)
    assert issubclass(InvalidInputError, ValueError)
