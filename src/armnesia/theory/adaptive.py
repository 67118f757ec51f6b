"""Upper bounds of Algorithm 2 (noise or rollback on one arm) under both data models: Theorems 3.3 and 3.5."""

import math

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.theory.bound import (
    Bound,
    BoundCondition,
    Form,
    at_least_two_arms,
    check_count,
    check_coverage,
    check_form,
    check_noise,
)
from armnesia.theory.confidence import Confidence
from armnesia.theory.lcb import chernoff_few_records, enough_records, expected_over_counts
from armnesia.unlearners.calibration import (
    Sensitivity,
    Threshold,
    noise_threshold,
    score_sensitivity,
    sensitivity_certified,
)

UNCOVERED = "the printed tau of the case a0 != a* is not covered by the proof, (1 + 1/m) tau is"


def gamma_0(
    *,
    n: int,
    n_arm: int,
    k: int,
    m: int,
    tau: float | None = None,
    threshold: Threshold = "exact",
    sensitivity: Sensitivity = "paper",
) -> float:
    """The noise threshold γ₀, printed or exact; with n_arm = N_min and k = k_max, γ₀′ of several arms.

    >>> round(gamma_0(n=3000, n_arm=600, k=80, m=5, threshold="paper"), 4)
    0.3214
    >>> round(gamma_0(n=3000, n_arm=600, k=80, m=5), 4)
    0.1664
    """
    return Confidence.of(n=n, m=m, tau=tau).gamma_0(n_arm, k, threshold, sensitivity)


def adaptive_fixed(
    *,
    n: int,
    n_best: int,
    n_arm: int,
    k: int,
    m: int,
    gamma: float,
    a0_is_best: bool | None = None,
    tau: float | None = None,
    threshold: Threshold = "paper",
    threshold_scale: float = 1.0,
    sensitivity: Sensitivity = "paper",
    form: Form = "derived",
) -> Bound:
    """Theorem 3.3: Algorithm 2 under M_f; γ decides between noise and rollback.

    With w(N) = √(2L/N) and σ = γΔ:

    - γ < γ₀, a₀ = a*: w(N(a₀)) + σ/√(2π) + τ (printed: + 3τ). The noise is independent of the data, so it
      needs no failure event. `exact`: the arm is lost only if ν < 0, which halves the first term:
      max{w, w/2 + σ/√(2π)} + τ. Noise with σ/√(2π) ≤ b(N(a₀)) does not change this bound.
    - γ < γ₀, a₀ ≠ a*: w(N_*) + (1 + 1/m)τ (printed: + τ). The paper argues that the release is "not worse
      than the learning algorithm"; but the smaller sample of a₀ may make it win, which takes one more
      deviation event of probability τ/m.
    - γ ≥ γ₀: rollback is LCB on D∖U, so by Lemma 3.1 w(N(a₀) − k) + τ and w(N_*) + τ (printed: + 4τ, + 2τ).

    `a0_is_best=None` is the worse of a₀ = a* and a₀ ≠ a*. If N(a₀) < N_*, a₀ cannot be a*, and only the
    printed form includes that case.

    >>> case = dict(n=10_000, n_best=2_000, n_arm=2_000, k=500, m=5)
    >>> for form in ("printed", "derived", "exact"):
    ...     print(form, round(adaptive_fixed(**case, gamma=0.1, form=form).value, 6))
    printed 0.119278
    derived 0.119078
    exact 0.104138
    >>> adaptive_fixed(**case, gamma=1.0).name
    'Algorithm 2, rollback (gamma >= gamma_0)'
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    check_count("n_arm", n_arm, least=0, most=n)
    check_count("n_best", n_best, least=0, most=n)
    check_count("k", k, least=0, most=n_arm)
    check_noise(gamma)
    check_form(form)
    noisy = gamma < threshold_scale * confidence.gamma_0(n_arm, k, threshold, sensitivity)
    conditions = [BoundCondition(f"N_* >= 1: N_* = {n_best}", n_best >= 1)]
    if a0_is_best:
        conditions.append(
            BoundCondition(f"N(a0) >= N_*, as a0 = a*: {n_arm} >= {n_best}", n_arm >= n_best),
        )
    if form == "printed":
        conditions += [at_least_two_arms(m), confidence.printed_certificate(n_arm, k)]
    elif noisy:
        conditions.append(confidence.certificate(n_arm, k, sensitivity))
    tau_ = confidence.tau
    printed = form == "printed"
    values = []
    if a0_is_best or (a0_is_best is None and (printed or n_arm >= n_best)):
        if noisy:
            cost = confidence.noise_cost(n_arm, k, gamma, sensitivity)
            values.append(_noisy(confidence.width(n_arm), cost, form) + (3 * tau_ if printed else tau_))
        else:
            values.append(confidence.width(n_arm - k) + (4 * tau_ if printed else tau_))
    if not a0_is_best:
        if noisy:
            failing = tau_ if printed else confidence.deviation(m + 1)
        else:
            failing = 2 * tau_ if printed else tau_
        values.append(confidence.width(n_best) + failing)
    name = f"Algorithm 2, {'noise (gamma < gamma_0)' if noisy else 'rollback (gamma >= gamma_0)'}"
    note = UNCOVERED if printed and noisy and not a0_is_best else ""
    reference = "Theorem 3.3 (M_f), appendix A.1"
    return Bound(name, max(values), tuple(conditions), reference, "upper", form, note)


def _noisy(width: float, cost: float, form: Form) -> float:
    return max(width, width / 2 + cost) if form == "exact" else width + cost


def adaptive_distribution(
    *,
    n: int,
    c_star: float,
    k: int,
    m: int,
    gamma: float,
    a0_is_best: bool | None = None,
    tau: float | None = None,
    threshold: Threshold = "paper",
    threshold_scale: float = 1.0,
    sensitivity: Sensitivity = "paper",
    form: Form = "derived",
) -> Bound:
    """Theorem 3.5: Algorithm 2 under M_d.

    - `printed`, a₀ = a*: min{√(4C*L/max(1, N−2kC*)), √(4C*L/N) + 3kγC*/(√(2π)N)} + 5τ. The minimum requires
      that γ₀ is the exact balance point; the printed γ₀ is up to twice that and costs up to a factor 2.
    - `derived`, a₀ = a*: the largest value of `adaptive_fixed` over N(a*) ≥ N/(2C*), with the threshold in
      use, + τ + e^{−N/(8C*)}. With the exact threshold this is the printed minimum. The certificate
      k ≤ N(a₀) − √(N(a₀)L/2), in the paper a condition on a random number, is checked at N/(2C*).
    - a₀ ≠ a*: 2√(C*L/N) + (1 + 1/m)τ + e^{−N/(8C*)} (printed: 2τ in all).
    - `exact`: the bound given N(a*), averaged over Binomial(N, 1/C*); if the sensitivity is not certified
      at a count, the worse of noise and rollback there. It has no condition.

    `a0_is_best=None` is the worse of a₀ = a* and a₀ ≠ a*.

    >>> case = dict(n=20_000, c_star=2, k=2_000, m=2, gamma=0.05, threshold="exact")
    >>> for form in ("printed", "derived", "exact"):
    ...     print(form, round(adaptive_distribution(**case, form=form).value, 6))
    printed 0.077323
    derived 0.077123
    exact 0.051521
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    check_coverage(c_star)
    check_count("k", k, least=0, most=n)
    check_noise(gamma)
    check_form(form)
    fewest, tau_ = n / (2 * c_star), confidence.tau
    conditions: tuple[BoundCondition, ...] = ()
    if form == "printed":
        conditions = (
            at_least_two_arms(m),
            enough_records(n, c_star, tau_),
            confidence.printed_certificate(fewest, k),
            BoundCondition(
                f"gamma_0 is the exact balance point: threshold = {threshold!r}, scale {threshold_scale:g}",
                threshold == "exact" and threshold_scale == 1,
            ),
        )
        best = _printed_minimum(confidence, n, c_star, k, gamma) + 5 * tau_
        other = confidence.width(fewest) + 2 * tau_
    else:
        counts = np.arange(n + 1)
        lost = _by_count(confidence, counts, k, gamma, threshold, threshold_scale, sensitivity, form)
        widths = 2 * confidence.learner.penalty(counts, m)
        if form == "exact":
            best = expected_over_counts(n, c_star, lost) + tau_
            other = expected_over_counts(n, c_star, widths) + confidence.deviation(m + 1)
        else:
            start = max(math.ceil(fewest), 1)
            if a0_is_best is not False:
                conditions = (confidence.certificate(start, k, sensitivity),)
            best = float(lost[start:].max()) + tau_ + chernoff_few_records(n, c_star)
            other = confidence.width(start) + confidence.deviation(m + 1) + chernoff_few_records(n, c_star)
    value = {True: best, False: other, None: max(best, other)}[a0_is_best]
    return Bound("Algorithm 2", value, conditions, "Theorem 3.5 (M_d), appendix A.1", "upper", form)


