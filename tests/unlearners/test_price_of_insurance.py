"""What docs/choosing.md says about the price of insurance, and what tilt says about a request."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from armnesia import LCB, UNLEARNERS, ArmStatistics, Budget, DeletionRequest, Tilt
from armnesia.learners import MeanAndCountLearner
from armnesia.theory import insured_from

CHOOSING = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| ([\d.]+) \| (.*?) \| (.*?) \| (.*?) \|$", CHOOSING, re.MULTILINE)
RETAINED = Tilt(assumed_share=0.95)


def clear_log(arms: int) -> tuple[ArmStatistics, DeletionRequest]:
    """The first of so many arms is clearly the best; one record of it is deleted."""
    rewards = {f"arm {i}": [1] * (1400 - 40 * i) + [0] * (600 + 40 * i) for i in range(arms)}
    one = {action: [0] if action == "arm 0" else [] for action in rewards}
    return ArmStatistics.from_rewards(rewards), DeletionRequest.from_rewards(one)


def change_and_remark(tilt: Tilt, arms: int, epsilon: float) -> tuple[float, str]:
    statistics, request = clear_log(arms)
    learner, budget = LCB().bind(statistics), Budget(epsilon=epsilon, delta=1e-5)
    released = tilt.release(learner, statistics, request, budget).probabilities
    return float(released[1:].sum()), tilt.remark(learner, statistics, request, budget)


@pytest.mark.parametrize("row", ROWS)
def test_the_table_is_what_tilt_releases_at_retained(row: tuple[str, ...]) -> None:
    arms, start = int(row[0]), float(row[1])
    assert start == math.ceil(100 * insured_from(contenders=arms, delta=1e-5)) / 100
    for epsilon, shown in zip((2.0, 3.0, 5.0), row[2:], strict=True):
        change, remark = change_and_remark(RETAINED, arms, epsilon)
        insured = 0 if shown == "not insured" else arms
        assert remark == f"Insured: {insured} of {arms} contenders"
        assert (f"{change:.2g}" if insured else "not insured") == shown
        assert change == pytest.approx(
            (arms - 1) * math.exp(-epsilon) / (1 + math.exp(epsilon)) if insured else 0.0, rel=1e-2
        )


def test_the_table_has_four_rows() -> None:
    assert [int(row[0]) for row in ROWS] == [2, 3, 5, 10]


def test_a_small_request_costs_nothing_at_request_shape() -> None:
    assert change_and_remark(Tilt(), 5, 3.0) == (0.0, "Insured: 1 of 1 contender")


def test_the_example_of_an_experiment() -> None:
    statistics = ArmStatistics.from_rewards({"A": [1] * 20034 + [0] * 24666, "B": [1] * 20119 + [0] * 25370})
    learner, one = LCB().bind(statistics), DeletionRequest.from_rewards({"A": [1], "B": []})
    changes = {
        epsilon: float(
            RETAINED.release(learner, statistics, one, Budget(epsilon=epsilon, delta=1e-5)).probabilities[1]
        )
        for epsilon in (2.0, 3.0)
    }
    assert f"probability {changes[3.0]:.2g} at ε = 3, and {changes[2.0]:.2g} at ε = 2" in CHOOSING
    at_least_once = 1 - (1 - changes[3.0]) ** 300
    often = "after 300 such requests at ε = 3, the other arm has been served at least once with probability"
    assert f"{often} {at_least_once:.2g}" in CHOOSING
    # Where those who leave are like the others, the score falls by the penalty alone.
    share = next(
        percent
        for percent in range(1, 100)
        if learner.decide(_without_alike(statistics, percent)).action == "B"
    )
    assert f"when {share} % of the arm have left" in CHOOSING


def _without_alike(statistics: ArmStatistics, percent: int) -> ArmStatistics:
    ones, zeros = (round(number * percent / 100) for number in (20034, 24666))
    return statistics.without(DeletionRequest.from_rewards({"A": [1] * ones + [0] * zeros, "B": []}))


def test_no_request_moves_a_score_further_than_the_guide_says() -> None:
    """The two bounds of "Is there anything to lose?", on all requests of a small arm."""
    ones, zeros = 13, 9
    statistics = ArmStatistics.from_rewards({"A": [1] * ones + [0] * zeros, "B": [1, 0]})
    learner = LCB(confidence=0.1)
    score, mean = float(learner.decide(statistics).scores[0]), ones / (ones + zeros)
    lowered, raised = [], []
    for left_ones in range(ones + 1):
        for left_zeros in range(zeros + 1):
            left = left_ones + left_zeros
            if left == 0:
                continue
            request = DeletionRequest.from_rewards(
                {"A": [1] * (ones - left_ones) + [0] * (zeros - left_zeros), "B": []}
            )
            moved = float(learner.decide(statistics.without(request)).scores[0]) - score
            s = 1 - left / (ones + zeros)
            lowered.append(-moved - ((1 - mean) * s / (1 - s) + (mean - score) * (1 / math.sqrt(1 - s) - 1)))
            raised.append(moved - mean * s / (1 - s))
    assert max(lowered) == pytest.approx(0, abs=1e-9)  # attained, by rewards of 1 only
    assert max(raised) <= 1e-9


@pytest.mark.parametrize("name", UNLEARNERS)
def test_every_unlearner_describes_itself(name: str) -> None:
    unlearner = UNLEARNERS[name]()
    assert re.fullmatch(rf"{name}( \(\w+=\S+(, \w+=\S+)*\))?", unlearner.described)
    assert unlearner.label == name


def test_a_predictive_of_your_own_is_described_by_its_name() -> None:
    def hopeful(learner: MeanAndCountLearner, retained: ArmStatistics, shape: object) -> object:
        return np.ones(retained.counts.shape)

    assert Tilt(predictive=hopeful).described == "tilt (predictive=hopeful, insurance=0.02)"  # type: ignore[arg-type]


def test_nothing_is_said_about_an_empty_log_and_of_a_batch_how_many_are_insured() -> None:
    statistics, request = clear_log(2)
    learner, budget = LCB().bind(statistics), Budget(epsilon=3.0, delta=0.0)
    everything = DeletionRequest(statistics, binary=True)
    assert Tilt().remark(learner, statistics, everything, budget) == ""
    batch = ArmStatistics(
        statistics.actions, np.stack([statistics.counts] * 2), np.stack([statistics.sums] * 2)
    )
    assert Tilt().remark(learner, batch, request, budget) == "Insured: all contenders in 2 of 2 decisions"
