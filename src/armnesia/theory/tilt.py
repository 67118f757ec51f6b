"""The loss of tilt: the probability that it does not keep the old decision, and bounds on it (ours)."""

import math

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import BoolArray, FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget
from armnesia.theory.bound import Bound, BoundCondition, check_count, check_fraction, check_number
from armnesia.unlearners.tilt_reference import (
    best_reference,
    highest_allowed,
    insurance_price,
    knee,
    least_lost,
)

_SUM_ERROR = 1e-9
"""Probabilities whose sum differs from 1 by more than this are refused."""


def chance_of_keeping(predictive: ArrayLike, budget: Budget, insured: ArrayLike | None = None) -> float:
    """Σ_a q_a·hi(r_a): the probability that tilt keeps π(D) if records are left and π(D) ~ q.

    Without `insured` r is r*, and no reference keeps π(D) more often. `insured` marks the arms that tilt
    insures; r is the best reference that gives each of them h.

    >>> round(chance_of_keeping([0.7, 0.3], Budget(epsilon=1.0, delta=0.0)), 4)
    0.8501
    >>> budget = Budget(epsilon=3.0, delta=0.0)
    >>> round(chance_of_keeping([1.0, 0.0], budget), 4)
    1.0
    >>> round(chance_of_keeping([1.0, 0.0], budget, insured=[True, True]), 4)
    0.9976
    """
    q = _checked_distribution(predictive)
    kept = highest_allowed(best_reference(q, budget, _checked_insured(insured, q, budget)), budget)
    return float((q * kept).sum())


def _checked_distribution(predictive: ArrayLike) -> FloatArray:
    try:
        q = np.asarray(predictive)
        numbers = q.dtype.kind in "biuf" and q.ndim == 1 and q.size > 0 and (q >= 0).all()
    except ValueError:  # rows of different lengths
        numbers = False
    if not numbers or not abs(q.sum() - 1) <= _SUM_ERROR:
        raise InvalidInputError(
            f"predictive must be one probability per arm, with the sum 1; got {predictive!r}"
        )
    return np.asarray(q, dtype=np.float64)


def _checked_insured(insured: ArrayLike | None, q: FloatArray, budget: Budget) -> BoolArray | None:
    if insured is None:
        return None
    marked = np.asarray(insured)
    if marked.dtype != np.bool_ or marked.shape != q.shape or marked.sum() * knee(budget) > 1:
        most = int(1 / knee(budget)) if knee(budget) > 0 else q.size
        raise InvalidInputError(
            f"insured must be a truth value per arm, for {q.size} arms, at most {most} of them true at this"
            f" budget; got {insured!r}"
        )
    return marked


def tilt_upper(
    *, contenders: int, budget: Budget, largest_gap: float = 1.0, predictive_error: float | None = None
) -> Bound:
    """An upper bound on the sub-optimality that tilt adds to that of no deletion.

    Let c be the number of arms that are contenders or have a positive probability under q. The uniform
    reference on them keeps π(D) with probability hi(1/c) if π(D) ~ q, and the reference of tilt is no worse,
    insured or not. If the true predictive, P(π(D) = a | D∖U), differs from q by η in
    expected total variation, π(D) is kept with at least hi(1/c) − η. So tilt adds at most
    (1 − hi(1/c) + η)·Δ_max. At δ = 0 and η = 0 the factor is e^{−ε}·(c−1)/c for c ≤ 1 + e^ε and 1 − e^ε/c
    for larger c. It contains the e^{−ε} of the paper's lower bounds, which the upper bounds of Algorithm 2
    do not.

    `predictive_error` is η; `simulation.predictive_error` computes it for known means. Without it the value
    is that of η = 0, and the condition on q is reported as unmet: few records left tell little about π(D).

    >>> bound = tilt_upper(contenders=2, budget=Budget(epsilon=3.0, delta=0.0), predictive_error=0.01)
    >>> round(bound.value, 6), bound.holds
    (0.034894, True)
    >>> bound = tilt_upper(contenders=2, budget=Budget(epsilon=3.0, delta=0.0))
    >>> round(bound.value, 6), bound.holds, bound.unmet[0].text
    (0.024894, False, 'the predictive q is right: not known; give predictive_error')
    """
    check_count("contenders", contenders, least=1)
    check_number("largest_gap", largest_gap)
    if predictive_error is not None:
        check_fraction("predictive_error", predictive_error)
    lost = float(least_lost(np.array(1 / contenders), budget))
    return Bound(
        name=f"Tilt, excess over no deletion, {contenders} contenders",
        value=min(lost + (predictive_error or 0.0), 1.0) * largest_gap,
        conditions=(
            BoundCondition(f"0 <= largest gap <= 1: {largest_gap:g}", 0 <= largest_gap <= 1),
            BoundCondition("the predictive q is right: not known; give predictive_error", False)
            if predictive_error is None
            else BoundCondition(f"the predictive q is wrong by at most {predictive_error:g}", True),
        ),
        reference="ours; the proof is in docs/theory.md",
        kind="upper",
        note=(
            "for requests that leave a record, in expectation over data whose predictive differs from q by at"
            " most predictive_error; contenders counts every arm that can have been the old decision, and"
            " every other one to which q gives a positive probability"
        ),
    )


