"""Predictives: estimates of the old decision from the records left, which tilt uses.

A predictive computes from D∖U and the deleted counts, for each arm, the probability q that π(D) was that arm.
Those here take the mean of an arm as Beta-distributed and the deleted records as drawn like the others. The
prior is weak, Beta(0.1, 0.1) ("flat"), or fitted to the other arms ("empirical_bayes"). Three are for level
`retained`, where the deleted counts are not known: "nothing_or_share", "equal_counts" and "by_counts".
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, one_hot
from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners.believed_decision import decision_under, reward_sums
from armnesia.unlearners.beta_binomial import Belief

Predictive: TypeAlias = Callable[[MeanAndCountLearner, ArmStatistics, IntArray], FloatArray]
"""The probability that π(D) was each arm, given D∖U and the deleted counts."""


_PRIOR_RECORDS = 0.1
"""The weights of a weak prior, in records: an arm that shows no ones may still have had some."""


def flat_belief(sums: FloatArray, counts: IntArray) -> Belief:
    """Beta(0.1 + ones, 0.1 + zeros) for the mean of an arm; uniform for an arm without records.

    >>> flat_belief(np.array([3.0, 0.0]), np.array([10, 0]))
    (array([3.1, 1. ]), array([7.1, 1. ]))
    """
    prior = np.where(counts > 0, _PRIOR_RECORDS, 1.0)
    return prior + sums, prior + (counts - sums)


def empirical_bayes_belief(sums: FloatArray, counts: IntArray) -> Belief:
    """The prior Beta(κp, κ(1−p)) of all arms, fitted by moments, then updated by the records of each arm.

    With weights w and v = p(1−p), E[Σw(p̂_a − p)²] = v·Σ w(1−w)·(1/N_a + ρ(1 − 1/N_a)), where ρ = 1/(κ+1) is
    the spread between arms (Kleinman 1973: weights N/(1+ρ(N−1)), from equal ones in two steps). J arms carry
    little information about ρ: as for a variance in Student's distribution it is multiplied by
    (1 + 1/J)·(J−1)/(J−3), and for three arms or fewer ρ is 1. κ is at least 1 record and at most the number
    of records left.

    >>> sums, counts = np.array([30.0, 32, 28, 31, 0]), np.array([100, 100, 100, 100, 0])
    >>> ones, zeros = empirical_bayes_belief(sums, counts)
    >>> (ones / (ones + zeros)).round(3)
    array([0.302, 0.306, 0.298, 0.304, 0.302])
    """
    seen = np.maximum(counts, 1)
    means, there = sums / seen, counts > 0
    arms, total = there.sum(axis=-1, keepdims=True), np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    weights = there.astype(np.float64)
    for _ in range(2):
        weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)
        p = np.clip((weights * means).sum(axis=-1, keepdims=True), 0.5 / total, 1 - 0.5 / total)
        spread = (weights * (means - p) ** 2).sum(axis=-1, keepdims=True) / (p * (1 - p))
        by_chance = (weights * (1 - weights) / seen).sum(axis=-1, keepdims=True)
        by_arms = (weights * (1 - weights) * (1 - 1 / seen)).sum(axis=-1, keepdims=True)
        rho = np.clip((spread - by_chance) / np.maximum(by_arms, 1e-300), 0.0, 1.0)
        weights = np.where(there, counts / (1 + rho * (seen - 1)), 0.0)
    rho = np.where(arms > 3, rho * (1 + 1 / np.maximum(arms, 1)) * (arms - 1) / np.maximum(arms - 3, 1), 1.0)
    kappa = np.clip(1 / np.maximum(rho, 1e-300) - 1, 1.0, total)
    return kappa * p + sums, kappa * (1 - p) + (counts - sums)


def flat(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q with a weak prior, Beta(0.1, 0.1): the deleted records had about the mean of those that are left.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> flat(LCB(confidence=0.1), retained, np.array([20, 0])).round(3)
    array([0.154, 0.846])
    """
    return decision_under(flat_belief(reward_sums(retained), retained.counts), learner, retained, shape)


