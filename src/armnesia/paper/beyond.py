"""Beyond the paper: its settings at a fixed (ε, δ) with our methods too, and further requests.

The paper fixes the noise γ, which is not a guarantee by itself. Here every method has the same exact (ε, δ).
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from armnesia.paper.bounds import (
    PAPERS,
    algorithm_2_bound,
    bound_panel,
    picture_of_bounds,
    worse_of_both_instances,
)
from armnesia.paper.comparisons import Estimate, loss, pick, ratio, with_error
from armnesia.paper.pictures import name_of, note_on_uncertainty, panel_of, picture_of_models, split
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import (
    ARM_OF_CASE,
    ARMS_OF_MULTI_CASE,
    BASE_K,
    BASE_N,
    C_STAR,
    DELTA,
    EASY,
    ENVIRONMENT,
    HARD,
    RATIOS,
    Plan,
)
from armnesia.plotting.panels import Panel, picture_of_panels
from armnesia.privacy import Budget
from armnesia.simulation import (
    AcrossArms,
    Cell,
    FixedSample,
    OneArm,
    RequestModel,
    Row,
    SeveralArms,
    evaluate,
)
from armnesia.theory import Setting, hard_instances_fixed, lower_fixed, tilt_upper
from armnesia.unlearners import Rollback, Tilt, Unlearner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS, FEW_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0), (1.0, 3.0, 5.0)
"""All, and those for quick runs and several arms, where every data set or sum needs an integral."""
TABLE_EPSILON, SHOWN_EPSILON = 3.0, 1.0

WITHOUT_BUDGET = ("oracle", "rollback", "frozen_rollback")
"""Methods that do not depend on ε: evaluated once per setting."""
ONE_ARM_METHODS = ("gaussian", "centred_gaussian", "mixing", "adaptive", "strict_adaptive", "tilt")
TWO_ARM_METHODS = ("gaussian joint", "centred_gaussian", "multi_source", "strict_adaptive", "tilt")
PEOPLE_METHODS = ("multi_source", "strict_adaptive", "tilt")
COMPARED_METHODS = (
    *("rollback", "gaussian", "gaussian joint", "mixing", "adaptive", "multi_source"),
    *("centred_gaussian", "strict_adaptive", "frozen_rollback", "tilt"),
)
"""Every method but the oracle, in the order of tables and pictures."""

SPREAD, EVEN = (160, 20, 20, 20, 20), (48,) * 5
PEOPLE_N, PEOPLE_K = 2000, sum(SPREAD)
FEWEST_RECORDS, MOST_RECORDS = 1500, 5000
"""The plan's number of data sets is for the larger N; it is proportional to N, down to the smaller N."""
SHOWN_SETTINGS = {
    "M_f hard": [(1000, "80 of arm 0"), (3000, "500 of arm 0"), (1000, "80 each of arms 0, 1")],
    "M_f easy": [(3000, "500 of arm 2")],
    "M_d hard": [(1000, "80 of arm 0"), (1000, "80 each of arms 0, 1")],
    "M_f people": [(2000, "160 of arm 0, 20 each of the others"), (2000, "48 each of arms 0, 1, 2, 3, 4")],
    "M_d people": [(2000, "240 of random people")],
}
"""The settings of the picture of distances and of the table of values, as (N, request)."""


def beyond_cells(plan: Plan) -> list[Cell]:
    """All cells, in the order of the report."""
    return [*one_arm_cells(plan), *mixing_cells(plan), *two_arm_cells(plan), *people_cells(plan)]


def one_arm_cells(plan: Plan) -> list[Cell]:
    """The settings of Figure 1 over N and k, for every ε; on a coarser grid under M_d, which is sampled."""
    fine = [("N", n, BASE_K) for n in plan.ns] + [("k", BASE_N, k) for k in plan.ks]
    if plan.quick:
        fine = _sweep((1000, 2000, 3000, 5000), (100, 300, 500))
    epsilons = FEW_EPSILONS if plan.quick else EPSILONS
    return [
        cell
        for c_star, sweep in ((None, fine), (C_STAR, _coarse(plan)))
        for case in (HARD, EASY)
        for varied, n, k in sweep
        for cell in _at_budgets(
            plan, case, n, {ARM_OF_CASE[case]: k}, c_star, ONE_ARM_METHODS, epsilons, varied
        )
    ]


