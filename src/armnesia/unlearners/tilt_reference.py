"""The reference of tilt: the best vector for a predictive, with contenders insured as far as that is paid.

Given a reference r, (ε, δ) lets the release raise the old decision to hi(r). The functions here choose r so
that the old decision is kept as often as possible if q is right and, where insured, also if it is wrong.
"""

import math

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, numbers_of_arms, sums_of_arms
from armnesia.core.messages import counted
from armnesia.privacy import Budget

_AT_ONCE = 2**14
"""Probabilities that are filled at once: with what is computed for them they fit into a cache."""
_FEW_TO_FILL = 20
"""So few data sets are sorted as fast."""
_IMPOSSIBLE = 1e-12
"""A lower probability counts as 0.

With probability 10⁻²⁰ in the place of 0, an arm may get δ or h of the reference. A predictive leaves such
probabilities out, and which ones depends on the data sets that are computed together; the reference must not.
"""


def factors(budget: Budget) -> tuple[float, float]:
    """e^ε and e^{−ε} for ε up to 700, where e^ε nearly overflows; a smaller ε is only stricter."""
    epsilon = min(budget.epsilon, 700.0)
    return math.exp(epsilon), math.exp(-epsilon)


def highest_allowed(reference: FloatArray, budget: Budget) -> FloatArray:
    """The most that a reference probability r may be raised to: min{1, e^ε·r + δ, 1 − e^{−ε}(1 − r − δ)}.

    >>> highest_allowed(np.array([0.0, 0.5, 1.0]), Budget(epsilon=1.0, delta=0.0)).round(4)
    array([0.    , 0.8161, 1.    ])
    """
    up, down = factors(budget)
    raised = np.minimum(up * reference + budget.delta, 1 - down * (1 - reference - budget.delta))
    return np.clip(raised, reference, 1.0)


def least_lost(reference: FloatArray, budget: Budget) -> FloatArray:
    """1 − hi(r), without the cancellation of that difference: max{e^{−ε}(1 − r − δ), 1 − e^ε·r − δ, 0}.

    >>> budget = Budget(epsilon=50.0, delta=0.0)
    >>> float(1 - highest_allowed(np.array(0.5), budget)), float(least_lost(np.array(0.5), budget))
    (0.0, 9.643749239819589e-23)
    """
    up, down = factors(budget)
    lost = np.maximum(down * (1 - reference - budget.delta), 1 - budget.delta - up * reference)
    return np.clip(lost, 0.0, 1 - reference)


def knee(budget: Budget) -> float:
    """h = (1−δ)/(1+e^ε), where the slope of hi falls from e^ε to e^{−ε}; hi(h) = 1 − h.

    >>> round(knee(Budget(epsilon=3.0, delta=0.0)), 4)
    0.0474
    """
    return (1 - budget.delta) / (1 + factors(budget)[0])


def insurance_price(number: IntArray, budget: Budget) -> FloatArray:
    """The most keep probability, under q, that insuring this many contenders can cost: (c−1)·e^{−ε}·h.

    It is infinite where they cannot all be insured: c·h > 1. With one contender it is 0.

    >>> insurance_price(np.array([1, 2, 3, 30]), Budget(epsilon=3.0, delta=0.0)).round(4)
    array([0.    , 0.0024, 0.0047,    inf])
    """
    h, (_, down) = knee(budget), factors(budget)
    return np.where(number * h <= 1, (number - 1) * (down * h), np.inf)