def empirical_bayes(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q with the mean of the deleted records shrunk towards those of the other arms.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 3 + [0] * 2, **{b: [1, 0] * 40 for b in "BCDE"}})
    >>> shape = np.array([75, 0, 0, 0, 0])
    >>> float(empirical_bayes(LCB(confidence=0.1), retained, shape)[0].round(2))
    0.6
    >>> float(flat(LCB(confidence=0.1), retained, shape)[0].round(2))
    0.7
    """
    return decision_under(
        empirical_bayes_belief(reward_sums(retained), retained.counts), learner, retained, shape
    )


def nothing_or_share(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q where it is not known whether records were deleted: the average of no deletion and `shape`, by flat.

    It is for `Tilt(assumed_share=…)`, which does not see the request and answers empty ones as well. Without
    a deletion, π(D) was the decision of D∖U.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> flat(LCB(confidence=0.1), retained, np.array([900, 1080])).round(3)
    array([0.329, 0.671])
    >>> nothing_or_share(LCB(confidence=0.1), retained, np.array([900, 1080])).round(2)
    array([0.16, 0.84])
    """
    unchanged = one_hot(learner.decide(retained).index, retained.n_actions)
    return (unchanged + flat(learner, retained, shape)) / 2


def equal_counts(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q where all arms had equally many records: those that an arm lacks now were deleted, up to `shape`.

    It is for `Tilt(assumed_share=…)` on logs whose arms were drawn equally often. The arm with the most
    records is taken as untouched. If all arms have equally many, π(D) was the decision of D∖U.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> equal_counts(LCB(confidence=0.1), retained, np.array([900, 1080])).round(3)
    array([0.154, 0.846])
    """
    lacking = retained.counts.max(axis=-1, keepdims=True) - retained.counts
    return flat(learner, retained, np.minimum(lacking, shape))


def by_counts(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q by `equal_counts` if the counts look like it, otherwise by `nothing_or_share`.

    The arms were drawn equally often, it seems, if more than half of them have the highest count n, within
    three standard deviations √n. The others then lost records.

    >>> from armnesia import LCB
    >>> rewards = {"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57, "C": [1] * 20 + [0] * 100}
    >>> retained = ArmStatistics.from_rewards(rewards)
    >>> by_counts(LCB(confidence=0.1), retained, np.array([900, 1080, 1080])).round(3)
    array([0.154, 0.846, 0.   ])
    """
    highest = retained.counts.max(axis=-1, keepdims=True)
    equal = 2 * (retained.counts >= highest - 3 * np.sqrt(highest)).sum(axis=-1) > retained.n_actions
    if equal.all():
        return equal_counts(learner, retained, shape)
    otherwise = nothing_or_share(learner, retained, shape)
    if not equal.any():
        return otherwise
    return np.where(equal[..., None], equal_counts(learner, retained, shape), otherwise)


PREDICTIVES: dict[str, Predictive] = {
    "flat": flat,
    "empirical_bayes": empirical_bayes,
    "nothing_or_share": nothing_or_share,
    "equal_counts": equal_counts,
    "by_counts": by_counts,
}
"""The predictives by name."""


def checked_probabilities(
    name: str, values: Any, shape: tuple[int, ...], unused: BoolArray | None = None
) -> FloatArray:
    """Probabilities, up to a factor, for arms on the last axis: finite, 0 or more, and not all 0.

    `unused` marks data sets whose values do not matter.

    >>> checked_probabilities("predictive", [1, 3], shape=(2,))
    array([1., 3.])
    """
    accepted = f"{name} must return one number per arm, finite, 0 or more, not all 0, for {shape[-1]} arms"
    try:
        given = np.asarray(values)
        # Text and complex numbers are not turned into numbers, nor one number into one for every arm.
        if given.dtype.kind not in "biufO" or given.shape[-1:] != shape[-1:]:
            raise ValueError
        q = np.broadcast_to(given.astype(np.float64), shape)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{accepted}; got {values!r}") from None
    if unused is not None:
        q = np.where(unused[..., None], 1.0, q)
    if not (np.isfinite(q).all() and (q >= 0).all() and q.any(axis=-1).all()):
        raise InvalidInputError(f"{accepted}; got {values!r}")
    return q
