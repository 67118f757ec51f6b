"""Randomised response: π(D) with the highest probability that (ε, 0) allows beside equal chances."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from armnesia import Budget, Guarantee, Level, Unlearner
from armnesia.unlearners.base import decision_distribution


@dataclass(frozen=True)
class RandomisedResponse(Unlearner):
    """π(D) with probability e^ε/(e^ε + m − 1), any other arm with 1/(e^ε + m − 1): pure (ε, 0)."""

    name: ClassVar[str] = "randomised_response"
    level: ClassVar[Level] = Level.RETAINED
    conceals_empty_requests: ClassVar[bool] = True

    def answer(self, learner: Any, statistics: Any, request: Any, retained: Any, budget: Budget) -> Any:
        served = decision_distribution(learner, statistics)
        likely, m = np.exp(budget.epsilon), statistics.n_actions
        return (1 + (likely - 1) * served) / (likely + m - 1), "randomised response"

    def reference_probabilities(
        self, learner: Any, retained: Any, shape: Any, original_decision: Any, budget: Budget
    ) -> Any:
        return np.full(retained.counts.shape, 1 / retained.n_actions)

    def guarantee(self, request: Any, budget: Budget) -> Guarantee:
        return Guarantee(budget.epsilon, 0.0, self.level)
