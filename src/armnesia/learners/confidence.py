"""What the learners by confidence bounds share: their confidence τ."""

import math
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Self

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import parameter
from armnesia.core.statistics import ArmStatistics
from armnesia.learners.base import Learner


@dataclass(frozen=True, kw_only=True)
class ConfidenceLearner(Learner):
    """Scores an arm by a confidence bound on its mean.

    `confidence` is τ: given, or bound once as 1/N. It must not change when records are deleted, or rollback
    would not equal retraining. Bound as 1/N it reveals N, because it is public configuration, and every
    guarantee says so; give it beforehand if the size of the log must stay unknown.

    >>> from armnesia import LCB, ArmStatistics
    >>> learner = LCB().bind(ArmStatistics.from_rewards({"A": [1, 0], "B": [1, 1]}))
    >>> learner.confidence, learner.reveals
    (0.25, 'τ = 1/4 was taken from the log, so its size is public')
    """

    confidence: float | None = parameter(
        None, help="The level τ of the confidence bounds, in (0, 1]; 1/N if not given."
    )
    bound_to: int | None = field(default=None, repr=False, compare=False)
    """N, if the confidence was bound as 1/N; `bind` sets it."""

    def __post_init__(self) -> None:
        tau = self.confidence
        if tau is not None and not (isinstance(tau, Real) and 0 < tau <= 1):
            raise InvalidInputError(f"confidence must lie in (0, 1]; got {self.confidence!r}")

    def bind(self, statistics: ArmStatistics) -> Self:
        """Fix τ = 1/N, unless a confidence was given."""
        if self.confidence is not None:
            return self
        totals = np.unique(statistics.total)
        if len(totals) != 1 or totals[0] == 0:
            pooled = ", or bind to the log of all decisions (decisions.pooled)" if len(totals) > 1 else ""
            raise InvalidInputError(
                "confidence can be bound as 1/N only where every data set has the same N > 0;"
                f" got N = {totals.tolist()[:3]}; give confidence instead{pooled}"
            )
        return replace(self, confidence=1 / int(totals[0]), bound_to=int(totals[0]))

    @property
    def reveals(self) -> str:
        """The size of the log, if τ was bound to it and no other was given since."""
        if self.bound_to is None or self.confidence != 1 / self.bound_to:
            return ""
        return f"τ = 1/{self.bound_to} was taken from the log, so its size is public"

    def check_bound(self) -> None:
        """Refuse a learner without a confidence."""
        self.log_term(1)

    def log_term(self, n_actions: int) -> float:
        """L = ln(m/τ), which every bound of the paper contains."""
        if self.confidence is None:
            raise InvalidInputError(
                f"the learner {self.name} has no confidence yet: give confidence=τ or use .bind(statistics)"
            )
        return math.log(n_actions / self.confidence)
