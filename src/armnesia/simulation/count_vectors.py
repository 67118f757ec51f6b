"""Count vectors of the distribution model: all of them, or some that are drawn where the loss is.

Given its counts, the expected loss of a data set is known exactly, and it is smooth in them but for
thresholds. So few vectors suffice if they are spread evenly (randomly shifted lattices), and if rare counts
of the best arm and of the requested ones are drawn often, with weights that correct for it. One part of the
draws follows the model itself, so no weight is above the reciprocal of its share.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.special import gammaln
from armnesia.simulation.models import DistributionModel

_UNLIKELY = 1e-18
_TEMPER = 9.0
"""The wide part has three times the standard deviation of the counts: it reaches beyond 6 of them."""
_REACH = 9.0
"""Standard deviations within which counts are drawn; what is beyond has a chance of 10⁻¹⁸."""


def likely_vectors(model: DistributionModel, most: float) -> tuple[IntArray, FloatArray] | None:
    """All count vectors that are not less likely than 10⁻¹⁸, with their chances; None if there are too many.

    >>> vectors, chances = likely_vectors(DistributionModel(2, (0.5, 0.5)), most=10)
    >>> vectors.tolist(), chances.round(2).tolist()
    ([[0, 2], [1, 1], [2, 0]], [0.25, 0.5, 0.25])
    """
    left, chances = np.array([model.n]), np.ones(1)
    columns: list[IntArray] = []
    for share in _conditional_shares(model.policy)[:-1]:
        counts, chance = _table(left, share, 1.0)
        joint = chances[:, None] * chance
        rows, places = np.nonzero(joint > _UNLIKELY)
        if len(rows) > most:
            return None
        drawn = counts[rows, places]
        columns = [*(column[rows] for column in columns), drawn]
        left, chances = left[rows] - drawn, joint[rows, places]
    return np.stack([*columns, left], axis=-1), chances


@dataclass(frozen=True)
class Proposal:
    """A mixture of laws of the count vectors: the model's, a wide one, and some that were fitted to losses.

    They differ in the counts of the arms `axes` only; given these, the other counts are as in the model.
    The fitted ones matter where nearly all of a small arm is deleted: without them, the same draws had up
    to four times the standard error.
    """

    model: DistributionModel
    axes: tuple[int, ...]
    fitted: tuple[tuple[float, ...], ...] = ()

    def draw(self, rng: np.random.Generator, size: int) -> tuple[IntArray, FloatArray]:
        """A randomly shifted lattice of count vectors, with weights whose mean is 1 over all of the law."""
        m = len(self.model.policy)
        u = (rng.random(m) + np.arange(size)[:, None] * _lattice(m)) % 1.0
        order = [*self.axes, *(arm for arm in range(m) if arm not in self.axes)]
        laws = [(self.model.policy, 1.0), (self.model.policy, _TEMPER), *((d, 1.0) for d in self.fitted)]
        shares = np.array([2.0, 1.0, *(2.0 for _ in self.fitted)])
        shares /= shares.sum()
        law_of_row = np.searchsorted(np.cumsum(shares)[:-1], u[:, 0], side="right")
        conditional = [_conditional_shares([policy[arm] for arm in order]) for policy, _ in laws]
        vectors, left = np.zeros((size, m), dtype=np.int64), np.full(size, self.model.n)
        densities = np.ones((size, len(laws)))
        for place, arm in enumerate(order[:-1]):
            different = range(len(laws)) if arm in self.axes else range(1)
            tables = [_table(left, conditional[law][place], laws[law][1]) for law in different]
            drawn = np.stack([_quantile(*table, u[:, place + 1]) for table in tables])
            vectors[:, arm] = drawn[law_of_row if len(tables) > 1 else 0, np.arange(size)]
            if len(tables) > 1:
                densities *= np.stack([_chance(*table, vectors[:, arm]) for table in tables], axis=-1)
            left = left - vectors[:, arm]
        vectors[:, order[-1]] = left
        return vectors, densities[:, 0] / (densities @ shares)


def policy_of(vectors: IntArray, weights: FloatArray) -> tuple[float, ...]:
    """The behaviour policy with the mean counts of these vectors (the cross-entropy method).

    >>> policy_of(np.array([[8, 2], [6, 4]]), np.array([3.0, 1.0]))
    (0.75, 0.25)
    """
    mean = np.maximum(weights @ vectors / weights.sum(), 1e-9)
    return tuple((mean / mean.sum()).tolist())


def _conditional_shares(policy: Sequence[float]) -> list[float]:
    """The share of each arm among the records that are of none of the arms before it."""
    left = np.cumsum(np.asarray(policy)[::-1])[::-1]
    return [min(1.0, share / rest) if rest > 0 else 0.0 for share, rest in zip(policy, left, strict=True)]


def _table(n: IntArray, p: float, temper: float) -> tuple[IntArray, FloatArray]:
    """Counts and their chances by Binomial(n, p) to the power of 1/temper; a row for each n."""
    if p in (0.0, 1.0):
        return np.round(n * p).astype(np.int64)[:, None], np.ones((len(n), 1))
    rows, back = np.unique(n, return_inverse=True)
    reach = int(_REACH * np.sqrt(temper * rows.max() * p * (1 - p))) + 20
    counts = (rows * p).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    inside = np.clip(counts, 0, rows[:, None])
    others = rows[:, None] - inside
    log_chance = inside * np.log(p) + others * np.log1p(-p) - gammaln(inside + 1.0) - gammaln(others + 1.0)
    log_chance = np.where(counts == inside, log_chance / temper, -np.inf)
    chance = np.exp(log_chance - log_chance.max(axis=1, keepdims=True))
    return counts[back], (chance / chance.sum(axis=1, keepdims=True))[back]


def _quantile(counts: IntArray, chances: FloatArray, u: FloatArray) -> IntArray:
    """The smallest count of each row at which the cumulative chance exceeds u."""
    cumulative = np.cumsum(chances, axis=1)
    place = (cumulative <= u[:, None] * cumulative[:, -1:]).sum(axis=1)
    return np.asarray(counts[np.arange(len(u)), place])


def _chance(counts: IntArray, chances: FloatArray, drawn: IntArray) -> FloatArray:
    """The chance of the count of each row; 0 outside of the table."""
    place = drawn - counts[:, 0]
    inside = (place >= 0) & (place < counts.shape[1])
    found = chances[np.arange(len(drawn)), np.clip(place, 0, counts.shape[1] - 1)]
    return np.where(inside, found, 0.0)


def _lattice(dimensions: int) -> FloatArray:
    """Steps of a lattice that fills a cube evenly: powers of the root of x^(d+1) = x + 1."""
    root = 1.5
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    return root ** -np.arange(1.0, dimensions + 1)
