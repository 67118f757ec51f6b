"""What every learner must do. The registry is read: a new entry is tested here."""

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from armnesia import (
    KLLCB,
    LCB,
    LEARNERS,
    UCB,
    ArmStatistics,
    EmpiricalBernsteinLCB,
    Greedy,
    Imitation,
    Learner,
)
from armnesia.core.parameters import build, parameters_of
from armnesia.learners import CountsOnlyLearner, MeanAndCountLearner, PenaltyLearner
from armnesia.unlearners.base import decision_distribution
from tests.learners.bound_learners import bound_learner

UNIT = 10**9  # the package holds rewards in 10⁻⁹ of their range
BY_KIND = {
    kind: [name for name, learner in LEARNERS.items() if issubclass(learner, kind)]
    for kind in (Learner, CountsOnlyLearner, MeanAndCountLearner, PenaltyLearner)
}

properties = settings(max_examples=25)
each_learner = pytest.mark.parametrize("name", LEARNERS)
each_by_counts_alone = pytest.mark.parametrize("name", BY_KIND[CountsOnlyLearner])
each_by_mean_and_count = pytest.mark.parametrize("name", BY_KIND[MeanAndCountLearner])
each_with_a_penalty = pytest.mark.parametrize("name", BY_KIND[PenaltyLearner])

Arms = list[list[int]]
"""The rewards of each arm in eighths: exact in floats and in units."""
arms_of_any_kind: st.SearchStrategy[Arms] = st.lists(
    st.lists(st.integers(0, 8), max_size=12), min_size=1, max_size=5
)


def statistics_of(arms: Arms, low: float = 0.0, high: float = 1.0) -> ArmStatistics:
    rewards = {arm: [low + (high - low) * r / 8 for r in values] for arm, values in enumerate(arms)}
    return ArmStatistics.from_rewards(rewards, (low, high))


def test_the_learners_of_the_package_are_registered() -> None:
    kinds = (LCB, KLLCB, EmpiricalBernsteinLCB, Greedy, UCB, Imitation)
    assert {kind.name: kind for kind in kinds}.items() <= LEARNERS.items()
    assert BY_KIND[CountsOnlyLearner][:1] == ["imitation"]
    assert BY_KIND[MeanAndCountLearner][:4] == ["lcb", "kl_lcb", "greedy", "ucb"]
    assert BY_KIND[PenaltyLearner][:3] == ["lcb", "greedy", "ucb"]


@each_learner
def test_it_is_made_from_its_declared_parameters(name: str) -> None:
    kind = LEARNERS[name]
    assert kind.name == name
    defaults = {parameter.name: parameter.default for parameter in parameters_of(kind)}
    assert "default_action" in defaults
    assert build(kind, {}) == build(kind, defaults) == kind()


@each_learner
@properties
@given(arms=arms_of_any_kind)
def test_the_arm_is_the_first_with_the_highest_score_shown(name: str, arms: Arms) -> None:
    statistics, learner = statistics_of(arms, 2.0, 6.0), bound_learner(name)
    decision = learner.decide(statistics)
    scores = decision.scores.tolist()
    first = scores.index(max(scores)) if any(arms) else 0
    assert decision.action == first
    assert decision_distribution(learner, statistics).tolist() == [
        float(arm == first) for arm in range(len(arms))
    ]


@each_learner
def test_it_is_a_value(name: str) -> None:
    learner = bound_learner(name)
    assert pickle.loads(pickle.dumps(learner)) == learner
    assert hash(bound_learner(name)) == hash(learner)
    assert learner.unfrozen is learner
    assert learner != bound_learner(name, default_action="B")


@each_learner
def test_it_supports_exactly_the_kinds_it_is_of(name: str) -> None:
    learner = bound_learner(name)
    assert {kind for kind in BY_KIND if learner.supports(kind)} == {
        kind for kind, names in BY_KIND.items() if name in names
    }


