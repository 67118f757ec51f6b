"""Exact evaluation of tilt for requests of one arm or of two, and of its predictive for one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.learners import MeanAndCountLearner
from armnesia.privacy import Budget
from armnesia.simulation.environment import Environment
from armnesia.simulation.exact_tilt_of_two import exact_tilt_of_two
from armnesia.simulation.fixed_case import FixedCase
from armnesia.simulation.score_distribution import (
    NEGLIGIBLE,
    ScoreDistribution,
    binomial,
    losing,
    winner,
)
from armnesia.unlearners import Tilt
from armnesia.unlearners.believed_decision import MOST_DELETED
from armnesia.unlearners.beta_binomial import chance_of_at_least
from armnesia.unlearners.contenders import can_win
from armnesia.unlearners.predictive import flat_belief
from armnesia.unlearners.tilt_reference import highest_allowed, insured_reference


def exact_tilt(case: FixedCase, tilt: Tilt) -> FloatArray:
    """P(released arm): a sum over the kept sums of the requested arms and the best score of the others.

    >>> from armnesia import LCB
    >>> case = FixedCase(
    ...     np.array([0.6, 0.4, 0.5]), np.array([20, 20, 20]), np.array([8, 0, 0]), LCB(confidence=0.1),
    ...     Budget(epsilon=1.0, delta=1e-5),
    ... )
    >>> exact_tilt(case, Tilt()).round(3)
    array([0.735, 0.06 , 0.205])
    """
    requested = np.flatnonzero(case.deleted)
    plain = tilt.assumed_share is None and tilt.resolved().predictive == "flat"
    # For more records of two arms the predictive takes scores as normal.
    few = len(requested) < 2 or (len(requested) == 2 and case.deleted.sum() <= MOST_DELETED)
    if not few or not plain or case.budget.delta > 0.5:
        raise UnsupportedError(
            "exact evaluation of tilt is for one requested arm, or two with up to"
            f" {MOST_DELETED} deleted records, the flat predictive, no assumed share and delta up to 1/2;"
            " use the sampled protocol"
        )
    if len(requested) == 0 or case.m == 1:
        return winner(case.score_distributions(case.counts))
    if len(requested) == 2:
        return exact_tilt_of_two(case, tilt, int(requested[0]), int(requested[1]))
    return _exact_tilt_of_one(case, tilt, int(requested[0]))


def _exact_tilt_of_one(case: FixedCase, tilt: Tilt, arm: int) -> FloatArray:
    """One requested arm: only that arm and the best of the others can be released.

    Given the sum that is kept and the best other score c, the reference is known, and the old decision was
    the requested arm exactly if its deleted sum was large enough.
    """
    chances = np.zeros(case.m)
    for seen in _seen_by_the_reference(case, arm):
        q, rival = seen.predicted, seen.rival
        mine, other = (0, 1) if arm < rival else (1, 0)  # in arm order, because ties go to the first
        both = np.stack([q, 1 - q] if arm < rival else [1 - q, q], axis=-1)
        reference = insured_reference(both, seen.is_contender, None, case.budget, tilt.insurance)
        raised = highest_allowed(reference, case.budget)
        stays = seen.was_served * raised[..., mine] + (1 - seen.was_served) * (1 - raised[..., other])
        chances[arm] += (seen.weights * stays).sum()
        chances[rival] += (seen.weights * (1 - stays)).sum()
    return chances


def predictive_error(
    environment: Environment, counts: IntArray, deleted: IntArray, learner: MeanAndCountLearner
) -> float:
    """How wrong the flat predictive of tilt is: the expected total variation between q and P(π(D) | D∖U).

    The expectation is over Bernoulli data with these counts, from which a request for one arm deletes records
    at random. `theory.tilt_upper` takes it.

    >>> from armnesia import LCB
    >>> environment = Environment.bernoulli([0.6, 0.5])
    >>> learner = LCB(confidence=1e-4)
    >>> for left in (1, 100, 10_000):
    ...     counts, deleted = np.array([left + 500, 20_000]), np.array([500, 0])
    ...     print(left, round(predictive_error(environment, counts, deleted, learner), 4))
    1 0.3704
    100 0.2428
    10000 0.0
    """
    requested = np.flatnonzero(deleted)
    if not environment.is_bernoulli or len(requested) > 1 or not (counts - deleted).any():
        raise UnsupportedError(
            "predictive_error is for Bernoulli rewards, a request for one arm, and records that are left; got"
            f" counts = {np.asarray(counts).tolist()}, deleted = {np.asarray(deleted).tolist()}"
        )
    if len(requested) == 0 or len(counts) == 1:
        return 0.0  # π(D) is known
    case = FixedCase(environment.means, counts, deleted, learner, Budget(epsilon=0.0, delta=0.0))
    parts = _seen_by_the_reference(case, int(requested[0]))
    return float(sum((seen.weights * np.abs(seen.predicted - seen.was_served)).sum() for seen in parts))


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a reference sees if `rival` is the best of the other arms: a row per kept sum, a column per score.

    `predicted` is the chance that the requested arm was served by the flat predictive, `was_served` the true
    one. `is_contender` marks which of the two can have been served, in arm order on the last axis.
    """

    rival: int
    weights: FloatArray
    predicted: FloatArray
    was_served: FloatArray
    is_contender: BoolArray


def _seen_by_the_reference(case: FixedCase, arm: int) -> Iterator[_Seen]:
    distributions = case.score_distributions(case.counts)
    n, k, p = int(case.counts[arm]), int(case.deleted[arm]), float(case.means[arm])
    kept_weights = binomial(n - k, p)
    kept = np.flatnonzero(kept_weights > NEGLIGIBLE)
    at_least = np.concatenate([[1.0], 1 - np.cumsum(binomial(k, p))])
    before = case.scores(arm, np.arange(n + 1), n)
    belief = flat_belief(kept[:, None].astype(np.float64), np.array(n - k))
    lowest = before[kept][:, None] - case.learner.score_rounding
    highest = before[kept + k][:, None] + case.learner.score_rounding
    never_wins = ScoreDistribution(np.full(1, -np.inf), np.ones(1))
    others = [never_wins if other == arm else each for other, each in enumerate(distributions)]
    for rival, distribution in enumerate(others):
        if rival == arm:
            continue
        weights = distribution.weights * losing(others, rival, distribution.values)
        # The smallest sum on D that beats c; ties go to the arm that comes first.
        needed = np.searchsorted(before, distribution.values, side="left" if arm < rival else "right")
        still_needed = needed - kept[:, None]
        in_order = 1 if arm < rival else -1
        low, high = (
            np.stack(np.broadcast_arrays(*(mine, distribution.values)[::in_order]), axis=-1)
            for mine in (lowest, highest)
        )
        yield _Seen(
            rival,
            kept_weights[kept][:, None] * weights,
            predicted=chance_of_at_least(still_needed, np.array(k), belief),
            was_served=at_least[np.clip(still_needed, 0, k + 1)],
            is_contender=can_win(low, high),
        )
