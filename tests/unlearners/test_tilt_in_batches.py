"""The tilt of a data set does not depend on the data sets that are computed with it."""

import numpy as np
import pytest

from armnesia import KLLCB, LCB, ArmStatistics, Budget, DeletionRequest, Tilt
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners import tilt_reference
from armnesia.unlearners.predictive import flat

CONFIDENCE = 0.01


def statistics(counts: IntArray, ones: IntArray) -> ArmStatistics:
    return ArmStatistics(tuple(range(counts.shape[-1])), counts, ones * UNIT)


def random_data(rows: int, n_arms: int, touched: int, seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Counts and ones of what is left, and the deleted counts."""
    random = np.random.default_rng(seed)
    counts = random.integers(50, 600, (rows, n_arms))
    ones = random.binomial(counts, random.random((rows, n_arms)))
    shape = np.zeros((rows, n_arms), np.int64)
    shape[:, :touched] = random.integers(5, 60, (rows, touched))
    return counts, ones, shape


def deviations(
    tilt: Tilt, learner: MeanAndCountLearner, budget: Budget, data: tuple[IntArray, IntArray, IntArray]
) -> FloatArray:
    """How far references computed together are from the same computed one by one."""
    counts, ones, shape = data
    together = tilt.reference(learner, statistics(counts, ones), budget, shape=shape)
    alone = [
        tilt.reference(learner, statistics(*row[:2]), budget, shape=row[2])
        for row in zip(counts, ones, shape, strict=True)
    ]
    return np.asarray(np.abs(together - np.stack(alone)).max(axis=-1))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("insurance", [0.0, 0.02])
@pytest.mark.parametrize("budget", [(1.0, 1e-5), (1.0, 0.01), (0.01, 0.2), (3.0, 1e-5), (20.0, 0.0)])
@pytest.mark.parametrize("arms", [(2, 2), (3, 2), (4, 3)], ids=["both", "two of three", "three of four"])
def test_references_computed_together_are_those_computed_alone(
    arms: tuple[int, int], budget: tuple[float, float], insurance: float
) -> None:
    epsilon, delta = budget
    data = random_data(150, *arms, seed=sum(arms))
    tilt, budget_ = Tilt(insurance=insurance), Budget(epsilon=epsilon, delta=delta)
    assert deviations(tilt, LCB(confidence=CONFIDENCE), budget_, data).max() < 1e-13


@pytest.mark.slow
def test_so_are_those_of_kl_lcb() -> None:
    data = random_data(120, 3, 2, seed=1)
    learner, budget = KLLCB(confidence=CONFIDENCE), Budget(epsilon=1.0, delta=0.01)
    assert deviations(Tilt(), learner, budget, data).max() < 1e-13


def test_without_the_limit_a_probability_that_is_left_out_alone_would_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault, which was there: the reference jumps by δ where q is 10⁻²⁵ in the place of 0."""
    data = [np.vstack(parts) for parts in zip(SEEN, random_data(30, 3, 2, seed=0), strict=True)]
    counts, ones, shape = data
    learner, budget = LCB(confidence=CONFIDENCE), Budget(epsilon=1.0, delta=0.01)
    assert deviations(Tilt(), learner, budget, (counts, ones, shape))[0] < 1e-13
    assert 0 < flat(learner, statistics(counts, ones), shape)[0, 0] < 1e-20
    monkeypatch.setattr(tilt_reference, "_IMPOSSIBLE", 0.0)
    assert deviations(Tilt(), learner, budget, (counts, ones, shape))[0] == pytest.approx(0.01)


SEEN = (np.array([[235, 464, 380]]), np.array([[206, 431, 64]]), np.array([[59, 36, 0]]))
"""Alone, the old decision was not arm 0; together with others, it was with probability 3.6·10⁻²⁵."""


def test_releases_computed_together_are_those_computed_alone() -> None:
    counts, ones, shape = random_data(150, 3, 2, seed=4)
    deleted = np.random.default_rng(5).binomial(shape, 0.7)
    learner, budget = LCB(confidence=CONFIDENCE), Budget(epsilon=1.0, delta=0.01)

    def released(rows: slice | int) -> FloatArray:
        whole = statistics((counts + shape)[rows], (ones + deleted)[rows])
        request = DeletionRequest(statistics(shape[rows], deleted[rows]), True)
        return Tilt().release(learner, whole, request, budget).probabilities

    alone = np.stack([released(row) for row in range(len(counts))])
    np.testing.assert_allclose(released(slice(None)), alone, rtol=0, atol=1e-13)


@pytest.mark.parametrize("learner", [LCB(confidence=CONFIDENCE), KLLCB(confidence=CONFIDENCE)], ids=repr)
@pytest.mark.parametrize("power", [10, 11, 12, 14, 16, 17])
def test_arms_with_very_many_records_have_a_predictive(power: int, learner: MeanAndCountLearner) -> None:
    """Beyond 10¹¹ records the logarithms of the beta-binomial have lost their digits."""
    random = np.random.default_rng(power)
    counts = 10**power - random.integers(0, 10 ** (power // 2), (150, 3))
    sums = (10**power // 2 + random.integers(-30, 30, (150, 3))).astype(object) * UNIT
    retained = ArmStatistics((0, 1, 2), counts, sums)
    together = flat(learner, retained, np.array([50, 50, 0]))
    np.testing.assert_allclose(together.sum(axis=-1), 1.0, rtol=0, atol=1e-9)
    for row in range(5):
        alone = flat(learner, ArmStatistics((0, 1, 2), counts[row], sums[row]), np.array([50, 50, 0]))
        np.testing.assert_allclose(together[row], alone, rtol=0, atol=1e-12)
