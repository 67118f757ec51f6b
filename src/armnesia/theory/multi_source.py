"""Upper bounds for deletion from several arms: Algorithm 7 (Theorem 3.13), and rollback and tilt (ours)."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget
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
from armnesia.theory.lcb import chernoff_few_records, expected_over_counts
from armnesia.theory.tilt import insured_upper
from armnesia.unlearners.calibration import Sensitivity, Threshold


def multi_source_fixed(
    *,
    n: int,
    n_best: int,
    n_arms: Sequence[int],
    k_arms: Sequence[int],
    m: int,
    gamma: float,
    best_is_requested: bool | None = None,
    tau: float | None = None,
    threshold: Threshold = "paper",
    threshold_scale: float = 1.0,
    sensitivity: Sensitivity = "paper",
    form: Form = "derived",
) -> Bound:
    """Theorem 3.13: k_i of N_i points are deleted from each of ℓ arms.

    With w(N) = √(2L/N), N_min and k_max over the requested arms, γ₀′ = γ₀(N_min, k_max):

    - γ < γ₀′, a* requested: w(N_min) + 3k_max·γ/(2√(2π)·N_min) + (1 + (ℓ−1)/m)τ (printed: + 5τ). The proof
      says that the served arm is lost only if ν < 0, which is false: rolling back another arm may raise its
      score. In that case the loss is at most w − ν, or w if the served arm stays; its mean is at most
      w + σ/√(2π), so the bound is true.
    - γ < γ₀′, a* not requested: w(N_*) + (1 + ℓ/m)τ (printed: + 2τ).
    - γ ≥ γ₀′: rollback of all is LCB on D∖U: w(N_min − k_max) + τ and w(N_*) + τ (printed: + 5τ, + 2τ).

    `exact` uses the worst requested arm instead of N_min and k_max, which may belong to different arms.
    `best_is_requested=None` is the worse of both cases.

    >>> case = dict(n=10_000, n_best=1_000, n_arms=[1_000, 3_000], k_arms=[100, 500], m=5)
    >>> for form in ("printed", "derived", "exact"):
    ...     print(form, round(multi_source_fixed(**case, gamma=0.1, form=form).value, 6))
    printed 0.177525
    derived 0.177145
    exact 0.157197
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    _check_arms(n, n_arms, k_arms)
    check_count("n_best", n_best, least=0, most=n)
    check_noise(gamma)
    check_form(form)
    fewest, most, requested = min(n_arms), max(k_arms), len(n_arms)
    noisy = fewest > most and gamma < threshold_scale * confidence.gamma_0(
        fewest, most, threshold, sensitivity
    )
    printed = form == "printed"
    conditions = [
        BoundCondition(f"N_* >= 1: N_* = {n_best}", n_best >= 1),
        BoundCondition(f"the requested arms are among the m: {requested} <= {m}", requested <= m),
    ]
    if form != "exact":
        conditions.append(BoundCondition(f"k_max < N_min: {most} < {fewest}", most < fewest))
    arms = list(zip(n_arms, k_arms, strict=True))
    if printed:
        conditions.append(at_least_two_arms(m))
        conditions += [confidence.printed_certificate(count, k) for count, k in arms]
    elif noisy:
        conditions += [confidence.certificate(count, k, sensitivity) for count, k in arms]

    tau_ = confidence.tau
    if not noisy:
        retained = [count - k for count, k in arms] if form == "exact" else [max(fewest - most, 0)]
        if_requested = max(map(confidence.width, retained)) + (5 * tau_ if printed else tau_)
        if_not = confidence.width(n_best) + (2 * tau_ if printed else tau_)
    else:
        pairs = arms if form == "exact" else [(fewest, most)]
        cost = max(confidence.noise_cost(count, k, gamma, sensitivity) for count, k in pairs)
        failing = 5 * tau_ if printed else confidence.deviation(m + requested - 1)
        if_requested = confidence.width(fewest) + cost + failing
        if_not = confidence.width(n_best) + (2 * tau_ if printed else confidence.deviation(m + requested))
    value = {True: if_requested, False: if_not, None: max(if_requested, if_not)}[best_is_requested]
    name = f"Multi-source, {'noise (gamma < gamma_0)' if noisy else 'rollback (gamma >= gamma_0)'}"
    return Bound(name, value, tuple(conditions), "Theorem 3.13 (M_f), appendix A.5", "upper", form)


