"""Rules that turn statistics into a served arm."""

from armnesia.learners.base import Decision, Learner
from armnesia.learners.confidence import ConfidenceLearner
from armnesia.learners.frozen import FrozenLCB, FrozenPenalty, frozen_penalty
from armnesia.learners.imitation import Imitation
from armnesia.learners.kl_lcb import KLLCB
from armnesia.learners.lcb import LCB

LEARNERS: dict[str, type[Learner]] = {learner.name: learner for learner in (LCB, KLLCB, Imitation)}
"""Every learner by its name: feeds the command line and the generic tests."""

__all__ = [
    "KLLCB",
    "LCB",
    "LEARNERS",
    "ConfidenceLearner",
    "Decision",
    "FrozenLCB",
    "FrozenPenalty",
    "Imitation",
    "Learner",
    "frozen_penalty",
]