def mixing_cells(plan: Plan) -> list[Cell]:
    """Mixing with k′/k from 0 to 1, as in Figure 2: M_f, hard case, on the coarser grid."""
    return [
        _cell(plan, HARD, n, SeveralArms({ARM_OF_CASE[HARD]: k}), None, RATIOS, epsilon)
        for _, n, k in _coarse(plan)
        for epsilon in (FEW_EPSILONS[1:2] if plan.quick else EPSILONS)
    ]


def two_arm_cells(plan: Plan) -> list[Cell]:
    """The settings of Figure 3 and N = 1000 under M_f, and two arms under M_d, which the paper omits."""
    settings: list[tuple[float | None, str, int, int]] = [(None, HARD, 1000, 80), (C_STAR, HARD, 1000, 80)]
    if not plan.quick:
        grid = [(case, n, k) for case in (HARD, EASY) for k in (40, 80) for n in (2000, 3000, 4000)]
        settings[1:1] = [(None, *each) for each in grid]
        settings += [(C_STAR, HARD, 3000, 80), (C_STAR, EASY, 3000, 80)]
    return [
        cell
        for c_star, case, n, k in settings
        for cell in _at_budgets(
            plan, case, n, dict.fromkeys(ARMS_OF_MULTI_CASE[case], k), c_star, TWO_ARM_METHODS, FEW_EPSILONS
        )
    ]


def people_cells(plan: Plan) -> list[Cell]:
    """Requests over all arms: mostly records of the best arm, equally many of each, or drawn at random."""
    cells = [
        cell
        for counts in ((SPREAD,) if plan.quick else (SPREAD, EVEN))
        for cell in _at_budgets(
            *(plan, "people", PEOPLE_N, dict(enumerate(counts)), None, TWO_ARM_METHODS),
            FEW_EPSILONS[1:2] if plan.quick else FEW_EPSILONS,
        )
    ]
    if not plan.quick:
        cells += _at_budgets(plan, "people", PEOPLE_N, None, C_STAR, PEOPLE_METHODS, FEW_EPSILONS)
    return cells


def _coarse(plan: Plan) -> list[tuple[str, int, int]]:
    """A part of Figure 1's grid, for cells that take long because they are sampled."""
    if plan.quick:
        return _sweep((1000, 3000), (300, 500))
    return _sweep((1000, 2000, 3000, 5000), (20, 200, 300, 500))


def _sweep(ns: Sequence[int], ks: Sequence[int]) -> list[tuple[str, int, int]]:
    """The varied parameter, N and k."""
    return [("N", n, BASE_K) for n in ns] + [("k", BASE_N, k) for k in ks]


def _cell(
    plan: Plan,
    case: str,
    n: int,
    request: RequestModel,
    c_star: float | None,
    methods: Sequence[str],
    epsilon: float,
    varied: str = "N",
    protocol: str = "",
) -> Cell:
    """A cell at (ε, δ); larger N need more data sets for a standard error of 1 %."""
    x = n if varied == "N" else next(iter(request.deletions.values()))  # type: ignore[attr-defined]
    return plan.cell(
        ("beyond", f"{'M_f' if c_star is None else 'M_d'} {case}", varied, x),
        *(n, request, methods),
        epsilon=epsilon,
        c_star=c_star,
        protocol=protocol or ("sampled" if plan.protocol == "sampled" else "exact"),
        datasets=plan.datasets * max(n, FEWEST_RECORDS) // MOST_RECORDS,
    )


def _at_budgets(
    plan: Plan,
    case: str,
    n: int,
    deletions: dict[int, int] | None,
    c_star: float | None,
    methods: Sequence[str],
    epsilons: Sequence[float],
    varied: str = "N",
) -> list[Cell]:
    """The methods at every ε, and those without a budget once; all on the same data sets.

    Tilt on more than two arms is sampled, with an oracle on the same data sets; the other methods stay exact.
    Without `deletions` records are drawn from all arms.
    """
    request: RequestModel = AcrossArms(PEOPLE_K) if deletions is None else SeveralArms(deletions)
    cell = partial(_cell, plan, case, n, request, c_star, varied=varied)
    many_arms = deletions is not None and len(deletions) > 2 and c_star is None
    sampled = ("tilt",) if many_arms and plan.protocol != "sampled" else ()
    cells = [cell(WITHOUT_BUDGET, epsilons[0])]
    cells += [cell([name for name in methods if name not in sampled], epsilon) for epsilon in epsilons]
    if sampled:
        cells.append(cell(("oracle",), epsilons[0], protocol="sampled"))
        cells += [cell(sampled, epsilon, protocol="sampled") for epsilon in epsilons]
    return cells


