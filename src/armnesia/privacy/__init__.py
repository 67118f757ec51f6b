"""Budgets, the exact calibration of Gaussian noise, divergences and guarantees."""

from armnesia.privacy.budget import Budget
from armnesia.privacy.curve import PrivacyCurve, calibrate, privacy_curve
from armnesia.privacy.divergence import hockey_stick, smallest_epsilon
from armnesia.privacy.guarantee import Guarantee, Level

__all__ = [
    "Budget",
    "Guarantee",
    "Level",
    "PrivacyCurve",
    "calibrate",
    "hockey_stick",
    "privacy_curve",
    "smallest_epsilon",
]
