"""The old decision under a belief about the means: the probability that each arm had the highest score.

Given D∖U, the deleted counts and a Beta distribution for the mean of each arm, the number of ones among the
deleted records is beta-binomial, and with it the score that an arm had on D.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, numbers_of_arms, one_hot, sums_of_arms
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner, PenaltyLearner
from armnesia.unlearners.beta_binomial import Belief, chance_of_at_least, likely_numbers_of_ones
from armnesia.unlearners.higher_of_two import NO_LEAD, higher_of_two, leads
from armnesia.unlearners.noisy_argmax import noisy_argmax

MOST_DELETED = 500
"""Records deleted from several arms together; with more, the scores are taken as normal."""
_NEGLIGIBLE = 1e-15  # a probability that is left out; the sum of a thousand of them is 10⁻¹² at most
_TABLE, _CHUNK, _CACHED = 2**19, 2**20, 2**13  # scores in memory, sorted, and in a cache at once
_FEW_ROWS = 100  # so few data sets are neither searched for equal ones nor compared by leads
_PRECISE = 1e11  # records of an arm: with more, differences of ln Γ have lost their digits


def decision_under(
    belief: Belief, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
) -> FloatArray:
    """q, given a belief about the mean of each arm; the scores of untouched arms are known.

    One touched arm: it was ahead if enough of its deleted rewards were ones. Several: summed over the number
    g of ones, P(a wins) = Σ_g P(g)·Π P(the others stay below); for more than 500 deleted records, and for
    arms with more than 10¹¹, scores are taken as normal, and the probability of the highest is integrated.
    Two touched arms of many data sets have a function of their own, because simulations have many of them.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> belief = np.array([50.1, 63.1]), np.array([50.1, 57.1])
    >>> decision_under(belief, LCB(confidence=0.1), retained, np.array([20, 0])).round(3)
    array([0.154, 0.846])
    """
    shape = np.broadcast_to(shape, retained.counts.shape)
    number = np.where((retained.counts + shape > _PRECISE).any(axis=-1), 0, numbers_of_arms(shape > 0))
    one, few = number == 1, (number > 1) & (sums_of_arms(shape) <= MOST_DELETED)

    def only(rows: BoolArray) -> IntArray:
        return np.where(rows[..., None], shape, 0)

    q = np.zeros(shape.shape)
    if not (one | few).all():
        q = noisy_argmax(*_normal_scores(belief, learner, retained, only(~(one | few))))
    if one.any():
        q = np.where(one[..., None], _one_arm(belief, learner, retained, only(one)), q)
    if few.any():
        q = np.where(few[..., None], _few_records(belief, learner, retained, only(few)), q)
    return q


def reward_sums(statistics: ArmStatistics) -> FloatArray:
    """Reward sums on the scale where a reward is at most 1; whole numbers stay whole."""
    return np.asarray(statistics.sums / UNIT, dtype=np.float64)


def _one_arm(
    belief: Belief, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
) -> FloatArray:
    """The touched arm against the best of the others: the probability of as many ones as it needs."""
    m, touched = retained.n_actions, shape > 0
    arm = np.argmax(touched, axis=-1)[..., None]
    others = np.where(touched, -np.inf, learner.unit_scores(retained))
    rival, to_beat = np.argmax(others, axis=-1)[..., None], others.max(axis=-1, keepdims=True)
    before, sums = np.maximum(retained.counts + shape, 1), reward_sums(retained)

    def is_ahead(ones: IntArray) -> BoolArray:
        scores = np.take_along_axis(learner.lower_bounds((sums + ones) / before, before, m), arm, -1)
        return np.asarray((scores > to_beat) | ((arm < rival) & (scores == to_beat)))

    # The score rises with the ones: bisection finds the smallest number that is ahead.
    deleted = np.take_along_axis(shape, arm, -1)
    low, high = np.zeros_like(deleted), np.where(deleted > 0, deleted + 1, 0)
    while (low < high).any():
        middle = (low + high) // 2
        ahead = is_ahead(middle)
        low, high = np.where(ahead, low, middle + 1), np.where(ahead, middle, high)
    ones, zeros = (np.take_along_axis(np.broadcast_to(part, shape.shape), arm, -1) for part in belief)
    mine = chance_of_at_least(high, deleted, (ones, zeros))
    return mine * one_hot(arm[..., 0], m) + (1 - mine) * np.where(touched, 0.0, one_hot(rival[..., 0], m))


def _few_records(
    belief: Belief, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
) -> FloatArray:
    """Several touched arms and the best of the others, summed over every number of ones."""
    m = retained.n_actions
    before, sums = np.maximum(retained.counts + shape, 1).reshape(-1, m), reward_sums(retained).reshape(-1, m)
    deleted = shape.reshape(-1, m)
    ones, zeros = (np.broadcast_to(part, shape.shape).reshape(-1, m) for part in belief)
    quiet = np.where(deleted > 0, -np.inf, learner.unit_scores(retained).reshape(-1, m))
    number = numbers_of_arms(deleted > 0)
    q = np.zeros(deleted.shape)
    for n_arms in np.unique(number[number > 0]):
        rows = np.flatnonzero(number == n_arms)
        arms, rival = _marked_arms(deleted[rows] > 0, n_arms), np.argmax(quiet[rows], axis=-1)
        k, n, s, one, zero = (
            np.ascontiguousarray(each[rows, arms]) for each in (deleted, before, sums, ones, zeros)
        )
        touched = _Touched(rows, arms, k, n, s, one, zero, rival, quiet[rows, rival])
        found = _highest_arm(touched, learner, shape.shape)
        q[rows, arms] = found[:-1]
        # If all arms are touched, there is no rival, and its place is that of another arm.
        q[rows, rival] += found[-1]
    # Makes up for the probabilities that were left out; rows without a request stay 0.
    q /= np.maximum(sums_of_arms(q)[..., None], 0.5)
    return q.reshape(shape.shape)


@dataclass(frozen=True)
class _Touched:
    """The touched arms of data sets with equally many, and the best of their other arms, the rival.

    The data sets are on the last axis: those of one number of ones lie side by side in memory.
    """

    rows: IntArray
    arms: IntArray
    deleted: IntArray
    before: IntArray
    sums: FloatArray
    ones: FloatArray
    zeros: FloatArray
    rival: IntArray
    to_beat: FloatArray

    def some(self, which: IntArray | slice) -> "_Touched":
        """Some of the data sets."""
        if isinstance(which, slice):
            return _Touched(*(array[..., which] for array in vars(self).values()))
        return _Touched(*(array.take(which, axis=-1) for array in vars(self).values()))

    def columns(self) -> list[NDArray[Any]]:
        """What data sets can differ in; sums first, because they tell it soonest."""
        arms = (*self.arms, *self.deleted, *self.before, *self.ones, *self.zeros)
        return [*self.sums, self.rival, self.to_beat, *arms]

    def scores(
        self, learner: MeanAndCountLearner, shape: tuple[int, ...], numbers_of_ones: range
    ) -> FloatArray:
        """The scores on D with each number of ones among the deleted records, on a new first axis."""
        ones, before = np.array(numbers_of_ones, dtype=np.float64)[:, None, None], self.before * 1.0
        means = np.empty((len(ones), *self.arms.shape))
        at_once = max(1, _CACHED // self.arms.size)
        for start in range(0, len(ones), at_once):
            part = means[start : start + at_once]
            np.add(self.sums, ones[start : start + at_once], out=part)
            np.divide(part, before, out=part)
            np.minimum(part, 1.0, out=part)  # above 1 where so many ones were not even deleted
        learner = learner.for_rows(self.rows, shape, self.arms.T)
        return learner.lower_bounds(means.swapaxes(1, 2), self.before.T, shape[-1]).swapaxes(1, 2)

    def leads(self, learner: MeanAndCountLearner, shape: tuple[int, ...]) -> IntArray:
        """How many values of the second arm are not above the lowest of the first; see `higher_of_two`."""
        if not learner.supports(PenaltyLearner):  # then one more one does not add the same to other scores
            return np.full(self.rows.size, NO_LEAD)
        learner = learner.for_rows(self.rows, shape, self.arms.T)
        sums = np.stack([self.sums, np.minimum(self.sums + self.deleted, self.before)])
        means = (sums / self.before).swapaxes(1, 2)
        lowest, highest = learner.lower_bounds(means, self.before.T, shape[-1]).swapaxes(1, 2)
        return leads(lowest, highest, self.deleted)


def _highest_arm(touched: _Touched, learner: MeanAndCountLearner, shape: tuple[int, ...]) -> FloatArray:
    """P(each of the touched arms, and the rival, was the highest); the data sets are on the last axis."""
    kinds = np.arange(touched.rows.size)
    if kinds.size >= _FEW_ROWS and learner.for_rows(touched.rows, shape) is learner:
        first, kinds = _distinct(touched.columns())
        touched = touched.some(first) if first.size < kinds.size else touched
    n_arms, rows = touched.arms.shape
    most = int(touched.deleted.max())
    lead = touched.leads(learner, shape) if n_arms == 2 and rows > _FEW_ROWS else None
    # Data sets with similar numbers of ones come together: then few numbers are likely in each part.
    key = (touched.deleted * touched.ones / (touched.ones + touched.zeros)).max(axis=0)
    order = np.argsort(key if lead is None else key + (most + 1.0) * lead)
    touched, lead = touched.some(order), None if lead is None else lead[order]
    found = np.empty((n_arms + 1, rows))
    n_parts = -(-rows * (n_arms + 1) * (most + 1) // _TABLE)
    for part in np.array_split(np.arange(rows), n_parts):
        at = slice(int(part[0]), int(part[-1]) + 1)
        these = touched.some(at)
        fewest, chances = likely_numbers_of_ones(these.deleted, (these.ones, these.zeros), _NEGLIGIBLE)
        scores = these.scores(learner, shape, range(fewest, fewest + len(chances)))
        arms = np.stack([*these.arms, these.rival])
        if lead is None:
            found[:, at] = _highest_of_several(scores, chances, these.to_beat, arms)
        else:
            found[:, at] = higher_of_two(scores, chances, these.to_beat, arms, lead[at])
    place = np.empty_like(order)
    place[order] = np.arange(rows)
    return found.take(place[kinds], axis=-1)


def _marked_arms(marks: BoolArray, number: int) -> IntArray:
    """The places of the marked arms of each data set, which has so many, on the first axis."""
    if (marks == marks[0]).all():
        return np.ascontiguousarray(np.broadcast_to(np.flatnonzero(marks[0])[:, None], (number, len(marks))))
    return np.ascontiguousarray(np.nonzero(marks)[1].reshape(-1, number).T)


def _distinct(columns: list[NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """The first row of each kind, and the kind of every row.

    Simulated data sets often agree in everything that matters here. If most do not, all rows are returned.
    """
    rows = np.arange(columns[0].size)
    first, kinds = rows[:1], np.zeros(rows.size, dtype=np.int64)
    for column in columns:
        if (column == column[first][kinds]).all():
            continue
        values = np.unique(column)
        if 2 * values.size > rows.size:
            return rows, rows
        codes = kinds * values.size + np.searchsorted(values, column)
        kinds = _ranks(codes, first.size * values.size)
        first = np.empty(kinds.max() + 1, dtype=np.int64)
        first[kinds[::-1]] = rows[::-1]  # of several rows the one written last stays: the first
        if 2 * first.size > rows.size:
            return rows, rows
    return first, kinds


def _ranks(codes: IntArray, most: int) -> IntArray:
    """The rank of each code, from 0 to `most`, among the different ones; a table is faster than sorting."""
    if most > 8 * codes.size:
        return np.unique(codes, return_inverse=True)[1]
    is_used = np.zeros(most, dtype=np.bool_)
    is_used[codes] = True
    return np.asarray((np.cumsum(is_used) - 1)[codes])


def _highest_of_several(
    scores: FloatArray, chances: FloatArray, rival: FloatArray, arms: IntArray
) -> FloatArray:
    """P(each of the arms is the highest), the last of which has a known score; ties to the first arm.

    The axes of scores and chances are the values, the arms and the data sets.
    """
    scores, chances = scores.T, chances.T
    known = np.broadcast_to(rival[:, None, None], (rival.size, 1, scores.shape[-1]))
    certain = np.broadcast_to(np.arange(scores.shape[-1]) == 0, known.shape)
    # In rising order the last arm comes first.
    last_first = np.argsort(-arms.T, axis=-1, kind="stable")
    both = (np.concatenate(parts, axis=1) for parts in ((scores, known), (chances, certain)))
    found = highest_of(*(np.take_along_axis(each, last_first[..., None], 1) for each in both))
    in_order = np.empty_like(found)
    np.put_along_axis(in_order, last_first, found, axis=-1)
    return in_order.T


def highest_of(scores: FloatArray, chances: FloatArray) -> FloatArray:
    """P(each of independent scores is the highest), values on the last axis; of equal scores the last wins.

    >>> highest_of(np.array([[[0.0, 2.0], [1.0, 2.0]]]), np.array([[[0.5, 0.5], [0.5, 0.5]]]))
    array([[0.25, 0.75]])
    """
    n, arms, values = scores.shape
    wins = np.zeros((n, arms))
    for rows in np.array_split(np.arange(n), -(-scores.size // _CHUNK)):
        order = np.argsort(scores[rows].reshape(-1, arms * values), axis=-1, kind="stable")
        chance = np.take_along_axis(chances[rows].reshape(-1, arms * values), order, -1)
        owner = order // values
        below = chance.copy()
        for arm in range(arms):
            reached = np.cumsum(np.where(owner == arm, chance, 0.0), axis=-1)
            below *= np.where(owner == arm, 1.0, reached)
        for arm in range(arms):
            wins[rows, arm] = np.where(owner == arm, below, 0.0).sum(axis=-1)
    return wins


def _normal_scores(
    belief: Belief, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Centre and spread of the scores on D, at the mean and spread of the believed rewards."""
    m, (ones, zeros) = retained.n_actions, belief
    n, k, before = ones + zeros, np.maximum(shape, 1), np.maximum(retained.counts + shape, 1)
    share = ones / n
    spread = shape / before * np.sqrt(share * (1 - share) * (n + k) / (k * (n + 1)))
    centre = np.where(shape > 0, (reward_sums(retained) + shape * share) / before, retained.unit_means)
    scores = learner.lower_bounds(centre, before, m)
    spread = learner.score_spread(centre, spread, before, m)
    return np.where(retained.counts + shape > 0, scores, -1.0), np.where(shape > 0, spread, 0.0)
