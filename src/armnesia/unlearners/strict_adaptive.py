"""Algorithm 2 at a stricter level: the branch does not depend on π(D)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, PenaltyLearner
from armnesia.privacy import Level
from armnesia.unlearners.frozen_rollback import frozen_scores
from armnesia.unlearners.multi_source import MultiSource


@dataclass(frozen=True)
class StrictAdaptive(MultiSource):
    """Noise or rollback as in Algorithm 2, with π(D) guessed from D∖U and the deleted counts.

    Algorithm 2 checks whether the request is for π(D), which depends on the deleted rewards, so its guarantee
    is against a reference that sees π(D). Here the arm with the best frozen score takes the place of π(D).
    It is a function of D∖U and the deleted counts alone: which arm gets noise, and how much, is the same in
    both worlds, and the guarantee is at level `request_shape`.

    >>> from armnesia import LCB, ArmStatistics, Budget, DeletionRequest
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 55 + [0] * 45, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> release = StrictAdaptive().release(
    ...     LCB().bind(statistics), statistics, request, Budget(epsilon=30, delta=1e-5)
    ... )
    >>> release.branch, str(release.guarantee.level)
    ('gaussian', 'request_shape')
    """

    name: ClassVar[str] = "strict_adaptive"
    level: ClassVar[Level] = Level.REQUEST_SHAPE
    guesses_decision: ClassVar[bool] = True

    def decision_seen(
        self, learner: PenaltyLearner, retained: ArmStatistics, shape: IntArray, original: Decision | None
    ) -> Decision:
        """The arm with the best frozen score, whatever π(D) was."""
        guess = np.asarray(np.argmax(frozen_scores(learner, retained, shape), axis=-1), dtype=np.int64)
        return replace(learner.decide(retained), index=guess)
