"""Learners: rules that choose the arm to serve from statistics."""

from armnesia.learners.base import CountsOnlyLearner, Decision, Learner
from armnesia.learners.bernstein_lcb import EmpiricalBernsteinLCB
from armnesia.learners.confidence import ConfidenceLearner
from armnesia.learners.greedy import Greedy
from armnesia.learners.imitation import Imitation
from armnesia.learners.kl_lcb import KLLCB
from armnesia.learners.lcb import LCB
from armnesia.learners.mean_and_count import FrozenPenalty, MeanAndCountLearner, PenaltyLearner
from armnesia.learners.ucb import UCB

LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner for learner in (LCB, KLLCB, EmpiricalBernsteinLCB, Greedy, UCB, Imitation)
}
"""Every learner by its name, for the command line, the vault and the tests."""

__all__ = [
    "KLLCB",
    "LCB",
    "LEARNERS",
    "UCB",
    "ConfidenceLearner",
    "CountsOnlyLearner",
    "Decision",
    "EmpiricalBernsteinLCB",
    "FrozenPenalty",
    "Greedy",
    "Imitation",
    "Learner",
    "MeanAndCountLearner",
    "PenaltyLearner",
]
