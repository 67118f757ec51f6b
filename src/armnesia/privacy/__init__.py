"""Budgets and their composition, the exact calibration of Gaussian noise, divergences and guarantees."""

from armnesia.privacy.budget import Budget
from armnesia.privacy.composition import Composition, composed_delta, split_budget
from armnesia.privacy.curve import PrivacyCurve, calibrate, privacy_curve
from armnesia.privacy.divergence import hockey_stick, renyi_divergence, smallest_epsilon
from armnesia.privacy.guarantee import Guarantee, Level
from armnesia.privacy.joint_loss import JointLoss
from armnesia.privacy.trade_off import trade_off, trade_off_corners

__all__ = [
    "Budget",
    "Composition",
    "Guarantee",
    "JointLoss",
    "Level",
    "PrivacyCurve",
    "calibrate",
    "composed_delta",
    "hockey_stick",
    "privacy_curve",
    "renyi_divergence",
    "smallest_epsilon",
    "split_budget",
    "trade_off",
    "trade_off_corners",
]
