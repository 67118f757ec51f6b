"""Reading logged decisions: files, dataframes, arrays and tables.

`read_log` gives a `Log`, with its statistics and deletion requests; `open_source` gives a `Source`, whose
rows a vault counts or reads. Optional dependencies are imported when a source needs them.
"""

from armnesia.logs.columns import IF_PRESENT, Columns
from armnesia.logs.conditions import Condition
from armnesia.logs.keys import KeyColumn
from armnesia.logs.log import Decisions, Log, read_log, read_opened, warn_of_propensities
from armnesia.logs.source import Source, open_source, reopen
from armnesia.logs.values import label_text

__all__ = [
    "IF_PRESENT",
    "Columns",
    "Condition",
    "Decisions",
    "KeyColumn",
    "Log",
    "Source",
    "label_text",
    "open_source",
    "read_log",
    "read_opened",
    "reopen",
    "warn_of_propensities",
]
