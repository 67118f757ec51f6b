"""armnesia: offline bandit decisions that can forget.

The way of the data, each step one call: log → `ArmStatistics` → `learner.decide` → `unlearner.release` → arm.
"""

from armnesia.auditing import Audit, Feasibility, Witness, audit, feasible_reference
from armnesia.learners import LCB, LEARNERS, Decision, Imitation, Learner
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
from armnesia.request import DeletionRequest
from armnesia.statistics import ArmStatistics
from armnesia.unlearners import (
    UNLEARNERS,
    Adaptive,
    Branch,
    Gaussian,
    ImitationRollback,
    Mixing,
    MultiSource,
    Release,
    Rollback,
    Unlearner,
)