@dataclass
class SettingResults:
    """The rows of one setting (data model, N and request), by method and ε."""

    panel: str
    n: int
    request: str
    rows: dict[tuple[str, float | None], Row] = field(default_factory=dict)
    oracles: dict[str, Row] = field(default_factory=dict)

    @property
    def oracle(self) -> Row:
        """The row of no deletion; the exact one if there is one."""
        return self.oracles.get("exact") or next(iter(self.oracles.values()))

    def row(self, method: str, epsilon: float) -> Row | None:
        """A method's row at ε; None if it was not computed."""
        return self.rows.get((method, None if method in WITHOUT_BUDGET else epsilon))

    def distance(self, method: str, epsilon: float) -> Estimate | None:
        """Sub-optimality divided by that of no deletion, on the same data sets if both are sampled."""
        row = self.row(method, epsilon)
        return None if row is None else ratio(row, self.oracles.get(row["protocol"], self.oracle))

    @property
    def epsilons(self) -> list[float]:
        """The values of ε at which tilt was computed."""
        return [epsilon for epsilon in EPSILONS if ("tilt", epsilon) in self.rows]

    @property
    def kind(self) -> str:
        """How many arms are requested."""
        arms = self.oracle["arms"].split()
        return "all arms" if arms == ["any"] else {1: "one arm", 2: "two arms"}.get(len(arms), "all arms")

    @property
    def is_shown(self) -> bool:
        """Whether it has a panel in the picture of distances and a row in the table of values."""
        return (self.n, self.request) in SHOWN_SETTINGS.get(self.panel, [])


def results_by_setting(rows: Iterable[Row]) -> list[SettingResults]:
    """Group rows by setting, in order; a setting that two sweeps share is listed once."""
    found: dict[tuple[str, int, str], SettingResults] = {}
    for row in rows:
        key = row["panel"], row["n"], _request(row)
        setting = found.setdefault(key, SettingResults(*key))
        if row["method"] == "oracle":
            setting.oracles[row["protocol"]] = row
        else:
            setting.rows[row["method"], None if row["method"] in WITHOUT_BUDGET else row["epsilon"]] = row
    return list(found.values())


def _request(row: Row) -> str:
    """The deleted records, as text.

    >>> _request({"arms": "0", "k": 80}), _request({"arms": "0 1", "k": 40})
    ('80 of arm 0', '40 each of arms 0, 1')
    """
    if row["arms"] == "any":
        return f"{row['k']} of random people"
    arms = row["arms"].split()
    if len(arms) == 1:
        return f"{row['k']} of arm {arms[0]}"
    if len(arms) == 5 and row["k"] * 5 > PEOPLE_K:
        return f"{row['k']} of arm 0, {(PEOPLE_K - row['k']) // 4} each of the others"
    return f"{row['k']} each of arms {', '.join(arms)}"


def distances(settings: Iterable[SettingResults], method: str, epsilon: float) -> list[float]:
    """A method's distances to no deletion at ε, in the settings where it was computed."""
    found = (setting.distance(method, epsilon) for setting in settings)
    return [distance.value for distance in found if distance is not None]


def beyond_section(run: Run) -> Section:
    """Evaluate all cells, and describe the results."""
    rows = run.evaluate_and_record(beyond_cells(run.plan))
    return describe_results(rows, epsilon_panels(8 if run.plan.quick else 15))


