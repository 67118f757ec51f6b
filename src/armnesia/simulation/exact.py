"""The distribution of the released arm over all data sets with fixed counts and Bernoulli rewards, exactly.

Sums of independent Bernoulli rewards are binomial, so the score of an arm has finitely many values. Rollback
and the Gaussian mechanism keep the arms independent, and the distribution of the winner is a product of
distribution functions. Where noise depends on the decision (Algorithms 2, 4 and 7), the result is that of
rollback, corrected on the event that a requested arm b was served and got noise: given b's own sum, the other
arms are independent again. It is exact for any number of requested arms, ties included.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.special import hypergeometric, ndtr
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import CountsOnlyLearner, Decision, Imitation, Learner
from armnesia.privacy import Budget
from armnesia.simulation.environment import Environment
from armnesia.simulation.exact_tilt import exact_tilt
from armnesia.simulation.fixed_case import FixedCase, inherits
from armnesia.simulation.score_distribution import NEGLIGIBLE, binomial, winner
from armnesia.unlearners import FrozenRollback, Mixing, Rollback, Tilt, Unlearner
from armnesia.unlearners.base import decision_distribution
from armnesia.unlearners.noise_based import NoiseBasedUnlearner, NoisePlan


def exact_release(
    environment: Environment,
    counts: IntArray,
    deleted: IntArray,
    unlearner: Unlearner | None,
    learner: Learner,
    budget: Budget,
) -> FloatArray:
    """P(released arm) over all data sets with these counts; no unlearner means no deletion.

    >>> from armnesia import LCB
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
    left, formula = counts, None
    if unlearner is not None:
        left, formula = counts - deleted, _formula(unlearner)
        # With no records left the default action is served, also for a request that is refused otherwise.
        unlearner.check_supported(learner, deleted if left.any() else left)
    if learner.supports(CountsOnlyLearner) or not left.any():
        # The rewards do not matter. Of the unlearners below, only rollback takes a learner by counts alone.
        retained = ArmStatistics(tuple(range(len(counts))), left, np.zeros_like(left))
        return decision_distribution(learner, retained)
    case = FixedCase(environment.means, counts, deleted, learner, budget)
    if formula is None:
        return winner(case.score_distributions(counts))
    return np.clip(formula(case, unlearner), 0.0, 1.0)  # differences may leave −10⁻¹²


def _formula(unlearner: Unlearner) -> Callable[[FixedCase, Any], FloatArray]:
    """The formula for the method with which the unlearner answers requests."""
    kind = type(unlearner)
    formula = _FORMULAS.get(kind.answer)
    relied_on: tuple[Callable[..., Any], ...] = (
        Unlearner.release,
        Unlearner.reference,
        *_RELIED_ON.get(kind.answer, ()),
    )
    if isinstance(unlearner, NoiseBasedUnlearner) and not unlearner.guesses_decision:
        relied_on += (NoiseBasedUnlearner.decision_seen,)
    if formula is None or not inherits(unlearner, *relied_on):
        raise UnsupportedError(f"exact evaluation does not know {unlearner.name!r}; use the sampled protocol")
    return formula


def serves_most_frequent(unlearner: Unlearner | None, learner: Learner) -> bool:
    """Whether the arm with the most records left is released, as by imitation.

    >>> from armnesia.learners import LCB, Imitation
    >>> serves_most_frequent(Rollback(), Imitation()), serves_most_frequent(None, LCB())
    (True, False)
    """
    if not inherits(learner, Learner.decide, Learner.best_arm, Imitation.unit_scores):
        return False
    return unlearner is None or _formula(unlearner) is _rollback


def cost(unlearner: Unlearner | None, n_arms: int, n: int) -> float:
    """The time of `exact_release` for a request of so many arms of n records, in sampled data sets.

    Measured by benchmarks/sampled_engine.py, to a factor of two or three; a constant, so that what is chosen
    by it does not depend on the machine.

    >>> [cost(each, 1, 1000) for each in (None, Rollback(), Tilt())], cost(Tilt(), 2, 1000)
    ([300.0, 300.0, 2300.0], inf)
    """
    answer = None if unlearner is None else type(unlearner).answer
    if answer is Tilt.answer:
        return 300.0 + 2.0 * n if n_arms == 1 else np.inf
    return 300.0 + (n**2 / 800 if answer is Mixing.answer else 0.0)


def _rollback(case: FixedCase, unlearner: Unlearner) -> FloatArray:
    return winner(case.score_distributions(case.counts - case.deleted))


def _frozen_rollback(case: FixedCase, unlearner: Unlearner) -> FloatArray:
    return winner(case.score_distributions(case.counts - case.deleted, penalty_counts=case.counts))


def _noise(case: FixedCase, unlearner: NoiseBasedUnlearner) -> FloatArray:
    if unlearner.level.sees_decision or unlearner.guesses_decision:
        return _by_decision(case, unlearner)
    plan = unlearner.checked_plan(case.learner, case.counts, case.deleted, None, case.budget)
    counts = np.where(plan.noised, case.counts, case.counts - case.deleted)
    return winner(case.score_distributions(counts, plan.sigma))


