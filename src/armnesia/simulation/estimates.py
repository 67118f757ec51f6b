"""The result of an evaluation, and how it is combined from blocks of data sets."""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.simulation.environment import Environment

Summary: TypeAlias = tuple[FloatArray, float, float]
"""An unlearner in one block: mean release probabilities, variance of the loss, share of short requests."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Expected sub-optimality μ(a*) − E[μ(released arm)], with the standard error of what was sampled.

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

    @property
    def relative_error(self) -> float:
        """The standard error as a share of the value; 0 if no loss was seen."""
        return self.standard_error / self.suboptimality if self.suboptimality > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it, without the blocks."""
        return {
            "suboptimality": self.suboptimality,
            "standard_error": self.standard_error,
            "protocol": self.protocol,
            "datasets": self.datasets,
            "short_share": self.short_share,
            "probabilities": self.probabilities.tolist(),
        }


def summarised(p: FloatArray, environment: Environment, short: float) -> Summary:
    """Summarise one block, given the release probabilities of each data set."""
    return p.mean(axis=0), float((p @ environment.gaps).var()), short


def gathered(blocks: list[Summary], environment: Environment, protocol: str, size: int) -> Evaluation:
    """Combine equal blocks; the variance is that within and between them.

    If no loss was seen, the error is not 0: a loss may occur in fewer than one of that many data sets.
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
