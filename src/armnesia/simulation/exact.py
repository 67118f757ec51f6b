"""The released arm's distribution over all data sets, without sampling: fixed counts, Bernoulli rewards.

Sums of independent Bernoulli rewards are binomial, so every arm's score has finitely many values. Rollback
and the always-on Gaussian mechanism keep the arms independent, and the winner is a product of distribution
functions. Where noise depends on the decision (Algorithms 2, 4 and 7), the result is rollback's, corrected
on the event that a requested arm b was served and noised: given b's own sum, the other arms are independent
again. Exact for any number of requested arms, ties included.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.special import hypergeometric, ndtr
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB, Decision, Imitation, Learner
from armnesia.privacy import Budget
from armnesia.simulation.environment import Environment
from armnesia.simulation.exact_tilt import exact_tilt, frozen_law
from armnesia.simulation.fixed_case import FixedCase
from armnesia.simulation.score_distribution import NEGLIGIBLE, binomial, lcb_scores, winner
from armnesia.unlearners import FrozenRollback, Mixing, Rollback, StrictAdaptive, Tilt, Unlearner
from armnesia.unlearners.base import served
from armnesia.unlearners.noise_based import NoisePlan, NoisyUnlearner

# What the formulas below are derived from; an unlearner with a release of its own is not covered by them.
_KNOWN_RELEASES = (
    Rollback.release,
    NoisyUnlearner.release,
    Mixing.release,
    FrozenRollback.release,
    Tilt.release,
)


def exact_release(
    environment: Environment,
    counts: IntArray,
    deleted: IntArray,
    unlearner: Unlearner | None,
    learner: Learner,
    budget: Budget,
) -> FloatArray:
    """P(released arm) over all data sets with these counts; no unlearner means no deletion.

    >>> environment = Environment.bernoulli([0.10, 0.08, 0.06, 0.04, 0.02])
    >>> p = exact_release(
    ...     environment, np.full(5, 200), np.array([80, 0, 0, 0, 0]), Rollback(), LCB(confidence=1e-3),
    ...     Budget(epsilon=0, delta=0),
    ... )
    >>> round(float(p @ environment.gaps), 6)
    0.019004
    """
    if not environment.is_bernoulli:
        raise UnsupportedError("exact evaluation needs Bernoulli rewards; use the sampled protocol")
    if isinstance(learner, Imitation):
        left = counts if unlearner is None else counts - deleted
        return served(learner, ArmStatistics(tuple(range(len(counts))), left, np.zeros_like(left)))
    if not isinstance(learner, LCB):
        raise UnsupportedError(f"exact evaluation knows lcb and imitation; got {learner.name!r}")
    case = FixedCase(environment.means, counts, deleted, learner, budget)
    if unlearner is None:
        return winner(case.laws(counts))
    if type(unlearner).release not in _KNOWN_RELEASES:
        raise UnsupportedError(f"exact evaluation does not know {unlearner.name!r}; use the sampled protocol")
    if not (counts - deleted).any():
        return served(learner, ArmStatistics.empty(range(case.m)))
    return np.clip(_release(case, unlearner), 0.0, 1.0)  # differences may leave −10⁻¹²


def _release(case: FixedCase, unlearner: Unlearner) -> FloatArray:
    """By the way in which the unlearner treats the requested arms."""
    left = case.counts - case.deleted
    if isinstance(unlearner, Tilt):
        return exact_tilt(case, unlearner)
    if isinstance(unlearner, FrozenRollback):
        return winner([frozen_law(case, arm) for arm in range(case.m)])
    if not isinstance(unlearner, NoisyUnlearner):
        return winner(case.laws(left))
    if unlearner.level.sees_decision or isinstance(unlearner, StrictAdaptive):
        return _by_decision(case, unlearner)
    plan = unlearner.checked_plan(case.learner, case.counts, case.deleted, None, case.budget)
    return winner(case.laws(np.where(plan.noised, case.counts, left), plan.sigma))


def _by_decision(case: FixedCase, unlearner: NoisyUnlearner) -> FloatArray:
    """Rollback everywhere, replaced by noise on the events that its plan is noise."""
    chances = winner(case.laws(case.counts - case.deleted))
    for arm in range(case.m):
        nothing = np.zeros(case.m)
        decision = Decision(tuple(range(case.m)), np.array(arm), nothing, np.array(False))
        plan = unlearner.checked_plan(case.learner, case.counts, case.deleted, decision, case.budget)
        if np.delete(plan.noised, arm).any():
            raise UnsupportedError(
                "exact evaluation needs noise on the served arm only, where noise depends on the decision;"
                f" {unlearner.name!r} noises others: use the sampled protocol"
            )
        if plan.noised[arm]:
            if isinstance(unlearner, StrictAdaptive):
                raise UnsupportedError(
                    "exact evaluation of strict_adaptive is for budgets at which it adds no noise: it looks"
                    " at D∖U before it does; use the sampled protocol"
                )
            first = unlearner.rolled_back_first(case.deleted)
            chances = chances + _noise_less_rollback(case, arm, plan, int(first[arm]))
    return chances


def _noise_less_rollback(case: FixedCase, arm: int, plan: NoisePlan, first: int) -> FloatArray:
    """P(winner by noise) − P(winner by rollback), on the event that `arm` was served.

    Given the arm's sum s, the best final score v among the others has a known (defective) law, and
    P(arm stays ahead of v) is a normal probability under noise and a step under rollback; the difference
    moves probability between the arm and the rival that holds v.
    """
    n, k, m = int(case.counts[arm]), int(case.deleted[arm]), case.m
    weights = binomial(n, float(case.means[arm]))
    sums = np.flatnonzero(weights > NEGLIGIBLE)
    scores = lcb_scores(case.learner, sums, n, m)
    others = {i: OtherArm(case, i, arm, scores) for i in range(m) if i != arm}
    moved = np.zeros(m)
    for rival, law in others.items():
        chance_at = weights[sums, None] * law.at()
        for i, other in others.items():
            if i != rival:
                chance_at = chance_at * other.below(law.values, or_equal=i > rival)
        ahead = partial(_ahead, wins_ties=arm < rival, values=law.values)
        by_noise = _given_the_sum(case, arm, sums, n - first, ahead, float(plan.sigma[arm]))
        by_rollback = _given_the_sum(case, arm, sums, n - k, ahead, 0.0)
        change = float((chance_at * (by_noise - by_rollback)).sum())
        moved[arm] += change
        moved[rival] -= change
    return moved


def _ahead(scores: FloatArray, sigma: float, *, values: FloatArray, wins_ties: bool) -> FloatArray:
    """P(score + noise beats each of the values)."""
    difference = scores[:, None] - values
    if sigma > 0:
        return ndtr(difference / sigma)
    return np.asarray(difference >= 0 if wins_ties else difference > 0, dtype=np.float64)


def _given_the_sum(
    case: FixedCase,
    arm: int,
    sums: IntArray,
    left: int,
    ahead: Callable[[FloatArray, float], FloatArray],
    sigma: float,
) -> FloatArray:
    """P(the arm, with `left` of its records left at random, is ahead | its sum before)."""
    n = int(case.counts[arm])
    if left == n:
        return ahead(lcb_scores(case.learner, sums, n, case.m), sigma)
    parts = np.arange(min(left, int(sums[-1])) + 1)
    chances = hypergeometric(parts, np.array(n), sums[:, None], np.array(left))
    scores = lcb_scores(case.learner, parts, left, case.m)
    return np.asarray(chances @ ahead(scores, sigma))


class OtherArm:
    """An arm that lost against the served one, whose score was one of `served_scores`.

    Its final score is its score on D, or, if it is requested too, the one after rollback; jointly with the
    event that it lost, it has a defective law for every served score (the rows).
    """

    def __init__(self, case: FixedCase, arm: int, served_arm: int, served_scores: FloatArray) -> None:
        n, k, p = int(case.counts[arm]), int(case.deleted[arm]), float(case.means[arm])
        final = binomial(n - k, p)
        kept = np.flatnonzero(final > NEGLIGIBLE)
        self.values = lcb_scores(case.learner, kept, n - k, case.m)
        before = lcb_scores(case.learner, np.arange(n + 1), n, case.m)
        # How many of the sums on D lose: the score rises with the sum.
        n_losing = np.searchsorted(before, served_scores, side="right" if arm > served_arm else "left")
        gone_at_most = np.concatenate([[0.0], np.cumsum(binomial(k, p))])
        room = np.clip(n_losing[:, None] - kept, 0, k + 1)
        self._weights: FloatArray = final[kept] * gone_at_most[room]

    def at(self) -> FloatArray:
        """P(lost, and the final score is values[j]); a row for each served score."""
        return self._weights

    def below(self, y: FloatArray, *, or_equal: bool) -> FloatArray:
        """P(lost, and the final score is below y); a row for each served score."""
        cumulative = np.concatenate(
            [np.zeros((len(self._weights), 1)), np.cumsum(self._weights, axis=1)], axis=1
        )
        return np.asarray(
            cumulative[:, np.searchsorted(self.values, y, side="right" if or_equal else "left")]
        )
