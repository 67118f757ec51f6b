"""Root penalty: serve the arm with the highest mean less width/√N."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import parameter
from armnesia.learners.mean_and_count import PenaltyLearner


@dataclass(frozen=True, kw_only=True)
class RootPenalty(PenaltyLearner):
    """Score μ̂(a) − width/√N(a).

    >>> from armnesia import ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1, 1, 0]})
    >>> RootPenalty(width=1.0).decide(statistics)
    Decision(action='A', scores=[0.5, 0.089316])

    The width does not depend on the number of arms; `LCB` has √(ln(m/τ)/2) in its place.
    """

    width: float = parameter(0.5, help="The penalty of an arm with one record; it falls as 1/√N.")

    name: ClassVar[str] = "root_penalty"

    def __post_init__(self) -> None:
        if not 0 <= self.width < float("inf"):
            raise InvalidInputError(f"width must be finite and not negative; got {self.width!r}")

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """width/√N."""
        return np.asarray(self.width / np.sqrt(counts))
