"""A learner by the second moment, simulated: against sums over all outcomes, and against plain data sets."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from armnesia import Budget, EmpiricalBernsteinLCB, Rollback
from armnesia.core.units import UNIT
from armnesia.simulation import DistributionModel, Environment, FixedSample, OneArm, draw_data_sets, evaluate
from armnesia.simulation.requests import Choice
from tests.simulation.all_data_sets import AllDataSets

BUDGET = Budget(epsilon=0.0, delta=0.0)
TAU = 0.1


def test_binary_rewards_agree_with_the_sum_over_all_outcomes() -> None:
    """Within five standard errors: a false alarm of 6·10⁻⁷ for each of two."""
    means, counts, deleted = [0.7, 0.3], [5, 5], [1, 0]
    environment, model = Environment.bernoulli(means), FixedSample((5, 5))
    every = AllDataSets(means, counts, deleted)
    learner = EmpiricalBernsteinLCB(confidence=TAU)
    for unlearner in (Rollback(), None):
        found = evaluate(
            environment, model, OneArm(0, 1), unlearner, BUDGET, learner="bernstein_lcb", confidence=TAU,
            datasets=40_000, seed=1,
        )  # fmt: skip
        exact = float(every.released(unlearner, learner, BUDGET) @ environment.gaps)
        assert found.protocol == "sampled"
        assert 0 < found.standard_error < 0.02 * exact
        assert abs(found.suboptimality - exact) < 5 * found.standard_error


def plain_decisions(rewards: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    """The served arm in each data set (the rows), with variances as numpy computes them."""
    log_term = math.log(2 * len(rewards) / TAU)
    scores = [
        each.mean(axis=1)
        - np.sqrt(2 * each.var(axis=1, ddof=1) * log_term / each.shape[1])
        - 7 * log_term / (3 * (each.shape[1] - 1))
        for each in rewards
    ]
    return np.asarray(np.argmax(scores, axis=0), dtype=np.int64)


@pytest.mark.slow
def test_rewards_of_any_kind_agree_with_plain_data_sets() -> None:
    """Within five standard errors of the difference: a false alarm of 6·10⁻⁷."""
    shapes, size, k = [(8.0, 8.0), (0.5, 0.4)], 20_000, 20
    environment = Environment.beta(shapes)
    found = evaluate(
        environment, FixedSample((60, 60)), OneArm(0, k), Rollback(), BUDGET, learner="bernstein_lcb",
        confidence=TAU, datasets=size, seed=2,
    )  # fmt: skip
    rng = np.random.default_rng(3)
    served = plain_decisions([rng.beta(*shapes[0], (size, 60 - k)), rng.beta(*shapes[1], (size, 60))])
    losses = environment.gaps[served]
    error = math.hypot(found.standard_error, float(losses.std()) / math.sqrt(size))
    assert 0.05 < losses.mean() / environment.gaps.max() < 0.8
    assert abs(found.suboptimality - losses.mean()) < 5 * error


def test_drawn_requests_are_part_of_their_data_sets_in_every_choice() -> None:
    """What is left after a deletion is the moments of records that exist: `without` checks them."""
    rng = np.random.default_rng(4)
    choices: tuple[Choice, ...] = ("random", "lowest", "highest")
    for environment in (Environment.uniform([(0, 1), (0.2, 0.3)]), Environment.bernoulli([0.4, 0.5])):
        for choice in choices:
            model = DistributionModel(60, (0.5, 0.5))
            drawn = draw_data_sets(environment, model, OneArm(0, 9, choice), rng, 300)
            left = drawn.request.taken_from(drawn.statistics)
            assert left.squares is not None
            assert drawn.request.products is not None
            assert environment.is_bernoulli == (not drawn.request.products.any())
            # A uniform reward on [0, 1] has the variance 1/12: five standard errors of the mean of 300.
            if choice == "random" and not environment.is_bernoulli:
                variances = left.unit_variances
                assert variances is not None
                assert abs(variances[:, 0].mean() - 1 / 12) < 5 * variances[:, 0].std() / math.sqrt(300)
                assert int(left.squares.max()) < 60 * UNIT**2
