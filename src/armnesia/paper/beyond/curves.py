"""Bounds and exact values over ε, as data for a picture.

They extend the curves of `bounds` to tilt, and use its pair of instances and its pictures.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from armnesia.paper.bounds.curves import BoundsPanel, algorithm_2_bound, worse_of_both_instances
from armnesia.paper.settings import BASE_K, DELTA, ENVIRONMENT
from armnesia.privacy import Budget
from armnesia.simulation import FixedSample, OneArm, evaluate
from armnesia.theory import Setting, hard_instances_fixed, lower_fixed, tilt_upper
from armnesia.unlearners import Adaptive, Rollback, Tilt, Unlearner


def epsilon_curves(*, quick: bool = False) -> list[BoundsPanel]:
    """The lower bound, tilt, Algorithm 2 and rollback over ε, in two settings under M_f."""
    epsilons = [round(float(epsilon), 2) for epsilon in np.linspace(0.1, 5.0, 8 if quick else 15)]
    return [_epsilon_on_hard_instances(epsilons), _epsilon_in_the_papers_setting(epsilons)]


def _epsilon_on_hard_instances(epsilons: list[float]) -> BoundsPanel:
    """The two instances of the lower bound's proof."""
    n_arm, k = 400, 300
    gap = hard_instances_fixed(n_arm=n_arm, k=k).separation
    loss = partial(worse_of_both_instances, n_arm, k)
    setting = partial(Setting.fixed, counts=[n_arm, n_arm], deletions={0: k}, threshold_scale=1.3)
    return {
        "title": f"The lower bound's two instances, $M_f$, k = {k} of N(a₀) = {n_arm}",
        "series": {
            **_over_epsilon(epsilons, loss, setting, contenders=2, largest_gap=gap),
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


def _epsilon_in_the_papers_setting(epsilons: list[float]) -> BoundsPanel:
    """The paper's five arms; no lower bound, because that is about the worst instance."""
    n, k = 1000, BASE_K
    model = FixedSample.round_robin(n, ENVIRONMENT.n_actions)

    def loss(unlearner: Unlearner | None, budget: Budget) -> float:
        return evaluate(ENVIRONMENT, model, OneArm(0, k), unlearner, budget).suboptimality

    setting = partial(Setting.fixed, counts=model.counts, deletions={0: k}, best=0, threshold_scale=1.3)
    gap = float(ENVIRONMENT.gaps.max())
    return {
        "title": f"The paper's setting, hard case, N = {n}, k = {k}",
        "series": _over_epsilon(epsilons, loss, setting, contenders=ENVIRONMENT.n_actions, largest_gap=gap),
        "x_name": "ε (δ = 10⁻⁵)",
        "x": epsilons,
        "x_log": False,
        "largest_gap": gap,
    }


def _over_epsilon(
    epsilons: list[float],
    loss: Callable[[Unlearner | None, Budget], float],
    setting: Callable[..., Setting],
    *,
    contenders: int,
    largest_gap: float,
) -> dict[str, dict[str, Any]]:
    """The series of a panel.

    The upper bound of tilt is the loss of no deletion and tilt's largest excess, if its predictive is right.
    """
    budgets = [Budget(epsilon=epsilon, delta=DELTA) for epsilon in epsilons]
    no_deletion = loss(None, budgets[0])
    tilts_most = partial(tilt_upper, contenders=contenders, largest_gap=largest_gap, predictive_error=0.0)
    excess = [tilts_most(budget=b).value for b in budgets]
    series = {
        "upper bound of Algorithm 2": [algorithm_2_bound(setting(budget=b)) for b in budgets],
        "upper bound of tilt, predictive right": [no_deletion + added for added in excess],
        "rollback, exact": [loss(Rollback(), b) for b in budgets],
        "Algorithm 2, exact": [loss(Adaptive.as_in_the_paper(), b) for b in budgets],
        "tilt, exact": [loss(Tilt(), b) for b in budgets],
        "no deletion, exact": [no_deletion for _ in budgets],
    }
    return {
        label: {"values": values, "kind": "upper" if label.startswith("upper") else "exact"}
        for label, values in series.items()
    }
