"""The upper bound of mixing (rollback of k′ points, noise for the rest): it is smallest at k′ = 0 or k."""

import math

from armnesia.theory.adaptive import UNCOVERED
from armnesia.theory.bound import (
    Bound,
    BoundCondition,
    Form,
    at_least_two_arms,
    check_count,
    check_form,
    check_noise,
)
from armnesia.theory.confidence import Confidence
from armnesia.unlearners.calibration import Sensitivity


def mixing_fixed(
    *,
    n: int,
    n_best: int,
    n_arm: int,
    k: int,
    rolled_back: int,
    m: int,
    gamma: float,
    a0_is_best: bool | None = None,
    tau: float | None = None,
    sensitivity: Sensitivity = "paper",
    form: Form = "derived",
) -> Bound:
    """Theorem A.10: mixing under M_f with k′ = `rolled_back`.

    With w(N) = √(2L/N), N = N(a₀) and σ = γΔ, Δ = 3(k−k′)/(2(N−k′)):

    - a₀ = a*: w(N−k′) + σ/√(2π) + (1 + 1/m)τ (printed: + 4τ). The proof says that the arm is lost only if
      ν < 0, which is false for k′ > 0: the rollback alone may lose it. In that case the loss is at most
      w(N−k′) − ν, and E[(w − ν)₊] = w·Φ(w/σ) + σ·φ(w/σ) ≤ w + σ/√(2π), so the bound is true. `exact` uses
      the expectation itself.
    - a₀ ≠ a*: w(N_*) + (1 + 1/m)τ (printed: + τ, see `adaptive_fixed`).

    `a0_is_best=None` is the worse of both. At k′ = k mixing is rollback, that is LCB on D∖U, and τ suffices
    in both cases. The statement of the theorem has a factor √ln(Nm) on the noise term, its proof does not;
    the proof is followed here.

    >>> case = dict(n=10_000, n_best=2_000, n_arm=2_000, k=500, m=5, gamma=0.1)
    >>> [round(mixing_fixed(**case, rolled_back=part).value, 6) for part in (0, 250, 500)]
    [0.119098, 0.119869, 0.12021]
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    check_count("n_arm", n_arm, least=0, most=n)
    check_count("n_best", n_best, least=0, most=n)
    check_count("k", k, least=0, most=n_arm)
    check_count("rolled_back", rolled_back, least=0, most=k)
    check_noise(gamma)
    check_form(form)
    printed = form == "printed"
    conditions = [BoundCondition(f"N_* >= 1: N_* = {n_best}", n_best >= 1)]
    if a0_is_best:
        conditions.append(BoundCondition(f"N(a0) >= N_*, as a0 = a*: {n_arm} >= {n_best}", n_arm >= n_best))
    left, rest = n_arm - rolled_back, k - rolled_back
    if printed:
        conditions += [at_least_two_arms(m), confidence.printed_certificate(n_arm, k)]
    elif rest:
        conditions.append(confidence.certificate(left, rest, sensitivity))
    failing = confidence.tau if rest == 0 else confidence.deviation(m + 1)
    width, cost = confidence.width(left), confidence.noise_cost(left, rest, gamma, sensitivity)
    values = []
    if a0_is_best or (a0_is_best is None and (printed or n_arm >= n_best)):
        lost = _expected_loss(width, cost, rolled_back) if form == "exact" else width + cost
        values.append(max(lost, confidence.width(n_arm)) + (4 * confidence.tau if printed else failing))
    if not a0_is_best:
        values.append(confidence.width(n_best) + (confidence.tau if printed else failing))
    name = f"Mixing, {rolled_back} of {k} rolled back"
    note = UNCOVERED if printed and rest and not a0_is_best else ""
    reference = "Theorem A.10 (M_f), appendix A.3"
    return Bound(name, max(values), tuple(conditions), reference, "upper", form, note)


def _expected_loss(width: float, cost: float, rolled_back: int) -> float:
    """E[(w − ν)₊] for ν ~ N(0, σ²), σ = √(2π)·cost; for k′ = 0 only ν < 0 loses the arm, which halves w."""
    if rolled_back == 0:
        return width / 2 + cost
    sigma = math.sqrt(2 * math.pi) * cost
    if sigma == 0 or math.isinf(sigma):
        return width + cost
    x = min(width / sigma, 40.0)  # for larger x the normal tail is 0 in floating point
    return width * 0.5 * math.erfc(-x / math.sqrt(2)) + cost * math.exp(-(x**2) / 2)


def mixing_slope(
    *, n: int, n_arm: int, k: int, rolled_back: float, m: int, gamma: float, tau: float | None = None
) -> float:
    """f′(k′), the derivative of the bound (times √(2π)) in k′; its sign changes at most once, from + to −.

    f(x) = 2√(πL/(N−x)) + 3(k−x)γ/(2(N−x)) has f′(x) = (√(πL(N−x)) − (3/2)γ(N−k))/(N−x)²; the paper prints
    3γ(N−k). The numerator decreases in x, so f first increases and then decreases: its minimum is at an end.

    >>> case = dict(n=10_000, n_arm=2_000, k=500, m=5, gamma=0.112)
    >>> [mixing_slope(**case, rolled_back=x) > 0 for x in (0, 250, 500)]
    [True, False, False]
    """
    log_term = Confidence.of(n=n, m=m, tau=tau).log_term
    left = n_arm - rolled_back
    return (math.sqrt(math.pi * log_term * left) - 1.5 * gamma * (n_arm - k)) / left**2


def mixing_best_part(*, n: int, n_arm: int, k: int, m: int, gamma: float, tau: float | None = None) -> int:
    """The k′ with the smallest bound for a₀ = a*: 0 (noise) if γ is at most the exact γ₀, else k (rollback).

    >>> case = dict(n=10_000, n_arm=2_000, k=500, m=5)
    >>> mixing_best_part(**case, gamma=0.1), mixing_best_part(**case, gamma=0.2)
    (0, 500)
    """
    balance = Confidence.of(n=n, m=m, tau=tau).gamma_0(n_arm, k, "exact", "paper")
    return 0 if gamma <= balance else k
