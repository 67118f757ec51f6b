"""Exact evaluation of tilt for requests of two arms: a sum over both kept sums and the best other score.

Given these, the reference is known. What is released depends on the deleted sums only through the order of
the three scores on D: those of the requested arms a and b, and that of the best other arm, the rival. Its six
orders have probabilities that are products and cumulative sums of the distributions of the deleted sums.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.simulation.fixed_case import FixedCase
from armnesia.simulation.score_distribution import NEGLIGIBLE, ScoreDistribution, binomial, losing
from armnesia.unlearners import Tilt
from armnesia.unlearners.beta_binomial import numbers_of_ones
from armnesia.unlearners.contenders import can_win
from armnesia.unlearners.predictive import flat_belief
from armnesia.unlearners.tilt import tilted
from armnesia.unlearners.tilt_reference import insured_reference

A, B, RIVAL = 0, 1, 2
_ORDERS: tuple[tuple[int, ...], ...] = tuple(permutations((A, B, RIVAL)))
_MOST_STATES = 20_000_000
"""They take about half a minute."""
_LEFT_OUT = 1e-17
"""Less likely combinations are left out. With their six orders they are at most 7·_MOST_STATES·_LEFT_OUT,
less than 10⁻⁸ together."""


def exact_tilt_of_two(case: FixedCase, tilt: Tilt, first: int, second: int) -> FloatArray:
    """P(released arm) for a request of two arms, the first of which comes first in the order of the arms.

    >>> from armnesia import LCB, Budget
    >>> case = FixedCase(
    ...     np.array([0.6, 0.4, 0.5]), np.array([20, 20, 20]), np.array([8, 5, 0]), LCB(confidence=0.1),
    ...     Budget(epsilon=1.0, delta=1e-5),
    ... )
    >>> exact_tilt_of_two(case, Tilt(), first=0, second=1).round(3)
    array([0.729, 0.071, 0.199])
    """
    a, b = _Requested.of(case, first), _Requested.of(case, second)
    rivals = _rivals(case, first, second)
    states = a.kept.size * b.kept.size * sum(values.size for _, values, _ in rivals)
    if states > _MOST_STATES:
        raise UnsupportedError(
            f"exact evaluation of tilt for two requested arms is for up to {_MOST_STATES:.0e} combinations of"
            f" sums; here are {states:.1e}: use the sampled protocol"
        )
    # The number of sums of b on D that lose against each sum of a; ties go to the first arm.
    losing_sums = np.searchsorted(b.scores, a.scores, side="right")
    chances = np.zeros(case.m + 1)  # the last place is that of a rival who does not exist
    for rival, values, weights in rivals:
        needed_a = np.searchsorted(a.scores, values, side="left" if first < rival else "right")
        needed_b = np.searchsorted(b.scores, values, side="left" if second < rival else "right")
        for place, kept in enumerate(a.kept):
            state = _State(
                losing_sums[kept : kept + a.deleted + 1, None] - b.kept,
                np.clip(needed_a - kept, 0, a.deleted + 1),
                np.clip(needed_b - b.kept[:, None], 0, b.deleted + 1),
            )
            joint = a.weights[place] * b.weights[:, None] * weights
            likely = joint > _LEFT_OUT
            if not likely.any():
                continue
            believed = state.orders(a.believed[place], b.believed)
            q = np.stack([sum(believed[o] for o in _ORDERS if o[0] == arm) for arm in range(3)], axis=-1)
            reference = np.zeros_like(q)
            reference[likely] = _reference(
                *(case, tilt, q[likely]),
                _stacked(a.lowest[place], b.lowest, values)[likely],
                _stacked(a.highest[place], b.highest, values)[likely],
                (first, second, rival),
            )
            for order, chance in state.orders(a.actual, b.actual).items():
                rows = joint * chance > _LEFT_OUT
                r = reference[rows]
                old, ranks = np.eye(3)[order[0]] + 0 * r, -np.argsort(order) + 0 * r
                released = tilted(r, old, ranks, case.budget)
                chances[[first, second, rival]] += (joint * chance)[rows] @ released
    return np.asarray(chances[:-1] / chances.sum())


@dataclass(frozen=True, eq=False)
class _Requested:
    """A requested arm: its possible kept sums, and the distributions of its deleted sum."""

    kept: IntArray
    weights: FloatArray
    """Of the kept sums."""
    deleted: int
    """k."""
    scores: FloatArray
    """By the sum on D."""
    lowest: FloatArray
    """The lowest score that is possible with each kept sum, rounded down."""
    highest: FloatArray
    """The highest one, rounded up."""
    actual: FloatArray
    """P(g ones among the deleted records)."""
    believed: FloatArray
    """The same as tilt's predictive has it; a row for every kept sum."""

    @classmethod
    def of(cls, case: FixedCase, arm: int) -> "_Requested":
        n, k, p = int(case.counts[arm]), int(case.deleted[arm]), float(case.means[arm])
        weights = binomial(n - k, p)
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        belief = flat_belief(kept.astype(np.float64), np.full(kept.size, n - k))
        believed = numbers_of_ones(np.full(kept.size, k), belief, k)
        scores = case.scores(arm, np.arange(n + 1), n)
        rounding = case.learner.score_rounding
        lowest, highest = scores[kept] - rounding, scores[kept + k] + rounding
        return cls(kept, weights[kept], k, scores, lowest, highest, binomial(k, p), believed)


