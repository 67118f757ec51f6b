"""Lower bounds for every unlearner, by Le Cam's method, under both data models (Theorems 3.7 and 3.9).

The paper's lower bounds are e^{−ε}·Δ·(e^{−KL}/4 − δ), where Δ is the gap of the two instances and KL the
divergence between their data after the deletion. The form `tv` (ours) computes the least error of a
reference on two instances exactly, and chooses the gap that makes the bound largest; it is never below the
others. The bounds hold for unlearners whose reference sees D∖U and not π(D). The reference of Algorithm 2
sees π(D), which depends on U, and such unlearners can beat the bounds.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import Budget
from armnesia.theory.binomial import expected_retained, log_probabilities
from armnesia.theory.bound import Bound, BoundCondition, LowerForm, check_count, check_coverage, check_form
from armnesia.theory.imitation import bernoulli_divergence
from armnesia.theory.two_points import TwoPoints, largest_over_gaps

Deletion = Literal["uniform", "one_arm"]
"""The k deleted points are drawn uniformly from the whole log, as in the paper's proof, or are of one arm."""

LARGEST_DELTA = 1 / (8 * math.sqrt(math.e))
_REFERENCE_SEES_SHAPE = "for unlearners whose reference sees D∖U and the request's shape, not π(D)"
_REFERENCE_SEES_NO_SHAPE = "for unlearners whose reference sees D∖U only, not the request's shape"


@dataclass(frozen=True)
class HardInstances:
    """The two Bernoulli instances of a lower bound: their gap, their means and, under M_d, their policies.

    >>> hard_instances_fixed(n_arm=600, k=80).means
    ((0.50980580675690..., 0.5), (0.49019419324309..., 0.5))
    """

    separation: float
    means: tuple[tuple[float, float], tuple[float, float]]
    policies: tuple[tuple[float, float], tuple[float, float]] | None = None


def hard_instances_fixed(*, n_arm: int, k: int) -> HardInstances:
    """Means (½ ± Δ, ½) of the requested arm and another one, Δ = min{1/5, ½√(1/(5(N(a₀)−k)))}.

    >>> round(hard_instances_fixed(n_arm=600, k=80).separation, 6)
    0.009806
    """
    check_count("k", k, least=0, most=n_arm)
    return _instances_of_one_arm(_separation(n_arm - k))


def hard_instances_distribution(
    *, n: int, c_star: float, k: int, deletion: Deletion = "uniform"
) -> HardInstances:
    """C* ≥ 2: as under M_f with (N−k)/C* points of the rare arm. C* < 2: two arms with exchanged roles.

    >>> hard_instances_distribution(n=100, c_star=1.5, k=10).means
    ((0.75, 0.5), (0.5, 0.75))
    """
    _check_distribution(n, c_star, k, deletion)
    rare, often = 1 / c_star, 1 - 1 / c_star
    if c_star >= 2:
        separation = _separation(_points_of_the_rare_arm(n, c_star, k, deletion))
        return _instances_of_one_arm(separation, ((rare, often), (rare, often)))
    separation = (2 - c_star) / 2
    high = 0.5 + separation
    return HardInstances(separation, ((high, 0.5), (0.5, high)), ((rare, often), (often, rare)))


def lower_fixed(
    *,
    n: int,
    n_arm: int,
    k: int,
    epsilon: float,
    delta: float,
    n_best: int | None = None,
    n_other: int | None = None,
    form: LowerForm = "derived",
) -> Bound:
    """Theorem 3.7, M_f: no (ε, δ)-unlearner has a smaller worst case over rewards, requests and best arms.

    With n′ = N(a₀) − k: `printed` is e^{−ε}/(16·√(5e·n′)). `derived` is e^{−ε}Δ(e^{−10Δ²n′}/4 − δ), which
    keeps the true δ and is twice as large at δ = 0. `exact` replaces 10Δ²n′ by the divergence
    2Δ·ln((1+2Δ)/(1−2Δ))·n′. `tv` is the largest over Δ ≤ ½ of Δ times the least error (`TwoPoints`).
    `n_other` is the count of the other arm of the instances, by default N − N(a₀).

    The theorem omits that both instances must satisfy N(a*) ≥ N_* = `n_best`. If N(a₀) < N_*, never serving
    a₀ is optimal for two arms, and no positive bound is true.

    >>> case = dict(n=3000, n_arm=600, k=80, epsilon=1.0, delta=1e-5)
    >>> for form in ("printed", "derived", "exact", "tv"):
    ...     print(form, round(lower_fixed(**case, form=form).value, 6))
    printed 0.000273
    derived 0.000547
    exact 0.000604
    tv 0.002078
    """
    check_count("n", n, least=1)
    check_count("n_arm", n_arm, least=0, most=n)
    check_count("k", k, least=0, most=n_arm)
    budget = Budget(epsilon=epsilon, delta=delta)
    check_form(form, LowerForm)
    other = n - n_arm if n_other is None else n_other
    check_count("n_other", other, least=0, most=n - n_arm)
    conditions = []
    if n_best is not None:
        conditions = [
            BoundCondition(f"a0 may be the best arm, N(a0) >= N_*: {n_arm} >= {n_best}", n_arm >= n_best),
            BoundCondition(f"another arm may be the best, N(a) >= N_*: {other} >= {n_best}", other >= n_best),
        ]
    note = _REFERENCE_SEES_SHAPE
    if form == "tv":
        value, note = _total_variation(_rewards_alone(n_arm - k), _separation(n_arm - k), budget, note)
    elif form == "printed":
        conditions += [_small_delta(delta), BoundCondition(f"k < N(a0): {k} < {n_arm}", k < n_arm)]
        value = _printed_value(n_arm - k, epsilon)
    else:
        value = _one_arm_value(n_arm - k, epsilon, delta, form)
    reference = "Theorem 3.7 (M_f), appendix A.2"
    return Bound("Lower bound", value, tuple(conditions), reference, "lower", form, note)


