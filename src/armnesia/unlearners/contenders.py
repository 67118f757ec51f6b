"""Contenders: the arms that can have been the old decision, whatever the deleted rewards were."""

import numpy as np

from armnesia.core.arrays import BoolArray, IntArray
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner


def contenders(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> BoolArray:
    """Mark the arms that are π(D) for some deleted rewards of the declared range.

    An arm is π(D) most easily if all its own deleted rewards were the highest of the range and those of every
    other arm the lowest. It is a contender if it is served then; ties go to the first arm, as in a decision.
    This uses D∖U and the deleted counts alone, so a reference at level `request_shape` knows it.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57, "C": [0]})
    >>> contenders(LCB(confidence=0.1), retained, np.array([20, 0, 0]))
    array([ True,  True, False])
    >>> contenders(LCB(confidence=0.1), retained, np.array([2, 0, 0]))
    array([False,  True, False])
    """
    before = retained.counts + shape
    # Python integers where a sum may exceed 64 bits.
    deleted = np.asarray(
        before - retained.counts, dtype=object if before.max(initial=0) > 2**32 else np.int64
    )
    lowest, highest = (
        learner.unit_scores(ArmStatistics(retained.actions, before, sums, retained.reward_range))
        for sums in (retained.sums, retained.sums + deleted * UNIT)
    )
    to_beat, first = lowest.max(axis=-1, keepdims=True), np.argmax(lowest, axis=-1)[..., None]
    in_front = np.arange(retained.n_actions) <= first
    return np.asarray((highest > to_beat) | ((highest == to_beat) & in_front))