def best_reference(predictive: FloatArray, budget: Budget, insured: BoolArray | None = None) -> FloatArray:
    """The r that maximises Σ_a q_a·hi(r_a): the highest chance, under q, of keeping the old decision.

    hi is concave and piecewise linear: slope e^ε up to the knee h, e^{−ε} up to 1−δ, then 0. The 3m pieces
    are filled in falling order of slope·q until the total is 1. The first pieces of `insured` arms are filled
    before all others, so each of them gets at least h: the highest chance of all r that do so, up to 10⁻¹²
    for each arm, because lower probabilities count as 0.

    >>> best_reference(np.array([0.7, 0.3, 0.0]), Budget(epsilon=1.0, delta=0.0)).round(4)
    array([0.7311, 0.2689, 0.    ])
    >>> insured = np.array([True, False, True])
    >>> best_reference(np.array([0.9, 0.1, 0.0]), Budget(epsilon=3.0, delta=0.0), insured).round(4)
    array([0.9051, 0.0474, 0.0474])
    """
    m = predictive.shape[-1]
    predictive = _without_impossible(predictive)
    rows, marks = predictive.reshape(-1, m), None if insured is None else insured.reshape(-1, m)
    fill = _filled_in_order if budget.delta > knee(budget) or len(rows) < _FEW_TO_FILL else _filled_at_once
    at_once = max(1, _AT_ONCE // m)  # data sets that fit into a cache
    if len(rows) <= at_once:
        return fill(rows, budget, marks).reshape(predictive.shape)
    parts = [slice(start, start + at_once) for start in range(0, len(rows), at_once)]
    found = [fill(rows[part], budget, None if marks is None else marks[part]) for part in parts]
    return np.concatenate(found).reshape(predictive.shape)


def _filled_in_order(predictive: FloatArray, budget: Budget, insured: BoolArray | None) -> FloatArray:
    """The pieces of all arms, sorted by what they gain and filled until the total is 1."""
    h, likely = knee(budget), _rounded(predictive)
    pieces = (h, 1 - budget.delta - h, budget.delta)
    lengths = np.concatenate([np.full(predictive.shape, length) for length in pieces], axis=-1)
    gains = np.concatenate([*_gains(likely, budget, insured), np.zeros_like(predictive)], axis=-1)
    # Of pieces with equal gains, or none, those of the likelier arm are filled first.
    order = np.lexsort((-np.concatenate([likely] * 3, axis=-1), -gains), axis=-1)
    sorted_lengths = np.take_along_axis(lengths, order, -1)
    room = _without_rounding(1 - (np.cumsum(sorted_lengths, axis=-1) - sorted_lengths))
    filled = np.zeros_like(lengths)
    np.put_along_axis(filled, order, np.clip(room, 0.0, sorted_lengths), axis=-1)
    return np.asarray(sum(np.split(filled, 3, axis=-1)))


def _filled_at_once(predictive: FloatArray, budget: Budget, insured: BoolArray | None) -> FloatArray:
    """The same for δ ≤ h and many data sets, without sorting where the total is 1 after few pieces.

    Some first pieces come before the second one of the likeliest arm. If they are two or more, this second
    piece takes what they leave, because δ ≤ h. If the arm's own is the only one, δ is left over: for the
    next likely arm, or for the likeliest if no other arm is likely at all.
    """
    h = knee(budget)
    # Arms on the first axis: operations on many data sets are faster than many on few arms.
    likely = _rounded(predictive.T)
    first, second = _gains(likely, budget, None if insured is None else insured.T)
    likeliest, highest = _first_highest(likely), likely.max(axis=0)
    to_exceed = second.max(axis=0)
    comes_before = (first > to_exceed) | ((first == to_exceed) & (likely == highest))
    number = comes_before.sum(axis=0)
    filled = h * comes_before + np.where(likeliest, _without_rounding(1 - h * number), 0.0)
    if budget.delta > 0:
        others = np.where(likeliest, 0.0, likely)
        is_next = np.where(others.max(axis=0) > 0, _first_highest(others), likeliest)
        alone = number == 1
        filled += np.where(alone, budget.delta * (is_next.astype(np.float64) - likeliest), 0.0)
    reference = np.ascontiguousarray(filled.T)
    too_many = h * number > 1
    if too_many.any():
        marks = None if insured is None else insured[too_many]
        reference[too_many] = _filled_in_order(predictive[too_many], budget, marks)
    return reference


def _gains(likely: FloatArray, budget: Budget, insured: BoolArray | None) -> tuple[FloatArray, FloatArray]:
    """What the first and the second piece of each arm gain; what differs by rounding only is equal."""
    up, down = factors(budget)
    first, second = _rounded(likely * up), _rounded(likely * down)
    return first if insured is None else np.where(insured, np.inf, first), second


def _first_highest(values: FloatArray) -> BoolArray:
    """Mark the highest value on the first axis, and of equal ones the first."""
    is_highest = values == values.max(axis=0)
    return np.asarray(is_highest & (np.cumsum(is_highest, axis=0) == 1))


def _without_impossible(predictive: FloatArray) -> FloatArray:
    return np.where(predictive < _IMPOSSIBLE, 0.0, predictive)


def _without_rounding(room: FloatArray) -> FloatArray:
    """The room that is left; values up to 10⁻¹⁵ are rounding errors."""
    return np.where(room > 1e-15, room, 0.0)


def _rounded(values: FloatArray) -> FloatArray:
    """The values with 40 bits: equal gains, computed in two ways, differ in the last of their 53 bits.

    They are 0 or more, so a carry in the bits of a number makes the next larger one.

    >>> _rounded(np.array([0.49999999999999967, 0.0, np.inf])).tolist()
    [0.5, 0.0, inf]
    """
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return np.asarray(((bits + 2**12) & -(2**13)).view(np.float64))


def among_contenders(predictive: FloatArray, is_contender: BoolArray) -> FloatArray:
    """q without the arms that cannot have been the old decision; if nothing is left, all contenders alike.

    >>> among_contenders(np.array([[0.7, 0.2, 0.1], [0.0, 0.0, 1.0]]), np.array([True, True, False]))
    array([[0.7, 0.2, 0. ],
           [0.5, 0.5, 0. ]])
    """
    left = np.where(is_contender, predictive, 0.0)
    nothing_left = ~(sums_of_arms(left) > 0)
    if nothing_left.any():
        alike = is_contender / np.maximum(numbers_of_arms(is_contender)[..., None], 1)
        left = np.where(nothing_left[..., None], alike, left)
    return left


def insured_arms(
    predictive: FloatArray,
    is_contender: BoolArray,
    highest: FloatArray | None,
    budget: Budget,
    insurance: float,
) -> BoolArray:
    """The contenders to insure: all, if `insurance` pays for it, and otherwise as many as it pays for.

    An arm to which the best reference for q gives h anyway costs nothing, every other one at most e^{−ε}·h.
    Of these, the arms with the highest possible scores come first: a request can have done them most harm.
    Only some of the contenders are insured only if e^{2ε}·h ≥ 1 and δ ≤ h: `theory.tilt_upper` needs both
    where their first pieces do not all fit (docs/theory.md has the proof). q is 0 at arms that are no
    contenders. Without `highest`, the highest possible scores, all contenders are insured or none.

    >>> q, highest = np.array([0.0, 0.9, 0.1, 0.0]), np.array([9, 5, 4, 6])
    >>> budget = Budget(epsilon=2.0, delta=0.0)
    >>> for insurance in (0.01, 0.02, 0.05):
    ...     print(insured_arms(q, np.full(4, True), highest, budget, insurance))
    [False False False False]
    [ True  True  True False]
    [ True  True  True  True]
    """
    h, (up, down) = knee(budget), factors(budget)
    affordable = insurance_price(numbers_of_arms(is_contender)[..., None], budget) <= insurance
    if highest is None or down * h > insurance or affordable.all():
        return is_contender & affordable
    # A first piece that is filled may miss h by rounding.
    free = is_contender & (best_reference(predictive, budget) >= h * (1 - 1e-9))
    others = is_contender & ~free
    order = np.argsort(np.where(others, -highest, np.inf), axis=-1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(1, order.shape[-1] + 1), order.shape), axis=-1)
    fits = (free.sum(axis=-1, keepdims=True) + rank) * h <= 1
    chosen = others & fits & (rank * (down * h) <= insurance)
    chosen &= h * up >= down and budget.delta <= h
    some = (free | chosen) & chosen.any(axis=-1, keepdims=True)
    return np.where(affordable, is_contender, some)


