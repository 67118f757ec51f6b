"""Regression tests: copies, big integers, errors that were raised as tracebacks."""

import copy
import json
import pickle

import numpy as np
import pytest

from armnesia import LCB, ArmStatistics, Budget, Decision, Guarantee, hockey_stick, smallest_epsilon
from armnesia.core.actions import checked_actions
from armnesia.core.errors import ArmnesiaError, InvalidInputError
from armnesia.core.units import checked_reward_range, to_units


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_copies_are_equal_and_read_only(copied: object) -> None:
    statistics = ArmStatistics.from_rewards({"A": [1, 0.5], "B": []})
    other = copied(statistics)  # type: ignore[operator]
    assert other == statistics
    assert not other.counts.flags.writeable
    assert not other.sums.flags.writeable


def test_numpy_integers_in_object_arrays_do_not_overflow() -> None:
    big = ArmStatistics(("A",), np.array([10**10]), np.array([np.int64(9 * 10**18)], dtype=object))
    assert big.merge(big).sums.tolist() == [18 * 10**18]
    assert json.loads(json.dumps(big.to_dict()))["sums"] == [9 * 10**18]


def test_decisions_can_be_compared_and_hashed() -> None:
    statistics = ArmStatistics.from_rewards({"A": [1], "B": [0]})
    first, second = (LCB(confidence=0.5).decide(statistics) for _ in range(2))
    assert isinstance(first, Decision)
    assert first != second  # identity: two results of two calls
    assert len({first, second}) == 2


def test_rounding_of_sums_does_not_make_an_infinite_epsilon() -> None:
    spread = np.array([0.5017535083586557, 0.1583447529128556, 0.12389774916694181, 0.21600398956154693, 0])
    assert spread.sum() > 1  # by rounding alone
    assert smallest_epsilon(spread, np.array([0, 0, 0, 0, 1.0]), delta=1.0) == 0.0


def test_the_divergence_is_continuous_where_the_exponential_overflows() -> None:
    release, reference = np.array([0.5, 0.5]), np.array([1.0, 1e-306])
    for epsilon in (700.0, 701.0, 703.0):
        # 1e-306 · e^ε by logarithms in base ten
        expected = 0.5 - 10 ** (epsilon / np.log(10) - 306)
        assert hockey_stick(release, reference, epsilon) == pytest.approx(max(expected, 0.0), abs=1e-12)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Guarantee(1.0, 0.0, "x"),  # type: ignore[arg-type]
        lambda: Budget(epsilon="1", delta=0.1),  # type: ignore[arg-type]
        lambda: Budget(epsilon=1, delta=None),  # type: ignore[arg-type]
        lambda: to_units(["x"], (0, 1)),
        lambda: to_units(["0.5"], (0, 1)),
        lambda: ArmStatistics.empty(["A"]).add("A", 10**400),
        lambda: checked_reward_range((0, 10**400)),
        lambda: checked_reward_range("15"),  # type: ignore[arg-type]
        lambda: checked_reward_range((-1e308, 1e308)),
        lambda: checked_actions({"b", "a"}),
        lambda: checked_actions(["a", __import__("pandas").NA]),
        lambda: ArmStatistics.from_dict({**ArmStatistics.empty(["A", "B"]).to_dict(), "actions": "AB"}),
        lambda: ArmStatistics.from_dict({**ArmStatistics.empty(["A"]).to_dict(), "reward_range": [0, 1, 2]}),
        lambda: ArmStatistics.from_dict({**ArmStatistics.empty(["A"]).to_dict(), "reward_range": None}),
        lambda: ArmStatistics.from_dict({**ArmStatistics.empty(["A"]).to_dict(), "counts": [[1], [1, 2]]}),
        lambda: _batch(2).merge(_batch(3)),
        lambda: _batch(2).without(_batch(3)),
    ],
)
def test_bad_values_get_an_error_of_ours(refused: object) -> None:
    with pytest.raises(ArmnesiaError) as error:
        refused()  # type: ignore[operator]
    assert isinstance(error.value, InvalidInputError)


def _batch(size: int) -> ArmStatistics:
    return ArmStatistics(("A",), np.ones((size, 1), dtype=np.int64), np.zeros((size, 1), dtype=np.int64))
