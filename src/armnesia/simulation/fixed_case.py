"""What an exact evaluation starts from."""

from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.learners import LCB
from armnesia.privacy import Budget
from armnesia.simulation.score_distribution import ScoreLaw, score_law


@dataclass(frozen=True, eq=False)
class FixedCase:
    """What an exact evaluation needs: Bernoulli means, counts, deleted counts, learner and budget."""

    means: FloatArray
    counts: IntArray
    deleted: IntArray
    learner: LCB
    budget: Budget

    @property
    def m(self) -> int:
        """The number of arms."""
        return len(self.means)

    def laws(self, counts: IntArray, sigma: FloatArray | None = None) -> list[ScoreLaw]:
        """The laws of all scores, with these counts."""
        noise = np.zeros(self.m) if sigma is None else sigma
        return [
            score_law(self.learner, int(n), float(p), self.m, float(s))
            for n, p, s in zip(counts, self.means, noise, strict=True)
        ]
