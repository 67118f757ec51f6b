"""Columns of propensities, by which a log shows that its actions were not chosen independently of the rows.

The means of the arms are compared as if every arm had been shown to the same kind of people. That is so if
the probability of an action was the same in every row. A log with propensities that differ among the rows of
an action was collected by a policy that looked at the context, or that changed over time.
"""

import re
import warnings
from collections.abc import Hashable, Iterable

from armnesia.core.errors import ConfoundedLogWarning

_NAMES = {
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
    return [name for name in names if _is_propensity(re.sub("[^a-z]", "", str(name).lower()))]


def vary(ranges: Iterable[tuple[float | None, float | None]]) -> bool:
    """Tell whether propensities, of which the lowest and highest per action are given, differ in any action.

    Values that are not probabilities are no propensities, whatever their column is called.

    >>> vary([(0.2, 0.2), (0.8, 0.8)]), vary([(0.2, 0.7), (0.3, 0.8)]), vary([(0.2, 17.0)])
    (False, True, False)
    """
    known = [(low, high) for low, high in ranges if low is not None and high is not None]
    if not all(low >= 0 and high <= 1 for low, high in known):
        return False
    return any(high - low > _TOLERANCE * high for low, high in known)


class Ranges(dict[Hashable, tuple[float, float]]):
    """The lowest and the highest propensity of each group of rows.

    >>> ranges = Ranges()
    >>> ranges.include("A", 0.2, 0.2)
    >>> ranges.include("A", 0.3, None)
    >>> ranges.include("A", 0.5, 0.7)
    >>> ranges
    {'A': (0.2, 0.7)}
    """

    def include(self, group: Hashable, low: float | None, high: float | None) -> None:
        """Take what a part of a group has; None if it has none."""
        if low is not None and high is not None:
            lowest, highest = self.get(group, (low, high))
            self[group] = min(lowest, low), max(highest, high)


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


def _is_propensity(letters: str) -> bool:
    return letters in _NAMES or letters.startswith(("pscore", "propensity"))