@each_learner
def test_once_bound_it_stays(name: str) -> None:
    first, second = (ArmStatistics.from_rewards({"A": [1] * n, "B": [0]}) for n in (5, 9))
    bound = LEARNERS[name]().bind(first)
    bound.check_bound()
    assert bound.bind(second) == bound


@each_learner
def test_without_records_the_default_is_served(name: str) -> None:
    nothing = ArmStatistics.empty(["A", "B"])
    assert bound_learner(name).decide(nothing).action == "A"
    decision = bound_learner(name, default_action="B").decide(nothing)
    assert (decision.action, bool(decision.no_data)) == ("B", True)
    assert not bound_learner(name).decide(nothing.add("B", 1.0)).no_data


@each_learner
@properties
@given(arms_of_any_kind)
def test_the_first_of_the_highest_scores_is_served(name: str, arms: Arms) -> None:
    assume(any(arms))
    learner, statistics = bound_learner(name), statistics_of(arms)
    scores = learner.unit_scores(statistics).tolist()
    assert learner.decide(statistics).index == scores.index(max(scores))


@each_learner
@properties
@given(arms_of_any_kind, st.data())
def test_renaming_the_arms_renames_the_scores(name: str, arms: Arms, data: st.DataObject) -> None:
    learner, order = bound_learner(name), data.draw(st.permutations(range(len(arms))))
    plain = learner.unit_scores(statistics_of(arms))
    renamed = learner.unit_scores(statistics_of([arms[arm] for arm in order]))
    np.testing.assert_array_equal(renamed, plain[order])


@each_learner
@properties
@given(arms_of_any_kind)
def test_the_scale_of_the_rewards_does_not_matter(name: str, arms: Arms) -> None:
    learner, scaled = bound_learner(name), statistics_of(arms, 1.0, 5.0)
    plain = statistics_of(arms)
    np.testing.assert_array_equal(learner.unit_scores(scaled), learner.unit_scores(plain))
    assert learner.decide(scaled).index == learner.decide(plain).index


@each_learner
@properties
@given(st.lists(arms_of_any_kind, min_size=2, max_size=4))
def test_a_batch_is_its_data_sets_one_by_one(name: str, data_sets: list[Arms]) -> None:
    m = max(map(len, data_sets))
    rows = [statistics_of(arms + [[]] * (m - len(arms))) for arms in data_sets]
    parts = [(row.counts, row.sums, row.products) for row in rows]
    counts, sums, products = (np.stack(part) for part in zip(*parts, strict=True))
    batch = ArmStatistics(rows[0].actions, counts, sums, products=products)
    decision = bound_learner(name).decide(batch)
    alone = [bound_learner(name).decide(row) for row in rows]
    np.testing.assert_array_equal(decision.scores, [one.scores for one in alone])
    np.testing.assert_array_equal(decision.index, [one.index for one in alone])
    np.testing.assert_array_equal(decision.no_data, [one.no_data for one in alone])


@each_by_counts_alone
@properties
@given(arms_of_any_kind, st.randoms(use_true_random=False))
def test_by_counts_alone_other_rewards_change_nothing(name: str, arms: Arms, random: Any) -> None:
    others = [[random.randint(0, 8) for _ in arm] for arm in arms]
    learner = bound_learner(name)
    assert learner.decide(statistics_of(arms)).index == learner.decide(statistics_of(others)).index


@each_by_mean_and_count
@properties
@given(st.integers(1, 300), st.integers(1, 6))
def test_by_mean_and_count_a_score_does_not_fall_as_the_mean_rises(name: str, count: int, m: int) -> None:
    learner = bound_learner(name)
    assert isinstance(learner, MeanAndCountLearner)
    means = np.linspace(0, 1, 101)[:, None] * np.ones(m)
    assert (np.diff(learner.lower_bounds(means, np.full(m, count), m), axis=0) >= -1e-15).all()


