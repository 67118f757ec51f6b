"""The result of an evaluation, and how it is combined from blocks of data sets."""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray
from armnesia.core.special import gammaincinv
from armnesia.simulation.environment import Environment

REPLICATES = 16
_NORMAL, _STUDENT = 1.959963984540054, 2.131449545559323
"""The 97.5 % quantiles of the normal law, and of Student's with 15 degrees of freedom."""

Summary: TypeAlias = tuple[FloatArray, float, float]
"""An unlearner in one block: mean release probabilities, variance of the loss, share of short requests."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Expected sub-optimality μ(a*) − E[μ(released arm)], with the standard error of what was sampled.

    `interval` is for 95 %, also if no loss was drawn. Of data sets, it contains the true value in that share
    of all seeds or more. Of 1,024 to 4,096 count vectors, it did so for 189 to 196 of 200 seeds in
    each of five settings, with losses down to 10⁻⁵.

    `blocks` holds the means of independent blocks. All unlearners of one call share their data sets, so
    errors of ratios and differences can be computed from the blocks.
    """

    suboptimality: float
    standard_error: float
    protocol: str
    probabilities: FloatArray
    datasets: int
    short_share: float
    blocks: FloatArray
    interval: tuple[float, float]

    @property
    def relative_error(self) -> float:
        """The standard error as a share of the value; 0 if no loss was seen."""
        return self.standard_error / self.suboptimality if self.suboptimality > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it, without the blocks."""
        return {
            "suboptimality": self.suboptimality,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
            "protocol": self.protocol,
            "datasets": self.datasets,
            "short_share": self.short_share,
            "probabilities": self.probabilities.tolist(),
        }


def summarised(p: FloatArray, environment: Environment, short: float) -> Summary:
    """Summarise one block, given the release probabilities of each data set."""
    return p.mean(axis=0), float((p @ environment.gaps).var()), short


def gathered(blocks: list[Summary], environment: Environment, size: int) -> Evaluation:
    """Combine equal blocks of sampled data sets; the variance is that within and between them.

    If no loss was seen, the error is not 0: a loss may occur in fewer than one of that many data sets.
    """
    means = np.array([p for p, _, _ in blocks])
    losses = means @ environment.gaps
    variance = float(np.mean([within for _, within, _ in blocks]) + losses.var())
    datasets = size * len(blocks)
    largest, value, error = (
        float(environment.gaps.max()),
        float(losses.mean()),
        math.sqrt(variance / datasets),
    )
    return Evaluation(
        suboptimality=value,
        standard_error=error if losses.any() else largest / datasets,
        interval=bounded_interval(value, error, largest, datasets),
        protocol="sampled",
        probabilities=means.mean(axis=0),
        datasets=datasets,
        short_share=float(np.mean([short for *_, short in blocks])),
        blocks=losses,
    )


def bounded_interval(value: float, error: float, largest: float, draws: int) -> tuple[float, float]:
    """A 95 % interval for the mean of draws from 0 to `largest`, by their mean and its standard error.

    For losses 0 and `largest`, the upper limit is Garwood's exact one for Poisson counts, which is above
    that of Clopper and Pearson; nothing seen in n draws means at most 3.7 in n. Other losses have the same
    variance from more and smaller jumps, and the largest jump that was not seen is added in the same way.
    Downwards, a draw can differ by the mean at most.

    >>> low, high = bounded_interval(0.0, 0.0, largest=1.0, draws=1000)
    >>> low, round(high, 6)
    (0.0, 0.003689)
    """
    low = value - _reach(error, value / draws) if value > 0 else 0.0
    return max(0.0, low), min(largest, value + _reach(error, largest / draws))


def _reach(error: float, jump: float) -> float:
    """How far the mean of a Poisson sum of such jumps can be above what was seen, at 97.5 %."""
    if jump == 0:
        return _NORMAL * error
    seen = (error / jump) ** 2
    if seen > 1e8:  # the sum is normal, and the difference below would lose digits
        return _NORMAL * error
    return jump * (float(gammaincinv(seen + 1, 0.975)) - seen)


@dataclass(frozen=True, eq=False)
class WeightedVectors:
    """A replicate: count vectors with their weights, and what is released given each of them."""

    vectors: IntArray
    weights: FloatArray
    short: BoolArray
    released: dict[str, FloatArray]


def weighted(blocks: list[WeightedVectors], key: str, environment: Environment) -> Evaluation:
    """Combine replicates of equal size; the error is that of their weighted means.

    The weights are divided by their mean over all replicates, so that probabilities sum to 1. The interval
    is Student's, and wider above where replicates are skewed. Rare counts of the arms that matter are drawn
    often, so it does not allow for a loss that no count vector has shown.
    """
    weights = np.array([block.weights for block in blocks])
    weights /= weights.mean()
    released = np.array([block.released[key] for block in blocks])
    p = (weights[..., None] * released).mean(axis=(0, 1))
    value, largest = float(p @ environment.gaps), float(environment.gaps.max())
    replicates = value + (weights * (released @ environment.gaps - value)).mean(axis=1)
    error, draws = float(replicates.std(ddof=1)) / math.sqrt(len(blocks)), weights.size
    # Few replicates have a loss that is rare: the largest one counts as a jump, of which one was not seen.
    upward = max(_STUDENT * error, _reach(error, float(replicates.max() - value) / len(blocks)))
    interval = max(0.0, value - _STUDENT * error), min(largest, value + upward)
    return Evaluation(
        suboptimality=value,
        standard_error=error if value > 0 else largest / draws,
        interval=interval if value > 0 else bounded_interval(0.0, 0.0, largest, draws),
        protocol="exact given the counts",
        probabilities=p,
        datasets=draws,
        short_share=float((weights * np.array([block.short for block in blocks])).mean()),
        blocks=replicates,
    )
