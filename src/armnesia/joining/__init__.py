"""Logs as experimentation platforms keep them: exposures and metrics in separate tables, joined to a log."""

from armnesia.joining.join import AGGREGATES, Joined, join_metrics
from armnesia.joining.presets import PRESETS, Preset

__all__ = ["AGGREGATES", "PRESETS", "Joined", "Preset", "join_metrics"]