@each_by_mean_and_count
@pytest.mark.parametrize("mean", [0.0, 0.01, 0.5, 1.0])
def test_by_mean_and_count_a_score_moves_with_the_count_as_it_says(name: str, mean: float) -> None:
    learner = bound_learner(name)
    assert isinstance(learner, MeanAndCountLearner)
    scores = learner.lower_bounds(np.full((2000, 3), mean), np.arange(1, 2001)[:, None], 3)
    rises = np.diff(scores, axis=0) * (-1 if learner.falls_with_count else 1)
    assert (rises >= -max(learner.score_rounding, 1e-15)).all()


@each_by_mean_and_count
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 100))
def test_by_mean_and_count_a_score_falls_and_then_rises_if_it_says_so(
    name: str, zeros: int, ones: int, frozen: int
) -> None:
    """As zeros are added to an arm: after the first rise there is no fall."""
    plain = bound_learner(name)
    assert isinstance(plain, MeanAndCountLearner)
    if not plain.score_falls_then_rises:
        return  # it says nothing, and nothing is concluded from it
    count = max(zeros + ones, 1)
    counts = count + np.arange(3000)[:, None]
    learner = plain.with_frozen_penalty([frozen])
    steps = np.diff(learner.lower_bounds(ones / counts, counts, 1)[:, 0])
    first_rise = int(np.argmax(steps > learner.score_rounding + 1e-15)) if (steps > 1e-15).any() else 2999
    assert (steps[first_rise:] >= -learner.score_rounding - 1e-15).all()


@each_by_mean_and_count
@properties
@given(arms_of_any_kind, st.data())
def test_by_mean_and_count_scores_are_the_lower_bounds(name: str, arms: Arms, data: st.DataObject) -> None:
    """−1 without records; with a frozen penalty, the bound at the count with the deleted records."""
    learner, statistics, m = bound_learner(name), statistics_of(arms), len(arms)
    assert isinstance(learner, MeanAndCountLearner)
    deleted = np.array(data.draw(st.lists(st.integers(0, 40), min_size=m, max_size=m)))
    for extra, made in ((0, learner), (deleted, learner.with_frozen_penalty(deleted))):
        counts = np.maximum(statistics.counts, 1) + extra
        bounds = learner.lower_bounds(statistics.unit_means, counts, m)
        expected = np.where(statistics.counts > 0, bounds, -1.0)
        np.testing.assert_array_equal(made.unit_scores(statistics), expected)


@each_with_a_penalty
@pytest.mark.parametrize(("count", "frozen"), [*product((1, 2, 5), (0, 3)), (7, 100)])
def test_the_sensitivity_is_the_largest_change_of_a_score(name: str, count: int, frozen: int) -> None:
    """Zeros and ones are the extremes of every reward: trying them all finds the exact maximum."""
    plain = bound_learner(name)
    learner = plain.with_frozen_penalty([frozen, 0])
    assert isinstance(learner, PenaltyLearner)

    def score(records: int, ones: int) -> float:
        statistics = ArmStatistics((0, 1), np.array([records, 1]), np.array([ones, 0]) * UNIT)
        return float(learner.unit_scores(statistics)[0])

    for deleted in range(1, count + 1):
        changes = [
            abs(score(count, ones) - score(count - deleted, ones - deleted_ones))
            for ones in range(count + 1)
            for deleted_ones in range(max(0, deleted - (count - ones)), min(ones, deleted) + 1)
        ]
        claimed = learner.sensitivity([count, 1], [deleted, 0], n_actions=2)
        assert claimed.tolist() == pytest.approx([max(changes), 0.0], abs=1e-12)
        holds = bool(learner.paper_sensitivity_holds([count, 1], [deleted, 0], n_actions=2)[0])
        assert not holds or max(changes) <= 1.5 * deleted / count + 1e-12


@each_with_a_penalty
def test_the_penalty_does_not_rise_with_the_records_nor_a_bonus(name: str) -> None:
    learner = bound_learner(name)
    assert isinstance(learner, PenaltyLearner)
    rises = np.diff(learner.penalty(np.arange(1, 2000), n_actions=3))
    assert (rises * (-1 if learner.falls_with_count else 1) <= 0).all()
