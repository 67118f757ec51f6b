"""Exact evaluation of tilt, for requests of one arm or of two."""

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import UnsupportedError
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
from armnesia.unlearners.beta_binomial import chance_of_at_least
from armnesia.unlearners.predictive import MOST_DELETED, flat_belief
from armnesia.unlearners.tilt import best_reference, highest_allowed, insurance_price


def exact_tilt(case: FixedCase, tilt: Tilt) -> FloatArray:
    """P(released arm): a sum over the kept sums of the requested arms and the best score of the others."""
    requested = np.flatnonzero(case.deleted)
    plain = tilt.assumed_share is None and tilt.predictive == "flat"
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
    distributions = case.score_distributions(case.counts)
    n, k, p = int(case.counts[arm]), int(case.deleted[arm]), float(case.means[arm])
    kept_weights = binomial(n - k, p)
    kept = np.flatnonzero(kept_weights > NEGLIGIBLE)
    at_least = np.concatenate([[1.0], 1 - np.cumsum(binomial(k, p))])
    before = case.scores(arm, np.arange(n + 1), n)
    belief = flat_belief(kept[:, None].astype(np.float64), np.array(n - k))
    affordable = tilt.insurance > 0 and insurance_price(np.array(2), case.budget) <= tilt.insurance
    chances = np.zeros(case.m)
    never_wins = ScoreDistribution(np.full(1, -np.inf), np.ones(1))
    others = [never_wins if other == arm else each for other, each in enumerate(distributions)]
    for rival, distribution in enumerate(others):
        if rival == arm:
            continue
        weights = distribution.weights * losing(others, rival, distribution.values)
        # The smallest sum on D that beats c; ties go to the arm that comes first.
        needed = np.searchsorted(before, distribution.values, side="left" if arm < rival else "right")
        still_needed = needed - kept[:, None]
        q = chance_of_at_least(still_needed, np.array(k), belief)
        mine, other = (0, 1) if arm < rival else (1, 0)  # in arm order, because ties go to the first
        both = np.stack([q, 1 - q] if arm < rival else [1 - q, q], axis=-1)
        # Both arms can have been served if the deleted ones decide; the other rows have one contender.
        insured = affordable & ((still_needed >= 1) & (still_needed <= k))[..., None]
        reference = best_reference(both, case.budget, np.broadcast_to(insured, both.shape))
        raised = highest_allowed(reference, case.budget)
        was_served = at_least[np.clip(still_needed, 0, k + 1)]
        stays = was_served * raised[..., mine] + (1 - was_served) * (1 - raised[..., other])
        joint = kept_weights[kept][:, None] * weights
        chances[arm] += (joint * stays).sum()
        chances[rival] += (joint * (1 - stays)).sum()
    return chances
