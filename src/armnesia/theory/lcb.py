"""Upper bounds of LCB without deletion, under both data models (Lemma 3.1)."""

import math

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.theory.binomial import probabilities
from armnesia.theory.bound import Bound, BoundCondition, Form, check_count, check_coverage, check_form
from armnesia.theory.confidence import Confidence


def lcb_fixed(*, n: int, n_best: int, m: int, tau: float | None = None) -> Bound:
    """Lemma 3.1 under M_f: the sub-optimality of LCB is at most √(2L/N_*) + τ, L = ln(m/τ).

    If no other arm is overestimated by more than its penalty (m − 1 events) and the best arm is not
    underestimated by more than its own (one event), then μ(â) ≥ μ(a*) − 2b(N_*). By Hoeffding's one-sided
    inequality each event fails with probability at most τ/m, and any of them with at most τ: the printed
    constants are right.

    >>> round(lcb_fixed(n=10_000, n_best=2_000, m=5).value, 6)
    0.104118
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    check_count("n_best", n_best, least=0, most=n)
    conditions = (BoundCondition(f"N_* >= 1: N_* = {n_best}", n_best >= 1),)
    value = confidence.width(n_best) + confidence.tau
    return Bound("LCB, no deletion", value, conditions, "Lemma 3.1 (M_f)", "upper")


def lcb_distribution(
    *, n: int, c_star: float, m: int, tau: float | None = None, form: Form = "derived"
) -> Bound:
    """Lemma 3.1 under M_d: the sub-optimality of LCB is at most 2√(C*L/N) + τ + e^{−N/(8C*)}.

    N(a*) ≥ N/(2C*) fails with probability at most e^{−N/(8C*)} (Chernoff); the rest is `lcb_fixed`. `printed`
    has 2τ, which requires N ≥ 8C*·ln(1/τ); the lemma omits this condition (the theorem that uses it states
    it). `exact`: E[min(1, 2b(X))] + τ with X ~ Binomial(N, 1/C*).

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
    conditions: tuple[BoundCondition, ...] = ()
    if form == "exact":
        widths = 2 * confidence.learner.penalty(np.arange(n + 1), m)
        value = expected_over_counts(n, c_star, widths) + confidence.tau
    elif form == "printed":
        conditions = (enough_records(n, c_star, confidence.tau),)
        value = confidence.width(fewest) + 2 * confidence.tau
    else:
        value = confidence.width(fewest) + confidence.tau + chernoff_few_records(n, c_star)
    return Bound("LCB, no deletion", value, conditions, "Lemma 3.1 (M_d)", "upper", form)


def chernoff_few_records(n: int, c_star: float) -> float:
    """Chernoff's e^{−N/(8C*)} for the event that the best arm has fewer than N/(2C*) records."""
    return math.exp(-n / (8 * c_star))


def enough_records(n: int, c_star: float, tau: float) -> BoundCondition:
    """N ≥ 8C*·ln(1/τ): the Chernoff term is at most τ."""
    needed = 8 * c_star * math.log(1 / tau)
    return BoundCondition(f"N >= 8 C* ln(1/tau): {n} >= {needed:.6g}", n >= needed)


def expected_over_counts(n: int, c_star: float, bounds: FloatArray) -> float:
    """E[min(1, bound(N(a*)))] for a bound given every count 0 … N, if d(a*) ≥ 1/C*.

    N(a*) is stochastically at least Binomial(N, 1/C*), so a bound that does not increase with the count may
    be averaged over that distribution. An increasing bound is replaced by its largest value to the right.
    """
    decreasing = np.maximum.accumulate(np.minimum(bounds, 1.0)[::-1])[::-1]
    return float(probabilities(n, 1 / c_star) @ decreasing)
