"""Logs as experimentation platforms keep them: exposures and metrics in separate tables, joined to a log."""

from armnesia.joining.join import AGGREGATES, join_metrics
from armnesia.joining.presets import PRESETS, JoinColumns
from armnesia.joining.results import Joined, equal_shares_p_value
from armnesia.joining.tables import TIME_UNITS

__all__ = [
    "AGGREGATES",
    "PRESETS",
    "TIME_UNITS",
    "JoinColumns",
    "Joined",
    "equal_shares_p_value",
    "join_metrics",
]
