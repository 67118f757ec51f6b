"""Contenders: the arms that can have been the old decision, whatever the deleted rewards were."""

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, highest_of_arms
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner

_BLOCKS = 256
"""Into so many blocks the possible counts are divided where the lowest score cannot be searched."""


def contenders(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> BoolArray:
    """Mark the arms that are π(D) for some deleted rewards of the declared range.

    An arm is π(D) most easily if all its own deleted rewards were the highest of the range and those of every
    other arm the lowest. It is a contender if it is served then; ties go to the first arm, as in a decision.
    This uses D∖U and the deleted counts alone, so a reference at level `request_shape` knows it. Scores of
    touched arms may be wrong by the learner's `score_rounding`, to the side of more contenders.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57, "C": [0]})
    >>> contenders(LCB(confidence=0.1), retained, np.array([20, 0, 0]))
    array([ True,  True, False])
    >>> contenders(LCB(confidence=0.1), retained, np.array([2, 0, 0]))
    array([False,  True, False])
    """
    return can_win(lowest_scores(learner, retained, shape), highest_scores(learner, retained, shape))


def contenders_up_to(learner: MeanAndCountLearner, retained: ArmStatistics, most: IntArray) -> BoolArray:
    """Mark the arms that are π(D) for some deletion of at most so many records of each arm.

    The highest score that an arm can have had is that with `most` highest rewards more, if scores do not fall
    as the count rises; otherwise a bound above it is that mean at the count that is left. The lowest is not
    always that with `most` lowest rewards more, because the mean falls and the count rises. It is searched if
    the learner's `score_falls_then_rises`; otherwise a bound below it takes its place. With a bound, an arm
    that was never served may be marked too. This uses D∖U alone, so a reference at level `retained` knows it.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57, "C": [0]})
    >>> contenders_up_to(LCB(confidence=0.1), retained, np.array([11, 13, 0]))
    array([ True,  True, False])
    >>> contenders_up_to(LCB(confidence=0.1), retained, np.array([2, 2, 0]))
    array([False,  True, False])
    """
    highest = _above_the_highest_scores if learner.falls_with_count else highest_scores
    return can_win(_lowest_up_to(learner, retained, most), highest(learner, retained, most))


def can_win(lowest: FloatArray, highest: FloatArray) -> BoolArray:
    """Whether an arm's highest score wins against the lowest scores of the others; ties to the first arm.

    >>> can_win(np.array([0.1, 0.3, 0.2]), np.array([0.3, 0.4, 0.3]))
    array([ True,  True, False])
    """
    to_beat, first = highest_of_arms(lowest)[..., None], np.argmax(lowest, axis=-1)[..., None]
    in_front = np.arange(lowest.shape[-1]) <= first
    return np.asarray((highest > to_beat) | ((highest == to_beat) & in_front))


def highest_scores(learner: MeanAndCountLearner, retained: ArmStatistics, number: IntArray) -> FloatArray:
    """The scores with so many highest rewards more, rounded up.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> highest_scores(LCB(confidence=0.1), retained, np.array([20, 0])).round(3)
    array([0.472, 0.413])
    """
    statistics = _with_ones(retained, number)
    rounding = np.where(statistics.counts > retained.counts, learner.score_rounding, 0.0)
    return np.asarray(learner.unit_scores(statistics) + rounding)


def _above_the_highest_scores(
    learner: MeanAndCountLearner, retained: ArmStatistics, most: IntArray
) -> FloatArray:
    """Bounds above the highest scores, where a score falls with the count."""
    statistics = _with_ones(retained, most)
    left = np.maximum(retained.counts, 1)
    bounds = learner.lower_bounds(statistics.unit_means, left, retained.n_actions) + learner.score_rounding
    return np.where(statistics.counts > 0, bounds, -1.0)


def _with_ones(retained: ArmStatistics, number: IntArray) -> ArmStatistics:
    """So many highest rewards more."""
    before = retained.counts + number
    # Python integers where a sum may exceed 64 bits.
    ones = np.asarray(before - retained.counts, dtype=object if before.max(initial=0) > 2**32 else np.int64)
    return ArmStatistics(retained.actions, before, retained.sums + ones * UNIT, retained.reward_range)


def lowest_scores(learner: MeanAndCountLearner, retained: ArmStatistics, number: IntArray) -> FloatArray:
    """The scores with so many lowest rewards more, rounded down.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> lowest_scores(LCB(confidence=0.1), retained, np.array([20, 0])).round(3)
    array([0.305, 0.413])
    """
    before = retained.counts + number
    scores = learner.unit_scores(
        ArmStatistics(retained.actions, before, retained.sums, retained.reward_range)
    )
    return np.asarray(scores - np.where(before > retained.counts, learner.score_rounding, 0.0))


def _lowest_up_to(learner: MeanAndCountLearner, retained: ArmStatistics, most: IntArray) -> FloatArray:
    """The lowest scores over 0, …, `most` lowest rewards more, or bounds below them.

    With Hoeffding's penalty the score S/n − c/√n falls with n while √n < 2S/c and rises from there; with KL
    bounds it only falls. So a search in thirds finds the lowest; both ends are compared as well.
    """
    most = np.broadcast_to(most, retained.counts.shape)
    if not learner.score_falls_then_rises:
        return _below_the_lowest_scores(learner, retained, most)

    def score(number: IntArray) -> FloatArray:
        return lowest_scores(learner, retained, number)

    zero, one = np.zeros_like(most), np.minimum(most, 1)
    first, last = score(zero), score(most)
    # One step at an end often tells that the lowest score is there.
    rises, falls = score(one) >= first, last < score(most - one)
    low, high = np.where(falls & ~rises, most, 0), np.where(rises, 0, most)
    while (high - low).max(initial=0) > 2:
        third = (high - low) // 3
        falling = score(high - third) < score(low + third)
        low, high = np.where(falling, low + third, low), np.where(falling, high, high - third)
    middle = (score(np.minimum(low + step, high)) for step in range(3))
    return np.asarray(np.minimum.reduce([first, last, *middle]))


def _below_the_lowest_scores(
    learner: MeanAndCountLearner, retained: ArmStatistics, most: IntArray
) -> FloatArray:
    """Bounds below the lowest scores over 0, …, `most` lowest rewards more, for any learner.

    In a block of counts, no score is below that with the mean at the last count and the penalty of the first.
    Blocks of one count give the lowest score itself.
    """
    counts, blocks = retained.counts, min(_BLOCKS, int(most.max(initial=0)) + 1)
    bounds = []
    for block in range(blocks):
        start, end = (_edge(counts, most, block + step) for step in range(2))
        end = np.maximum(end - 1, start) if block < blocks - 1 else counts + most
        means = ArmStatistics(retained.actions, end, retained.sums, retained.reward_range).unit_means
        bound = learner.lower_bounds(means, np.maximum(start, 1), retained.n_actions)
        bounds.append(np.where(start > 0, bound, np.minimum(bound, -1.0)))
    return np.asarray(np.minimum.reduce(bounds) - np.where(most > 0, learner.score_rounding, 0.0))


def _edge(counts: IntArray, most: IntArray, block: int) -> IntArray:
    """The first count of a block: steps of one if there are enough blocks, otherwise equal ratios."""
    first = np.maximum(counts, 1)
    ratios = np.floor(first * ((first + most) / first) ** (block / _BLOCKS)).astype(np.int64)
    even = counts + np.minimum(block, most)
    return np.where(most < _BLOCKS, even, np.clip(ratios if block else counts, counts, counts + most))
