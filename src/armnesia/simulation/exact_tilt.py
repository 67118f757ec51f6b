"""Exact evaluation of the unlearners that freeze the penalty: frozen rollback, and tilt for one arm."""

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import UnsupportedError
from armnesia.simulation.fixed_case import FixedCase
from armnesia.simulation.score_distribution import NEGLIGIBLE, ScoreLaw, binomial, lcb_scores, losing, winner
from armnesia.unlearners import Tilt
from armnesia.unlearners.beta_binomial import chance_of_at_least
from armnesia.unlearners.predictive import flat_belief
from armnesia.unlearners.tilt import best_reference, highest_allowed


def frozen_law(case: FixedCase, arm: int) -> ScoreLaw:
    """The law of μ̂′ − b(N); −1 for an arm that is left empty."""
    n, k = int(case.counts[arm]), int(case.deleted[arm])
    weights = binomial(n - k, float(case.means[arm]))
    kept = np.flatnonzero(weights > NEGLIGIBLE)
    values = kept / max(n - k, 1) - case.learner.penalty(np.array(n), case.m)
    return ScoreLaw(values if n > k else np.full(1, -1.0), weights[kept])


def exact_tilt(case: FixedCase, tilt: Tilt) -> FloatArray:
    """P(released arm) for a request of one arm: only that arm and the best of the others can be released.

    Given the sum that is kept and the best other score c, the reference is known, and the old decision was
    the requested arm exactly if its deleted sum was large enough.
    """
    requested = np.flatnonzero(case.deleted)
    plain = tilt.assumed_share is None and tilt.predictive == "flat"
    if len(requested) > 1 or not plain or case.budget.delta > 0.5:
        raise UnsupportedError(
            "exact evaluation of tilt is for one requested arm, the flat predictive, no assumed share and"
            " delta up to 1/2; use the sampled protocol"
        )
    laws = case.laws(case.counts)
    if len(requested) == 0 or case.m == 1:
        return winner(laws)
    arm = int(requested[0])
    n, k, p = int(case.counts[arm]), int(case.deleted[arm]), float(case.means[arm])
    kept_weights = binomial(n - k, p)
    kept = np.flatnonzero(kept_weights > NEGLIGIBLE)
    at_least = np.concatenate([[1.0], 1 - np.cumsum(binomial(k, p))])
    before = lcb_scores(case.learner, np.arange(n + 1), n, case.m)
    belief = flat_belief(kept[:, None].astype(np.float64), np.array(n - k))
    chances = np.zeros(case.m)
    nobody = ScoreLaw(np.full(1, -np.inf), np.ones(1))
    others = [nobody if other == arm else law for other, law in enumerate(laws)]
    for rival, law in enumerate(others):
        if rival == arm:
            continue
        weights = law.weights * losing(others, rival, law.values)
        # The smallest sum on D that beats c; ties go to the arm that comes first.
        needed = np.searchsorted(before, law.values, side="left" if arm < rival else "right")
        still_needed = needed - kept[:, None]
        q = chance_of_at_least(still_needed, np.array(k), belief)
        mine, other = (0, 1) if arm < rival else (1, 0)  # in order, because ties go to the first
        both = np.stack([q, 1 - q] if arm < rival else [1 - q, q], axis=-1)
        raised = highest_allowed(best_reference(both, case.budget), case.budget)
        was_served = at_least[np.clip(still_needed, 0, k + 1)]
        stays = was_served * raised[..., mine] + (1 - was_served) * (1 - raised[..., other])
        joint = kept_weights[kept][:, None] * weights
        chances[arm] += (joint * stays).sum()
        chances[rival] += (joint * (1 - stays)).sum()
    return chances
