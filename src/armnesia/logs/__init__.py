"""Reading logged decisions: dataframes, files, arrays → a `Log`, which gives statistics and requests."""

from armnesia.logs.log import Log
from armnesia.logs.reading import read_log

__all__ = ["Log", "read_log"]