def insured_reference(
    predictive: FloatArray,
    is_contender: BoolArray,
    highest: FloatArray | None,
    budget: Budget,
    insurance: float,
) -> FloatArray:
    """The best reference for q, with as many contenders insured as `insurance` pays for; 0 insures nothing.

    See `insured_arms`; here q may be positive for any arm.

    >>> q, is_contender = np.array([0.0, 0.9, 0.1, 0.0]), np.array([True, True, True, False])
    >>> for insurance in (0.0, 0.02):
    ...     highest, budget = np.array([9.0, 5.0, 4.0, 1.0]), Budget(epsilon=2.0, delta=0.0)
    ...     print(insured_reference(q, is_contender, highest, budget, insurance).round(4))
    [0.     0.8808 0.1192 0.    ]
    [0.1192 0.7616 0.1192 0.    ]
    """
    if insurance == 0:
        return best_reference(predictive, budget)
    q = among_contenders(_without_impossible(predictive), is_contender)
    return best_reference(q, budget, insured_arms(q, is_contender, highest, budget, insurance))


def insured_text(insured: IntArray, contenders: IntArray) -> str:
    """How many contenders are insured, of how many in each data set; empty if there are none.

    >>> insured_text(np.array(2), np.array(3))
    'Insured: 2 of 3 contenders'
    >>> insured_text(np.array([2, 1, 0, 0]), np.array([2, 3, 3, 0]))
    'Insured: all contenders in 1 of 3 decisions, some of them in 1'
    """
    if not contenders.any():
        return ""
    if contenders.ndim == 0:
        return f"Insured: {insured} of {counted(int(contenders), 'contender')}"
    decided = contenders > 0
    every, some = decided & (insured == contenders), (insured > 0) & (insured < contenders)
    partly = f", some of them in {some.sum()}" if some.any() else ""
    return f"Insured: all contenders in {every.sum()} of {counted(int(decided.sum()), 'decision')}{partly}"
