"""What is evaluated: a setting with its methods, and the exact evaluation of one of them."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Learner
from armnesia.privacy import Budget
from armnesia.simulation.count_vectors import likely_vectors
from armnesia.simulation.environment import Environment
from armnesia.simulation.estimates import Evaluation
from armnesia.simulation.exact import cost, exact_release, serves_most_frequent
from armnesia.simulation.models import DataModel, DistributionModel, FixedSample
from armnesia.simulation.most_frequent import chance_of_at_least, most_frequent, products
from armnesia.simulation.requests import RequestModel, SeveralArms
from armnesia.unlearners import Unlearner

Methods = dict[str, tuple[Unlearner | None, Learner]]
"""Unlearners, or None for the oracle, each with its learner, bound."""
_MOST_PRODUCTS = 1e11
_ROUNDING = 1e-15
"""Less likely losses are not told from 0, also by a sum over all outcomes."""


@dataclass(frozen=True)
class Case:
    """A setting and its methods."""

    environment: Environment
    model: DataModel
    request: RequestModel
    methods: Methods
    budget: Budget

    def of(self, keys: Collection[str]) -> "Case":
        """The same with these methods alone."""
        return replace(self, methods={key: self.methods[key] for key in keys})

    @property
    def requested(self) -> IntArray:
        """The records of each arm that are deleted if there are as many; refused if that is drawn."""
        if not isinstance(self.request, SeveralArms) or self.request.choice != "random":
            raise UnsupportedError(
                "exact evaluation needs fixed numbers of randomly chosen records; use the sampled protocol"
            )
        return self.request.requested(self.environment.n_actions)

    @property
    def has_vectors(self) -> bool:
        """Whether counts are drawn and decide what is deleted, so that the rest can be exact given them."""
        fixed = isinstance(self.request, SeveralArms) and self.request.choice == "random"
        return fixed and isinstance(self.model, DistributionModel)

    @property
    def cost(self) -> float:
        """The time of one count vector, in data sets."""
        n_arms = int(np.count_nonzero(self.requested))
        costs = [cost(unlearner, n_arms, self.model.n) for unlearner, _ in self.methods.values()]
        return sum(costs) / len(costs)

    def released(self, key: str, vectors: IntArray) -> FloatArray:
        """The exact release probabilities given each of these count vectors."""
        deleted = np.minimum(self.requested, vectors)
        return np.array(
            [
                exact_release(self.environment, counts, k, *self.methods[key], self.budget)
                for counts, k in zip(vectors, deleted, strict=True)
            ]
        )

    def short(self, vectors: IntArray) -> BoolArray:
        """Which count vectors have fewer records than requested."""
        return np.asarray((vectors < self.requested).any(axis=-1))

    def exact(self, key: str, most: float) -> Evaluation:
        """A sum over all outcomes; over count vectors only in less than the time of `most` data sets."""
        model = self.model
        if isinstance(model, FixedSample):
            vectors, chances = np.array([model.counts]), np.ones(1)
        else:
            found = likely_vectors(model, most / self.of([key]).cost)
            if found is None:
                return self._by_law_of_counts(key, model)
            vectors, chances = found
        p = chances @ self.released(key, vectors)
        return self._known(p, float(chances @ self.short(vectors)))

    def _by_law_of_counts(self, key: str, model: DistributionModel) -> Evaluation:
        unlearner, learner = self.methods[key]
        if not serves_most_frequent(unlearner, learner) or products(model) > _MOST_PRODUCTS:
            raise UnsupportedError("exact evaluation would take long: there are too many count vectors")
        deleted = self.requested if unlearner is not None else np.zeros_like(self.requested)
        nothing = ArmStatistics.empty(tuple(range(deleted.size)))
        p = most_frequent(model, deleted, default=int(learner.decide(nothing).index))
        return self._known(p, 1.0 - chance_of_at_least(model, self.requested))

    def _known(self, p: FloatArray, short: float) -> Evaluation:
        loss = float(p @ self.environment.gaps)
        high = max(loss, _ROUNDING * float(self.environment.gaps.max()))
        return Evaluation(loss, 0.0, "exact", p, 0, max(short, 0.0), np.array([loss]), (loss, high))
