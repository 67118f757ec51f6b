"""Requests whose records differ from the others: the loss of the released arm, summed over all data sets.

N records of each of the paper's five arms; k of one arm are deleted, with a mean of their own. The release of
every data set is computed by the unlearner itself. With one requested arm it depends on the sums of that
arm's records and on the best of the others, so the other arms are summed out beforehand.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from armnesia import LCB, ArmStatistics, Budget, DeletionRequest, Unlearner
from armnesia.core.units import UNIT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MEANS = np.array([0.10, 0.08, 0.06, 0.04, 0.02])
GAPS = MEANS.max() - MEANS
LABELS = tuple(range(len(MEANS)))
_LEFT_OUT = 1e-9
"""Sums with a smaller probability are left out: they change no loss of docs/theory.md by 10⁻⁴ of it."""


def learner_for(n: int) -> LCB:
    """As in the paper: τ is one over the number of all records."""
    return LCB(confidence=1 / (len(MEANS) * n))


def world(
    n: int, k: int, arm: int, kept: Ints, deleted: Ints, others: Ints
) -> tuple[ArmStatistics, DeletionRequest]:
    """Data sets by the requested arm's sums and those of all other arms (a column for every arm)."""
    at = np.arange(len(MEANS)) == arm
    removed = ArmStatistics(LABELS, np.where(at, k, 0) + 0 * others, np.where(at, deleted[:, None], 0) * UNIT)
    left = ArmStatistics(
        LABELS, np.where(at, n - k, n) + 0 * others, np.where(at, kept[:, None], others) * UNIT
    )
    return left.merge(removed), DeletionRequest(removed, binary=True)


def best_of_the_others(n: int, arm: int) -> tuple[Ints, Floats]:
    """The sums of all arms but the requested one, with only the best of them above 0, and their weights."""
    sums, weights = [], []
    for rival in set(LABELS) - {arm}:
        weight = binom.pmf(np.arange(n + 1), n, MEANS[rival])
        for other in set(LABELS) - {arm, rival}:
            at_most = np.arange(n + 1) - (other < rival)  # ties go to the first arm
            weight = weight * binom.cdf(at_most, n, MEANS[other])
        values = np.flatnonzero(weight > _LEFT_OUT)
        sums.append(np.where(np.arange(len(MEANS)) == rival, values[:, None], 0))
        weights.append(weight[values])
    return np.concatenate(sums), np.concatenate(weights)


def losses(
    n: int,
    k: int,
    deleted_mean: float,
    kept_mean: float,
    unlearners: Mapping[str, Unlearner | None],
    budget: Budget,
    arm: int = 0,
) -> dict[str, float]:
    """The expected sub-optimality of each unlearner; None is no deletion."""
    parts = []
    for number, mean in ((n - k, kept_mean), (k, deleted_mean)):
        weight = binom.pmf(np.arange(number + 1), number, mean)
        values = np.flatnonzero(weight > _LEFT_OUT)
        parts.append((values, weight[values]))
    others, other_weights = best_of_the_others(n, arm)
    (kept, kept_weights), (deleted, deleted_weights) = parts
    total, found = 0.0, dict.fromkeys(unlearners, 0.0)
    for value, weight in zip(kept, kept_weights, strict=True):
        weights = (weight * deleted_weights[:, None] * other_weights).ravel()
        rows = np.flatnonzero(weights > _LEFT_OUT * weight * 1e-3)
        i, j = np.divmod(rows, len(other_weights))
        statistics, request = world(n, k, arm, np.full(len(rows), value), deleted[i], others[j])
        total += weights[rows].sum()
        for name, unlearner in unlearners.items():
            if unlearner is None:
                loss = GAPS[learner_for(n).decide(statistics).index]
            else:
                loss = unlearner.release(learner_for(n), statistics, request, budget).probabilities @ GAPS
            found[name] += float(weights[rows] @ loss)
    return {name: value / total for name, value in found.items()}


def of_several_arms(
    n: int,
    deletions: Mapping[int, tuple[int, float]],
    unlearners: Mapping[str, Unlearner | None],
    budget: Budget,
    data_sets: int,
    seed: int,
) -> dict[str, tuple[float, float]]:
    """Losses and standard errors on the same data sets; `deletions` has k and the deleted mean per arm.

    The mean of all records of an arm stays what it is, as far as the mean of the others is not below 0.
    """
    rng, m = np.random.default_rng(seed), len(MEANS)
    k, deleted_means = np.array([deletions.get(arm, (0, 0.0)) for arm in LABELS]).T
    k = k.astype(np.int64)
    kept_means = np.maximum((n * MEANS - k * deleted_means) / (n - k), 0.0)
    removed = ArmStatistics(
        LABELS, np.tile(k, (data_sets, 1)), rng.binomial(k, deleted_means, size=(data_sets, m)) * UNIT
    )
    left = ArmStatistics(
        LABELS,
        np.tile(n - k, (data_sets, 1)),
        rng.binomial(n - k, kept_means, size=(data_sets, m)) * UNIT,
    )
    statistics, request = left.merge(removed), DeletionRequest(removed, binary=True)
    found = {}
    for name, unlearner in unlearners.items():
        if unlearner is None:
            loss = GAPS[learner_for(n).decide(statistics).index]
        else:
            loss = unlearner.release(learner_for(n), statistics, request, budget).probabilities @ GAPS
        found[name] = (float(loss.mean()), float(loss.std(ddof=1) / np.sqrt(data_sets)))
    return found
