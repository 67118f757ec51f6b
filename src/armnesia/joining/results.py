"""What a join did: how many rows it wrote, and what became of every row that it read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special


@dataclass(frozen=True)
class ExposureRows:
    """What became of the exposures; `read` is the sum of the others."""

    read: int
    filtered: int
    """Rows that do not satisfy the conditions."""
    missing_user: int
    missing_experiment: int
    missing_action: int
    missing_time: int
    of_people_left_out: int
    """Rows of people who saw several variants of the experiment."""
    first: int
    """One per row that was written."""
    repeated: int
    """Later exposures of the same people to the same variant."""


@dataclass(frozen=True)
class MetricRows:
    """What became of the rows of the metric; `read` is the sum of the others."""

    read: int
    filtered: int
    missing_user: int
    missing_time: int
    missing_value: int
    user_not_exposed: int
    user_exposed: int


@dataclass(frozen=True)
class MetricUses:
    """Where the metric rows of exposed people lie, one by one for every experiment of the person."""

    within_window: int
    before_window: int
    after_window: int
    of_people_left_out: int


@dataclass(frozen=True)
class VariantCount:
    """The people of one variant."""

    action: str
    people: int
    exposures: int
    with_metric: int


@dataclass(frozen=True)
class ExperimentCount:
    """The people of one experiment. See `equal_shares_p_value`."""

    experiment: str
    people: int
    left_out_several_variants: int
    equal_shares_p_value: float | None
    variants: tuple[VariantCount, ...]


@dataclass(frozen=True)
class Joined:
    """The result of `join_metrics`: what was written, and what became of every row that was read."""

    out: Path
    rows: int
    """One per person and experiment."""
    people: int
    left_out_several_variants: int
    """People, counted once per experiment, who saw several of its variants."""
    rows_without_metric: int
    rows_with_open_window: int
    """Rows whose window ends after the last time in both tables: their metric may still grow."""
    rows_clipped: int
    lowest_reward: float
    highest_reward: float
    exposures: ExposureRows
    metric: MetricRows
    metric_uses: MetricUses
    experiments: tuple[ExperimentCount, ...]

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        return {**asdict(self), "out": str(self.out)}


def equal_shares_p_value(counts: Sequence[int]) -> float | None:
    """The p-value of Pearson's chi-square test that every variant was meant to get the same share.

    A small value shows a sample ratio mismatch, or that the shares were not meant to be equal. None if there
    is one variant only.

    >>> equal_shares_p_value([500, 500]), equal_shares_p_value([100])
    (1.0, None)
    >>> round(equal_shares_p_value([5200, 4800]), 6)
    6.3e-05
    """
    observed = np.asarray(counts, dtype=np.float64)
    if observed.size < 2:
        return None
    expected = observed.mean()
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(special.chdtrc(observed.size - 1, statistic))