_FORMULAS: dict[Callable[..., Any], Callable[[FixedCase, Any], FloatArray]] = {
    Rollback.answer: _rollback,
    FrozenRollback.answer: _frozen_rollback,
    NoiseBasedUnlearner.answer: _noise,
    Mixing.answer: _noise,
    Tilt.answer: exact_tilt,
}
"""By the method that answers requests; an unlearner is covered exactly if it inherits that method."""
_RELIED_ON: dict[Callable[..., Any], tuple[Callable[..., Any], ...]] = {
    Mixing.answer: (Mixing._part_scores,),
    Tilt.answer: (Tilt.reference_probabilities, Tilt._predicted),
}
"""Methods that the answer calls and the formula replaces; an unlearner with others is not covered."""


def _by_decision(case: FixedCase, unlearner: NoiseBasedUnlearner) -> FloatArray:
    """Rollback, replaced by noise on the events where the plan adds noise."""
    chances = winner(case.score_distributions(case.counts - case.deleted))
    for arm in range(case.m):
        nothing = np.zeros(case.m)
        decision = Decision(tuple(range(case.m)), np.array(arm), nothing, np.array(False))
        plan = unlearner.checked_plan(case.learner, case.counts, case.deleted, decision, case.budget)
        if np.delete(plan.noised, arm).any():
            raise UnsupportedError(
                "exact evaluation needs noise on the served arm only, where noise depends on the decision;"
                f" {unlearner.name!r} adds noise to others: use the sampled protocol"
            )
        if plan.noised[arm]:
            if unlearner.guesses_decision:
                raise UnsupportedError(
                    f"exact evaluation of {unlearner.name} is for budgets at which it adds no noise, because"
                    " its noise depends on D∖U; use the sampled protocol"
                )
            first = unlearner.rolled_back_first(case.deleted)
            chances = chances + _noise_less_rollback(case, arm, plan, int(first[arm]))
    return chances


def _noise_less_rollback(case: FixedCase, arm: int, plan: NoisePlan, first: int) -> FloatArray:
    """P(winner by noise) − P(winner by rollback), on the event that `arm` was served.

    Given the arm's sum s, the best final score v among the others has a known (defective) distribution, and
    P(arm stays ahead of v) is a normal probability under noise and a step under rollback; the difference
    moves probability between the arm and the rival with score v.
    """
    n, k, m = int(case.counts[arm]), int(case.deleted[arm]), case.m
    weights = binomial(n, float(case.means[arm]))
    sums = np.flatnonzero(weights > NEGLIGIBLE)
    scores = case.scores(arm, sums, n)
    others = {i: OtherArm(case, i, arm, scores) for i in range(m) if i != arm}
    noised, rolled_back = _final_scores(case, arm, sums, n - first), _final_scores(case, arm, sums, n - k)
    moved = np.zeros(m)
    for rival, distribution in others.items():
        chance_at = weights[sums, None] * distribution.at()
        for i, other in others.items():
            if i != rival:
                chance_at = chance_at * other.below(distribution.values, or_equal=i > rival)
        ahead = partial(_ahead, wins_ties=arm < rival, values=distribution.values)
        by_noise = _given_the_sum(noised, ahead, float(plan.sigma[arm]))
        by_rollback = _given_the_sum(rolled_back, ahead, 0.0)
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


def _final_scores(
    case: FixedCase, arm: int, sums: IntArray, left: int
) -> tuple[FloatArray | None, FloatArray]:
    """The chances, a row per sum before, of the arm's scores with `left` of its records left at random.

    Without chances, all records are left, and there is one score per sum.
    """
    n = int(case.counts[arm])
    if left == n:
        return None, case.scores(arm, sums, n)
    parts = np.arange(min(left, int(sums[-1])) + 1)
    chances = hypergeometric(parts, np.array(n), sums[:, None], np.array(left))
    return chances, case.scores(arm, parts, left)


def _given_the_sum(
    final: tuple[FloatArray | None, FloatArray],
    ahead: Callable[[FloatArray, float], FloatArray],
    sigma: float,
) -> FloatArray:
    """P(the arm, with its final scores, is ahead | its sum before)."""
    chances, scores = final
    return ahead(scores, sigma) if chances is None else np.asarray(chances @ ahead(scores, sigma))


class OtherArm:
    """An arm that lost against the served one, whose score was one of `served_scores`.

    Its final score is its score on D or, if it is requested too, the one after rollback. Jointly with the
    event that it lost, the final score has a defective distribution for every served score (the rows).
    """

    def __init__(self, case: FixedCase, arm: int, served_arm: int, served_scores: FloatArray) -> None:
        n, k, p = int(case.counts[arm]), int(case.deleted[arm]), float(case.means[arm])
        final = binomial(n - k, p)
        kept = np.flatnonzero(final > NEGLIGIBLE)
        self.values = case.scores(arm, kept, n - k)
        before = case.scores(arm, np.arange(n + 1), n)
        # The number of sums on D that lose; the score rises with the sum.
        n_losing = np.searchsorted(before, served_scores, side="right" if arm > served_arm else "left")
        removed_at_most = np.concatenate([[0.0], np.cumsum(binomial(k, p))])
        room = np.clip(n_losing[:, None] - kept, 0, k + 1)
        self._weights: FloatArray = final[kept] * removed_at_most[room]

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
