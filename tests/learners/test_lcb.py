"""The LCB learner against a literal transcription of Algorithm 1."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB

Log = list[tuple[int, float]]


def algorithm_1(data: Log, m: int, tau: float) -> list[float]:
    """Algorithm 1 of the paper, line by line: μ̂(a) − b(a) for every arm."""
    lower_bounds = []
    for a in range(m):
        n_a = sum(1 for a_i, _ in data if a_i == a)
        if n_a == 0:
            mean, b = 0.0, 1.0
        else:
            mean = sum(r_i for a_i, r_i in data if a_i == a) / n_a
            b = math.sqrt(math.log(m / tau) / (2 * n_a))
        lower_bounds.append(mean - b)
    return lower_bounds


def counted(data: Log, m: int, reward_range: tuple[float, float] = (0, 1)) -> ArmStatistics:
    return ArmStatistics.from_rewards({a: [r for b, r in data if b == a] for a in range(m)}, reward_range)


# Thousandths are whole numbers of reward units, so that rounding plays no part in the comparison.
rewards = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, int]:
    m = draw(st.integers(1, 5))
    return draw(st.lists(st.tuples(st.integers(0, m - 1), rewards), min_size=1, max_size=40)), m


@given(logs(), st.floats(1e-9, 1))
def test_scores_and_decision_are_those_of_algorithm_1(log: tuple[Log, int], tau: float) -> None:
    data, m = log
    expected = algorithm_1(data, m, tau)
    decision = LCB(confidence=tau).decide(counted(data, m))
    assert decision.scores.tolist() == pytest.approx(expected, abs=1e-12)
    assert not decision.no_data
    # The served arm has the highest score; between scores closer than rounding either may be first.
    assert expected[decision.action] >= max(expected) - 1e-12


@given(logs())
def test_unbound_means_a_confidence_of_one_over_n(log: tuple[Log, int]) -> None:
    data, m = log
    learner = LCB().bind(counted(data, m))
    assert learner.confidence == 1 / len(data)
    assert learner.scores(counted(data, m)).tolist() == pytest.approx(
        algorithm_1(data, m, 1 / len(data)), abs=1e-12
    )


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(1, 3))
def test_exact_ties_go_to_the_first_arm(ones: Sequence[int], extra: int) -> None:
    """Equal counts make equal penalties, so the arm with most ones wins, and the first of several does."""
    size = 3 + extra
    data = [(arm, float(row < ones[arm])) for arm in range(4) for row in range(size)]
    assert LCB(confidence=0.1).decide(counted(data, 4)).action == list(ones).index(max(ones))


def test_an_arm_without_records_scores_minus_one_and_can_win() -> None:
    """τ = 10⁻⁴: one record has a penalty of √(ln(3·10⁴)/2) ≈ 2.27, so a reward below 1.27 loses to −1."""
    learner = LCB(confidence=1e-4)
    statistics = counted([(0, 1.0)], 3)
    assert learner.scores(statistics).tolist() == [pytest.approx(1 - math.sqrt(math.log(3e4) / 2)), -1, -1]
    assert learner.decide(statistics).action == 1
    enough = counted([(0, 1.0)] * 2, 3)  # two records: 1 − 1.6 = −0.6
    assert learner.decide(enough).action == 0


@pytest.mark.parametrize("reward_range", [(1.0, 5.0), (-10.0, 0.0)])
def test_scores_are_on_the_scale_of_the_rewards(reward_range: tuple[float, float]) -> None:
    low, high = reward_range
    data = [(0, 0.25), (0, 0.75), (1, 1.0)]
    scaled = [(arm, low + (high - low) * reward) for arm, reward in data]
    learner = LCB(confidence=0.5)
    statistics = counted(scaled, 3, reward_range)
    expected = [low + (high - low) * score for score in algorithm_1(data, 3, 0.5)]
    assert learner.scores(statistics).tolist() == pytest.approx(expected, abs=1e-9)
    assert learner.decide(statistics).scores.tolist() == pytest.approx(expected, abs=1e-9)
    assert learner.decide(statistics).index == learner.decide(counted(data, 3)).index


def test_a_given_confidence_is_kept_and_a_bound_one_does_not_move() -> None:
    statistics = counted([(0, 1.0)] * 8, 2)
    given_one = LCB(confidence=0.05)
    assert given_one.bind(statistics) is given_one
    bound = LCB(default_action=1).bind(statistics)
    assert (bound.confidence, bound.default_action) == (1 / 8, 1)
    fewer = statistics.without(counted([(0, 1.0)] * 4, 2))
    assert bound.bind(fewer).confidence == 1 / 8


def test_a_batch_can_be_bound_only_if_every_data_set_has_the_same_size() -> None:
    zeros = np.zeros((2, 2), dtype=np.int64)
    equal = ArmStatistics(("A", "B"), np.array([[3, 1], [2, 2]]), zeros)
    assert LCB().bind(equal).confidence == 1 / 4
    unequal = ArmStatistics(("A", "B"), np.array([[3, 1], [2, 1]]), zeros)
    message = r"the same N > 0; got N = \[3, 4\]; give confidence instead, or bind .* \(decisions\.pooled\)$"
    with pytest.raises(InvalidInputError, match=message):
        LCB().bind(unequal)
    with pytest.raises(InvalidInputError, match=r"got N = \[0\]"):
        LCB().bind(ArmStatistics.empty(["A", "B"]))


def test_without_a_confidence_nothing_is_scored() -> None:
    with pytest.raises(InvalidInputError, match=r"no confidence yet: give confidence=τ or use .bind"):
        LCB().decide(counted([(0, 1.0)], 2))


@pytest.mark.parametrize("confidence", [0.0, -0.1, 1.0001, math.nan, math.inf])
def test_confidence_is_a_probability_above_zero(confidence: float) -> None:
    with pytest.raises(InvalidInputError, match=r"confidence must lie in \(0, 1\]; got"):
        LCB(confidence=confidence)


@pytest.mark.parametrize(("default", "served"), [(None, "A"), ("C", "C")])
def test_with_no_data_at_all_the_default_arm_is_served_and_flagged(default: str | None, served: str) -> None:
    decision = LCB(confidence=0.1, default_action=default).decide(ArmStatistics.empty(["A", "B", "C"]))
    assert decision.action == served
    assert decision.no_data
    assert repr(decision) == f"Decision(action={served!r}, scores=[-1.0, -1.0, -1.0], no_data=True)"


def test_an_unknown_default_is_refused_even_while_there_is_data() -> None:
    with pytest.raises(InvalidInputError, match="action 'Z' is not one of 'A', 'B'"):
        LCB(confidence=0.1, default_action="Z").decide(ArmStatistics.from_rewards({"A": [1], "B": [0]}))


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), rewards), max_size=8), min_size=6, max_size=6))
def test_a_batch_is_decided_one_by_one(data_sets: list[Log]) -> None:
    members = [counted(data, 3) for data in data_sets]
    batch = ArmStatistics(
        members[0].actions,
        np.stack([member.counts for member in members]).reshape(2, 3, 3),
        np.stack([member.sums for member in members]).reshape(2, 3, 3),
    )
    learner = LCB(confidence=0.2, default_action=2)
    decision = learner.decide(batch)
    alone = [learner.decide(member) for member in members]
    assert decision.action == [one.action for one in alone]
    assert decision.scores.reshape(6, 3).tolist() == [one.scores.tolist() for one in alone]
    assert decision.no_data.ravel().tolist() == [not data for data in data_sets]