def _printed_minimum(confidence: Confidence, n: int, c_star: float, k: int, gamma: float) -> float:
    log_term = confidence.log_term
    by_rollback = math.sqrt(4 * c_star * log_term / max(1, n - 2 * k * c_star))
    by_noise = math.sqrt(4 * c_star * log_term / n) + 3 * k * gamma * c_star / (math.sqrt(2 * math.pi) * n)
    return min(by_rollback, by_noise)


def _by_count(
    confidence: Confidence,
    counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    k: int,
    gamma: float,
    threshold: Threshold,
    scale: float,
    sensitivity: Sensitivity,
    form: Form,
) -> FloatArray:
    """The bound for a₀ = a* given N(a*), for each count; at most N(a*) records are deleted."""
    learner, m = confidence.learner, confidence.m
    deleted = np.minimum(k, counts)
    widths = 2 * learner.penalty(counts, m)
    by_rollback = 2 * learner.penalty(counts - deleted, m)
    limit = noise_threshold(learner, counts, deleted, m, threshold=threshold, sensitivity=sensitivity)
    noisy = gamma < scale * limit
    change = score_sensitivity(sensitivity, learner, counts, deleted, m)
    cost = np.where(noisy, gamma, 0.0) * change / math.sqrt(2 * math.pi)
    by_noise = np.maximum(widths, widths / 2 + cost) if form == "exact" else widths + cost
    certified = sensitivity_certified(sensitivity, learner, counts, deleted, m)
    either = np.where(certified, by_noise, np.maximum(by_noise, by_rollback))
    return np.where(noisy, either, by_rollback)
