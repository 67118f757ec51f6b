"""Logs of several experiments, as `armnesia join` writes them: each has a decision of its own."""

import warnings

EXPERIMENT = "experiment"
"""The column of the experiment in a joined log."""


def warn_of_experiments(mixed: bool, stacklevel: int) -> None:
    """Say that the rows of several experiments become one decision."""
    if mixed:
        warnings.warn(
            f"column {EXPERIMENT!r} has several values, whose rows are mixed into one decision: choose one of"
            f' them with where="{EXPERIMENT} = NAME" (--where), or part them by'
            f" {EXPERIMENT} (decide --by, init --by)",
            stacklevel=stacklevel,
        )
