"""The loss of tilt: the probability that it does not keep the old decision, and bounds on it (ours)."""

import math

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget
from armnesia.theory.bound import Bound, Condition, check_count
from armnesia.unlearners.tilt import best_reference, highest_allowed, knee


def chance_of_keeping(predictive: FloatArray, budget: Budget) -> float:
    """Σ_a q_a·hi(r*_a): the probability that tilt keeps π(D) if π(D) ~ q. No reference keeps it more often.

    >>> round(chance_of_keeping(np.array([0.7, 0.3]), Budget(epsilon=1.0, delta=0.0)), 4)
    0.8501
    """
    kept = highest_allowed(best_reference(predictive, budget), budget)
    return float((predictive * kept).sum())


def tilt_upper(
    *, contenders: int, budget: Budget, largest_gap: float = 1.0, predictive_error: float | None = None
) -> Bound:
    """An upper bound on the sub-optimality that tilt adds to that of no deletion.

    Let q give positive probability to c arms. The uniform reference on them keeps π(D) with probability
    hi(1/c) if π(D) ~ q, and r* is no worse. If the true predictive, P(π(D) = a | D∖U), differs from q by η in
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
    if predictive_error is not None and not 0 <= predictive_error <= 1:
        raise InvalidInputError(
            f"predictive_error must be a distance between 0 and 1, or None; got {predictive_error!r}"
        )
    lost = 1 - float(highest_allowed(np.array(1 / contenders), budget))
    return Bound(
        name=f"Tilt, excess over no deletion, {contenders} contenders",
        value=min(lost + (predictive_error or 0.0), 1.0) * largest_gap,
        conditions=(
            Condition(f"0 <= largest gap <= 1: {largest_gap:g}", 0 <= largest_gap <= 1),
            Condition("the predictive q is right: not known; give predictive_error", False)
            if predictive_error is None
            else Condition(f"the predictive q is wrong by at most {predictive_error:g}", True),
        ),
        reference="ours; the proof is in docs/theory.md",
        kind="upper",
        note="in expectation over data whose predictive differs from q by at most predictive_error",
    )


def insured_upper(
    *, contenders: int, budget: Budget, largest_gap: float = 1.0, insurance: float = 0.02
) -> Bound:
    """An upper bound on the sub-optimality that insured tilt adds, for every request, however chosen.

    Insured, every one of c contenders has r_a ≥ h = (1−δ)/(1+e^ε), and one of them is π(D). It is kept with
    probability at least hi(h) = 1 − h, so at most h·Δ_max is lost. There is no condition on the predictive,
    the number of deleted records or their rewards. `insurance` is that of the unlearner.

    >>> round(insured_upper(contenders=2, budget=Budget(epsilon=3.0, delta=0.0)).value, 6)
    0.047426
    >>> insured_upper(contenders=2, budget=Budget(epsilon=1.0, delta=0.0)).unmet[0].text
    'price (c-1)e^-eps*h <= insurance: 0.098938 <= 0.02'
    """
    check_count("contenders", contenders, least=1)
    first_piece = knee(budget)
    price = (contenders - 1) * first_piece * math.exp(-budget.epsilon)
    return Bound(
        name=f"Insured tilt, excess over no deletion, {contenders} contenders",
        value=(first_piece if contenders > 1 else 0.0) * largest_gap,
        conditions=(
            Condition(f"c*h <= 1: {contenders * first_piece:g}", bool(contenders * first_piece <= 1)),
            Condition(
                f"price (c-1)e^-eps*h <= insurance: {price:g} <= {insurance:g}",
                insurance > 0 and price <= insurance,
            ),
            Condition(f"0 <= largest gap <= 1: {largest_gap:g}", 0 <= largest_gap <= 1),
        ),
        reference="ours; the proof is in docs/theory.md",
        kind="upper",
        note="for every request that leaves a record",
    )


def worst_chance_of_keeping(*, contenders: int, budget: Budget) -> float:
    """hi(1/c): the most that an unlearner at `request_shape` keeps π(D) in the worst of c cases.

    For c·h ≤ 1 it is 1 − e^{−ε}(1 − 1/c − δ). The uniform reference on the contenders attains it; with any
    other reference some contender has less than 1/c and is kept less often.

    >>> round(worst_chance_of_keeping(contenders=2, budget=Budget(epsilon=3.0, delta=0.0)), 6)
    0.975106
    """
    check_count("contenders", contenders, least=1)
    return float(highest_allowed(np.array(1 / contenders), budget))