def rollback_distribution(
    *, n: int, c_star: float, k: int, m: int, tau: float | None = None, form: Form = "derived"
) -> Bound:
    """Rollback under M_d, k points of the best arm deleted and any number of the others: E[min(1, w)] + τ.

    Rollback is LCB on D∖U. Given the counts, the rewards that are left are independent and have their means,
    so Lemma 3.1 applies with N(a*) − k points of the best arm: w((X−k)₊) + τ with w(N) = √(2L/N), at most 1,
    X ~ Binomial(N, 1/C*). `exact` averages over X. `derived` is the value at N/(2C*), + e^{−N/(8C*)} for
    fewer points. The paper has no bound for several arms under M_d, so `printed` is refused.

    >>> for form in ("derived", "exact"):
    ...     print(form, round(rollback_distribution(n=3000, c_star=3, k=100, m=3, form=form).value, 6))
    derived 0.213699
    exact 0.142621
    """
    confidence = Confidence.of(n=n, m=m, tau=tau)
    check_coverage(c_star)
    check_count("k", k, least=0, most=n)
    check_form(form)
    if form == "printed":
        raise InvalidInputError("the paper has no bound for several arms under M_d; use 'derived' or 'exact'")
    if form == "exact":
        left = np.maximum(np.arange(n + 1) - k, 0)
        value = expected_over_counts(n, c_star, 2 * confidence.learner.penalty(left, m)) + confidence.tau
    else:
        fewest = max(math.ceil(n / (2 * c_star)) - k, 0)
        value = min(confidence.width(fewest), 1.0) + confidence.tau + chernoff_few_records(n, c_star)
    return Bound(
        "Rollback, any arms",
        value,
        (),
        "ours (M_d); the proof is in docs/theory.md",
        "upper",
        form,
        "for requests that do not depend on the rewards, given the counts",
    )


def tilt_of_any_request(
    no_deletion: Bound,
    *,
    n: int,
    k_arms: Sequence[int],
    m: int,
    budget: Budget,
    largest_gap: float = 1.0,
    insurance: float = 0.02,
) -> Bound:
    """Insured tilt after k_i points of each of ℓ arms are deleted: the bound of LCB, and h·Δ_max more.

    The contenders are among the requested arms and the best of the others, so there are at most ℓ + 1. The
    old decision is kept with probability 1 − h or more (`insured_upper`), and satisfies `no_deletion`, a
    bound of LCB on D. The request may depend on the rewards.

    >>> from armnesia.theory import lcb_distribution
    >>> tilt = tilt_of_any_request(
    ...     lcb_distribution(n=3000, c_star=3, m=3, form="exact"),
    ...     n=3000, k_arms=[100, 100], m=3, budget=Budget(epsilon=3.0, delta=1e-5), largest_gap=0.8,
    ... )
    >>> round(tilt.value, 6), tilt.holds
    (0.173252, True)
    """
    contenders = min(len(k_arms) + 1, m)
    excess = insured_upper(contenders=contenders, budget=budget, largest_gap=largest_gap, insurance=insurance)
    left = BoundCondition(f"a record is left, sum of k < N: {sum(k_arms)} < {n}", sum(k_arms) < n)
    return replace(
        excess,
        name="Insured tilt, any request",
        value=no_deletion.value + excess.value,
        conditions=(*no_deletion.conditions, left, *excess.conditions),
        form=no_deletion.form,
        note="for every request, however chosen, at level request_shape",
    )


def _check_arms(n: int, n_arms: Sequence[int], k_arms: Sequence[int]) -> None:
    if not n_arms or len(n_arms) != len(k_arms):
        raise InvalidInputError(
            "n_arms and k_arms need one entry for each requested arm;"
            f" got {len(n_arms)} and {len(k_arms)} entries"
        )
    if sum(n_arms) > n:
        raise InvalidInputError(f"n_arms must not sum to more than n = {n}; got {sum(n_arms)}")
    for count, k in zip(n_arms, k_arms, strict=True):
        check_count("every entry of n_arms", count, least=0, most=n)
        check_count("every entry of k_arms", k, least=1, most=max(count, 1))
