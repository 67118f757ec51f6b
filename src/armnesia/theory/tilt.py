"""What tilt costs: the chance that the old decision is not kept, and a bound on it (ours)."""

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.privacy import Budget
from armnesia.theory.bound import Bound, Condition, check_count
from armnesia.unlearners.tilt import best_reference, highest_allowed


def chance_of_keeping(predictive: FloatArray, budget: Budget) -> float:
    """Σ_a q_a·hi(r*_a): how likely tilt keeps π(D), if π(D) is distributed as q. No reference does better.

    >>> round(chance_of_keeping(np.array([0.7, 0.3]), Budget(epsilon=1.0, delta=0.0)), 4)
    0.8501
    """
    kept = highest_allowed(best_reference(predictive, budget), budget)
    return float((predictive * kept).sum())


def tilt_upper(*, contenders: int, budget: Budget, largest_gap: float = 1.0) -> Bound:
    """By how much tilt's expected sub-optimality exceeds that of no deletion, at most.

    If q is the true predictive and c arms have a chance, the uniform reference on them keeps π(D) with
    probability hi(1/c) whatever q is, and r* is no worse. So the excess is at most (1 − hi(1/c))·Δ_max: at
    δ = 0 that is e^{−ε}·(c−1)/c for c ≤ 1 + e^ε, and 1 − e^ε/c beyond. It has the e^{−ε} of the paper's lower
    bounds, which the bounds of Algorithm 2 have not.

    >>> round(tilt_upper(contenders=2, budget=Budget(epsilon=3.0, delta=0.0)).value, 6)
    0.024894
    """
    check_count("contenders", contenders, least=1)
    kept = float(highest_allowed(np.array(1 / contenders), budget))
    return Bound(
        name=f"Tilt, excess over no deletion, {contenders} contenders",
        value=(1 - kept) * largest_gap,
        conditions=(Condition(f"0 <= largest gap <= 1: {largest_gap:g}", 0 <= largest_gap <= 1),),
        reference="ours; the proof is in docs/theory.md",
        kind="upper",
        note="in expectation over data whose predictive is the one that tilt uses",
    )