def describe_results(rows: Sequence[Row], panels: Sequence[Panel]) -> Section:
    """Make pictures, tables and paragraphs of the rows and of the panels over ε."""
    settings = results_by_setting(rows)
    title = "Figure 1's settings at the same exact (ε, δ): the paper's methods and ours"
    pictures = {
        "beyond": picture_of_models(rows_of_figure(rows), title, "varied", "panel", privacy="ε"),
        "beyond-distance": picture_of_distances(settings),
        "beyond-epsilon": picture_of_bounds(
            panels,
            "Sub-optimality over ε: the lower bound, tilt, Algorithm 2 and rollback",
            "Solid: exact. Dashed: upper bounds, tilt's if its predictive is right. Dotted: the lower"
            " bound, for references that see D∖U and the request's shape: rollback and tilt, not"
            " Algorithm 2.",
        ),
    }
    return Section(
        "Beyond the paper: the same (ε, δ) for every method",
        [
            *_paragraphs_on_budgets(settings),
            *_paragraphs_on_distances(settings),
            *_paragraphs_on_bounds(panels),
        ],
        pictures,
        [
            table_of_values(settings),
            table_of_worst(settings),
            table_of_mixing(settings),
            table_of_distances(settings),
        ],
    )


def rows_of_figure(rows: Iterable[Row]) -> list[Row]:
    """Rows for the layout of Figure 1: over N and k at one ε, and over ε at the paper's N and k."""
    methods = ["oracle", *(name for name in COMPARED_METHODS if name in (*WITHOUT_BUDGET, *ONE_ARM_METHODS))]
    one_arm = [row for row in rows if row["arms"].isdigit() and row["method"] in methods]
    shown = [
        {**row, "epsilon": SHOWN_EPSILON}
        for row in one_arm
        if row["method"] in WITHOUT_BUDGET or row["epsilon"] == SHOWN_EPSILON
    ]
    at_base = pick(one_arm, varied="N", n=BASE_N, k=BASE_K)
    epsilons = sorted({row["epsilon"] for row in at_base})
    shown += [
        {**row, "varied": "ε", "x": epsilon}
        for row in at_base
        for epsilon in (epsilons if row["method"] in WITHOUT_BUDGET else [row["epsilon"]])
    ]
    return sorted(shown, key=lambda row: methods.index(row["method"]))


def picture_of_distances(settings: Iterable[SettingResults]) -> "Figure":
    """Sub-optimality divided by that of no deletion, over ε; a panel for each shown setting."""
    rows = rows_of_distances(settings)
    panels = [
        panel_of(chosen, chosen[0]["title"], "ε, log scale", y_name="times no deletion")
        for chosen in split(rows, "title")
    ]
    title = "Distance to no deletion at δ = 10⁻⁵: 1 means that the deletion costs nothing"
    grid = [panels[first : first + 3] for first in range(0, len(panels), 3)]
    return picture_of_panels(grid, title=title, note=note_on_uncertainty(rows), legend_columns=5)


def rows_of_distances(settings: Iterable[SettingResults]) -> list[Row]:
    """The shown settings over ε, with the distance as value."""
    rows = []
    for setting in settings:
        if not setting.is_shown or len(setting.epsilons) < 2:
            continue  # a curve needs two points
        model, case = setting.panel.split()
        title = f"${model}$, {case}, N = {setting.n}\n{setting.request}"
        for method in COMPARED_METHODS:
            for epsilon in setting.epsilons:
                row, distance = setting.row(method, epsilon), setting.distance(method, epsilon)
                if row is not None and distance is not None:
                    value = {"suboptimality": distance.value, "standard_error": distance.error}
                    rows.append({**row, **value, "varied": "ε", "x": epsilon, "title": title})
    return sorted(rows, key=lambda row: COMPARED_METHODS.index(row["method"]))


