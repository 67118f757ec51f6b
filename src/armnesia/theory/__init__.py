"""Upper and lower bounds, the paper's and ours, with their constants and with their conditions checked."""

from armnesia.theory.adaptive import adaptive_distribution, adaptive_fixed, gamma_0
from armnesia.theory.bound import Bound, BoundCondition, Form, LowerForm
from armnesia.theory.imitation import imitation_distribution
from armnesia.theory.lcb import lcb_distribution, lcb_fixed
from armnesia.theory.lower import (
    Deletion,
    HardInstances,
    hard_instances_distribution,
    hard_instances_fixed,
    lower_distribution,
    lower_fixed,
)
from armnesia.theory.mixing import mixing_best_part, mixing_fixed, mixing_slope
from armnesia.theory.multi_source import multi_source_fixed, rollback_distribution, tilt_of_any_request
from armnesia.theory.setting import Setting, bounds, lower_bounds, upper_bounds
from armnesia.theory.tilt import (
    chance_of_keeping,
    insured_from,
    insured_upper,
    tilt_upper,
    worst_chance_of_keeping,
)

__all__ = [
    "Bound",
    "BoundCondition",
    "Deletion",
    "Form",
    "HardInstances",
    "LowerForm",
    "Setting",
    "adaptive_distribution",
    "adaptive_fixed",
    "bounds",
    "chance_of_keeping",
    "gamma_0",
    "hard_instances_distribution",
    "hard_instances_fixed",
    "imitation_distribution",
    "insured_from",
    "insured_upper",
    "lcb_distribution",
    "lcb_fixed",
    "lower_bounds",
    "lower_distribution",
    "lower_fixed",
    "mixing_best_part",
    "mixing_fixed",
    "mixing_slope",
    "multi_source_fixed",
    "rollback_distribution",
    "tilt_of_any_request",
    "tilt_upper",
    "upper_bounds",
    "worst_chance_of_keeping",
]
