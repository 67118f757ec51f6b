"""armnesia: offline bandit decisions that can forget.

The way of the data, each step one call: log → `ArmStatistics` → `learner.decide` → `unlearner.release` → arm.
"""

from armnesia import datasets
from armnesia.auditing import (
    Audit,
    Comparison,
    Feasibility,
    Witness,
    audit,
    compare,
    feasible_reference,
)
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import (
    KLLCB,
    LCB,
    LEARNERS,
    ConfidenceLearner,
    Decision,
    FrozenPenalty,
    Imitation,
    Learner,
)
from armnesia.logs import Log, read_log
from armnesia.privacy import (
    Budget,
    Guarantee,
    Level,
    PrivacyCurve,
    calibrate,
    hockey_stick,
    privacy_curve,
    smallest_epsilon,
)
from armnesia.unlearners import (
    UNLEARNERS,
    Adaptive,
    Branch,
    FrozenRollback,
    Gaussian,
    ImitationRollback,
    Mixing,
    MultiSource,
    Release,
    Rollback,
    StrictAdaptive,
    Tilt,
    Unlearner,
)
from armnesia.unlearners.stream import Stream

__version__ = "0.1.0"

__all__ = [
    "KLLCB",
    "LCB",
    "LEARNERS",
    "UNLEARNERS",
    "Adaptive",
    "ArmStatistics",
    "Audit",
    "Branch",
    "Budget",
    "Comparison",
    "ConfidenceLearner",
    "Decision",
    "DeletionRequest",
    "Feasibility",
    "FrozenPenalty",
    "FrozenRollback",
    "Gaussian",
    "Guarantee",
    "Imitation",
    "ImitationRollback",
    "Learner",
    "Level",
    "Log",
    "Mixing",
    "MultiSource",
    "PrivacyCurve",
    "Release",
    "Rollback",
    "Stream",
    "StrictAdaptive",
    "Tilt",
    "Unlearner",
    "Witness",
    "audit",
    "calibrate",
    "compare",
    "datasets",
    "feasible_reference",
    "hockey_stick",
    "privacy_curve",
    "read_log",
    "smallest_epsilon",
]
