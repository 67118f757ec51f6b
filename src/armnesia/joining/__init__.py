"""Logs as experimentation platforms keep them: exposures and metrics in separate tables, joined to a log."""

from armnesia.joining.join import AGGREGATES, join_metrics
from armnesia.joining.presets import PRESETS, Preset
from armnesia.joining.results import Joined, equal_shares_p_value

__all__ = ["AGGREGATES", "PRESETS", "Joined", "Preset", "equal_shares_p_value", "join_metrics"]
