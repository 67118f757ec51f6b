"""Empirical-Bernstein LCB against plain fractions, its theorem, and what can be done with it."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import armnesia as am
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.vault.configuration import Configuration

UNIT = 10**9
CONFIDENCE = 0.01


def plain_score(rewards: list[int], m: int, confidence: float = CONFIDENCE) -> float:
    """Theorem 4 of Maurer and Pontil for one arm, from its rewards in units, by fractions."""
    n, log_term = len(rewards), math.log(2 * m / confidence)
    mean = Fraction(sum(rewards), n * UNIT)
    variance = sum((Fraction(u, UNIT) - mean) ** 2 for u in rewards) / (n - 1)
    return float(mean) - math.sqrt(2 * float(variance) * log_term / n) - 7 * log_term / (3 * (n - 1))


def test_scores_are_those_of_a_plain_computation() -> None:
    random = np.random.default_rng(1)
    units = [
        random.integers(0, UNIT + 1, 40).tolist(),
        (random.integers(0, 2, 300) * UNIT).tolist(),
        random.integers(UNIT // 2, UNIT // 2 + 50, 500).tolist(),  # a variance of 10⁻¹⁶
        [UNIT // 3] * 9,
        [0, UNIT],
    ]
    statistics = am.ArmStatistics.from_rewards({arm: np.array(u) / UNIT for arm, u in enumerate(units)})
    found = am.EmpiricalBernsteinLCB(confidence=CONFIDENCE).unit_scores(statistics)
    assert found.tolist() == pytest.approx([plain_score(each, 5) for each in units], rel=1e-13)


def test_one_record_is_scored_without_variance_and_none_as_everywhere() -> None:
    statistics = am.ArmStatistics.from_rewards({"A": [0.75], "B": []})
    log_term = math.log(2 * 2 / CONFIDENCE)
    found = am.EmpiricalBernsteinLCB(confidence=CONFIDENCE).unit_scores(statistics)
    assert found.tolist() == pytest.approx([0.75 - 7 * log_term / 3, -1.0], rel=1e-15)


def failure(n: int, mean: float, confidence: float, *, with_last_term: bool = True) -> float:
    """P(the bound of n Bernoulli rewards exceeds their mean), exactly."""
    ones = np.arange(n + 1)
    counts, sums = np.full((n + 1, 1), n), ones[:, None] * UNIT
    statistics = am.ArmStatistics((0,), counts, sums, products=np.zeros_like(sums))
    bounds = am.EmpiricalBernsteinLCB(confidence=confidence).unit_scores(statistics)[:, 0]
    if not with_last_term:
        bounds += 7 * math.log(2 / confidence) / (3 * max(n - 1, 1))
    return float(binom.pmf(ones, n, mean)[bounds > mean].sum())


@pytest.mark.parametrize("confidence", [1.0, 0.1, 1e-3])
def test_the_bound_fails_with_probability_tau_at_most(confidence: float) -> None:
    means = np.linspace(0.01, 0.999, 60)
    worst = max(failure(n, p, confidence) for n in (1, 2, 5, 30, 200) for p in means)
    assert worst <= confidence


def test_the_check_sees_that_the_last_term_is_needed() -> None:
    """The planted fault: ones alone have no variance, so without that term the bound is 1."""
    assert failure(5, 0.95, 0.1, with_last_term=False) > 0.7


def test_where_rewards_vary_little_it_is_far_above_hoeffding_s_bound() -> None:
    statistics = am.ArmStatistics.from_rewards({"A": [0.5, 0.51] * 1000, "B": [0, 1] * 1000})
    scores = am.EmpiricalBernsteinLCB(confidence=CONFIDENCE).unit_scores(statistics)
    hoeffding = am.LCB(confidence=CONFIDENCE).unit_scores(statistics)
    assert scores[0] > hoeffding[0] + 0.02
    assert scores[1] < hoeffding[1]


def test_rollback_of_a_person_is_retraining(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    rows = {
        "action": random.choice(["A", "B"], 4000).tolist(),
        "reward": random.beta(2, 3, 4000).tolist(),
        "user": random.integers(0, 10, 4000).tolist(),
    }
    file = tmp_path / "log.csv"
    lines = (f"{a},{r!r},{u}\n" for a, r, u in zip(*rows.values(), strict=True))
    file.write_text("action,reward,user\n" + "".join(lines))
    kept = [place for place, user in enumerate(rows["user"]) if user != 3]
    others = {name: [values[place] for place in kept] for name, values in rows.items()}
    budget = am.Budget(epsilon=0.0, delta=0.0)
    for log in (am.read_log(rows, actions=["A", "B"]), am.read_log(file, actions=["A", "B"])):
        statistics, request = log.statistics(), log.request(user=3)
        learner = am.EmpiricalBernsteinLCB().bind(statistics)
        left = statistics.without(request.records)
        again = am.read_log(others, actions=["A", "B"]).statistics()
        assert left == again
        assert learner.unit_scores(left).tobytes() == learner.unit_scores(again).tobytes()
        assert am.audit(am.Rollback(), learner, statistics, request, budget).delta == 0


def test_a_stream_keeps_the_second_moment_and_cannot_freeze_a_penalty() -> None:
    first = am.ArmStatistics.from_rewards({"A": [0.5, 0.6] * 50, "B": [0, 1] * 50})
    learner, budget = am.EmpiricalBernsteinLCB(confidence=0.1), am.Budget(epsilon=0.0, delta=0.0)
    stream = am.Stream(learner, first).add(am.ArmStatistics.from_rewards({"A": [0.25], "B": []}))
    request = am.DeletionRequest.from_rewards({"A": [0.5] * 3, "B": [1]})
    _, stream = stream.forget(am.Rollback(), request, budget)
    rewards = {"A": [0.5] * 47 + [0.6] * 50 + [0.25], "B": [0.0] * 50 + [1.0] * 49}
    assert stream.statistics == am.ArmStatistics.from_rewards(rewards)
    with pytest.raises(UnsupportedError, match=r"learner that scores by mean and count.*got 'bernstein_lcb'"):
        am.Stream(learner, first, "frozen")


def test_without_the_second_moment_it_is_refused() -> None:
    statistics = am.ArmStatistics(("A", "B"), np.array([2, 2]), np.array([UNIT, UNIT]))
    with pytest.raises(UnsupportedError, match=r"needs the squares of the rewards.*read_log.*kl_lcb"):
        am.EmpiricalBernsteinLCB(confidence=0.1).decide(statistics)
    with pytest.raises(InvalidInputError, match="got 'bernstein_lcb', which needs the squares of rewards"):
        Configuration(actions=("A", "B"), learner="bernstein_lcb")
