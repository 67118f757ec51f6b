"""What a log gives reason to warn of: propensities that differ, and experiments that are mixed."""

import re
import warnings
from collections.abc import Iterable

from armnesia.core.errors import ConfoundedLogWarning

EXPERIMENT = "experiment"
"""The column of the experiment in a joined log."""
_PROPENSITIES = {
    *("p", "prob", "probability", "pscore", "propensity", "propensities", "propensityscore"),
    *("actionprob", "actionprobability", "actionpropensity", "actionpscore"),
    *("loggingprob", "loggingprobability", "loggingpropensity", "loggedprobability", "loggedpropensity"),
    *("behaviorprob", "behaviorprobability", "behaviorpropensity"),
    *("behaviourprob", "behaviourprobability", "behaviourpropensity"),
    *("assignmentprobability", "exposureprobability", "treatmentprobability"),
}
"""Names in lower case, without anything but letters; also any name that begins with pscore or propensity."""
_TOLERANCE = 1e-6
"""Propensities that differ by a smaller part are equal: they may have been written with few digits."""


def propensity_columns(names: Iterable[str]) -> list[str]:
    """Find the columns whose names say that they hold propensities.

    >>> propensity_columns(["arm", "Propensity Score", "price", "action_prob", "pscore_cascade"])
    ['Propensity Score', 'action_prob', 'pscore_cascade']
    """
    letters = {name: re.sub("[^a-z]", "", str(name).lower()) for name in names}
    return [
        name for name, of in letters.items() if of in _PROPENSITIES or of.startswith(("pscore", "propensity"))
    ]


def vary(ranges: Iterable[tuple[float | None, float | None]]) -> bool:
    """Tell whether propensities, of which the lowest and highest per action are given, differ in any action.

    Values that are not probabilities are no propensities, whatever their column is called. The means of the
    arms are compared as if every arm had been shown to the same kind of people; propensities that differ
    among the rows of an action say that it was not.

    >>> vary([(0.2, 0.2), (0.8, 0.8)]), vary([(0.2, 0.7), (0.3, 0.8)]), vary([(0.2, 17.0)])
    (False, True, False)
    """
    known = [(low, high) for low, high in ranges if low is not None and high is not None]
    if not all(low >= 0 and high <= 1 for low, high in known):
        return False
    return any(high - low > _TOLERANCE * high for low, high in known)


def warn_of_propensities(name: str | None, stacklevel: int, *, by_decision: bool = False) -> None:
    """Name the assumption that decisions make, if a column of propensities (`name`) speaks against it.

    With `by_decision`, the rows were compared within each decision.
    """
    if name is not None:
        parted = " and decision" if by_decision else ""
        warnings.warn(
            f"column {name!r} holds propensities that differ among rows of the same action{parted}, and they"
            " are not used: decisions assume that rewards are independent of who was shown which arm"
            ' (docs/data.md, "Is my log fit for this?")',
            ConfoundedLogWarning,
            stacklevel=stacklevel,
        )


def warn_of_experiments(mixed: bool, stacklevel: int) -> None:
    """Say that the rows of several experiments become one decision."""
    if mixed:
        warnings.warn(
            f"column {EXPERIMENT!r} has several values, whose rows are mixed into one decision: choose one of"
            f' them with where="{EXPERIMENT} = NAME" (--where), or part them by'
            f" {EXPERIMENT} (decide --by, init --by)",
            stacklevel=stacklevel,
        )
