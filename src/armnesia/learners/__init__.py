"""Learners: rules that choose the arm to serve from statistics."""

from armnesia.learners.base import CountsOnlyLearner, Decision, Learner
from armnesia.learners.confidence import ConfidenceLearner
from armnesia.learners.imitation import Imitation
from armnesia.learners.kl_lcb import KLLCB
from armnesia.learners.lcb import LCB
from armnesia.learners.mean_and_count import FrozenPenalty, MeanAndCountLearner, PenaltyLearner

LEARNERS: dict[str, type[Learner]] = {learner.name: learner for learner in (LCB, KLLCB, Imitation)}
"""Every learner by its name, for the command line, the vault and the generic tests."""

__all__ = [
    "KLLCB",
    "LCB",
    "LEARNERS",
    "ConfidenceLearner",
    "CountsOnlyLearner",
    "Decision",
    "FrozenPenalty",
    "Imitation",
    "Learner",
    "MeanAndCountLearner",
    "PenaltyLearner",
]