def epsilon_panels(points: int) -> list[Panel]:
    """The lower bound, tilt, Algorithm 2 and rollback over ε, in two settings under M_f."""
    epsilons = [round(float(epsilon), 2) for epsilon in np.linspace(0.1, 5.0, points)]
    count, k, n = 400, 300, 1000
    gap = hard_instances_fixed(n_arm=count, k=k).separation
    at = partial(lower_fixed, n=2 * count, n_arm=count, k=k, delta=DELTA, form="exact")
    hard = _over_epsilon(
        epsilons,
        partial(worse_of_both_instances, count, k),
        partial(Setting.fixed, counts=[count, count], deletions={0: k}, threshold_scale=1.3),
        partial(tilt_upper, contenders=2, largest_gap=gap, predictive_error=0.0),
    )
    hard["lower bound"] = [at(epsilon=epsilon).value for epsilon in epsilons]
    model = FixedSample.round_robin(n, ENVIRONMENT.n_actions)

    def value(unlearner: Unlearner | None, budget: Budget) -> float:
        return evaluate(ENVIRONMENT, model, OneArm(0, BASE_K), unlearner, budget).suboptimality

    widest = float(ENVIRONMENT.gaps.max())
    papers = _over_epsilon(  # no lower bound, because that is about the worst instance
        epsilons,
        value,
        partial(Setting.fixed, counts=model.counts, deletions={0: BASE_K}, best=0, threshold_scale=1.3),
        partial(tilt_upper, contenders=ENVIRONMENT.n_actions, largest_gap=widest, predictive_error=0.0),
    )
    titles = {
        f"The lower bound's two instances, $M_f$, k = {k} of N(a₀) = {count}": (hard, gap),
        f"The paper's setting, hard case, N = {n}, k = {BASE_K}": (papers, widest),
    }
    return [
        replace(bound_panel(title, "ε (δ = 10⁻⁵)", epsilons, series, largest), x_log=False)
        for title, (series, largest) in titles.items()
    ]


def _over_epsilon(
    epsilons: list[float],
    value: Callable[[Unlearner | None, Budget], float],
    setting: Callable[..., Setting],
    tilts_most: Callable[..., object],
) -> dict[str, list[float]]:
    """The series of a panel.

    The upper bound of tilt is the loss of no deletion and tilt's largest excess, if its predictive is right.
    """
    budgets = [Budget(epsilon=epsilon, delta=DELTA) for epsilon in epsilons]
    no_deletion = value(None, budgets[0])
    excess = [tilts_most(budget=budget).value for budget in budgets]  # type: ignore[attr-defined]
    return {
        "upper bound of Algorithm 2": [algorithm_2_bound(setting(budget=budget)) for budget in budgets],
        "upper bound of tilt, predictive right": [no_deletion + added for added in excess],
        "rollback, exact": [value(Rollback(), budget) for budget in budgets],
        "Algorithm 2, exact": [value(PAPERS, budget) for budget in budgets],
        "tilt, exact": [value(Tilt(), budget) for budget in budgets],
        "no deletion, exact": [no_deletion for _ in budgets],
    }


def _paragraphs_on_budgets(settings: Sequence[SettingResults]) -> list[str]:
    """What is compared, and how the paper's algorithms behave at these budgets."""
    noise = {epsilon: Budget(epsilon=epsilon, delta=DELTA).gamma for epsilon in (EPSILONS[0], 1.0, 5.0)}
    needed = ", ".join(f"γ = {gamma:.3g} at ε = {epsilon:g}" for epsilon, gamma in noise.items())
    same, total = _same_as_rollback(settings, ("adaptive", "multi_source"))
    strict_same, strict_total = _same_as_rollback(settings, ("strict_adaptive",))
    rows = [row for setting in settings for row in setting.rows.values()]
    largest_error = max(row["standard_error"] / row["suboptimality"] for row in rows)
    return [
        "The paper fixes the noise γ, which is not a guarantee by itself. Here every method has the same"
        f" exact (ε, δ) with δ = 10⁻⁵. By the exact curve, the noise for this is {needed}. The levels differ."
        " The reference of Algorithms 2 and 7 and of mixing sees π(D), which is the weakest level. The"
        " reference of Gaussian noise (also centred), strict adaptive, frozen rollback and tilt sees D∖U and"
        " the request's shape. The reference of rollback is retraining, which is the strictest level.",
        "At these budgets Algorithms 2 and 7 have the same sub-optimality as rollback at"
        f" {same} of {total} points, and strict adaptive at {strict_same} of {strict_total}: the noise that"
        " they would need is above their thresholds. Under M_f all values are exact, except those of tilt on"
        " more than two arms. Those, and all values under M_d, are sampled; the largest standard error is"
        f" {100 * largest_error:.1f} % of its value.",
    ]