def _rivals(case: FixedCase, first: int, second: int) -> list[tuple[int, FloatArray, FloatArray]]:
    """Each other arm with its scores on D and the probabilities that it is the best of the others at them."""
    never_wins = ScoreDistribution(np.full(1, -np.inf), np.ones(1))
    distributions = case.score_distributions(case.counts)
    others = [never_wins if arm in (first, second) else each for arm, each in enumerate(distributions)]
    if case.m == 2:
        return [(2, np.full(1, -np.inf), np.ones(1))]
    found = []
    for rival, each in enumerate(others):
        if rival not in (first, second):
            weights = each.weights * losing(others, rival, each.values)
            possible = weights > NEGLIGIBLE
            found.append((rival, each.values[possible], weights[possible]))
    return found


@dataclass(frozen=True, eq=False)
class _State:
    """A kept sum of a, with all kept sums of b (rows) and all scores of the rival (columns)."""

    losing_ones: IntArray
    """The number of b's ones, from 0 up, that lose against each number of a's ones; b in columns."""
    needed_a: IntArray
    """The ones that a needs to be ahead of the rival; k + 1 if that is impossible."""
    needed_b: IntArray

    def orders(self, a: FloatArray, b: FloatArray) -> dict[tuple[int, ...], FloatArray]:
        """P(each order of the scores, the highest first), given distributions of the deleted ones."""
        rows = np.broadcast_to(b, (self.needed_b.shape[0], b.shape[-1]))
        b_at_most = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=-1)], axis=-1)
        places = np.clip(self.losing_ones, 0, b.shape[-1]).T
        a_ahead_of_b = a * np.take_along_axis(b_at_most, places, -1)
        both = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(a_ahead_of_b, axis=-1)], axis=-1)
        a_at_most = np.concatenate([[0.0], np.cumsum(a)])
        a_behind, b_behind = a_at_most[self.needed_a], np.take_along_axis(b_at_most, self.needed_b, -1)
        a_in_front, behind_with_b = a_at_most[-1] - a_behind, both[:, self.needed_a]
        in_front_of_b = both[:, -1:] - behind_with_b
        found: dict[tuple[int, ...], FloatArray] = {
            (A, B, RIVAL): in_front_of_b - a_in_front * b_behind,
            (A, RIVAL, B): a_in_front * b_behind,
            (B, A, RIVAL): a_in_front * b_at_most[:, -1:] - in_front_of_b,
            (RIVAL, A, B): behind_with_b,
            (RIVAL, B, A): a_behind * b_behind - behind_with_b,
            (B, RIVAL, A): a_behind * (b_at_most[:, -1:] - b_behind),
        }
        return {order: np.maximum(found[order], 0.0) for order in _ORDERS}  # differences may leave −10⁻¹⁷


def _stacked(a: FloatArray, b: FloatArray, rival: FloatArray) -> FloatArray:
    """The scores of a, b (a row for every kept sum) and the rival (a column for every score)."""
    return np.stack(np.broadcast_arrays(a, b[:, None], rival), axis=-1)


def _reference(
    case: FixedCase,
    tilt: Tilt,
    q: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    arms: tuple[int, int, int],
) -> FloatArray:
    """The reference for a, b and the rival; no other arm has a positive probability."""
    by_arm = np.argsort(arms)  # ties, also of gains, go to the first arm
    q, highest = q[..., by_arm], highest[..., by_arm]
    is_contender = can_win(lowest[..., by_arm], highest)
    reference = np.empty_like(q)
    reference[..., by_arm] = insured_reference(q, is_contender, highest, case.budget, tilt.insurance)
    return reference
