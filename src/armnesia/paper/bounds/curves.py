"""Upper bounds, exact values and lower bounds over N, as data for a picture."""

from functools import partial
from typing import Any

import numpy as np

from armnesia.paper.settings import BASE_GAMMA, BASE_K, DELTA, ENVIRONMENT, METHODS
from armnesia.privacy import Budget
from armnesia.simulation import DistributionModel, Environment, FixedSample, OneArm, evaluate
from armnesia.theory import (
    Setting,
    bounds,
    hard_instances_distribution,
    hard_instances_fixed,
    lower_distribution,
    lower_fixed,
)
from armnesia.unlearners import Adaptive, Rollback, Unlearner

BoundsPanel = dict[str, Any]
"""`title`, `x_name`, `x`, `series` and `largest_gap`, as in `picture_of_bounds`."""


def bound_curves(*, quick: bool = False) -> list[BoundsPanel]:
    """The paper's setting, one with large gaps, and the pairs of instances of the lower bounds' proofs."""
    points = 8 if quick else 17
    return [
        _papers_setting(points),
        _large_gaps(points),
        _hard_instances(points),
        _hard_instances_distribution(points),
    ]


def _papers_setting(points: int) -> BoundsPanel:
    """The paper's five arms: the upper bounds exceed the largest gap and are vacuous."""
    ns = [int(n) // 5 * 5 for n in np.linspace(1000, 5000, points)]
    budget = Budget.from_gamma(BASE_GAMMA, delta=DELTA)
    upper, exact = [], []
    for n in ns:
        model = FixedSample.round_robin(n, 5)
        setting = Setting.fixed(
            counts=model.counts, deletions={0: BASE_K}, budget=budget, best=0, threshold_scale=1.3
        )
        upper.append(algorithm_2_bound(setting))
        exact.append(
            evaluate(ENVIRONMENT, model, OneArm(0, BASE_K), METHODS["adaptive"], budget).suboptimality
        )
    return {
        "title": "The paper's setting, hard case, k = 80, γ = 0.5",
        "x_name": "N",
        "x": ns,
        "series": {
            "upper bound of Algorithm 2": {"values": upper, "kind": "upper"},
            "Algorithm 2, exact": {"values": exact, "kind": "exact"},
        },
        "largest_gap": float(ENVIRONMENT.gaps.max()),
    }


def _large_gaps(points: int) -> BoundsPanel:
    """Two arms with a large gap and many records: the upper bounds are not vacuous."""
    means = (0.65, 0.35)
    environment = Environment.bernoulli(means)
    budget = Budget.from_gamma(0.05, delta=DELTA)
    as_bounded = Adaptive(threshold="paper", sensitivity="paper")
    ns = [int(n) // 2 * 2 for n in np.geomspace(100, 10_000, points)]
    series: dict[str, list[float]] = {"upper bound of Algorithm 2": [], "upper bound of LCB": [], "exact": []}
    for n in ns:
        model = FixedSample.round_robin(n, 2)
        k = n // 10
        setting = Setting.fixed(counts=model.counts, deletions={0: k}, budget=budget, best=0)
        series["upper bound of Algorithm 2"].append(algorithm_2_bound(setting))
        series["upper bound of LCB"].append(bounds(setting)[0].value)
        exact = evaluate(environment, model, OneArm(0, k), as_bounded, budget)
        series["exact"].append(max(exact.suboptimality, 1e-12))
    return {
        "title": "Two arms, means 0.65 and 0.35, k = N/10, γ = 0.05",
        "x_name": "N",
        "x": ns,
        "series": {
            "upper bound of Algorithm 2": {"values": series["upper bound of Algorithm 2"], "kind": "upper"},
            "upper bound of LCB, no deletion": {"values": series["upper bound of LCB"], "kind": "upper"},
            "Algorithm 2, exact (cut at 10⁻¹²)": {"values": series["exact"], "kind": "exact"},
        },
        "largest_gap": means[0] - means[1],
    }


def _hard_instances(points: int) -> BoundsPanel:
    """The worse of the two instances in the proof of the lower bound under M_f."""
    budget = Budget(epsilon=1.0, delta=DELTA)
    counts = [int(n) // 4 * 4 for n in np.geomspace(40, 20_000, points)]
    rollback, algorithm_2, lower, lower_at_0, upper = [], [], [], [], []
    for n_arm in counts:
        k = n_arm // 4
        rollback.append(worse_of_both_instances(n_arm, k, Rollback(), budget))
        algorithm_2.append(worse_of_both_instances(n_arm, k, Adaptive.as_in_the_paper(), budget))
        setting = Setting.fixed(counts=[n_arm, n_arm], deletions={0: k}, budget=budget, threshold_scale=1.3)
        upper.append(algorithm_2_bound(setting))
        at = partial(lower_fixed, n=2 * n_arm, n_arm=n_arm, k=k, form="exact")
        lower.append(at(epsilon=1.0, delta=DELTA).value)
        lower_at_0.append(at(epsilon=0.0, delta=0.0).value)
    return {
        "title": "The lower bound's two instances, $M_f$, k = N(a₀)/4",
        "x_name": "N(a₀)",
        "x": counts,
        "series": {
            "upper bound of Algorithm 2": {"values": upper, "kind": "upper"},
            "rollback, exact": {"values": rollback, "kind": "exact"},
            "Algorithm 2 at (1, 10⁻⁵), exact": {"values": algorithm_2, "kind": "exact"},
            "lower bound at (0, 0)": {"values": lower_at_0, "kind": "lower"},
            "lower bound at (1, 10⁻⁵)": {"values": lower, "kind": "lower"},
        },
        "largest_gap": None,
    }


def _hard_instances_distribution(points: int) -> BoundsPanel:
    """The same under M_d, C* = 4: exact given the counts, averaged over 100 count vectors."""
    budget, c_star = Budget(epsilon=1.0, delta=DELTA), 4.0
    ns = [int(n) // 8 * 8 for n in np.geomspace(400, 20_000, points)]
    rollback, lower, upper = [], [], []
    for n in ns:
        k = n // 16
        pair = hard_instances_distribution(n=n, c_star=c_star, k=k, deletion="one_arm")
        assert pair.policies is not None  # instances under M_d have policies
        worlds = zip(pair.means, pair.policies, strict=True)
        cases = [(Environment.bernoulli(means), DistributionModel(n, policy)) for means, policy in worlds]
        found = [evaluate(*case, OneArm(0, k), Rollback(), budget, datasets=100) for case in cases]
        rollback.append(max(result.suboptimality for result in found))
        setting = Setting.distribution(n=n, n_actions=2, c_star=c_star, deletions={0: k}, budget=budget)
        upper.append(algorithm_2_bound(setting))
        at = partial(lower_distribution, n=n, c_star=c_star, k=k, deletion="one_arm", form="exact")
        lower.append(at(epsilon=1.0, delta=DELTA).value)
    return {
        "title": "The lower bound's two instances, $M_d$, C* = 4, k = N/16",
        "x_name": "N",
        "x": ns,
        "series": {
            "upper bound of Algorithm 2": {"values": upper, "kind": "upper"},
            "rollback, exact given the counts": {"values": rollback, "kind": "exact"},
            "lower bound at (1, 10⁻⁵)": {"values": lower, "kind": "lower"},
        },
        "largest_gap": None,
        "x_log": True,
    }


def worse_of_both_instances(n_arm: int, k: int, unlearner: Unlearner | None, budget: Budget) -> float:
    """The larger exact sub-optimality on the two instances of the lower bound's proof under M_f."""
    model = FixedSample((n_arm, n_arm))
    instances = hard_instances_fixed(n_arm=n_arm, k=k).means
    return max(
        evaluate(Environment.bernoulli(means), model, OneArm(0, k), unlearner, budget).suboptimality
        for means in instances
    )


def algorithm_2_bound(setting: Setting) -> float:
    """The upper bound of Algorithm 2 in a setting."""
    return next(bound.value for bound in bounds(setting) if bound.name.startswith("Algorithm 2"))
