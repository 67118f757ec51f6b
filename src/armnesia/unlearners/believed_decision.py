"""The old decision under a belief about the means: the probability that each arm had the highest score.

Given D∖U, the deleted counts and a Beta distribution for the mean of each arm, the number of ones among the
deleted records is beta-binomial, and with it the score that an arm had on D.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, one_hot
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import MeanAndCountLearner
from armnesia.unlearners.beta_binomial import Belief, chance_of_at_least, likely_numbers_of_ones
from armnesia.unlearners.noisy_argmax import noisy_argmax

MOST_DELETED = 500
"""Records deleted from several arms together; with more, the scores are taken as normal."""
_NEGLIGIBLE = 1e-15  # a probability that is left out: the sum of a thousand of them is lost in rounding
_TABLE, _CHUNK = 2**19, 2**20  # scores in memory, and sorted, at once
_FEW_ROWS = 100  # so few data sets are not searched for equal ones
_NEAR = 3  # steps of one before a bisection


def decision_under(
    belief: Belief, learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray
) -> FloatArray:
    """q, given a belief about the mean of each arm; the scores of untouched arms are known.

    One touched arm: it was ahead if enough of its deleted rewards were ones. Several: summed over the number
    g of ones, P(a wins) = Σ_g P(g)·Π P(the others stay below); for more than 500 deleted records scores are
    taken as normal, and the probability of the highest is integrated. Two arms have a function of their own
    because simulations have many such data sets.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 50, "B": [1] * 63 + [0] * 57})
    >>> belief = np.array([50.1, 63.1]), np.array([50.1, 57.1])
    >>> decision_under(belief, LCB(confidence=0.1), retained, np.array([20, 0])).round(3)
    array([0.154, 0.846])
    """
    shape = np.broadcast_to(shape, retained.counts.shape)
    number = (shape > 0).sum(axis=-1)
    one, few = number == 1, (number > 1) & (shape.sum(axis=-1) <= MOST_DELETED)

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
    number = (deleted > 0).sum(axis=-1)
    q = np.zeros(deleted.shape)
    for n_arms in np.unique(number[number > 0]):
        alike = np.flatnonzero(number == n_arms)
        # The data sets are on the last axis: those of one number of ones lie side by side in memory.
        touched = np.ascontiguousarray(np.argsort(deleted[alike] == 0, axis=-1, kind="stable").T[:n_arms])
        rival, to_beat = np.argmax(quiet[alike], axis=-1), quiet[alike].max(axis=-1)
        k, n, s, one, zero = (
            np.ascontiguousarray(each[alike, touched]) for each in (deleted, before, sums, ones, zeros)
        )
        if learner.for_rows(alike, shape.shape) is learner:
            # Sums first: they tell soonest that data sets differ.
            every, copies = _distinct([*s, rival, to_beat, *touched, *k, *n, *one, *zero])
        else:
            every = copies = np.arange(alike.size)
        arms = np.stack([*touched, rival], axis=-1)
        found = np.zeros(arms.shape)
        most = int(k.max())
        # Data sets with similar numbers of ones come together: then few numbers are likely in each part.
        in_order = every[np.argsort((k * one / (one + zero)).max(axis=0)[every])]
        k, n, touched = (each.take(in_order, axis=1) for each in (k, n, touched))
        s, one, zero = (each.take(in_order, axis=1) for each in (s, one, zero))
        n_parts = -(-every.size * (n_arms + 1) * (most + 1) // _TABLE)
        for places in np.array_split(np.arange(every.size), n_parts):
            at, part = slice(int(places[0]), int(places[-1]) + 1), in_order[places]
            fewest, chances = likely_numbers_of_ones(k[:, at], (one[:, at], zero[:, at]), _NEGLIGIBLE)
            means = s[:, at] + np.arange(float(fewest), fewest + len(chances))[:, None, None]
            means /= n[:, at]
            np.minimum(means, 1.0, out=means)
            for_these = learner.for_rows(alike[part], shape.shape, touched[:, at].T)
            scores = for_these.lower_bounds(means.swapaxes(1, 2), n[:, at].T, m).swapaxes(1, 2)
            winner = _higher_of_two if n_arms == 2 and part.size > _FEW_ROWS else _highest_of_several
            found[part] = winner(scores, chances, to_beat[part], arms[part])
        # If all arms are touched, there is no rival, and its place is that of another arm.
        np.add.at(q, (alike[:, None], arms), found[every[copies]])
    # Makes up for the probabilities that were left out; rows without a request stay 0.
    q /= np.maximum(q.sum(axis=-1, keepdims=True), 0.5)
    return q.reshape(shape.shape)


def _distinct(columns: list[NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """The first row of each kind, and the kind of every row.

    Simulated data sets often agree in everything that matters here. If most do not, all rows are returned.
    """
    rows = np.arange(columns[0].size)
    if rows.size < _FEW_ROWS:
        return rows, rows
    kinds = np.zeros(rows.size, dtype=np.int64)
    for column in columns:
        if (column == column[0]).all():
            continue
        values, kinds_of_column = np.unique(column, return_inverse=True)
        if 2 * values.size <= rows.size:
            values, kinds = np.unique(kinds * values.size + kinds_of_column, return_inverse=True)
        if 2 * values.size > rows.size:
            return rows, rows
    _, first, kinds = np.unique(kinds, return_index=True, return_inverse=True)
    return first, kinds


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
    last_first = np.argsort(-arms, axis=-1, kind="stable")
    both = (np.concatenate(parts, axis=1) for parts in ((scores, known), (chances, certain)))
    found = highest_of(*(np.take_along_axis(each, last_first[..., None], 1) for each in both))
    in_order = np.empty_like(found)
    np.put_along_axis(in_order, last_first, found, axis=-1)
    return in_order


def _higher_of_two(scores: FloatArray, chances: FloatArray, rival: FloatArray, arms: IntArray) -> FloatArray:
    """The same for two arms and many data sets, without sorting; the values of each arm rise.

    It goes through the values one by one, because the data sets of one value fit into a cache.
    """
    n_values, _, rows = scores.shape
    # Chances that the second arm has one of the values before this one.
    before = np.zeros((n_values + 1, rows))
    for value in range(n_values):
        np.add(before[value], chances[value, 1], out=before[value + 1])
    search = _RisingSearch(scores[:, 1])
    place, first = search.start, np.zeros(rows)
    if not (rival > -np.inf).any():
        total = np.zeros(rows)  # 1 up to rounding
        for value in range(n_values):
            # Below this place, the second arm is below the first or equal to it.
            place = search.first_above(scores[value, 0], from_place=place)
            first += chances[value, 0] * before.take(place)
            total += chances[value, 0]
        return np.stack([first, np.maximum(total * before[-1] - first, 0.0), np.zeros(rows)], axis=-1)
    # An arm in front of the rival needs to be equal only: a little less is to be exceeded.
    in_front = arms[:, :2] < arms[:, 2:]
    to_beat = np.where(in_front, np.nextafter(rival, -np.inf)[:, None], rival[:, None]).T
    # Chances that the second arm has this value or a later one, ahead of the rival.
    from_here = np.zeros((n_values + 1, rows))
    lost, other_lost, second = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for value in reversed(range(n_values)):
        ahead = chances[value, 1] * (scores[value, 1] > to_beat[1])
        np.add(from_here[value + 1], ahead, out=from_here[value])
        other_lost += chances[value, 1] - ahead
    for value in range(n_values):
        ahead = chances[value, 0] * (scores[value, 0] > to_beat[0])
        lost += chances[value, 0] - ahead
        place = search.first_above(scores[value, 0], from_place=place)
        first += ahead * before.take(place)
        second += chances[value, 0] * from_here.take(place)
    return np.stack([first, second, lost * other_lost], axis=-1)


class _RisingSearch:
    """Finds the first value of each data set that is above a given one; they rise on the first axis.

    A place is an index into the flat array of values, and of any other array with these axes.
    """

    def __init__(self, values: FloatArray) -> None:
        number, self.rows = values.shape
        self.length = 2 ** number.bit_length()
        padded = np.empty((self.length, self.rows))
        padded[:number], padded[number:] = values, np.inf
        self.values = padded.ravel()
        self.start = np.arange(self.rows)

    def first_above(self, at: FloatArray, from_place: IntArray) -> IntArray:
        """The places, which are not before `from_place`; near ones are found faster."""
        place = from_place
        for _ in range(_NEAR):
            more = self.values.take(place) <= at
            if not more.any():
                return place
            place = place + more * self.rows
        place, step = self.start, self.length // 2 * self.rows
        while step >= self.rows:
            more = self.values.take(place + (step - self.rows)) <= at
            place, step = place + more * step, step // 2
        return place


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