def lower_distribution(
    *,
    n: int,
    c_star: float,
    k: int,
    epsilon: float,
    delta: float,
    deletion: Deletion = "uniform",
    form: LowerForm = "derived",
) -> Bound:
    """Theorem 3.9, M_d: no (ε, δ)-unlearner has a smaller worst case over policies with d(a*) ≥ 1/C*.

    C* ≥ 2, with n′ = (N−k)/C*: as `lower_fixed`. Step (d) of the proof has 4Δ² where 10Δ² is needed (its Δ
    and its result are those of 10Δ²). The printed form e^{−ε}√(C*/(5e(N−k)))/16 holds for N−k ≥ 1.25·C*,
    where Δ ≤ 1/5; for larger C* it exceeds every gap. The theorem is stated for a single-source request, but
    its proof deletes uniformly from the whole log. `deletion="one_arm"` deletes all k points from the rare
    arm: n′ = E[(X−k)₊], X ~ Binomial(N, 1/C*), is smaller and the bound is larger, so the theorem is also
    true for one arm.

    C* < 2, Δ = (2−C*)/2: (2−C*)/8·e^{−ε−KL} − e^{−ε}δΔ. In the derived form KL is
    (N−k)(2−C*)/C*·ln(2/(C*−1)); in the exact form the last factor is ln((3−C*)/(C*−1)). The printed form
    omits 1/C*, which makes it weaker, not false. Here the counts alone distinguish the instances, and
    deleting k points of one arm hides less of them: with `deletion="one_arm"`
    KL = N·KL(d₁‖d₂) + E[(X−k)₊]·KL(½+Δ‖½) + N(1−1/C*)·KL(½‖½+Δ). The proof does not cover the claim for a
    single-source request; the printed form has a condition for that.

    `tv` is averaged over the counts of the arms. For C* < 2 its instances have means ½ ± Δ/2 with exchanged
    roles: the reward 1 of one arm and the reward 0 of the other then speak for the same instance, equally.

    >>> case = dict(n=100, k=20, epsilon=0.0, delta=0.0)
    >>> for form in ("printed", "derived", "exact", "tv"):
    ...     values = [lower_distribution(**case, c_star=c_star, form=form).value for c_star in (5, 1.9)]
    ...     print(form, *(f"{value:.3g}" for value in values))
    printed 0.00424 2.1e-05
    derived 0.00848 0.000433
    exact 0.00935 0.00537
    tv 0.0213 0.0158
    """
    _check_distribution(n, c_star, k, deletion)
    budget = Budget(epsilon=epsilon, delta=delta)
    check_form(form, LowerForm)
    # Where one arm is requested, the counts of D∖U and N show the shape.
    with_shape = c_star >= 2 or deletion == "one_arm"
    note = _REFERENCE_SEES_SHAPE if with_shape else _REFERENCE_SEES_NO_SHAPE
    conditions: tuple[BoundCondition, ...]
    if form == "tv":
        if c_star >= 2:
            usual = _separation(_points_of_the_rare_arm(n, c_star, k, deletion))
            value, note = _total_variation(_rare_arm(n, c_star, k, deletion), usual, budget, note)
        else:
            pair = _exchanged_arms(n, c_star, k, deletion)
            value, note = _total_variation(pair, (2 - c_star) / 2, budget, note, means_around_half=True)
        conditions = ()
    elif c_star >= 2:
        conditions, value = _rare_best_arm(n, c_star, k, epsilon, delta, deletion, form)
    else:
        conditions, value = _common_best_arm(n, c_star, k, epsilon, delta, deletion, form)
    reference = "Theorem 3.9 (M_d), appendix A.2"
    return Bound("Lower bound", value, conditions, reference, "lower", form, note)


def _rewards_alone(points: int) -> TwoPoints:
    return TwoPoints(np.zeros(1), np.zeros(1), np.array([points]))


