"""The imitation learner: the most frequent arm, whatever its rewards."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Imitation


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.data())
def test_the_most_frequent_arm_is_served_and_ties_go_to_the_first(
    served: list[int], data: st.DataObject
) -> None:
    rewards = [data.draw(st.floats(0, 1)) for _ in served]
    statistics = ArmStatistics.from_rewards(
        {arm: [r for a, r in zip(served, rewards, strict=True) if a == arm] for arm in range(4)}
    )
    decision = Imitation().decide(statistics)
    assert decision.action == max(range(4), key=served.count)  # max keeps the first of several
    assert decision.scores.tolist() == [served.count(arm) for arm in range(4)]


def test_scores_are_counts_on_any_reward_scale() -> None:
    statistics = ArmStatistics.from_rewards({"A": [1, 1], "B": [5, 5, 5]}, reward_range=(1, 5))
    assert Imitation().decide(statistics).scores.tolist() == [2, 3]
    assert Imitation().unit_scores(statistics).tolist() == [2, 3]


def test_binding_changes_nothing() -> None:
    learner = Imitation()
    assert learner.bind(ArmStatistics.from_rewards({"A": [1], "B": []})) is learner


def test_the_default_arm_is_served_without_data_only() -> None:
    learner = Imitation(default_action="B")
    nothing = ArmStatistics.empty(["A", "B"])
    assert (learner.decide(nothing).action, bool(learner.decide(nothing).no_data)) == ("B", True)
    something = nothing.add("A", 0.0)
    assert (learner.decide(something).action, bool(learner.decide(something).no_data)) == ("A", False)


def test_a_batch_is_decided_one_by_one() -> None:
    counts = np.array([[2, 3, 3], [0, 0, 0], [5, 1, 5]])
    batch = ArmStatistics(("A", "B", "C"), counts, np.zeros_like(counts))
    decision = Imitation().decide(batch)
    assert decision.action == ["B", "A", "A"]
    assert decision.no_data.tolist() == [False, True, False]