def insured_upper(
    *, contenders: int, budget: Budget, largest_gap: float = 1.0, insurance: float = 0.02
) -> Bound:
    """An upper bound on the sub-optimality that insured tilt adds, for every request, however chosen.

    Insured, every one of c contenders has r_a ≥ h = (1−δ)/(1+e^ε), and one of them is π(D). It is kept with
    probability at least hi(h) = 1 − h, so at most h·Δ_max is lost. There is no condition on the predictive,
    the number of deleted records or their rewards. `insurance` is that of the unlearner. With `assumed_share`
    the bound is for requests of at most that share of each arm, and contenders are those of
    `contenders_up_to`; for a larger request π(D) need not be one of them, and nothing is claimed.

    >>> round(insured_upper(contenders=2, budget=Budget(epsilon=3.0, delta=0.0)).value, 6)
    0.047426
    >>> insured_upper(contenders=2, budget=Budget(epsilon=1.0, delta=0.0)).unmet[0].text
    'c = 2 contenders are insured, (c-1)e^-eps*h <= insurance: 0.098938 <= 0.02'
    """
    check_count("contenders", contenders, least=1)
    check_number("largest_gap", largest_gap)
    check_fraction("insurance", insurance)
    h, price = knee(budget), float(insurance_price(np.array(contenders), budget))
    return Bound(
        name=f"Insured tilt, excess over no deletion, {contenders} contenders",
        value=(h if contenders > 1 else 0.0) * largest_gap,
        conditions=(
            BoundCondition(f"c*h <= 1: {contenders * h:g}", bool(contenders * h <= 1)),
            BoundCondition(
                f"c = {contenders} contenders are insured, (c-1)e^-eps*h <= insurance: {price:g} <="
                f" {insurance:g}",
                insurance > 0 and price <= insurance,
            ),
            BoundCondition(f"0 <= largest gap <= 1: {largest_gap:g}", 0 <= largest_gap <= 1),
        ),
        reference="ours; the proof is in docs/theory.md",
        kind="upper",
        note=(
            "for every request that leaves a record; with assumed_share, only for requests of at most that"
            " share of each arm"
        ),
    )


def insured_from(*, contenders: int, delta: float = 0.0, insurance: float = 0.02) -> float:
    """The ε from which on tilt insures so many contenders.

    With x = e^ε the price (c−1)·e^{−ε}·h = (c−1)(1−δ)/(x + x²) falls; the other condition, c·h ≤ 1, is
    x ≥ c(1−δ) − 1. At ε itself rounding decides, so round it up.

    >>> [round(insured_from(contenders=c, delta=1e-5), 3) for c in (2, 3, 5)]
    [1.885, 2.253, 2.614]
    """
    check_count("contenders", contenders, least=1)
    check_fraction("delta", delta)
    check_fraction("insurance", insurance)
    if insurance == 0:
        return math.inf
    most = (contenders - 1) * (1 - delta) / insurance  # x + x² is at least this
    return math.log(max((math.sqrt(1 + 4 * most) - 1) / 2, contenders * (1 - delta) - 1, 1.0))


def worst_chance_of_keeping(*, contenders: int, budget: Budget) -> float:
    """hi(1/c): the most that an unlearner at `request_shape` keeps π(D) in the worst of c cases.

    For c·h ≤ 1 it is 1 − e^{−ε}(1 − 1/c − δ), or 1 if δ ≥ 1 − 1/c. The uniform reference on the contenders
    attains it. With any other reference some contender has less than 1/c; it is kept less often, unless
    δ > 1 − 1/c.

    >>> round(worst_chance_of_keeping(contenders=2, budget=Budget(epsilon=3.0, delta=0.0)), 6)
    0.975106
    """
    check_count("contenders", contenders, least=1)
    return float(highest_allowed(np.array(1 / contenders), budget))
