"""The joint divergence of several releases from their references, by convolution: any releases, or bounds.

Each release is a distribution p over arms, each reference a distribution r. All releases together are the
product of the p, all references that of the r. An outcome counts by its two probabilities alone, so that
outcomes are pairs (p, r), and outcomes of the same privacy loss ln(p/r) can be added up.

Up to `MOST_OUTCOMES` pairs this is exact, up to rounding. Beyond, the losses are parted into cells, and δ is
enclosed: merging the outcomes of a cell can only lower δ (it is post-processing), and moving each outcome to
the two ends of its cell, both probabilities preserved, can only raise it (δ is convex in e^{−loss}). Both
errors fall with the square of the cells' width.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.privacy.budget import Budget
from armnesia.privacy.curve import check_delta, check_epsilon
from armnesia.privacy.guarantee import Guarantee

MOST_OUTCOMES = 2**14
"""Outcomes of different loss that are told apart; with more, δ is enclosed by two bounds."""
_SAME = 1e-13  # losses that differ by less, relative to the larger, are the same but for rounding
_LARGEST = 200.0  # a larger loss counts as infinite in the upper bound, and as this in the lower one
_HALVINGS = 100


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """Outcomes with both probabilities positive, and the probability of those that the reference has not."""

    p: FloatArray
    r: FloatArray
    infinite: float = 0.0

    def delta(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            return 0.0
        with np.errstate(over="ignore"):
            allowed = np.exp(epsilon + np.log(self.r))
        return float(np.maximum(self.p - allowed, 0.0).sum()) + self.infinite

    def times(self, other: "_Outcomes") -> "_Outcomes":
        p = np.multiply.outer(self.p, other.p).ravel()
        r = np.multiply.outer(self.r, other.r).ravel()
        infinite = (
            self.infinite * (float(other.p.sum()) + other.infinite) + float(self.p.sum()) * other.infinite
        )
        there = (p > 0) & (r > 0)  # a product can underflow
        return _Outcomes(p[there], r[there], infinite + float(p[(p > 0) & (r <= 0)].sum()))

    @property
    def losses(self) -> FloatArray:
        return np.log(self.p) - np.log(self.r)

    def merged(self) -> "_Outcomes":
        """Add up outcomes whose losses differ by rounding only."""
        if self.p.size < 2:
            return self
        losses = self.losses
        order = np.argsort(losses, kind="stable")
        ordered = losses[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > _SAME * np.maximum(1.0, np.abs(ordered)))
        return _Outcomes(
            np.add.reduceat(self.p[order], starts), np.add.reduceat(self.r[order], starts), self.infinite
        )

    def merged_in_cells(self) -> "_Outcomes":
        """At most `MOST_OUTCOMES` outcomes, with a δ that is not larger at any ε."""
        losses = self.losses
        kept = losses >= -_LARGEST  # outcomes of nearly no probability are left out
        p, losses = self.p[kept], np.minimum(losses[kept], _LARGEST)
        r = np.where(losses < _LARGEST, self.r[kept], p * math.exp(-_LARGEST))
        low, width = _cells(losses)
        cell = np.minimum(((losses - low) / width).astype(np.int64), MOST_OUTCOMES - 1)
        p, r = _summed(cell, p), _summed(cell, r)
        return _Outcomes(p[p > 0], r[p > 0], self.infinite)

    def moved_to_ends(self) -> "_Outcomes":
        """At most `MOST_OUTCOMES` + 1 outcomes, with a δ that is not smaller at any ε."""
        losses = self.losses
        beyond = losses > _LARGEST
        p = np.where(beyond, self.r * math.exp(_LARGEST), self.p)
        infinite = self.infinite + float((self.p - p)[beyond].sum())
        losses = np.clip(losses, -_LARGEST, _LARGEST)
        low, width = _cells(losses)
        cell = np.minimum(((losses - low) / width).astype(np.int64), MOST_OUTCOMES - 1)
        inside = np.clip(losses - (low + cell * width), 0.0, width)
        upper = p * (np.expm1(-inside) / math.expm1(-width))
        ends = _summed(cell, p - upper) + _summed(cell + 1, upper)
        there = ends > 0
        r = ends * np.exp(-(low + np.arange(MOST_OUTCOMES + 1) * width))
        return _Outcomes(ends[there], r[there], infinite)


@dataclass(frozen=True, eq=False)
class JointLoss:
    """The δ(ε) of all releases together against all references together, in one direction or in both.

    >>> release, reference = np.array([[0.6, 0.4]] * 2), np.array([[0.5, 0.5]] * 2)
    >>> loss = JointLoss.of(release, reference)
    >>> round(loss.delta(0.0), 9), round(loss.delta(0.3), 9)  # of the product: 0.36 against 0.25
    (0.11, 0.022535298)
    """

    _bounds: tuple[tuple[_Outcomes, _Outcomes], ...]
    """Outcomes with too large a δ and with too small a one, for each direction; the same where exact."""

    @classmethod
    def of(cls, releases: ArrayLike, references: ArrayLike) -> "JointLoss":
        """Convolve the privacy losses of the rows, in one direction; arms are on the last axis."""
        p, r = np.asarray(releases, dtype=np.float64), np.asarray(references, dtype=np.float64)
        if p.ndim != 2 or p.shape != r.shape:
            raise InvalidInputError(
                f"releases and references must be tables of the same shape; got {p.shape} and {r.shape}"
            )
        upper = lower = _Outcomes(np.ones(1), np.ones(1))
        for row in np.flatnonzero((p != r).any(axis=-1)):
            finite = (p[row] > 0) & (r[row] > 0)
            unseen = (p[row] > 0) & ~finite
            one = _Outcomes(p[row][finite], r[row][finite], float(p[row][unseen].sum())).merged()
            is_exact = lower is upper
            upper = upper.times(one)
            lower = upper if is_exact else lower.times(one)
            if upper.p.size <= MOST_OUTCOMES and is_exact:
                upper = lower = upper.merged()
            else:
                upper, lower = upper.moved_to_ends(), lower.merged_in_cells()
        return cls(((upper, lower),))

    @classmethod
    def both_ways(cls, releases: ArrayLike, references: ArrayLike) -> "JointLoss":
        """The larger δ of both directions, at every ε.

        >>> releases, references = [[0.9, 0.1]] * 2, [[0.5, 0.5]] * 2
        >>> round(JointLoss.of(releases, references).delta(0.7), 6)
        0.306562
        >>> round(JointLoss.both_ways(releases, references).delta(0.7), 6)
        0.367387
        """
        return cls(cls.of(releases, references)._bounds + cls.of(references, releases)._bounds)

    @classmethod
    def worst_case(cls, guarantees: Iterable[Budget | Guarantee]) -> "JointLoss":
        """What releases guarantee together of which nothing is known but the (ε, δ) of each.

        No such releases have a larger δ, also if each is chosen after the earlier ones were seen: the worst
        are randomised responses that fail with probability δ (Kairouz, Oh and Viswanath 2015; Murtagh and
        Vadhan 2018, for different ε). `composed_delta` is the closed form for equal ones.

        >>> known = [Budget(epsilon=0.1, delta=1e-7)] * 40 + [Budget(epsilon=0.5, delta=0.0)] * 4
        >>> round(JointLoss.worst_case(known).epsilon(1e-5), 3)  # all ε together are 6
        4.313
        """
        known = np.array([(each.epsilon, each.delta) for each in guarantees], dtype=np.float64)
        epsilon, delta = known.reshape(-1, 2).T
        truth = (1 - delta) / (1 + np.exp(-epsilon))
        outcomes = np.stack([delta, truth, truth * np.exp(-epsilon), np.zeros_like(delta)], axis=-1)
        return cls.of(outcomes, outcomes[:, ::-1])

    @property
    def is_exact(self) -> bool:
        """Whether no outcomes of different losses had to be put together."""
        return all(upper is lower for upper, lower in self._bounds)

    def delta(self, epsilon: float) -> float:
        """The δ at ε; where it is not exact, a value that is at least as large."""
        check_epsilon(epsilon)
        return min(max(upper.delta(epsilon) for upper, _ in self._bounds), 1.0)

    def error(self, epsilon: float) -> float:
        """How much larger than the true δ the value of `delta` can be; 0 where it is exact up to rounding."""
        lower = min(max(lower.delta(epsilon) for _, lower in self._bounds), 1.0)
        return max(self.delta(epsilon) - lower, 0.0)

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ δ, rounded up; ∞ if there is none.

        >>> round(JointLoss.of(np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])).epsilon(0.1), 6)
        0.470004
        """
        check_delta(delta)
        if self.delta(0.0) <= delta:
            return 0.0
        uppers = [upper for upper, _ in self._bounds]
        if max(each.infinite for each in uppers) > delta:
            return math.inf
        low, high = 0.0, max(float(each.losses.max(initial=0.0)) for each in uppers) + 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def _summed(cell: IntArray, values: FloatArray) -> FloatArray:
    """Add up the values of each cell, or of each end of a cell."""
    return np.asarray(np.bincount(cell, weights=values, minlength=MOST_OUTCOMES + 1), dtype=np.float64)


def _cells(losses: FloatArray) -> tuple[float, float]:
    """The first end and the width of `MOST_OUTCOMES` cells that cover the losses."""
    low, high = float(losses.min(initial=0.0)), float(losses.max(initial=0.0))
    return low, max((high - low) / MOST_OUTCOMES, 1e-300)
