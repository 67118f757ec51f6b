"""All unlearners side by side: the same releases as by hand, in order, with reasons where there are none."""

import numpy as np
import pytest

from armnesia import (
    LCB,
    UNLEARNERS,
    ArmStatistics,
    Budget,
    Comparison,
    DeletionRequest,
    Imitation,
    Level,
    Mixing,
    compare,
)
from armnesia.core.errors import InvalidInputError
from examples.lottery import Lottery

REWARDS = {"A": [4] * 60 + [1] * 40, "B": [4] * 55 + [1] * 45, "C": [1] * 9}
STATISTICS = ArmStatistics.from_rewards(REWARDS, (1, 4))
ONE_ARM = DeletionRequest.from_rewards({"A": [4] * 30, "B": [], "C": []}, (1, 4))
SEVERAL = DeletionRequest.from_rewards({"A": [4] * 10, "B": [1] * 5, "C": []}, (1, 4))
BUDGET = Budget(epsilon=1.0, delta=1e-5)


def by_name(found: list[Comparison]) -> dict[str, Comparison]:
    return {each.name: each for each in found}


def test_every_unlearner_has_its_row_with_its_own_release() -> None:
    learner = LCB().bind(STATISTICS)
    found = by_name(compare(learner, STATISTICS, ONE_ARM, BUDGET))
    assert set(found) == set(UNLEARNERS)
    for name, each in found.items():
        if each.refused:
            assert each.guarantee is None
            continue
        release = UNLEARNERS[name]().release(learner, STATISTICS, ONE_ARM, BUDGET)
        assert np.array_equal(each.probabilities, release.probabilities)  # type: ignore[arg-type]
        assert each.guarantee == release.guarantee


def test_a_variant_takes_the_place_of_its_kind() -> None:
    learner = LCB().bind(STATISTICS)
    rolled_back = Mixing(ratio=1.0)
    found = by_name(compare(learner, STATISTICS, ONE_ARM, BUDGET, variants=[rolled_back]))
    plain = by_name(compare(learner, STATISTICS, ONE_ARM, BUDGET))
    expected = rolled_back.release(learner, STATISTICS, ONE_ARM, BUDGET).probabilities
    assert np.array_equal(found["mixing"].probabilities, expected)  # type: ignore[arg-type]
    assert not np.array_equal(plain["mixing"].probabilities, expected)  # type: ignore[arg-type]
    assert set(found) == set(plain)
    assert found["tilt"].change == plain["tilt"].change


def test_change_and_loss_are_those_of_the_release() -> None:
    """By hand: posterior means (1 + S′)/(2 + N′) on [0, 1], three points of reward from end to end."""
    learner = LCB().bind(STATISTICS)
    assert learner.decide(STATISTICS).action == "A"
    posterior = [(1 + 30) / (2 + 70), (1 + 55) / (2 + 100), 1 / 11]
    for each in compare(learner, STATISTICS, ONE_ARM, BUDGET):
        if each.probabilities is None:
            continue
        expected = max(posterior) - float(each.probabilities @ np.array(posterior))
        assert each.expected_loss == pytest.approx(3 * expected, abs=1e-9)
        assert each.change == pytest.approx(1 - each.probabilities[0], abs=1e-15)


def test_the_strictest_level_comes_first_and_refusals_last() -> None:
    order = [Level.RETAINED, Level.REQUEST_SHAPE, Level.ORIGINAL_DECISION]
    found = compare(LCB().bind(STATISTICS), STATISTICS, SEVERAL, BUDGET)
    levels = [order.index(each.guarantee.level) for each in found if each.guarantee is not None]
    assert levels == sorted(levels)
    assert [bool(each.refused) for each in found] == sorted(bool(each.refused) for each in found)
    assert "several" in by_name(found)["mixing"].refused


def test_imitation_has_only_what_knows_no_shape() -> None:
    found = by_name(compare(Imitation(), STATISTICS, SEVERAL, BUDGET))
    served = {name for name, each in found.items() if not each.refused}
    assert {"rollback", "imitation_rollback"} <= served
    assert served.isdisjoint({"frozen_rollback", "tilt", "gaussian", "adaptive"})


def test_names_and_instances_are_compared_also_of_a_class_of_ones_own() -> None:
    learner = LCB().bind(STATISTICS)
    own = Lottery(keep=0.2)
    budget = Budget(epsilon=1.0, delta=0.5)
    found = compare(learner, STATISTICS, ONE_ARM, budget, unlearners=["rollback", own, Lottery(keep=0.4)])
    assert sorted(each.name for each in found) == ["lottery", "lottery", "rollback"]
    for each, unlearner in zip(
        sorted((each for each in found if each.name == "lottery"), key=lambda each: each.change),
        (Lottery(keep=0.4), own),
        strict=True,
    ):
        release = unlearner.release(learner, STATISTICS, ONE_ARM, budget)
        np.testing.assert_array_equal(each.probabilities, release.probabilities)
    (alone,) = compare(learner, STATISTICS, ONE_ARM, budget, unlearners=[own])
    assert alone.name == "lottery"


def test_an_unlearner_that_is_none_is_refused() -> None:
    learner = LCB().bind(STATISTICS)
    for wrong in ("raffle", Lottery):
        with pytest.raises(
            InvalidInputError, match="unlearners must be instances of Unlearner, or names: roll"
        ):
            compare(learner, STATISTICS, ONE_ARM, BUDGET, unlearners=[wrong])  # type: ignore[list-item]
