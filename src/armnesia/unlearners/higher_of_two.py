"""Which of two arms had the higher score, for many data sets at once.

The scores of an arm rise with the number of ones among its deleted records. The first arm wins against all
scores of the second that are not above its own, and how many these are is its place among them. If one more
one adds the same to both scores, as it does where both arms had equally many records, the place rises by one
with each score of the first arm, and one place tells all. Otherwise every place is searched.
"""

import itertools
from typing import TypeAlias

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray

_Pair: TypeAlias = tuple[FloatArray, FloatArray]
"""Weights of the first arm's values, and a table with a number for each value of the second and one more."""

NO_LEAD = 2**32
"""The lead of data sets where one more one does not add the same to both scores."""
_NEAR = 3  # steps of one before a bisection
_SAME = 1e-9  # of what one more one adds; leads are estimates that are checked


def leads(lowest: FloatArray, highest: FloatArray, steps: IntArray) -> IntArray:
    """How many values of the second arm are not above the lowest of the first, by the steps between them.

    The values of an arm (first axis) rise from `lowest` to `highest` in so many steps. Where the first arm
    reaches the lowest value of the second only with its value v, the lead is 1 − v. It is an estimate,
    because values are rounded, and because the steps of an arm may differ.

    >>> lowest, highest, steps = np.array([[0.4], [0.1]]), np.array([[0.8], [0.4]]), np.array([[4], [3]])
    >>> leads(lowest, highest, steps)
    array([4])
    """
    added = (highest - lowest) / steps
    same = (added[1] > 0) & (np.abs(added[0] - added[1]) <= _SAME * added[1])
    ahead = (lowest[0] - lowest[1]) / np.where(same, added[1], 1.0)
    lead = np.clip(np.floor(ahead + _SAME) + 1, -NO_LEAD, NO_LEAD)
    return np.where(same, lead, NO_LEAD).astype(np.int64)


def higher_of_two(
    scores: FloatArray, chances: FloatArray, rival: FloatArray, arms: IntArray, lead: IntArray
) -> FloatArray:
    """P(each of three arms is the highest), the last of which has a known score; ties to the lower number.

    The axes of scores and chances are the values, which rise, the two arms, in the order of their numbers,
    and the data sets. `lead` is that of `leads`, with equal ones side by side; a wrong one takes time only.

    >>> scores, chances = np.array([[[0.2], [0.1]], [[0.4], [0.3]]]), np.full((2, 2, 1), 0.5)
    >>> higher_of_two(scores, chances, np.array([0.2]), np.array([[0], [1], [2]]), np.array([1])).T
    array([[0.75, 0.25, 0.  ]])
    """
    n_values, _, rows = scores.shape
    mine, others = chances[:, 0], chances[:, 1]
    before = np.empty((n_values + 1, rows))  # chances of the second arm's values before this one
    before[0] = 0.0
    for value in range(n_values):
        np.add(before[value], others[value], out=before[value + 1])
    if not (rival > -np.inf).any():
        (first,) = _sums_at_places(scores, lead, [(mine, before)])
        both = mine.sum(axis=0) * before[-1]  # 1 up to rounding, which `best_reference` takes as impossible
        return np.stack([first, np.maximum(both - first, 0.0), np.zeros(rows)])
    # An arm in front of the rival needs to be equal only: a little less is to be exceeded.
    to_beat = np.where(arms[:2] < arms[2], np.nextafter(rival, -np.inf), rival)
    ahead, lost = np.empty((n_values, rows)), np.zeros((2, rows))
    from_here = np.empty((n_values + 1, rows))  # chances of this value or a later one, ahead of the rival
    from_here[-1] = 0.0
    for value in reversed(range(n_values)):  # one by one: the data sets of one value fit into a cache
        behind = chances[value] * (scores[value] <= to_beat)
        lost += behind
        np.subtract(mine[value], behind[0], out=ahead[value])
        np.add(from_here[value + 1], others[value] - behind[1], out=from_here[value])
    first, second = _sums_at_places(scores, lead, [(ahead, before), (mine, from_here)])
    return np.stack([first, second, lost[0] * lost[1]])


def _sums_at_places(scores: FloatArray, lead: IntArray, pairs: list[_Pair]) -> FloatArray:
    """Σ_v weight(v)·table(place of v) for each pair."""
    n_values, _, rows = scores.shape
    totals, is_found = np.zeros((len(pairs), rows)), np.zeros(rows, dtype=np.bool_)
    ends = [0, *(np.flatnonzero(np.diff(lead)) + 1).tolist(), rows]
    for start, end in itertools.pairwise(ends):
        if lead[start] == NO_LEAD:
            continue
        shift, run = int(np.clip(lead[start], 1 - n_values, n_values)), slice(start, end)
        is_found[run] = _is_shift(scores[:, :, run], shift)
        for total, (weights, table) in zip(totals, pairs, strict=True):
            total[run] = _shifted_sum(weights[:, run], table[:, run], shift)
    if not is_found.all():
        rest = np.flatnonzero(~is_found) if is_found.any() else slice(None)
        taken = [(weights[:, rest], table[:, rest]) for weights, table in pairs]
        totals[:, rest] = _searched_sums(scores[:, :, rest], taken)
    return totals


def _is_shift(scores: FloatArray, shift: int) -> BoolArray:
    """Whether the place of each value v is v + shift, or the end that is nearer."""
    n_values = len(scores)
    mine, other = scores[:, 0], scores[:, 1]
    low, high = max(0, 1 - shift), min(n_values, n_values - shift + 1)
    reached = (other[low + shift - 1 : high + shift - 1] <= mine[low:high]).all(axis=0)
    low, high = max(0, -shift), min(n_values, n_values - shift)
    return np.asarray(reached & (other[low + shift : high + shift] > mine[low:high]).all(axis=0))


def _shifted_sum(weights: FloatArray, table: FloatArray, shift: int) -> FloatArray:
    """Σ_v weight(v)·table(v + shift), or the end of the table that is nearer."""
    n_values = len(weights)
    low, high = max(0, -shift), min(n_values, n_values - shift)
    total = np.einsum("vr,vr->r", weights[low:high], table[low + shift : high + shift])
    total += weights[:low].sum(axis=0) * table[0]
    total += weights[high:].sum(axis=0) * table[-1]
    return np.asarray(total)


def _searched_sums(scores: FloatArray, pairs: list[_Pair]) -> FloatArray:
    """The same sums where every place is searched, value by value: the data sets of one fit into a cache."""
    n_values, _, rows = scores.shape
    search = _RisingSearch(scores[:, 1])
    place, totals = search.start, np.zeros((len(pairs), rows))
    for value in range(n_values):
        place = search.first_above(scores[value, 0], from_place=place)
        for number, (weights, table) in enumerate(pairs):
            totals[number] += weights[value] * table.take(place)
    return totals


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
