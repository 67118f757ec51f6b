"""The decision under a belief about the deleted rewards: against all outcomes, and batches row by row."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import betabinom

from armnesia import LCB, ArmStatistics
from armnesia.core.units import UNIT
from armnesia.unlearners.believed_decision import _distinct, highest_of
from armnesia.unlearners.predictive import flat, flat_belief


def test_the_highest_of_a_few_values_by_trying_all_outcomes() -> None:
    """Whole scores, so that there are many ties; of equals the last one wins."""
    rng = np.random.default_rng(6)
    scores = np.sort(rng.integers(0, 4, size=(50, 3, 4)), axis=-1).astype(np.float64)
    chances = rng.dirichlet(np.ones(4), size=(50, 3))
    brute = np.zeros((50, 3))
    for outcome in product(range(4), repeat=3):
        drawn = scores[:, range(3), outcome]
        winner = 2 - np.argmax(drawn[:, ::-1], axis=-1)
        brute[np.arange(50), winner] += chances[:, range(3), outcome].prod(axis=-1)
    np.testing.assert_allclose(highest_of(scores, chances), brute, rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("touched", [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_several_arms_by_trying_all_numbers_of_ones(touched: tuple[int, ...]) -> None:
    """Few records, so that scores tie often: every number of ones, with scipy's beta-binomial weights."""
    rng, learner = np.random.default_rng(12), LCB(confidence=0.5)
    for _ in range(25):
        counts = rng.integers(1, 8, size=3)
        sums = rng.integers(0, counts + 1)
        shape = np.where(np.isin(np.arange(3), touched), rng.integers(1, 6, size=3), 0)
        retained = ArmStatistics((0, 1, 2), counts, sums * UNIT)
        ones, zeros = flat_belief(sums.astype(np.float64), counts)
        expected = np.zeros(3)
        for g in product(*(range(k + 1) for k in shape)):
            chance = np.prod([betabinom.pmf(g[a], shape[a], ones[a], zeros[a]) for a in touched])
            data = ArmStatistics((0, 1, 2), counts + shape, (sums + np.array(g)) * UNIT)
            expected[int(learner.decide(data).index)] += chance
        np.testing.assert_allclose(flat(learner, retained, shape), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("touched", [2, 3])
def test_a_batch_with_equal_data_sets_is_its_data_sets_one_by_one(touched: int) -> None:
    """Equal ones are computed once, unless every data set has penalties of its own."""
    rng = np.random.default_rng(13)
    counts = rng.choice([20, 30], size=(300, 3))
    shape = np.where(np.arange(3) < touched, rng.choice([4, 6], size=(300, 3)), 0)
    retained = ArmStatistics((0, 1, 2), counts, rng.choice([5, 6, 7], size=(300, 3)) * UNIT)
    for deleted in (rng.integers(0, 40, size=3), rng.integers(0, 40, size=(300, 3))):
        learner = LCB(confidence=0.1).with_frozen_penalty(deleted)
        batch = flat(learner, retained, shape)
        for row in range(0, 300, 7):
            mine = LCB(confidence=0.1).with_frozen_penalty(np.broadcast_to(deleted, (300, 3))[row])
            one = ArmStatistics((0, 1, 2), counts[row], retained.sums[row])
            np.testing.assert_allclose(batch[row], flat(mine, one, shape[row]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("n_arms", [2, 3])
def test_many_data_sets_of_two_touched_arms_are_judged_as_one_by_one(n_arms: int) -> None:
    """Counts of 1 beside 100,000: one more record of an arm passes no score of the other, or hundreds."""
    rng = np.random.default_rng(6)
    counts = 10 ** rng.integers(0, 6, size=(300, n_arms))
    sums = rng.integers(0, counts * UNIT + 1)
    shape = rng.integers(1, 200, size=counts.shape)
    shape[:, 2:] = 0
    labels, learner = tuple(range(n_arms)), LCB(confidence=0.01)
    together = flat(learner, ArmStatistics(labels, counts, sums), shape)
    alone = [
        flat(learner, ArmStatistics(labels, *row), k) for *row, k in zip(counts, sums, shape, strict=True)
    ]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-13)
    assert ((together > 0.01) & (together < 0.99)).any(axis=-1).sum() > 30


@pytest.mark.parametrize("n_values", [1, 3, 40, 2000])
def test_equal_rows_are_of_one_kind_and_others_are_not(n_values: int) -> None:
    """With 40 values the two columns have more pairs of values than rows, and with 2000 most rows differ."""
    rng = np.random.default_rng(9)
    columns = list(rng.integers(0, n_values, size=(2, 1000)) / 4)
    columns.append(columns[0] + 1)
    first, kinds = _distinct(columns)
    _, expected_first, expected = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    if 2 * expected_first.size > 1000:
        np.testing.assert_array_equal(first, np.arange(1000))
        np.testing.assert_array_equal(kinds, np.arange(1000))
    else:
        np.testing.assert_array_equal(first[kinds], expected_first[expected])
        assert first.size == expected_first.size
