"""What the tests of tilt share."""

import numpy as np
from numpy.typing import NDArray

from armnesia import KLLCB, LCB, ArmStatistics, Budget, Learner
from armnesia.learners import MeanAndCountLearner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEARNER = LCB(confidence=0.1)
LEARNERS: list[MeanAndCountLearner] = [
    LCB(confidence=0.5),
    KLLCB(confidence=0.5),
    LCB(confidence=0.5).with_frozen_penalty([7, 0, 2]),
    KLLCB(confidence=0.5).with_frozen_penalty([0, 3, 9]),
]
MODERATE = Budget(epsilon=1.0, delta=0.01)


def uniform(learner: Learner, retained: ArmStatistics, shape: Ints) -> Floats:
    """A predictive that takes every arm as equally likely."""
    return np.full(retained.counts.shape, 1 / retained.n_actions)
