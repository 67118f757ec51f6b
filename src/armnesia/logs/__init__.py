"""Reading logged decisions: files, dataframes, arrays and tables.

`read_log` gives a `Log`, with its statistics and deletion requests; `open_source` gives a `Source`, whose
rows a vault reads. Optional dependencies are imported when a source needs them.
"""

from armnesia.logs.columns import IF_PRESENT, Columns
from armnesia.logs.conditions import Condition
from armnesia.logs.decisions import Decisions
from armnesia.logs.experiments import warn_of_experiments
from armnesia.logs.files.layout import LaidOut, layout_log
from armnesia.logs.key_columns import KeyColumn
from armnesia.logs.limits import CHUNK
from armnesia.logs.log import Log
from armnesia.logs.manifests import source_name
from armnesia.logs.opening import (
    file_in_both,
    has_new_files,
    manifest_of,
    open_source,
    reopen_counted,
    reopen_source,
)
from armnesia.logs.propensities import warn_of_propensities
from armnesia.logs.reading import read_log, read_opened
from armnesia.logs.rows import Rows
from armnesia.logs.source import Source
from armnesia.logs.values import label_text, storable_labels

__all__ = [
    "CHUNK",
    "IF_PRESENT",
    "Columns",
    "Condition",
    "Decisions",
    "KeyColumn",
    "LaidOut",
    "Log",
    "Rows",
    "Source",
    "file_in_both",
    "has_new_files",
    "label_text",
    "layout_log",
    "manifest_of",
    "open_source",
    "read_log",
    "read_opened",
    "reopen_counted",
    "reopen_source",
    "source_name",
    "storable_labels",
    "warn_of_experiments",
    "warn_of_propensities",
]
