"""The warning of decisions in which the penalty of the scores outweighs the means."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armnesia.core.messages import counted


def are_dominated(
    scores: ArrayLike, no_data: ArrayLike, reward_range: tuple[float, float]
) -> NDArray[np.bool_]:
    """Whether no score is a possible mean, for each decision; arms are on the last axis of `scores`."""
    found: NDArray[np.bool_] = (np.max(scores, axis=-1) < reward_range[0]) & ~np.asarray(no_data)
    return found


def warn_of_a_dominating_penalty(
    scores: ArrayLike, no_data: ArrayLike, reward_range: tuple[float, float], *, stacklevel: int = 2
) -> None:
    """Say where no score is a possible mean: there, mostly the number of records chooses the arm.

    Arms are on the last axis of `scores`; if there are decisions on the first, it says in how many.

    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_of_a_dominating_penalty([[-3.0, -2.0], [0.1, -2.0]], [False, False], (0.0, 1.0))
    >>> str(caught[0].message)[:73]
    'in 1 of 2 decisions, every score lies below the lowest possible reward, 0'
    """
    low, high = reward_range
    dominated = are_dominated(scores, no_data, reward_range)
    number = np.count_nonzero(dominated)
    if not number:
        return
    where = f"in {number} of {counted(dominated.size, 'decision')}, " if dominated.ndim else ""
    fewer_keys = (
        ", collect more records, or part them by fewer keys" if where else ", or collect more records"
    )
    warnings.warn(
        f"{where}every score lies below the lowest possible reward, {low:g}: the penalty for the number of"
        " records outweighs the means, so that mostly the counts choose the arm; if rewards are rare, such as"
        " clicks, take --learner kl_lcb, in a vault at init; declare a narrower reward range than"
        f" [{low:g}, {high:g}] if you can defend it{fewer_keys}",
        stacklevel=stacklevel,
    )
