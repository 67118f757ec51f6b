"""Every lower bound lies below what the best possible rule loses on its two instances, and below rollback."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from armnesia.theory import (
    Bound,
    Deletion,
    Form,
    hard_instances_distribution,
    hard_instances_fixed,
    imitation_distribution,
    lower_distribution,
    lower_fixed,
)
from tests.theory import worlds

FORMS: tuple[Form, ...] = get_args(Form)
FREE: dict[str, Any] = {"epsilon": 0.0, "delta": 0.0}
"""Rollback and retraining are (0, 0)-unlearning: they satisfy every budget, and this is the hardest one."""


def ones(n: int, mean: float) -> NDArray[np.float64]:
    return np.asarray(binom.pmf(np.arange(n + 1), n, mean))


def best_average(separation: float, overlap: float) -> float:
    """What the best rule loses on average over two equally likely instances: Δ/2·(1 − TV)."""
    return separation / 2 * overlap


def overlap_of_one_arm(points: int, separation: float) -> float:
    """1 − TV between `points` rewards of mean ½ + Δ and as many of mean ½ − Δ."""
    return float(np.minimum(ones(points, 0.5 + separation), ones(points, 0.5 - separation)).sum())


def fixed_cases(form: Form) -> Iterator[tuple[Bound, int, int, int]]:
    for n_arm, deleted, other in product((1, 5, 40, 300), (0, 0.2, 0.5, 0.9), (1, 10)):
        k = int(deleted * n_arm)
        n = n_arm + other * n_arm
        yield lower_fixed(n=n, n_arm=n_arm, k=k, **FREE, n_best=n_arm, form=form), n_arm, k, n


@pytest.mark.parametrize("form", FORMS)
def test_fixed_sample_model(form: Form) -> None:
    ratios = []
    for bound, n_arm, k, n in fixed_cases(form):
        instances = hard_instances_fixed(n_arm=n_arm, k=k)
        best = best_average(instances.separation, overlap_of_one_arm(n_arm - k, instances.separation))
        rollback = max(worlds.two_arm_loss(means, (n_arm - k, n - n_arm), 1 / n) for means in instances.means)
        assert bound.holds
        assert 0 < bound.value <= best <= rollback + 1e-12
        ratios.append(bound.value / best)
    assert max(ratios) > (0.2 if form == "printed" else 0.4)  # three times as much would be false


def counts_after(n: int, share: float, k: int, deletion: Deletion) -> Iterator[tuple[float, int, int]]:
    """The numbers of points of the two arms after the deletion, with their probability."""
    total = n - k if deletion == "uniform" else n
    for first, weight in enumerate(ones(total, share)):
        yield float(weight), max(first - k, 0) if deletion == "one_arm" else first, total - first


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("deletion", get_args(Deletion))
def test_distribution_model_with_a_rare_best_arm(form: Form, deletion: Deletion) -> None:
    """C* ≥ 2. The printed bound for a uniform deletion is one for k points of the rare arm, too."""
    ratios = []
    for n, deleted, c_star in product((20, 120), (0, 0.1, 0.4, 0.9), (2, 5, 12)):
        k = int(deleted * n)
        bound = lower_distribution(n=n, c_star=c_star, k=k, **FREE, deletion=deletion, form=form)
        of_form: Deletion = "uniform" if form == "printed" else deletion
        instances = hard_instances_distribution(n=n, c_star=c_star, k=k, deletion=of_form)
        after = list(counts_after(n, 1 / c_star, k, deletion))
        overlap = sum(weight * overlap_of_one_arm(first, instances.separation) for weight, first, _ in after)
        best = best_average(instances.separation, overlap)
        rollback = max(
            sum(w * worlds.two_arm_loss(means, (first, second), 1 / n) for w, first, second in after)
            for means in instances.means
        )
        if not bound.holds:
            assert form == "printed"
            assert n - k < 1.25 * c_star
            continue
        assert 0 < bound.value <= best <= rollback + 1e-9
        ratios.append(bound.value / best)
    assert len(ratios) >= 18
    assert max(ratios) > (0.2 if form == "printed" else 0.4)


def overlap_of_swapped_arms(n: int, c_star: float, k: int, deletion: Deletion) -> float:
    """1 − TV between what is left of the two instances with C* < 2: counts and rewards of both arms."""
    high, share, overlap = 0.5 + (2 - c_star) / 2, 1 / c_star, 0.0
    pairs = zip(counts_after(n, share, k, deletion), counts_after(n, 1 - share, k, deletion), strict=True)
    for (weight_1, first, second), (weight_2, *_) in pairs:
        law_1 = weight_1 * np.outer(ones(first, high), ones(second, 0.5))
        law_2 = weight_2 * np.outer(ones(first, 0.5), ones(second, high))
        overlap += float(np.minimum(law_1, law_2).sum())
    return overlap


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("deletion", get_args(Deletion))
def test_distribution_model_with_a_common_best_arm(form: Form, deletion: Deletion) -> None:
    ratios = []
    for n, deleted, c_star in product((4, 30), (0.0, 0.25, 0.5, 0.9), (1.1, 1.3, 1.6, 1.95)):
        k = int(deleted * n)
        bound = lower_distribution(n=n, c_star=c_star, k=k, **FREE, deletion=deletion, form=form)
        assert bound.holds == (form != "printed" or deletion == "uniform")
        if not bound.holds:
            continue
        instances = hard_instances_distribution(n=n, c_star=c_star, k=k)
        best = best_average(instances.separation, overlap_of_swapped_arms(n, c_star, k, deletion))
        assert instances.policies is not None
        rollback = max(
            sum(
                weight * worlds.two_arm_loss(means, (first, second), 1 / n)
                for weight, first, second in counts_after(n, policy[0], k, deletion)
            )
            for means, policy in zip(instances.means, instances.policies, strict=True)
        )
        assert 0 < bound.value <= best <= rollback + 1e-9
        ratios.append(bound.value / best)
    if ratios:
        assert max(ratios) > 0.1


def test_three_times_a_lower_bound_is_no_lower_bound() -> None:
    """The planted fault."""
    too_large = [
        3 * bound.value > best_average(separation, overlap_of_one_arm(n_arm - k, separation))
        for bound, n_arm, k, _ in fixed_cases("derived")
        for separation in [hard_instances_fixed(n_arm=n_arm, k=k).separation]
    ]
    assert any(too_large)


def test_a_reference_that_sees_the_original_decision_beats_the_bound() -> None:
    """Always serving π(D) is (0, 0)-unlearning for a reference that sees π(D): the bound does not apply."""
    n_arm, k, n = 10_000, 9_980, 20_000
    bound = lower_fixed(n=n, n_arm=n_arm, k=k, **FREE, n_best=n_arm)
    means = hard_instances_fixed(n_arm=n_arm, k=k).means
    original = max(worlds.two_arm_loss(each, (n_arm, n - n_arm), 1 / n) for each in means)
    assert bound.holds
    assert original == pytest.approx(3.7e-14, rel=0.01)
    assert bound.value == pytest.approx(7.6e-3, rel=0.01)
    assert max(worlds.two_arm_loss(each, (n_arm - k, n - n_arm), 1 / n) for each in means) > bound.value


def test_the_bound_needs_both_arms_to_be_possible_best_arms() -> None:
    """Where N(a₀) < N_* the best arm is another one, and never to serve a₀ loses nothing."""
    bound = lower_fixed(n=1000, n_arm=200, k=50, **FREE, n_best=300)
    assert not bound.holds
    assert "N(a0) >= N_*: 200 >= 300" in bound.unmet[0].text
    assert not lower_fixed(n=1000, n_arm=600, k=50, **FREE, n_best=500).holds
    assert lower_fixed(n=1000, n_arm=600, k=50, **FREE, n_best=400).holds


def test_the_printed_bound_exceeds_every_gap_where_its_condition_fails() -> None:
    case = {"n": 50, "c_star": 100_000.0, "k": 10}
    printed = lower_distribution(**case, **FREE, form="printed")  # type: ignore[arg-type]
    assert printed.value > 0.5
    assert not printed.holds
    assert lower_distribution(**case, **FREE).value <= 0.2 / 4  # type: ignore[arg-type]


def test_counts_that_are_remembered_beat_the_printed_bound_for_one_arm() -> None:
    """C* < 2: a reference that knows the shape knows the counts of D; to imitate them forgets all rewards."""
    n, k, c_star = 200, 180, 1.3
    printed = lower_distribution(n=n, c_star=c_star, k=k, **FREE, deletion="one_arm", form="printed")
    derived = lower_distribution(n=n, c_star=c_star, k=k, **FREE)
    remembered = imitation_distribution(n=n, c_star=c_star, k=0, form="exact").value
    assert remembered < printed.value / 100
    assert remembered < derived.value
    assert not printed.holds
    assert lower_distribution(n=n, c_star=c_star, k=k, **FREE, deletion="one_arm").value < remembered


@pytest.mark.parametrize("form", ["derived", "exact"])
def test_the_budget_scales_the_bound(form: Form) -> None:
    for epsilon, delta in product((0.0, 1.0, 4.0), (0.0, 0.01, 0.05, 0.4)):
        free = lower_fixed(n=500, n_arm=200, k=50, **FREE, form=form).value
        separation = hard_instances_fixed(n_arm=200, k=50).separation
        bound = lower_fixed(n=500, n_arm=200, k=50, epsilon=epsilon, delta=delta, form=form)
        assert bound.value == pytest.approx(max(0.0, math.exp(-epsilon) * (free - delta * separation)))
        assert bound.vacuous() == (delta > 0.1)


def test_the_printed_bound_is_the_derived_one_at_the_largest_delta() -> None:
    delta = 1 / (8 * math.sqrt(math.e))
    for n, n_arm, k in ((100, 50, 20), (3000, 600, 80), (40, 4, 2)):
        case = {"n": n, "n_arm": n_arm, "k": k, "epsilon": 0.7, "delta": delta}
        printed, derived = (lower_fixed(**case, form=form) for form in ("printed", "derived"))  # type: ignore[arg-type]
        assert printed.value == pytest.approx(derived.value)
        assert printed.holds
    assert not lower_fixed(n=10, n_arm=5, k=1, epsilon=0, delta=0.08, form="printed").holds


def test_the_divergence_of_the_swapped_arms() -> None:
    """The exact form against the divergence summed over all four outcomes of a point."""
    for c_star, n in product((1.05, 1.3, 1.7, 1.99), (10, 50)):
        high, often = 0.5 + (2 - c_star) / 2, 1 / c_star
        law_1 = [often * high, often * (1 - high), (1 - often) / 2, (1 - often) / 2]
        law_2 = [(1 - often) / 2, (1 - often) / 2, often * high, often * (1 - high)]
        divergence = n * sum(p * math.log(p / q) for p, q in zip(law_1, law_2, strict=True))
        value = (2 - c_star) / 8 * math.exp(-divergence)
        bounds = [lower_distribution(n=n + 7, c_star=c_star, k=7, **FREE, form=form).value for form in FORMS]
        assert bounds[2] == pytest.approx(value, rel=1e-9)
        assert bounds[0] < bounds[1] < bounds[2]
        one_arm = lower_distribution(n=n, c_star=c_star, k=0, **FREE, deletion="one_arm").value
        assert one_arm == pytest.approx(value, rel=1e-9)
