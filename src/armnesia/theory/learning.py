"""How good the learner is before anything is deleted (Lemma 3.1)."""

import math

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.theory.binomial import probabilities
from armnesia.theory.bound import Bound, Condition, Form, check_count, check_coverage, check_form
from armnesia.theory.confidence import Confidence


def lcb_fixed(*, n: int, n_best: int, m: int, tau: float | None = None) -> Bound:
    """Lemma 3.1 under M_f: LCB is at most √(2L/N_*) + τ from the best arm, L = ln(m/τ).

    Where no other arm is overestimated by more than its penalty (m − 1 events) and the best one not
    underestimated by more than its own (one event), μ(â) ≥ μ(a*) − 2b(N_*). One-sided Hoeffding gives each
    event τ/m, so that all fail with probability at most τ: the printed constants are right.

    >>> round(lcb_fixed(n=10_000, n_best=2_000, m=5).value, 6)
    0.104118
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    check_count("n_best", n_best, least=0, most=n)
    conditions = (Condition(f"N_* >= 1: N_* = {n_best}", n_best >= 1),)
    value = confidence.width(n_best) + confidence.tau
    return Bound("LCB, no deletion", value, conditions, "Lemma 3.1 (M_f)", "upper")


def lcb_distribution(
    *, n: int, c_star: float, m: int, tau: float | None = None, form: Form = "derived"
) -> Bound:
    """Lemma 3.1 under M_d: LCB is at most 2√(C*L/N) + τ + e^{−N/(8C*)} from the best arm.

    N(a*) ≥ N/(2C*) fails with probability at most e^{−N/(8C*)} (Chernoff), the rest is `lcb_fixed`. `printed`
    has 2τ, which needs N ≥ 8C*·ln(1/τ); the lemma forgets to say so (the theorem that uses it does not).
    `exact`: E[min(1, 2b(X))] + τ with X ~ Binomial(N, 1/C*).

    >>> for form in ("printed", "derived", "exact"):
    ...     print(form, round(lcb_distribution(n=10_000, c_star=5, m=5, form=form).value, 6))
    printed 0.147304
    derived 0.147204
    exact 0.104134
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    check_coverage(c_star)
    check_form(form)
    fewest = n / (2 * c_star)
    conditions: tuple[Condition, ...] = ()
    if form == "exact":
        value = over_counts(n, c_star, _widths(confidence, n)) + confidence.tau
    elif form == "printed":
        conditions = (enough_records(n, c_star, confidence.tau),)
        value = confidence.width(fewest) + 2 * confidence.tau
    else:
        value = confidence.width(fewest) + confidence.tau + few_records(n, c_star)
    return Bound("LCB, no deletion", value, conditions, "Lemma 3.1 (M_d)", "upper", form)


def few_records(n: int, c_star: float) -> float:
    """Chernoff's e^{−N/(8C*)} for the best arm having fewer than N/(2C*) records."""
    return math.exp(-n / (8 * c_star))


def enough_records(n: int, c_star: float, tau: float) -> Condition:
    """N ≥ 8C*·ln(1/τ), which makes Chernoff's term at most τ."""
    needed = 8 * c_star * math.log(1 / tau)
    return Condition(f"N >= 8 C* ln(1/tau): {n} >= {needed:.6g}", n >= needed)


def over_counts(n: int, c_star: float, bounds: FloatArray) -> float:
    """E[bound(N(a*))] for a bound of every count 0 … N, none above 1, where d(a*) ≥ 1/C*.

    N(a*) is then stochastically at least Binomial(N, 1/C*), so that a bound that never rises with the count
    may be averaged over that one; where it does rise, the largest value to the right is taken.
    """
    falling = np.maximum.accumulate(np.minimum(bounds, 1.0)[::-1])[::-1]
    return float(probabilities(n, 1 / c_star) @ falling)


def _widths(confidence: Confidence, n: int) -> FloatArray:
    return 2 * confidence.learner.penalty(np.arange(n + 1), confidence.m)
