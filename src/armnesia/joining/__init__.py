"""Logs as experimentation platforms keep them: exposures and metrics in separate tables, joined to a log."""

from armnesia.joining.join import join_metrics
from armnesia.joining.options import AGGREGATES, TIME_UNITS
from armnesia.joining.presets import PRESETS, Preset
from armnesia.joining.results import (
    ExperimentCount,
    ExposureRows,
    Joined,
    MetricRows,
    MetricUses,
    VariantCount,
    equal_shares_p_value,
)

__all__ = [
    "AGGREGATES",
    "PRESETS",
    "TIME_UNITS",
    "ExperimentCount",
    "ExposureRows",
    "Joined",
    "MetricRows",
    "MetricUses",
    "Preset",
    "VariantCount",
    "equal_shares_p_value",
    "join_metrics",
]
