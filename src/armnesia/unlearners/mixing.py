"""Mixing: roll back a part of the request and hide the rest behind noise."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.parameters import parameter
from armnesia.core.request import DeletionRequest
from armnesia.core.special import hypergeometric
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import Decision, PenaltyLearner
from armnesia.privacy import Budget, Level
from armnesia.unlearners.base import Branch, Branches, first_branch
from armnesia.unlearners.calibration import (
    SENSITIVITY_HELP,
    Sensitivity,
    check_choice,
    score_sensitivity,
    sensitivity_certified,
)
from armnesia.unlearners.noise_based import NoiseBasedUnlearner, NoisePlan, winner_distribution

_ROUNDING = 1e-9  # 0.29 · 100 is slightly below 29 in doubles
_CHUNK = 2**20  # scores in memory at once while integrating over the choice of U′
_LEFT_OUT = 1e-20
"""The probability of the numbers of ones in U′ that are left out; rounding in the sum is larger."""
_MOST_NUMBERS = 2**23
"""Numbers of ones in U′ that are summed over: enough for requests of about 10¹² records."""


@dataclass(frozen=True)
class Mixing(NoiseBasedUnlearner):
    """Algorithm 4 (appendix A.3): of k records of the served arm, k′ are rolled back, noise hides the rest.

    k′ is ⌊ratio·k⌋ (ratio ½ if not given) or `rolled_back`. The algorithm chooses the k′ records U′
    uniformly; for rewards in {0, 1} that choice is integrated exactly (the number of ones in U′ is
    hypergeometric). For other rewards sums do not determine it: choose U′ yourself and pass it as
    `rolled_back`. If the request is not for the served arm, everything is rolled back. One arm only.

    Level `original_decision`, as for `Adaptive`.

    >>> from armnesia import LCB, ArmStatistics, DeletionRequest
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 6 + [0] * 4, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> Mixing(ratio=0.5).release(LCB().bind(statistics), statistics, request, budget).probabilities.round(4)
    array([0.6718, 0.3282])
    """

    ratio: float | None = parameter(
        None, help="The share of the request that is rolled back, in [0, 1]; 1/2 if not given."
    )
    rolled_back: int | DeletionRequest | None = parameter(
        None, help="The number of deleted records that are rolled back, instead of a ratio."
    )
    sensitivity: Sensitivity = parameter("exact", help=SENSITIVITY_HELP)

    name: ClassVar[str] = "mixing"
    level: ClassVar[Level] = Level.ORIGINAL_DECISION
    several_arms: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("sensitivity", self.sensitivity)
        if self.ratio is not None and self.rolled_back is not None:
            raise InvalidInputError("mixing takes ratio or rolled_back, not both")
        if self.ratio is not None and not (isinstance(self.ratio, Real) and 0 <= self.ratio <= 1):
            raise InvalidInputError(f"ratio must lie in [0, 1]; got {self.ratio!r}")
        if not (self.rolled_back is None or isinstance(self.rolled_back, DeletionRequest)):
            whole = isinstance(self.rolled_back, Integral) and not isinstance(self.rolled_back, bool)
            if not whole or self.rolled_back < 0:
                raise InvalidInputError(
                    "rolled_back must be a whole number, 0 or more, or the DeletionRequest to roll back;"
                    f" got {self.rolled_back!r}"
                )

    @classmethod
    def as_in_the_paper(cls) -> Self:
        """The paper's experiments: its sensitivity 3k/(2N); half of the request is rolled back."""
        return cls(sensitivity="paper")

    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        """Noise on π(D) for the records that are not rolled back first."""
        assert decision is not None  # at this level it is seen
        touched = deleted > 0
        m = counts.shape[-1]
        first = self.rolled_back_first(deleted)
        is_served = decision.index[..., None] == np.arange(m)
        kind, left, rest = self.sensitivity, counts - first, deleted - first
        certified = sensitivity_certified(kind, learner, left, rest, m)
        reasons = {
            Branch.NOT_SERVED: ~(is_served & touched).any(axis=-1),
            Branch.ROLLBACK: ~(is_served & (rest > 0)).any(axis=-1),
            Branch.NO_SENSITIVITY: ~(is_served & certified).any(axis=-1),
            Branch.GAUSSIAN: first.sum(axis=-1) == 0,
        }
        branches = first_branch(reasons, otherwise=Branch.MIXING)
        by_noise = (branches == Branch.GAUSSIAN) | (branches == Branch.MIXING)
        noised = is_served & by_noise[..., None]
        gamma = np.where(noised, budget.gamma, 0.0)
        return NoisePlan(noised, gamma * score_sensitivity(kind, learner, left, rest, m), branches)

    def answer(
        self,
        learner: PenaltyLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str | Branches]:
        """The mixture, over the choice of U′, of noise on the score of D∖U′."""
        if isinstance(self.rolled_back, DeletionRequest):
            request.records.without(self.rolled_back)  # refuses a U′ that is not a part of U
        decision = learner.decide(statistics)
        plan = self.checked_plan(learner, statistics.counts, request.counts, decision, budget)
        mixture, total = np.zeros(plan.noised.shape), np.zeros(plan.noised.shape[:-1])
        for weight, part_scores in self._part_scores(learner, statistics, request, plan):
            scores = np.where(plan.noised, part_scores, learner.unit_scores(retained))
            by_part = winner_distribution(learner, retained, scores, plan)
            mixture += (weight[..., None] * by_part).sum(axis=0)
            total += weight.sum(axis=0)
        # Dividing by the total removes the rounding error of the weights, whose exact sum is 1.
        return mixture / total[..., None], plan.branch

    def rolled_back_first(self, deleted: IntArray) -> IntArray:
        """k′ per arm, at most k."""
        if isinstance(self.rolled_back, DeletionRequest):
            return self.rolled_back.counts
        if self.rolled_back is None:
            ratio = 0.5 if self.ratio is None else self.ratio
            return np.asarray(np.floor(ratio * deleted + _ROUNDING), dtype=np.int64)
        if np.any((deleted > 0) & (deleted < self.rolled_back)):
            raise InvalidInputError(
                f"rolled_back must not exceed the number of deleted records; got {self.rolled_back}"
            )
        return np.where(deleted > 0, self.rolled_back, 0)

    def with_rolled_back(self, part: DeletionRequest) -> "Mixing":
        """The same unlearner with U′ chosen."""
        return replace(self, ratio=None, rolled_back=part)

    def _part_scores(
        self, learner: PenaltyLearner, statistics: ArmStatistics, request: DeletionRequest, plan: NoisePlan
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Probabilities of the possible U′ and the scores of D∖U′; the first axis is the possibilities."""
        if isinstance(self.rolled_back, DeletionRequest):
            part = statistics.without(self.rolled_back)
            yield np.ones((1,) + (1,) * (plan.noised.ndim - 1)), learner.unit_scores(part)[None]
            return
        first = self.rolled_back_first(request.counts)
        left = statistics.counts - first
        chooses = (plan.branch == Branch.MIXING) & plan.noised.any(axis=-1)
        if not request.binary and chooses.any():
            raise UnsupportedError(
                "mixing chooses which records to roll back first, which needs rewards that are all 0 or 1;"
                " these are not: use another unlearner, or in Python pass the chosen records as"
                " rolled_back=DeletionRequest(…)"
            )
        k, k_first = request.counts.max(axis=-1), first.max(axis=-1)
        ones = np.asarray(request.sums.max(axis=-1) // UNIT, dtype=np.int64)
        denominator = np.maximum(left, 1) * np.float64(UNIT)
        penalty = learner.penalty(np.maximum(left, 1), statistics.n_actions)
        fewest, most = likely_numbers(k, ones, k_first)
        n_numbers = int((most - fewest).max(initial=0)) + 1
        if n_numbers > _MOST_NUMBERS:
            raise UnsupportedError(
                f"mixing sums over the possible choices of the records that are rolled back; {int(k.max())}"
                " deleted records are too many: use another unlearner, or in Python pass the chosen records"
                " as rolled_back=DeletionRequest(…)"
            )
        for some in np.array_split(np.arange(n_numbers), -(-n_numbers * left.size // _CHUNK)):
            drawn = fewest + some.reshape((-1,) + (1,) * k.ndim)
            rolled_back_ones = drawn[..., None] * np.float64(UNIT)
            means = ((statistics.sums - rolled_back_ones) / denominator).astype(np.float64)
            weights = np.where(drawn <= most, hypergeometric(drawn, k, ones, k_first), 0.0)
            yield weights, np.where(left > 0, means - penalty, -1.0)


def likely_numbers(k: IntArray, ones: IntArray, k_first: IntArray) -> tuple[IntArray, IntArray]:
    """The least and the largest number of ones in U′ that are summed over; others have 10⁻²⁰ in all.

    Hoeffding (1963): in a sample of n without replacement, the number of ones is further than t from its
    expectation with probability at most 2·exp(−2t²/n). The rest of U is such a sample too.

    >>> fewest, most = likely_numbers(np.array([80, 10**9]), np.array([8, 10**8]), np.array([40, 5 * 10**8]))
    >>> fewest, most
    (array([       0, 49891896]), array([       8, 50108104]))
    """
    expected = ones * (k_first / np.maximum(k, 1))
    reach = np.sqrt(np.minimum(k_first, k - k_first) * (np.log(2 / _LEFT_OUT) / 2)) + 1
    fewest = np.maximum(np.floor(expected - reach), np.maximum(ones + k_first - k, 0))
    most = np.minimum(np.ceil(expected + reach), np.minimum(ones, k_first))
    return fewest.astype(np.int64), most.astype(np.int64)