def _same_as_rollback(settings: Iterable[SettingResults], methods: Sequence[str]) -> tuple[int, int]:
    """At how many points methods have the sub-optimality of rollback on the same data, and of how many."""
    pairs = [
        (row["suboptimality"], setting.rows["rollback", None]["suboptimality"])
        for setting in settings
        for (method, _), row in setting.rows.items()
        if method in methods
    ]
    return sum(abs(ours - rollbacks) <= 1e-12 for ours, rollbacks in pairs), len(pairs)


def _paragraphs_on_distances(settings: Sequence[SettingResults]) -> list[str]:
    """The distance of tilt and rollback to no deletion, and where tilt is worse than rollback."""
    one_arm = [setting for setting in settings if setting.kind == "one arm"]
    several = [setting for setting in settings if setting.kind != "one arm"]
    half = [setting for setting in one_arm if setting.oracle["k"] <= setting.n / 10]
    weak = [  # at the smallest ε
        setting
        for setting in one_arm
        if setting.rows["tilt", setting.epsilons[0]]["suboptimality"]
        > setting.rows["rollback", None]["suboptimality"]
    ]
    easy = sum("easy" in setting.panel for setting in weak)
    which = "all" if easy == len(weak) else str(easy)
    smallest = min(epsilon for setting in one_arm for epsilon in setting.epsilons)

    def worst(group: Iterable[SettingResults], method: str, epsilon: float) -> float:
        return max(distances(group, method, epsilon), default=float("nan"))

    return [
        "The distance to no deletion is the sub-optimality of a method divided by that of no deletion."
        f" In {len(one_arm)} settings with one requested arm (those of Figure 1, both models, hard and easy),"
        f" the distance of tilt is at most {worst(one_arm, 'tilt', 5.0):.2f} at ε = 5 and"
        f" {worst(one_arm, 'tilt', 3.0):.2f} at ε = 3; where at most half of the arm is deleted, it is at"
        f" most {worst(half, 'tilt', 3.0):.2f} at ε = 3 and {worst(half, 'tilt', 1.0):.2f} at ε = 1."
        f" The distance of rollback is up to {worst(one_arm, 'rollback', 1.0):.1f}, that of frozen rollback"
        f" up to {worst(one_arm, 'frozen_rollback', 1.0):.1f}. In {len(several)} settings with several"
        f" requested arms, the distance of tilt at ε = 3 is at most {worst(several, 'tilt', 3.0):.2f}, that"
        f" of rollback up to {worst(several, 'rollback', 3.0):.1f}.",
        f"At ε = {smallest:g} rollback has a smaller sub-optimality than tilt in {len(weak)} of the"
        f" {len(one_arm)} settings with one arm, {which} of them easy. Deleting records of a worse arm"
        " raises its penalty, so that rollback serves that arm less often. Tilt keeps the decision of the"
        " full data.",
    ]


def _paragraphs_on_bounds(panels: Sequence[Panel]) -> list[str]:
    """Tilt beside the lower bound, on the instances of the proof."""
    hard, papers = ({curve.label: np.array(curve.y, dtype=float) for curve in p.curves} for p in panels)
    epsilons = panels[0].curves[0].x
    lower, tilt, none = hard["lower bound"], hard["tilt, exact"], hard["no deletion, exact"]
    below = papers["upper bound of tilt, predictive right"] < papers["rollback, exact"][0]
    smallest = min(np.array(epsilons)[below], default=float("nan"))
    return [
        "On the two instances of the lower bound's proof, the sub-optimality of tilt is"
        f" {tilt[0] / lower[0]:.1f} times the lower bound at ε = {epsilons[0]:g}. As ε grows, the lower bound"
        " falls like e^−ε to 0, because it bounds the cost of the deletion and not that of learning. The"
        " sub-optimality of tilt falls to that of no deletion, and is"
        f" {tilt[-1] / none[-1]:.3f} times that at ε = {epsilons[-1]:g}; the difference falls like e^−ε too."
        " In the paper's setting, the upper bound of tilt (no deletion plus the most that tilt adds if its"
        f" predictive is right) is below the exact value of rollback from ε = {smallest:g} on. The bound of"
        " Algorithm 2 does not depend on ε and exceeds the largest gap.",
    ]


