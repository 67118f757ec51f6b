"""Scores as random variables, and the winner's distribution among independent arms; ties to the first."""

from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.special import gammaln, ndtr
from armnesia.learners import MeanAndCountLearner

NEGLIGIBLE = 1e-17
"""Values with a smaller probability are left out: all of them together are lost in rounding."""
_ROUNDING = 1e-12
_REACH = 9.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def binomial(n: int, p: float) -> FloatArray:
    """P(Binomial(n, p) = 0, …, n).

    >>> binomial(2, 0.5)
    array([0.25, 0.5 , 0.25])
    """
    if p in (0.0, 1.0):
        return np.asarray(np.arange(n + 1) == round(n * p), dtype=np.float64)
    s = np.arange(n + 1.0)
    log_choose = gammaln(n + 1.0) - gammaln(s + 1) - gammaln(n - s + 1)
    pmf = np.exp(log_choose + s * np.log(p) + (n - s) * np.log1p(-p))
    return np.asarray(pmf / pmf.sum())


def arm_scores(
    learner: MeanAndCountLearner,
    arm: int,
    sums: IntArray,
    count: int,
    n_actions: int,
    *,
    penalty_count: int | None = None,
) -> FloatArray:
    """The scores of an arm for these sums of `count` Bernoulli rewards, as the learner computes them.

    With `penalty_count` the penalty is that of another number of records; −1 without records.

    >>> from armnesia import LCB
    >>> arm_scores(LCB(confidence=0.1), 0, np.array([0, 25, 50]), 50, n_actions=2).round(4)
    array([-0.1731,  0.3269,  0.8269])
    """
    if count == 0:
        return np.full(len(sums), -1.0)
    means, counts = np.zeros((len(sums), n_actions)), np.ones(n_actions, dtype=np.int64)
    means[:, arm] = sums / count
    counts[arm] = count if penalty_count is None else penalty_count
    scores = learner.lower_bounds(means, counts, n_actions)[:, arm]
    rising = np.maximum.accumulate(scores)  # the sums are rising, and so are the scores, but for rounding
    if (rising - scores).max(initial=0.0) > max(learner.score_rounding, _ROUNDING):
        raise UnsupportedError(
            f"exact evaluation needs a score that rises with the mean; that of {learner.name!r} with {count}"
            " records falls as the mean rises: use the sampled protocol"
        )
    return rising


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """A score with finitely many rising values and their probabilities, plus independent noise N(0, σ²)."""

    values: FloatArray
    weights: FloatArray
    sigma: float = 0.0

    def below(self, y: FloatArray, *, or_equal: bool) -> FloatArray:
        """P(score < y), or ≤ y."""
        if self.sigma > 0:
            return np.asarray(ndtr((y[..., None] - self.values) / self.sigma) @ self.weights)
        cumulative = np.concatenate([[0.0], np.cumsum(self.weights)])
        return np.asarray(cumulative[np.searchsorted(self.values, y, side="right" if or_equal else "left")])

    def density(self, y: FloatArray) -> FloatArray:
        """The density of a score with noise."""
        z = (y[..., None] - self.values) / self.sigma
        return np.asarray(np.exp(-(z**2) / 2) @ self.weights / (np.sqrt(2 * np.pi) * self.sigma))


def losing(distributions: list[ScoreDistribution], arm: int, y: FloatArray) -> FloatArray:
    """P(every other arm loses against score y of `arm`): arms before it must be strictly below."""
    chance = np.ones(y.shape)
    for other, distribution in enumerate(distributions):
        if other != arm:
            chance = chance * distribution.below(y, or_equal=other > arm)
    return chance


def winner(distributions: list[ScoreDistribution]) -> FloatArray:
    """P(arm wins), for independent scores.

    >>> coin = ScoreDistribution(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> winner([coin, coin])
    array([0.75, 0.25])
    """
    chances = np.zeros(len(distributions))
    noised = [arm for arm, distribution in enumerate(distributions) if distribution.sigma > 0]
    for arm, distribution in enumerate(distributions):
        if distribution.sigma == 0:
            chances[arm] = distribution.weights @ losing(distributions, arm, distribution.values)
    if len(noised) == 1:
        chances[noised[0]] = 1 - chances.sum()
    elif noised:
        x, weights = _panels(distributions, noised)
        for arm in noised:
            chances[arm] = (weights * distributions[arm].density(x) * losing(distributions, arm, x)).sum()
    return chances


def _panels(distributions: list[ScoreDistribution], noised: list[int]) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights for integrals over a noised score; smooth between the values of the other arms."""
    finest = min(distributions[arm].sigma for arm in noised)
    low = min(distributions[arm].values[0] - _REACH * distributions[arm].sigma for arm in noised)
    high = max(distributions[arm].values[-1] + _REACH * distributions[arm].sigma for arm in noised)
    grid = np.linspace(low, high, 2 + int((high - low) / finest))
    atoms = [distribution.values for distribution in distributions if distribution.sigma == 0]
    edges = np.unique(np.clip(np.concatenate([grid, *atoms]), low, high))
    half = np.diff(edges) / 2
    x = edges[:-1, None] + half[:, None] * (1 + _NODES)
    return x.ravel(), (half[:, None] * _WEIGHTS).ravel()
