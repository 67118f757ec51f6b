"""The distribution model, against a sum over all count vectors and all rewards of a small log.

Estimates are compared within 5 standard errors: a false alarm in fewer than 6·10⁻⁷ of comparisons, about 30
of which are made, with fixed seeds.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from armnesia import LCB, Adaptive, Budget, Gaussian, ImitationRollback, Mixing, Rollback, Unlearner
from armnesia.simulation import (
    DistributionModel,
    Environment,
    Evaluation,
    OneArm,
    SeveralArms,
    case,
    draws,
    evaluate_all,
)
from tests.simulation.all_data_sets import AllDataSets

MEANS = [0.7, 0.45]
ENVIRONMENT = Environment.bernoulli(MEANS)
MODEL = DistributionModel(6, (0.6, 0.4))
REQUEST = OneArm(0, 2)
BUDGET = Budget.from_gamma(0.3, delta=1e-3)
METHODS: dict[str, Unlearner | None] = {
    "oracle": None,
    "rollback": Rollback(),
    "gaussian": Gaussian(),
    "adaptive": Adaptive(threshold_scale=60.0),
    "mixing": Mixing(ratio=0.5),
    "imitation": ImitationRollback(),
}


def count_vectors(n: int, policy: tuple[float, ...]) -> Iterator[tuple[list[int], float]]:
    """Every vector of counts with its multinomial probability."""
    for counts in product(range(n + 1), repeat=len(policy)):
        if sum(counts) == n:
            ways = math.factorial(n) / math.prod(math.factorial(c) for c in counts)
            yield list(counts), ways * math.prod(p**c for p, c in zip(policy, counts, strict=True))


def brute_force(name: str, model: DistributionModel, k: int) -> float:
    """Expected sub-optimality for requests of arm 0: all counts, all rewards, all choices of U."""
    learner = LCB(confidence=1 / model.n)
    total = 0.0
    for counts, weight in count_vectors(model.n, model.policy):
        deleted = [min(k, counts[0])] + [0] * (len(counts) - 1)
        if name == "imitation":
            left = [n - removed for n, removed in zip(counts, deleted, strict=True)]
            probabilities = np.zeros(len(counts))
            probabilities[left.index(max(left))] = 1.0
        else:
            probabilities = AllDataSets(MEANS, counts, deleted).released(METHODS[name], learner, BUDGET)
        total += weight * float(probabilities @ ENVIRONMENT.gaps)
    return total


slow = pytest.mark.slow  # the evaluations that most of the tests share; the last test is the quick one


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    return {name: brute_force(name, MODEL, 2) for name in METHODS}


@pytest.fixture(scope="module")
def given_the_counts() -> dict[str, Evaluation]:
    with pytest.MonkeyPatch.context() as patch:  # so few vectors would be added up
        patch.setattr(case, "likely_vectors", lambda *_: None)
        patch.setattr(case, "serves_most_frequent", lambda *_: False)
        patch.setattr(draws, "_FEWEST_VECTORS", 4)
        return evaluate_all(
            ENVIRONMENT, MODEL, REQUEST, METHODS, BUDGET, protocol="exact", datasets=608, seed=1
        )


@pytest.fixture(scope="module")
def sampled() -> dict[str, Evaluation]:
    return evaluate_all(
        ENVIRONMENT, MODEL, REQUEST, METHODS, BUDGET, protocol="sampled", datasets=60_000, seed=2
    )


@slow
@pytest.mark.parametrize("name", METHODS)
def test_both_protocols_find_the_truth(
    name: str,
    truth: dict[str, float],
    given_the_counts: dict[str, Evaluation],
    sampled: dict[str, Evaluation],
) -> None:
    for result in (given_the_counts[name], sampled[name]):
        assert result.standard_error > 0
        assert abs(result.suboptimality - truth[name]) < 5 * result.standard_error
        assert result.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


@slow
@pytest.mark.parametrize("name", ["rollback", "gaussian", "adaptive", "imitation"])
def test_another_request_would_be_seen(name: str, sampled: dict[str, Evaluation]) -> None:
    """The planted fault: the truth for three deleted records instead of two."""
    other = brute_force(name, MODEL, 3)
    assert abs(sampled[name].suboptimality - other) > 5 * sampled[name].standard_error


@slow
def test_the_protocols_say_what_they_are(
    given_the_counts: dict[str, Evaluation], sampled: dict[str, Evaluation]
) -> None:
    assert {result.protocol for result in given_the_counts.values()} == {"exact given the counts"}
    assert {result.datasets for result in given_the_counts.values()} == {608}
    assert {result.protocol for result in sampled.values()} == {"sampled"}


@slow
@pytest.mark.parametrize("name", ["oracle", "rollback", "gaussian", "adaptive", "mixing"])
def test_averaging_given_the_counts_has_the_smaller_variance(
    name: str, given_the_counts: dict[str, Evaluation], sampled: dict[str, Evaluation]
) -> None:
    """A conditional expectation varies less than what it is taken of, a data set for a data set."""
    conditional, whole = given_the_counts[name], sampled[name]
    assert conditional.standard_error**2 * conditional.datasets < whole.standard_error**2 * whole.datasets


@pytest.mark.parametrize("name", METHODS)
def test_few_count_vectors_are_added_up(name: str) -> None:
    found = evaluate_all(ENVIRONMENT, MODEL, REQUEST, {name: METHODS[name]}, BUDGET)[name]
    assert found.protocol == "exact"
    assert found.suboptimality == pytest.approx(brute_force(name, MODEL, 2), rel=1e-12)
    assert found.short_share == pytest.approx(0.4**6 + 6 * 0.6 * 0.4**5, rel=1e-12)


@slow
def test_how_often_the_request_is_short(
    given_the_counts: dict[str, Evaluation], sampled: dict[str, Evaluation]
) -> None:
    """P(Binomial(6, 0.6) < 2) by hand: 0.4⁶ + 6·0.6·0.4⁵."""
    short = 0.4**6 + 6 * 0.6 * 0.4**5
    for result in (given_the_counts["rollback"], sampled["rollback"]):
        assert abs(result.short_share - short) < 5 * math.sqrt(
            1.5 * short / result.datasets
        )  # weights up to 1.5


@pytest.mark.slow
def test_three_arms_and_a_request_of_two_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two protocols against each other at a size that cannot be listed."""
    monkeypatch.setattr(case, "likely_vectors", lambda *_: None)
    monkeypatch.setattr(draws, "_FEWEST_VECTORS", 13)
    environment = Environment.bernoulli([0.5, 0.45, 0.4])
    model = DistributionModel.with_coverage(120, n_actions=3, best=0, c_star=2.5)
    methods = {name: METHODS[name] for name in ("oracle", "rollback", "gaussian")}
    request = SeveralArms({0: 20, 1: 15})
    exact = evaluate_all(environment, model, request, methods, BUDGET, protocol="exact", datasets=200, seed=3)
    sampled = evaluate_all(
        environment, model, request, methods, BUDGET, protocol="sampled", datasets=4000, seed=4
    )
    for name in methods:
        error = math.hypot(exact[name].standard_error, sampled[name].standard_error)
        assert abs(exact[name].suboptimality - sampled[name].suboptimality) < 5 * error