def table_of_values(settings: Sequence[SettingResults]) -> Table:
    """The sub-optimality of all methods at one ε, in the shown settings."""
    rows = []
    for setting in (setting for setting in settings if setting.is_shown):
        noise, papers = (
            ("gaussian", "adaptive") if setting.kind == "one arm" else ("gaussian joint", "multi_source")
        )
        methods = (
            "rollback",
            noise,
            "centred_gaussian",
            papers,
            "strict_adaptive",
            "frozen_rollback",
            "tilt",
        )
        found = [setting.row(method, TABLE_EPSILON) for method in methods]
        values = [loss(row) if row else "" for row in (setting.oracle, *found)]
        rows.append([setting.panel, setting.n, setting.request, *values])
    header = ["model and case", "N", "deleted", "no deletion", "rollback", "Gaussian"]
    header += ["centred Gaussian", "Algorithm 2 or 7", "strict adaptive", "frozen rollback", "tilt"]
    caption = (
        f"Sub-optimality at (ε, δ) = ({TABLE_EPSILON:g}, 10⁻⁵). ± is one standard error; without it, exact."
    )
    return Table(header, rows, caption=caption)


def table_of_worst(settings: Sequence[SettingResults]) -> Table:
    """For each kind of setting, method and ε: the median and the largest distance to no deletion."""
    rows: list[list[object]] = []
    for panel, kind in dict.fromkeys((setting.panel, setting.kind) for setting in settings):
        group = [setting for setting in settings if (setting.panel, setting.kind) == (panel, kind)]
        for method in COMPARED_METHODS:
            values = [
                distances(group, method, epsilon) if all(epsilon in s.epsilons for s in group) else []
                for epsilon in EPSILONS
            ]
            if any(values):
                shown = [
                    f"{statistics.median(each):.2f} / {max(each):.2f}" if each else "" for each in values
                ]
                rows.append([panel, kind, len(group), name_of(method), *shown])
    header = [
        "model and case",
        "request",
        "settings",
        "method",
        *(f"ε = {epsilon:g}" for epsilon in EPSILONS),
    ]
    caption = "Distance to no deletion over the settings of a kind: the median / the largest."
    return Table(header, rows, caption=caption)


def table_of_mixing(settings: Sequence[SettingResults]) -> Table:
    """Figure 2 at the same (ε, δ): the best k′/k, and tilt beside it."""
    rows = []
    for setting in settings:
        for epsilon in setting.epsilons:
            parts = {name: row for name in RATIOS if (row := setting.row(name, epsilon))}
            tilt = setting.row("tilt", epsilon)
            if parts and tilt is not None:
                best = min(parts, key=lambda name: parts[name]["suboptimality"])
                share = best.removeprefix("mixing ")
                rows.append(
                    [setting.n, setting.request, f"{epsilon:g}", share, loss(parts[best]), loss(tilt)]
                )
    header = ["N", "deleted", "ε", "best k′/k", "mixing at its best", "tilt"]
    return Table(header, rows, caption="M_f, hard case, exact.")


def table_of_distances(settings: Sequence[SettingResults]) -> Table:
    """Every setting: no deletion, and the distances of rollback, frozen rollback and tilt to it."""
    epsilons = [epsilon for epsilon in EPSILONS if any(epsilon in setting.epsilons for setting in settings)]
    shown = [("rollback", 0.0), ("frozen_rollback", 0.0), *(("tilt", epsilon) for epsilon in epsilons)]
    rows = [
        [
            *(setting.panel, setting.n, setting.request, loss(setting.oracle)),
            *(format_distance(setting.distance(*each)) for each in shown),
        ]
        for setting in settings
    ]
    header = ["model and case", "N", "deleted", "no deletion", "rollback", "frozen rollback"]
    return Table(
        [*header, *(f"tilt, ε = {epsilon:g}" for epsilon in epsilons)],
        rows,
        caption="Distance to no deletion in every setting: sub-optimality divided by that of no deletion."
        " ± is one standard error; without it a value is exact. Empty: not computed.",
    )


def format_distance(distance: Estimate | None) -> str:
    """A distance to no deletion as text, with its standard error if it was sampled.

    >>> format_distance(Estimate(1.234, 0.0)), format_distance(Estimate(1.234, 0.0126)), format_distance(None)
    ('1.23', '1.2340 ± 0.0126', '')
    """
    if distance is None:
        return ""
    return with_error(distance.value, distance.error, 4 if distance.error else 2)
