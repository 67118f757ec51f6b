"""What the old decision will have been, judged from what is left: the predictives that tilt can use.

A predictive turns D∖U and the deleted counts into q, the chance that π(D) was each arm. Ours believe that an
arm's mean has a Beta law, that deleted records are drawn like the others, and differ in what they believe
before they look: nothing ("flat"), or what the other arms are like ("empirical_bayes").
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from armnesia.arrays import BoolArray, FloatArray, IntArray, one_hot
from armnesia.learners import LCB, ConfidenceLearner
from armnesia.scale import UNIT
from armnesia.special import betainc, gammaln
from armnesia.statistics import ArmStatistics
from armnesia.unlearners.noise import noisy_argmax

Predictive: TypeAlias = Callable[[ConfidenceLearner, ArmStatistics, IntArray], FloatArray]
"""Judges, from D∖U and the deleted counts, how likely π(D) was each arm."""

Belief: TypeAlias = tuple[FloatArray, FloatArray]
"""Of each arm: the mean is Beta(ones, zeros)."""

_MOST_TERMS = 1000

_GRAIN = 0.1
"""Of a record, before any is seen: an arm that shows no ones is not certain to have had none."""


def flat_belief(sums: FloatArray, counts: IntArray) -> Belief:
    """The mean is what is seen, up to a tenth of a record; uniform for an arm without records.

    >>> flat_belief(np.array([3.0, 0.0]), np.array([10, 0]))
    (array([3.1, 1. ]), array([7.1, 1. ]))
    """
    grain = np.where(counts > 0, _GRAIN, 1.0)
    return grain + sums, grain + (counts - sums)


def empirical_bayes_belief(sums: FloatArray, counts: IntArray) -> Belief:
    """An arm's mean is drawn as the other arms' were: Beta(κp, κ(1−p)), fitted by moments, then updated.

    With weights w and v = p(1−p), E[Σw(p̂_a − p)²] = v·Σ w(1−w)·(1/N_a + ρ(1 − 1/N_a)), where ρ = 1/(κ+1) is
    the spread between arms (Kleinman 1973: weights N/(1+ρ(N−1)), from equal ones in two steps). J arms tell
    little about ρ: like a variance in Student's law it counts (1 + 1/J)·(J−1)/(J−3) times, and for three or
    fewer not at all. κ is at least 1 record, and at most all that are left.

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


def chance_of_at_least(needed: IntArray, gone: IntArray, belief: Belief) -> FloatArray:
    """P(at least `needed` ones among `gone` deleted records), given the belief about their arm's mean.

    The number of ones is beta-binomial: P(0) = Γ(z+k)Γ(n)/(Γ(z)Γ(n+k)) for z zeros of n = ones + zeros, and
    P(g+1)/P(g) = (k−g)(ones+g)/((g+1)(zeros+k−g−1)). Where that would be a long sum, the share of ones is
    taken as Beta with the same mean and variance.

    >>> chance_of_at_least(np.array([0, 3, 11]), np.array(10), (np.array(20.0), np.array(60.0))).round(3)
    array([1.  , 0.47, 0.  ])
    """
    needed, gone, ones, zeros = np.broadcast_arrays(needed, gone, *belief)
    # Where most must be ones it is shorter to count the zeros.
    flipped = 2 * needed > gone
    terms = np.where(flipped, gone - needed + 1, needed)
    below = _fewer(terms, gone, np.where(flipped, zeros, ones), np.where(flipped, ones, zeros))
    return np.where(flipped, below, 1 - below)


def _fewer(terms: IntArray, gone: IntArray, hits: FloatArray, misses: FloatArray) -> FloatArray:
    """P(fewer than `terms` hits), hits being beta-binomial."""
    n = hits + misses
    log_none = gammaln(misses + gone) - gammaln(misses) + gammaln(n) - gammaln(n + gone)
    long = (terms > _MOST_TERMS) | (log_none < -600)
    chance, total = np.exp(np.where(long, -np.inf, log_none)), np.zeros(terms.shape)
    for g in range(int(terms.max(initial=0, where=~long))):
        total += np.where(g < terms, chance, 0.0)
        chance = chance * (gone - g) * (hits + g) / ((g + 1) * np.maximum(misses + gone - g - 1, 1e-300))
    if not long.any():
        return np.minimum(total, 1.0)
    k = np.maximum(gone, 1)
    centre = (k * hits / n + 0.5) / (k + 1)  # whole numbers as intervals of length 1, from −½ to k + ½
    variance = k * hits * misses * (n + k) / (n**2 * (n + 1) * (k + 1) ** 2)
    pieces = centre * (1 - centre) / variance - 1
    law = np.maximum(pieces * centre, 1e-9), np.maximum(pieces * (1 - centre), 1e-9)
    return np.where(long, betainc(*law, np.clip(terms / (k + 1), 0.0, 1.0)), np.minimum(total, 1.0))


