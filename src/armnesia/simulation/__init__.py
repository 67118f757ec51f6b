"""Simulation: the paper's data models, and the expected loss of an unlearner's decisions under them."""

from armnesia.simulation.drawing import Drawn, draw_data_sets
from armnesia.simulation.environment import (
    Bernoulli,
    Beta,
    ClippedNormal,
    Environment,
    FrozenDistribution,
    RewardDistribution,
    Uniform,
)
from armnesia.simulation.estimates import Evaluation
from armnesia.simulation.evaluation import evaluate, evaluate_all
from armnesia.simulation.exact import exact_release
from armnesia.simulation.exact_tilt import predictive_error
from armnesia.simulation.models import DataModel, DistributionModel, FixedSample
from armnesia.simulation.requests import AcrossArms, OneArm, RequestModel, SeveralArms, TiltedArm
from armnesia.simulation.sweep import Cell, CellStore, Row, Sweep, run_cells, sweep

__all__ = [
    "AcrossArms",
    "Bernoulli",
    "Beta",
    "Cell",
    "CellStore",
    "ClippedNormal",
    "DataModel",
    "DistributionModel",
    "Drawn",
    "Environment",
    "Evaluation",
    "FixedSample",
    "FrozenDistribution",
    "OneArm",
    "RequestModel",
    "RewardDistribution",
    "Row",
    "SeveralArms",
    "Sweep",
    "TiltedArm",
    "Uniform",
    "draw_data_sets",
    "evaluate",
    "evaluate_all",
    "exact_release",
    "predictive_error",
    "run_cells",
    "sweep",
]
