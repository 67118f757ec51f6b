"""Upper bound, exact value and lower bound in one picture."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from armnesia.paper.settings import BASE_GAMMA, BASE_K, DELTA, ENVIRONMENT, METHODS
from armnesia.privacy import Budget
from armnesia.simulation import DistributionModel, Environment, FixedSample, OneArm, evaluate
from armnesia.theory import (
    Bound,
    Setting,
    hard_instances_distribution,
    hard_instances_fixed,
    lower_distribution,
    lower_fixed,
    tilt_upper,
)
from armnesia.theory import bounds as all_bounds
from armnesia.unlearners import Adaptive, Rollback, Tilt, Unlearner

Panel = dict[str, Any]


def bound_curves(*, quick: bool = False) -> list[Panel]:
    """The paper's own setting, one with large gaps, and the lower bounds' pairs of instances."""
    points = 8 if quick else 17
    return [
        _papers_setting(points),
        _large_gaps(points),
        _hard_instances(points),
        _hard_instances_by_chance(points),
    ]


def _papers_setting(points: int) -> Panel:
    """Here the bounds exceed the largest gap: they are true and say nothing."""
    ns = [int(n) // 5 * 5 for n in np.linspace(1000, 5000, points)]
    budget = Budget.from_gamma(BASE_GAMMA, delta=DELTA)
    upper, exact = [], []
    for n in ns:
        model = FixedSample.round_robin(n, 5)
        setting = Setting.fixed(
            counts=model.counts, deletions={0: BASE_K}, budget=budget, best=0, threshold_scale=1.3
        )
        upper.append(_algorithm_2(all_bounds(setting)).value)
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


def _large_gaps(points: int) -> Panel:
    """Two arms far apart and many records: here the bounds say something."""
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
        found = all_bounds(setting)
        series["upper bound of Algorithm 2"].append(_algorithm_2(found).value)
        series["upper bound of LCB"].append(found[0].value)
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


def _hard_instances(points: int) -> Panel:
    """The two instances of the lower bound's proof, at the gap that it chooses; the worse of both."""
    budget = Budget(epsilon=1.0, delta=DELTA)
    counts = [int(n) // 4 * 4 for n in np.geomspace(40, 20_000, points)]
    rollback, algorithm_2, lower, lower_at_0, upper = [], [], [], [], []
    for n_arm in counts:
        k = n_arm // 4
        rollback.append(_worse_of_both(n_arm, k, Rollback(), budget))
        algorithm_2.append(_worse_of_both(n_arm, k, Adaptive.as_in_the_paper(), budget))
        setting = Setting.fixed(counts=[n_arm, n_arm], deletions={0: k}, budget=budget, threshold_scale=1.3)
        upper.append(_algorithm_2(all_bounds(setting)).value)
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


def _hard_instances_by_chance(points: int) -> Panel:
    """The same under M_d, C* = 4: exact given the counts, averaged over some hundred count vectors."""
    budget, c_star = Budget(epsilon=1.0, delta=DELTA), 4.0
    ns = [int(n) // 8 * 8 for n in np.geomspace(400, 20_000, points)]
    rollback, lower, upper = [], [], []
    for n in ns:
        k = n // 16
        pair = hard_instances_distribution(n=n, c_star=c_star, k=k, deletion="one_arm")
        assert pair.policies is not None  # M_d's always have them
        worlds = zip(pair.means, pair.policies, strict=True)
        cases = [(Environment.bernoulli(means), DistributionModel(n, policy)) for means, policy in worlds]
        found = [evaluate(*case, OneArm(0, k), Rollback(), budget, datasets=100) for case in cases]
        rollback.append(max(result.suboptimality for result in found))
        setting = Setting.distribution(n=n, n_actions=2, c_star=c_star, deletions={0: k}, budget=budget)
        upper.append(_algorithm_2(all_bounds(setting)).value)
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


def epsilon_curves(*, quick: bool = False) -> list[Panel]:
    """What an ε buys: the lower bound, tilt, Algorithm 2 and rollback over ε, in two settings under M_f."""
    epsilons = [round(float(epsilon), 2) for epsilon in np.linspace(0.1, 5.0, 8 if quick else 15)]
    return [_epsilon_on_hard_instances(epsilons), _epsilon_in_the_papers_setting(epsilons)]


def _epsilon_on_hard_instances(epsilons: list[float]) -> Panel:
    """The lower bound's two instances; tilt's bound is what no deletion gives up and the most it adds."""
    n_arm, k = 400, 300
    gap = hard_instances_fixed(n_arm=n_arm, k=k).separation
    at = partial(_worse_of_both, n_arm, k)
    setting = partial(Setting.fixed, counts=[n_arm, n_arm], deletions={0: k}, threshold_scale=1.3)
    return {
        "title": f"The lower bound's two instances, $M_f$, k = {k} of N(a₀) = {n_arm}",
        "series": {
            **_over_epsilon(epsilons, at, setting, contenders=2, largest_gap=gap),
            "lower bound": {
                "values": [
                    lower_fixed(
                        n=2 * n_arm, n_arm=n_arm, k=k, epsilon=epsilon, delta=DELTA, form="exact"
                    ).value
                    for epsilon in epsilons
                ],
                "kind": "lower",
            },
        },
        "x_name": "ε (δ = 10⁻⁵)",
        "x": epsilons,
        "x_log": False,
        "largest_gap": gap,
    }


def _epsilon_in_the_papers_setting(epsilons: list[float]) -> Panel:
    """The paper's five arms; the lower bound speaks of the worst instance, and this is another one."""
    n, k = 1000, BASE_K
    model = FixedSample.round_robin(n, ENVIRONMENT.n_actions)

    def at(unlearner: Unlearner | None, budget: Budget) -> float:
        return evaluate(ENVIRONMENT, model, OneArm(0, k), unlearner, budget).suboptimality

    setting = partial(Setting.fixed, counts=model.counts, deletions={0: k}, best=0, threshold_scale=1.3)
    gap = float(ENVIRONMENT.gaps.max())
    return {
        "title": f"The paper's setting, hard case, N = {n}, k = {k}",
        "series": _over_epsilon(epsilons, at, setting, contenders=ENVIRONMENT.n_actions, largest_gap=gap),
        "x_name": "ε (δ = 10⁻⁵)",
        "x": epsilons,
        "x_log": False,
        "largest_gap": gap,
    }


def _over_epsilon(
    epsilons: list[float],
    at: Callable[[Unlearner | None, Budget], float],
    setting: Callable[..., Setting],
    *,
    contenders: int,
    largest_gap: float,
) -> dict[str, dict[str, Any]]:
    budgets = [Budget(epsilon=epsilon, delta=DELTA) for epsilon in epsilons]
    untouched = at(None, budgets[0])
    excess = [tilt_upper(contenders=contenders, budget=b, largest_gap=largest_gap).value for b in budgets]
    series = {
        "upper bound of Algorithm 2": [_algorithm_2(all_bounds(setting(budget=b))).value for b in budgets],
        "upper bound of tilt": [untouched + more for more in excess],
        "rollback, exact": [at(Rollback(), b) for b in budgets],
        "Algorithm 2, exact": [at(Adaptive.as_in_the_paper(), b) for b in budgets],
        "tilt, exact": [at(Tilt(), b) for b in budgets],
        "no deletion, exact": [untouched for _ in budgets],
    }
    return {
        label: {"values": values, "kind": "upper" if label.startswith("upper") else "exact"}
        for label, values in series.items()
    }


def _worse_of_both(n_arm: int, k: int, unlearner: Unlearner | None, budget: Budget) -> float:
    model = FixedSample((n_arm, n_arm))
    instances = hard_instances_fixed(n_arm=n_arm, k=k).means
    return max(
        evaluate(Environment.bernoulli(means), model, OneArm(0, k), unlearner, budget).suboptimality
        for means in instances
    )


def _algorithm_2(found: list[Bound]) -> Bound:
    return next(bound for bound in found if bound.name.startswith("Algorithm 2"))
