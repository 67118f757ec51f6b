"""The upper bound of imitation learning with rollback, for behaviour policies with C* ∈ (1, 2)."""

import math

from armnesia.theory.binomial import lower_tail
from armnesia.theory.bound import Bound, BoundCondition, Form, check_count, check_coverage, check_form


def imitation_distribution(
    *, n: int, c_star: float, k: int, a0_is_best: bool | None = None, form: Form = "derived"
) -> Bound:
    """Theorem 3.11: the most frequent arm of D∖U is wrong with probability at most P(N(a*) ≤ (N+k)/2).

    - `printed`: exp(((N+k)/2)·ln(2/C*) − ((N−k)/2)·ln(C*/(8(C*−1)))). It exceeds 1 for every N and k unless
      C* < 8 − 4√3 = 1.0718; at C* = 1.3 it is vacuous.
    - `derived`: the Chernoff bound exp(−N·KL((N+k)/(2N) ‖ 1/C*)) of the preceding line; it requires only
      k ≤ (2−C*)N/C*.
    - `exact`: the binomial tail itself; it has no condition.

    What is deleted of other arms only helps, so with the k points of the best arm it holds for any arms. If
    the deleted points are not of the best arm, N/2 replaces (N+k)/2. (The paper has (N−k)/2, which assumes
    that a₀ has k points to delete; under M_d it may have fewer.)

    >>> for form in ("printed", "derived", "exact"):
    ...     print(form, f"{imitation_distribution(n=1000, c_star=1.3, k=300, form=form).value:.3g}")
    printed 6.31e+214
    derived 1.7e-16
    exact 1.01e-17
    """
    check_count("n", n, least=1)
    check_count("k", k, least=0, most=n)
    check_coverage(c_star)
    check_form(form)
    deleted_of_best = 0 if a0_is_best is False else k
    conditions: tuple[BoundCondition, ...] = ()
    if form != "exact":
        most = (2 - c_star) * n / c_star
        conditions = (
            BoundCondition(f"C* < 2: C* = {c_star:g}", c_star < 2),
            BoundCondition(f"k <= (2-C*)N/C*: {deleted_of_best} <= {most:.6g}", deleted_of_best <= most),
        )
    if form == "printed":
        conditions += (BoundCondition(f"k <= 3N/4: {k} <= {0.75 * n:g}", k <= 0.75 * n),)
        value = _exp((n + k) / 2 * math.log(2 / c_star) - (n - k) / 2 * math.log(c_star / (8 * (c_star - 1))))
    elif form == "derived":
        value = _chernoff(n, 1 / c_star, (n + deleted_of_best) / (2 * n))
    else:
        value = lower_tail(n, 1 / c_star, (n + deleted_of_best) // 2)
    return Bound(
        "Imitation with rollback", value, conditions, "Theorem 3.11 (M_d), appendix A.4", "upper", form
    )


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


def _chernoff(n: int, share: float, observed: float) -> float:
    """e^{−N·KL(observed ‖ share)}, a bound of P(X ≤ N·observed) for observed ≤ share; 1 otherwise."""
    if observed >= share:
        return 1.0
    return math.exp(-n * bernoulli_divergence(observed, share))


def bernoulli_divergence(p: float, q: float) -> float:
    """KL(Ber(p) ‖ Ber(q)), 0 < q < 1.

    >>> round(bernoulli_divergence(0.5, 0.25), 6)
    0.143841
    """
    parts = [(p, q), (1 - p, 1 - q)]
    return sum(a * math.log(a / b) for a, b in parts if a > 0)
