"""Scores as random variables: who wins among independent arms, ties to the first."""

from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.special import gammaln, ndtr
from armnesia.learners import LCB

NEGLIGIBLE = 1e-17
"""Atoms lighter than this are left out: all of them together are invisible in a double."""
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


def lcb_scores(learner: LCB, sums: IntArray, count: int, n_actions: int) -> FloatArray:
    """The LCB scores that these sums of `count` Bernoulli rewards give, computed as the learner does."""
    return sums / max(count, 1) - learner.penalty(np.array(count), n_actions)


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """A score with finitely many values (rising), each with a weight, plus independent noise N(0, σ²)."""

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
        """The density of a noised score."""
        z = (y[..., None] - self.values) / self.sigma
        return np.asarray(np.exp(-(z**2) / 2) @ self.weights / (np.sqrt(2 * np.pi) * self.sigma))


def score_law(learner: LCB, count: int, mean: float, n_actions: int, sigma: float = 0.0) -> ScoreLaw:
    """The law of an arm's LCB score over `count` Bernoulli rewards; atoms below 10⁻¹⁷ are left out."""
    weights = binomial(count, mean)
    kept = np.flatnonzero(weights > NEGLIGIBLE)
    return ScoreLaw(lcb_scores(learner, kept, count, n_actions), weights[kept], sigma)


def losing(laws: list[ScoreLaw], arm: int, y: FloatArray) -> FloatArray:
    """P(every other arm loses against score y of `arm`): arms before it must be strictly below."""
    chance = np.ones(y.shape)
    for other, law in enumerate(laws):
        if other != arm:
            chance = chance * law.below(y, or_equal=other > arm)
    return chance


def winner(laws: list[ScoreLaw]) -> FloatArray:
    """P(arm wins), for independent scores.

    >>> coin = ScoreLaw(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> winner([coin, coin])
    array([0.75, 0.25])
    """
    chances = np.zeros(len(laws))
    noised = [arm for arm, law in enumerate(laws) if law.sigma > 0]
    for arm, law in enumerate(laws):
        if law.sigma == 0:
            chances[arm] = law.weights @ losing(laws, arm, law.values)
    if len(noised) == 1:
        chances[noised[0]] = 1 - chances.sum()
    elif noised:
        x, weights = _panels(laws, noised)
        for arm in noised:
            chances[arm] = (weights * laws[arm].density(x) * losing(laws, arm, x)).sum()
    return chances


def _panels(laws: list[ScoreLaw], noised: list[int]) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights for integrals over a noised score: smooth between the atoms of the quiet arms."""
    finest = min(laws[arm].sigma for arm in noised)
    low = min(laws[arm].values[0] - _REACH * laws[arm].sigma for arm in noised)
    high = max(laws[arm].values[-1] + _REACH * laws[arm].sigma for arm in noised)
    grid = np.linspace(low, high, 2 + int((high - low) / finest))
    atoms = [law.values for law in laws if law.sigma == 0]
    edges = np.unique(np.clip(np.concatenate([grid, *atoms]), low, high))
    half = np.diff(edges) / 2
    x = edges[:-1, None] + half[:, None] * (1 + _NODES)
    return x.ravel(), (half[:, None] * _WEIGHTS).ravel()
