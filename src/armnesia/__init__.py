"""armnesia: offline bandit decisions that can forget.

The data flow, one call per step: log → `ArmStatistics` → `learner.decide` → `unlearner.release` → arm.
"""

import importlib
from typing import TYPE_CHECKING

from armnesia.core.version import __version__ as __version__

if TYPE_CHECKING:
    from armnesia import datasets
    from armnesia import paper as paper
    from armnesia import simulation as simulation
    from armnesia import testing as testing
    from armnesia import theory as theory
    from armnesia.auditing import (
        Audit,
        Comparison,
        Feasibility,
        JointAudit,
        JointComparison,
        Witness,
        audit,
        audit_jointly,
        compare,
        compare_jointly,
        feasible_reference,
    )
    from armnesia.core.request import DeletionRequest
    from armnesia.core.statistics import ArmStatistics
    from armnesia.joining import Joined, join_metrics
    from armnesia.learners import (
        KLLCB,
        LCB,
        LEARNERS,
        UCB,
        ConfidenceLearner,
        Decision,
        EmpiricalBernsteinLCB,
        FrozenPenalty,
        Greedy,
        Imitation,
        Learner,
    )
    from armnesia.logs import Condition, Decisions, KeyColumn, Log, read_log
    from armnesia.privacy import (
        Budget,
        Guarantee,
        JointLoss,
        Level,
        PrivacyCurve,
        calibrate,
        composed_delta,
        hockey_stick,
        privacy_curve,
        smallest_epsilon,
        split_budget,
    )
    from armnesia.simulation.sweep import Sweep, sweep
    from armnesia.unlearners import (
        UNLEARNERS,
        Adaptive,
        Branch,
        CentredGaussian,
        FrozenRollback,
        Gaussian,
        ImitationRollback,
        JointRelease,
        Mixing,
        MultiSource,
        Release,
        Rollback,
        StrictAdaptive,
        Tilt,
        Unlearner,
        release_jointly,
    )
    from armnesia.unlearners.stream import Stream
else:
    # Each name is loaded when it is first used (PEP 562), so that the command line starts without numpy. Type
    # checkers read the imports above; a test compares the two lists.
    _NAMES_OF = {
        "armnesia.auditing": "Audit Comparison Feasibility JointAudit JointComparison Witness audit"
        " audit_jointly compare compare_jointly feasible_reference",
        "armnesia.core.request": "DeletionRequest",
        "armnesia.core.statistics": "ArmStatistics",
        "armnesia.joining": "Joined join_metrics",
        "armnesia.learners": "KLLCB LCB LEARNERS UCB ConfidenceLearner Decision EmpiricalBernsteinLCB"
        " FrozenPenalty Greedy Imitation Learner",
        "armnesia.logs": "Condition Decisions KeyColumn Log read_log",
        "armnesia.privacy": "Budget Guarantee JointLoss Level PrivacyCurve calibrate composed_delta"
        " hockey_stick privacy_curve smallest_epsilon split_budget",
        "armnesia.simulation.sweep": "Sweep sweep",
        "armnesia.unlearners": "UNLEARNERS Adaptive Branch CentredGaussian FrozenRollback Gaussian"
        " ImitationRollback JointRelease Mixing MultiSource Release Rollback StrictAdaptive Tilt Unlearner"
        " release_jointly",
        "armnesia.unlearners.stream": "Stream",
    }
    _MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names.split()}
    _PACKAGES = {
        *("auditing", "core", "datasets", "joining", "learners", "logs", "paper", "privacy", "simulation"),
        *("testing", "theory", "unlearners"),
    }

    def __getattr__(name):
        if name in _PACKAGES:
            return importlib.import_module(f"armnesia.{name}")
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'armnesia' has no attribute {name!r}")
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value  # the next use does not come here
        return value

    def __dir__():
        return sorted({*globals(), *_PACKAGES, *_MODULE_OF})


__all__ = [
    "KLLCB",
    "LCB",
    "LEARNERS",
    "UCB",
    "UNLEARNERS",
    "Adaptive",
    "ArmStatistics",
    "Audit",
    "Branch",
    "Budget",
    "CentredGaussian",
    "Comparison",
    "Condition",
    "ConfidenceLearner",
    "Decision",
    "Decisions",
    "DeletionRequest",
    "EmpiricalBernsteinLCB",
    "Feasibility",
    "FrozenPenalty",
    "FrozenRollback",
    "Gaussian",
    "Greedy",
    "Guarantee",
    "Imitation",
    "ImitationRollback",
    "Joined",
    "JointAudit",
    "JointComparison",
    "JointLoss",
    "JointRelease",
    "KeyColumn",
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
    "Sweep",
    "Tilt",
    "Unlearner",
    "Witness",
    "audit",
    "audit_jointly",
    "calibrate",
    "compare",
    "compare_jointly",
    "composed_delta",
    "datasets",
    "feasible_reference",
    "hockey_stick",
    "join_metrics",
    "privacy_curve",
    "read_log",
    "release_jointly",
    "smallest_epsilon",
    "split_budget",
    "sweep",
]