def decision_under(
    belief: Belief, learner: ConfidenceLearner, retained: ArmStatistics, shape: IntArray
) -> FloatArray:
    """q, if each arm's mean is as believed: untouched arms are what they are.

    One touched arm: it was ahead if enough of its deleted rewards were ones. Several: their scores are taken
    as normal, and the highest of them is found by integration.

    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> belief = flat_belief(retained.sums / UNIT, retained.counts)
    >>> decision_under(belief, LCB(confidence=0.1), retained, np.array([20, 0])).round(3)
    array([0.154, 0.846])
    """
    shape = np.broadcast_to(shape, retained.counts.shape)
    touched = shape > 0
    one = touched.sum(axis=-1) == 1
    if one.all():
        return _one_arm(belief, learner, retained, shape)
    q = noisy_argmax(*_normal_scores(belief, learner, retained, shape))
    if one.any():
        q = np.where(
            one[..., None], _one_arm(belief, learner, retained, np.where(one[..., None], shape, 0)), q
        )
    return q


def flat(learner: ConfidenceLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q, with nothing believed before: the deleted records had about the mean of those that are left.

    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> flat(LCB(confidence=0.1), retained, np.array([20, 0])).round(3)
    array([0.154, 0.846])
    """
    return decision_under(flat_belief(_sums(retained), retained.counts), learner, retained, shape)


def empirical_bayes(learner: ConfidenceLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """q, with the mean of the deleted records shrunk to those of the other arms.

    >>> retained = ArmStatistics.from_rewards({"A": [1] * 3 + [0] * 2, **{b: [1, 0] * 40 for b in "BCDE"}})
    >>> shape = np.array([75, 0, 0, 0, 0])
    >>> float(empirical_bayes(LCB(confidence=0.1), retained, shape)[0].round(2))
    0.6
    >>> float(flat(LCB(confidence=0.1), retained, shape)[0].round(2))
    0.7
    """
    return decision_under(empirical_bayes_belief(_sums(retained), retained.counts), learner, retained, shape)


PREDICTIVES: dict[str, Predictive] = {"flat": flat, "empirical_bayes": empirical_bayes}
"""The predictives that have a name."""


def _sums(statistics: ArmStatistics) -> FloatArray:
    """Reward sums on the scale where a reward is at most 1; whole ones stay whole."""
    return np.asarray(statistics.sums / UNIT, dtype=np.float64)


def _one_arm(
    belief: Belief, learner: ConfidenceLearner, retained: ArmStatistics, shape: IntArray
) -> FloatArray:
    """The touched arm against the best of the others, with as many ones as it needs."""
    m, touched = retained.n_actions, shape > 0
    arm = np.argmax(touched, axis=-1)[..., None]
    others = np.where(touched, -np.inf, learner.unit_scores(retained))
    rival, to_beat = np.argmax(others, axis=-1)[..., None], others.max(axis=-1, keepdims=True)
    before, sums = np.maximum(retained.counts + shape, 1), _sums(retained)

    def is_ahead(ones: IntArray) -> BoolArray:
        scores = np.take_along_axis(learner.lower_bounds((sums + ones) / before, before, m), arm, -1)
        return np.asarray((scores > to_beat) | ((arm < rival) & (scores == to_beat)))

    # The score rises with the ones: halve the range until the first number that is ahead is left.
    gone = np.take_along_axis(shape, arm, -1)
    low, high = np.zeros_like(gone), np.where(gone > 0, gone + 1, 0)
    while (low < high).any():
        middle = (low + high) // 2
        ahead = is_ahead(middle)
        low, high = np.where(ahead, low, middle + 1), np.where(ahead, middle, high)
    ones, zeros = (np.take_along_axis(np.broadcast_to(part, shape.shape), arm, -1) for part in belief)
    mine = chance_of_at_least(high, gone, (ones, zeros))
    return mine * one_hot(arm[..., 0], m) + (1 - mine) * np.where(touched, 0.0, one_hot(rival[..., 0], m))


def _normal_scores(
    belief: Belief, learner: ConfidenceLearner, retained: ArmStatistics, shape: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Centre and spread of the scores on D: the learner's at the believed mean, and between mean ± spread."""
    m, (ones, zeros) = retained.n_actions, belief
    n, k, before = ones + zeros, np.maximum(shape, 1), np.maximum(retained.counts + shape, 1)
    share = ones / n
    spread = shape / before * np.sqrt(share * (1 - share) * (n + k) / (k * (n + 1)))
    centre = np.where(shape > 0, (_sums(retained) + shape * share) / before, retained.unit_means)
    scores = learner.lower_bounds(centre, before, m)
    if not isinstance(learner, LCB):  # whose score moves as its mean does
        high = learner.lower_bounds(np.minimum(centre + spread, 1.0), before, m)
        low = learner.lower_bounds(np.maximum(centre - spread, 0.0), before, m)
        spread = (high - low) / 2
    return np.where(retained.counts + shape > 0, scores, -1.0), np.where(shape > 0, spread, 0.0)