def _rare_arm(n: int, c_star: float, k: int, deletion: Deletion) -> TwoPoints:
    """The counts have the same law in both instances; the rewards of the rare arm differ."""
    total, removed = (n - k, 0) if deletion == "uniform" else (n, k)
    weights = log_probabilities(total, 1 / c_star)
    return TwoPoints(weights, weights, np.maximum(np.arange(total + 1) - removed, 0))


def _exchanged_arms(n: int, c_star: float, k: int, deletion: Deletion) -> TwoPoints:
    """The first arm is the best and the common one, or the worse and the rare one; k are of the first arm."""
    total, removed = (n - k, 0) if deletion == "uniform" else (n, k)
    often, rare = (log_probabilities(total, share) for share in (1 / c_star, 1 - 1 / c_star))
    return TwoPoints(often, rare, total - np.minimum(np.arange(total + 1), removed))


def _total_variation(
    pair: TwoPoints, usual: float, budget: Budget, note: str, *, means_around_half: bool = False
) -> tuple[float, str]:
    """The largest bound over the gaps Δ of means (½ ± Δ, ½), or ½ ± Δ/2 in both arms, and its note."""
    per_gap = 0.5 if means_around_half else 1.0
    gap, value = largest_over_gaps(
        lambda gap: gap * pair.least_error(0.5 + per_gap * gap, budget),
        usual=usual,
        most=0.5 / per_gap,
        points=int(pair.points.max()),
    )
    return value, f"{note}; the gap of its instances is {gap:.6g}"


_Outcome = tuple[tuple[BoundCondition, ...], float]


def _rare_best_arm(
    n: int, c_star: float, k: int, epsilon: float, delta: float, deletion: Deletion, form: LowerForm
) -> _Outcome:
    if form != "printed":
        return (), _one_arm_value(_points_of_the_rare_arm(n, c_star, k, deletion), epsilon, delta, form)
    enough = BoundCondition(
        f"N-k >= 1.25 C*, where Delta <= 1/5: {n - k} >= {1.25 * c_star:g}", n - k >= 1.25 * c_star
    )
    return (_small_delta(delta), enough), _printed_value((n - k) / c_star, epsilon)


def _common_best_arm(
    n: int, c_star: float, k: int, epsilon: float, delta: float, deletion: Deletion, form: LowerForm
) -> _Outcome:
    separation, left = (2 - c_star) / 2, n - k
    if form == "printed":
        conditions = (
            BoundCondition(f"delta = 0: {delta:g}", delta == 0),
            BoundCondition(f"the k points are drawn from the whole log: {deletion}", deletion == "uniform"),
        )
        divergence = left * (2 - c_star) * math.log(2 / (c_star - 1))
        return conditions, _le_cam(separation, divergence, epsilon, 0.0)
    high, share = 0.5 + separation, 1 / c_star
    if deletion == "one_arm":
        divergence = (
            n * bernoulli_divergence(share, 1 - share)
            + expected_retained(n, share, k) * bernoulli_divergence(high, 0.5)
            + n * (1 - share) * bernoulli_divergence(0.5, high)
        )
    else:
        above = 2.0 if form == "derived" else 3 - c_star
        divergence = left * (2 - c_star) / c_star * math.log(above / (c_star - 1))
    return (), _le_cam(separation, divergence, epsilon, delta)


def _le_cam(separation: float, divergence: float, epsilon: float, delta: float) -> float:
    return max(0.0, math.exp(-epsilon) * separation * (math.exp(-divergence) / 4 - delta))


def _separation(points: float) -> float:
    return min(0.2, 0.5 * math.sqrt(1 / (5 * points))) if points > 0 else 0.2


def _instances_of_one_arm(
    separation: float, policies: tuple[tuple[float, float], tuple[float, float]] | None = None
) -> HardInstances:
    return HardInstances(separation, ((0.5 + separation, 0.5), (0.5 - separation, 0.5)), policies)


def _one_arm_value(points: float, epsilon: float, delta: float, form: LowerForm) -> float:
    separation = _separation(points)
    exact = bernoulli_divergence(0.5 + separation, 0.5 - separation)
    per_point = 10 * separation**2 if form == "derived" else exact
    return _le_cam(separation, per_point * points, epsilon, delta)


def _printed_value(points: float, epsilon: float) -> float:
    return math.exp(-epsilon) / 16 / math.sqrt(5 * math.e * points) if points > 0 else math.inf


def _points_of_the_rare_arm(n: int, c_star: float, k: int, deletion: Deletion) -> float:
    return (n - k) / c_star if deletion == "uniform" else expected_retained(n, 1 / c_star, k)


def _small_delta(delta: float) -> BoundCondition:
    return BoundCondition(f"delta <= 1/(8 sqrt(e)) = {LARGEST_DELTA:.6g}: {delta:g}", delta <= LARGEST_DELTA)


def _check_distribution(n: int, c_star: float, k: int, deletion: str) -> None:
    check_count("n", n, least=1)
    check_count("k", k, least=0, most=n)
    check_coverage(c_star)
    if deletion not in get_args(Deletion):
        raise InvalidInputError(f"deletion must be one of {', '.join(get_args(Deletion))}; got {deletion!r}")
