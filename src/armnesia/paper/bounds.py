"""The paper's bounds beside exact values, over N."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.paper.section import Section
from armnesia.paper.settings import BASE_GAMMA, BASE_K, DELTA, ENVIRONMENT, METHODS, Run
from armnesia.plotting.panels import Curve, Panel, look, picture_of_panels
from armnesia.privacy import Budget
from armnesia.simulation import DistributionModel, Environment, FixedSample, OneArm, evaluate
from armnesia.theory import (
    HardInstances,
    Setting,
    bounds,
    hard_instances_distribution,
    hard_instances_fixed,
    lower_distribution,
    lower_fixed,
)
from armnesia.unlearners import Adaptive, Rollback, Unlearner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND_LINES = {"upper": (0, (6, 2)), "lower": (0, (1.5, 1.5))}
"""The line shows the kind of a curve, by the first word of its label; exact values have a solid one."""
VACUOUS = "largest gap: bounds above it are vacuous"
PAPERS, AS_BOUNDED = Adaptive.as_in_the_paper(), Adaptive(threshold="paper", sensitivity="paper")
UPPER, LOWER = "upper bound of Algorithm 2", "lower bound at (1, 10⁻⁵)"


def bounds_section(run: Run) -> Section:
    """Bounds and exact values in four settings."""
    panels = bound_panels(8 if run.plan.quick else 17)
    text = (
        "The paper's bounds, with the constants that their proofs give, beside exact values. The lower ones"
        " have exact divergences and are shown on the two instances of the proof. In the paper's own setting"
        " every upper bound exceeds the largest possible loss: it is vacuous. With large gaps it is not."
    )
    title = "The paper's bounds beside the exact sub-optimality"
    note = "Solid: exact. Dashed: upper bounds. Dotted: lower bounds."
    return Section("Bounds and exact values", [text], {"bounds": picture_of_bounds(panels, title, note)})


def bound_panels(points: int) -> list[Panel]:
    """The paper's setting, one with large gaps, and the pairs of instances of the lower bounds' proofs."""
    return [_papers_setting(points), _large_gaps(points), _hard_fixed(points), _hard_distribution(points)]


def bound_panel(
    title: str, x_name: str, x: Sequence[float], series: Mapping[str, list[float]], gap: float | None = None
) -> Panel:
    """A panel with a logarithmic y axis; the looks are those of the whole picture."""
    curves = [Curve(label, x, values) for label, values in series.items()]
    ceiling = None if gap is None else (gap, VACUOUS)
    names = (title, x_name, "sub-optimality (log scale)")
    return Panel(*names, curves, x_log=max(x) >= 20 * min(x), y_log=True, ceiling=ceiling)


def picture_of_bounds(panels: Sequence[Panel], title: str, note: str) -> "Figure":
    """Two panels in a row. The first of several exact curves is wide, so that it is visible below another."""
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    exact = [[c.label for c in panel.curves if c.label.split()[0] not in KIND_LINES] for panel in panels]
    wide = {each[0] for each in exact if len(each) > 1}
    looks = {
        label: look(number, linestyle=KIND_LINES.get(label.split()[0], "-"))
        | ({"linewidth": 4.0, "markersize": 8} if label in wide else {})
        for number, label in enumerate(labels)
    }
    drawn = [
        replace(panel, curves=[replace(curve, look=looks[curve.label]) for curve in panel.curves])
        for panel in panels
    ]
    grid = [drawn[first : first + 2] for first in range(0, len(drawn), 2)]
    return picture_of_panels(grid, title=title, note=note, legend_columns=3, row_height=3.6)


def _papers_setting(points: int) -> Panel:
    """The paper's five arms: the upper bounds exceed the largest gap and are vacuous."""
    ns = [int(n) // 5 * 5 for n in np.linspace(1000, 5000, points)]
    budget, models = Budget.from_gamma(BASE_GAMMA, delta=DELTA), [FixedSample.round_robin(n, 5) for n in ns]
    at = partial(Setting.fixed, deletions={0: BASE_K}, budget=budget, best=0, threshold_scale=1.3)
    cases = [(ENVIRONMENT, model, OneArm(0, BASE_K), METHODS["adaptive"], budget) for model in models]
    series = {
        UPPER: [algorithm_2_bound(at(counts=model.counts)) for model in models],
        "Algorithm 2, exact": [evaluate(*case).suboptimality for case in cases],
    }
    title = "The paper's setting, hard case, k = 80, γ = 0.5"
    return bound_panel(title, "N", ns, series, float(ENVIRONMENT.gaps.max()))


def _large_gaps(points: int) -> Panel:
    """Two arms with a large gap and many records: the upper bounds are not vacuous."""
    environment, budget = Environment.bernoulli((0.65, 0.35)), Budget.from_gamma(0.05, delta=DELTA)
    ns = [int(n) // 2 * 2 for n in np.geomspace(100, 10_000, points)]
    settings = [
        Setting.fixed(counts=(n // 2, n // 2), deletions={0: n // 10}, budget=budget, best=0) for n in ns
    ]
    cases = [(environment, FixedSample((n // 2, n // 2)), OneArm(0, n // 10), AS_BOUNDED, budget) for n in ns]
    series = {
        UPPER: [algorithm_2_bound(setting) for setting in settings],
        "upper bound of LCB, no deletion": [bounds(setting)[0].value for setting in settings],
        "Algorithm 2, exact (cut at 10⁻¹²)": [max(evaluate(*case).suboptimality, 1e-12) for case in cases],
    }
    title = "Two arms, means 0.65 and 0.35, k = N/10, γ = 0.05"
    return bound_panel(title, "N", ns, series, float(environment.gaps.max()))


def _hard_fixed(points: int) -> Panel:
    """The worse of the two instances in the proof of the lower bound under M_f."""
    budget = Budget(epsilon=1.0, delta=DELTA)
    counts = [int(n) // 4 * 4 for n in np.geomspace(40, 20_000, points)]
    at = partial(Setting.fixed, budget=budget, threshold_scale=1.3)
    series = {
        UPPER: [algorithm_2_bound(at(counts=[n, n], deletions={0: n // 4})) for n in counts],
        "rollback, exact": [worse_of_both_instances(n, n // 4, Rollback(), budget) for n in counts],
        "Algorithm 2 at (1, 10⁻⁵), exact": [
            worse_of_both_instances(n, n // 4, PAPERS, budget) for n in counts
        ],
    }
    for label, epsilon, delta in (("lower bound at (0, 0)", 0.0, 0.0), (LOWER, 1.0, DELTA)):
        lower = partial(lower_fixed, epsilon=epsilon, delta=delta, form="exact")
        series[label] = [lower(n=2 * n, n_arm=n, k=n // 4).value for n in counts]
    return bound_panel("The lower bound's two instances, $M_f$, k = N(a₀)/4", "N(a₀)", counts, series)


def _hard_distribution(points: int) -> Panel:
    """The same under M_d, C* = 4."""
    budget, c_star = Budget(epsilon=1.0, delta=DELTA), 4.0
    ns = [int(n) // 8 * 8 for n in np.geomspace(400, 20_000, points)]
    at = partial(Setting.distribution, n_actions=2, c_star=c_star, budget=budget)
    proof: dict[str, Any] = {"c_star": c_star, "deletion": "one_arm"}
    lower = partial(lower_distribution, **proof, form="exact", epsilon=1.0, delta=DELTA)
    pairs = [hard_instances_distribution(n=n, k=n // 16, **proof) for n in ns]
    series = {
        UPPER: [algorithm_2_bound(at(n=n, deletions={0: n // 16})) for n in ns],
        "rollback, exact": [
            _worse(pair, n, n // 16, Rollback(), budget) for n, pair in zip(ns, pairs, strict=True)
        ],
        LOWER: [lower(n=n, k=n // 16).value for n in ns],
    }
    return bound_panel("The lower bound's two instances, $M_d$, C* = 4, k = N/16", "N", ns, series)


def worse_of_both_instances(n_arm: int, k: int, unlearner: Unlearner | None, budget: Budget) -> float:
    """The larger exact sub-optimality on the two instances of the lower bound's proof under M_f."""
    return _worse(hard_instances_fixed(n_arm=n_arm, k=k), 2 * n_arm, k, unlearner, budget)


def _worse(pair: HardInstances, n: int, k: int, unlearner: Unlearner | None, budget: Budget) -> float:
    policies = pair.policies or (None, None)
    return max(
        evaluate(
            Environment.bernoulli(means),
            DistributionModel(n, policy) if policy else FixedSample((n // 2, n // 2)),
            *(OneArm(0, k), unlearner, budget),
        ).suboptimality
        for means, policy in zip(pair.means, policies, strict=True)
    )


def algorithm_2_bound(setting: Setting) -> float:
    """The upper bound of Algorithm 2 in a setting."""
    return next(bound.value for bound in bounds(setting) if bound.name.startswith("Algorithm 2"))
