"""What an evaluation found, and how blocks of data sets are put together."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.simulation.environment import Environment

Summary: TypeAlias = tuple[FloatArray, float, float]
"""Of an unlearner in a block: mean release probabilities, variance of the loss, share of short requests."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Expected sub-optimality μ(a*) − E[μ(released arm)], with the standard error of whatever was sampled.

    `blocks` holds the means of independent blocks that share their data sets with every other unlearner
    evaluated in the same call, so that ratios and differences can be given an error too.
    """

    suboptimality: float
    standard_error: float
    protocol: str
    probabilities: FloatArray
    datasets: int
    short_share: float
    blocks: FloatArray

    @property
    def relative_error(self) -> float:
        """The standard error as a share of the value; 0 for a loss that never occurred."""
        return self.standard_error / self.suboptimality if self.suboptimality > 0 else 0.0


def summarised(p: FloatArray, environment: Environment, short: float) -> Summary:
    """One block: of each data set the release probabilities."""
    return p.mean(axis=0), float((p @ environment.gaps).var()), short


def gathered(blocks: list[Summary], environment: Environment, protocol: str, size: int) -> Evaluation:
    """Put equal blocks together; the variance is that within and between them.

    A loss that was never seen is not known to be 0: it may happen in fewer than one of so many data sets.
    """
    means = np.array([p for p, _, _ in blocks])
    losses = means @ environment.gaps
    variance = float(np.mean([within for _, within, _ in blocks]) + losses.var())
    datasets = size * len(blocks)
    error = math.sqrt(variance / datasets)
    return Evaluation(
        suboptimality=float(losses.mean()),
        standard_error=error if losses.any() else float(environment.gaps.max()) / datasets,
        protocol=protocol,
        probabilities=means.mean(axis=0),
        datasets=datasets,
        short_share=float(np.mean([short for *_, short in blocks])),
        blocks=losses,
    )
