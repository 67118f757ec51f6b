"""The paper's bounds beside exact values, over N."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.paper.run import Run
from armnesia.paper.section import Section
from armnesia.paper.settings import BASE_GAMMA, BASE_K, DELTA, ENVIRONMENT, METHODS
from armnesia.plotting.panels import Curve, Panel, look, picture_of_panels
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND_LINES: dict[str, Any] = {"upper": (0, (6, 2)), "lower": (0, (1.5, 1.5))}
"""The line shows the kind of a curve, by the first word of its label; exact values have a solid one."""
VACUOUS = "largest gap: bounds above it are vacuous"
NOTE = "Solid: exact ($M_d$: averaged over 100 count vectors). Dashed: upper bounds. Dotted: lower bounds."
_WIDE_RANGE = 50
"""If x spans at least this factor, its scale is logarithmic."""
PAPERS, AS_BOUNDED = Adaptive.as_in_the_paper(), Adaptive(threshold="paper", sensitivity="paper")


def bounds_section(run: Run) -> Section:
    """Bounds and exact values in four settings."""
    panels = bound_panels(8 if run.plan.quick else 17)
    text = (
        "The paper's bounds, with the constants that their proofs give (upper bounds: derived, lower"
        " bounds: with exact divergences), beside exact values. In the paper's own setting every upper"
        " bound exceeds the largest possible loss and is vacuous; with large gaps they are not. The lower"
        " bound is compared with exact values on the two instances of its proof."
    )
    title = "The paper's bounds beside the exact sub-optimality"
    return Section("Bounds and exact values", [text], {"bounds": picture_of_bounds(panels, title, NOTE)})


def bound_panels(points: int) -> list[Panel]:
    """The paper's setting, one with large gaps, and the pairs of instances of the lower bounds' proofs."""
    return [_papers_setting(points), _large_gaps(points), _hard_fixed(points), _hard_distribution(points)]


def bound_panel(
    title: str, x_name: str, x: Sequence[float], series: Mapping[str, list[float]], gap: float | None = None
) -> Panel:
    """A panel with a logarithmic y axis; the looks are those of the whole picture."""
    curves = [Curve(label, x, values) for label, values in series.items()]
    return Panel(
        *(title, x_name, "sub-optimality (log scale)", curves),
        x_log=max(x) > _WIDE_RANGE * min(x) or gap is None,
        y_log=True,
        ceiling=None if gap is None else (gap, VACUOUS),
    )


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
    drawn = [_with_looks(panel, looks) for panel in panels]
    grid = [drawn[first : first + 2] for first in range(0, len(drawn), 2)]
    return picture_of_panels(grid, title=title, note=note, legend_columns=3, row_height=3.6)


def _with_looks(panel: Panel, looks: Mapping[str, Any]) -> Panel:
    return replace(panel, curves=[replace(curve, look=looks[curve.label]) for curve in panel.curves])


def _papers_setting(points: int) -> Panel:
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
    series = {"upper bound of Algorithm 2": upper, "Algorithm 2, exact": exact}
    title = "The paper's setting, hard case, k = 80, γ = 0.5"
    return bound_panel(title, "N", ns, series, float(ENVIRONMENT.gaps.max()))


def _large_gaps(points: int) -> Panel:
    """Two arms with a large gap and many records: the upper bounds are not vacuous."""
    environment, budget = Environment.bernoulli((0.65, 0.35)), Budget.from_gamma(0.05, delta=DELTA)
    ns = [int(n) // 2 * 2 for n in np.geomspace(100, 10_000, points)]
    algorithm_2, lcb, exact = [], [], []
    for n in ns:
        model, k = FixedSample.round_robin(n, 2), n // 10
        setting = Setting.fixed(counts=model.counts, deletions={0: k}, budget=budget, best=0)
        algorithm_2.append(algorithm_2_bound(setting))
        lcb.append(bounds(setting)[0].value)
        exact.append(max(evaluate(environment, model, OneArm(0, k), AS_BOUNDED, budget).suboptimality, 1e-12))
    series = {
        "upper bound of Algorithm 2": algorithm_2,
        "upper bound of LCB, no deletion": lcb,
        "Algorithm 2, exact (cut at 10⁻¹²)": exact,
    }
    title = "Two arms, means 0.65 and 0.35, k = N/10, γ = 0.05"
    return bound_panel(title, "N", ns, series, float(environment.gaps.max()))


def _hard_fixed(points: int) -> Panel:
    """The worse of the two instances in the proof of the lower bound under M_f."""
    budget = Budget(epsilon=1.0, delta=DELTA)
    counts = [int(n) // 4 * 4 for n in np.geomspace(40, 20_000, points)]
    upper, lower, lower_at_0 = [], [], []
    for count in counts:
        k = count // 4
        setting = Setting.fixed(counts=[count, count], deletions={0: k}, budget=budget, threshold_scale=1.3)
        upper.append(algorithm_2_bound(setting))
        at = partial(lower_fixed, n=2 * count, n_arm=count, k=k, form="exact")
        lower.append(at(epsilon=1.0, delta=DELTA).value)
        lower_at_0.append(at(epsilon=0.0, delta=0.0).value)
    series = {
        "upper bound of Algorithm 2": upper,
        "rollback, exact": [worse_of_both_instances(n, n // 4, Rollback(), budget) for n in counts],
        "Algorithm 2 at (1, 10⁻⁵), exact": [
            worse_of_both_instances(n, n // 4, PAPERS, budget) for n in counts
        ],
        "lower bound at (0, 0)": lower_at_0,
        "lower bound at (1, 10⁻⁵)": lower,
    }
    return bound_panel("The lower bound's two instances, $M_f$, k = N(a₀)/4", "N(a₀)", counts, series)


def _hard_distribution(points: int) -> Panel:
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
        given = partial(evaluate, protocol="exact", datasets=100)
        found = [given(*case, OneArm(0, k), Rollback(), budget) for case in cases]
        rollback.append(max(result.suboptimality for result in found))
        setting = Setting.distribution(n=n, n_actions=2, c_star=c_star, deletions={0: k}, budget=budget)
        upper.append(algorithm_2_bound(setting))
        at = partial(lower_distribution, n=n, c_star=c_star, k=k, deletion="one_arm", form="exact")
        lower.append(at(epsilon=1.0, delta=DELTA).value)
    series = {
        "upper bound of Algorithm 2": upper,
        "rollback, exact given the counts": rollback,
        "lower bound at (1, 10⁻⁵)": lower,
    }
    return bound_panel("The lower bound's two instances, $M_d$, C* = 4, k = N/16", "N", ns, series)


def worse_of_both_instances(n_arm: int, k: int, unlearner: Unlearner | None, budget: Budget) -> float:
    """The larger exact sub-optimality on the two instances of the lower bound's proof under M_f."""
    model = FixedSample((n_arm, n_arm))
    return max(
        evaluate(Environment.bernoulli(means), model, OneArm(0, k), unlearner, budget).suboptimality
        for means in hard_instances_fixed(n_arm=n_arm, k=k).means
    )


def algorithm_2_bound(setting: Setting) -> float:
    """The upper bound of Algorithm 2 in a setting."""
    return next(bound.value for bound in bounds(setting) if bound.name.startswith("Algorithm 2"))
