"""Tilt with each of its predictives, for requests that concern the best arm, an easy arm or a random one.

Reproducing the old decision is not the same as deciding well. A predictive that relies on the retained
records of the arm is better if the best arm lost records; one that relies on the other arms is better if a
worse arm did. The average over arms is the fair comparison.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armnesia.paper.comparisons import Estimate, loss, pick, ratio, with_error
from armnesia.paper.pictures import GREEN, METHOD_STYLE
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import C_STAR, MEANS, Plan, Run
from armnesia.plotting.panels import Look, Panel, curves_of, look, picture_of_panels
from armnesia.simulation import Cell, Environment, OneArm, Row
from armnesia.unlearners import Rollback, Tilt, Unlearner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_DELETION, ROLLBACK, FLAT, PRIOR = "no deletion", "rollback", "tilt, flat", "tilt, empirical Bayes"
METHODS: dict[str, Unlearner | None] = {
    NO_DELETION: None,
    ROLLBACK: Rollback(),
    FLAT: Tilt(predictive="flat"),
    PRIOR: Tilt(predictive="empirical_bayes"),
}
_LOOKS: dict[str, tuple[str, Look]] = {
    NO_DELETION: (NO_DELETION, METHOD_STYLE["oracle"][1]),
    ROLLBACK: (ROLLBACK, METHOD_STYLE["rollback"][1]),
    FLAT: (FLAT, METHOD_STYLE["tilt"][1]),
    PRIOR: (PRIOR, look(0, color=GREEN, marker="^", linestyle=(0, (7, 2, 1.5, 2)))),
}
EPSILONS, QUICK_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0), (0.1, 1.0, 3.0)
TEXT_EPSILON = 1.0
BEST, EASY = "0", "2"
CASES = {"the best arm's": BEST, "an easy arm's": EASY, "of any arm, at random": "01234"}
"""The arms that may be requested: the best one, the one of mean 0.06, or any."""


@dataclass(frozen=True)
class Setting:
    """N, k, under M_d C*, and the means; any one arm may be requested."""

    n: int
    k: int
    c_star: float | None = None
    means: tuple[float, ...] = MEANS

    @property
    def name(self) -> str:
        """The model, and the arms if they are not the paper's."""
        model = "M_f" if self.c_star is None else "M_d"
        return model if self.means == MEANS else f"{model}, one good arm of {len(self.means)}"


MAIN = Setting(3000, 500)
GRID = tuple(
    Setting(n, k, c_star)
    for c_star in (None, C_STAR)
    for n, k in ((1000, 80), (1000, 160), (2000, 80), (2000, 350), (3000, 80), (3000, 300), (3000, 500))
)
ONE_GOOD_ARM = Setting(2400, 332, means=(0.10, *[0.05] * 5))
"""The other arms carry no information about the best one."""
Found = Mapping[Setting, Sequence[Row]]


def tradeoff_cells(plan: Plan) -> dict[Setting, list[Cell]]:
    """All arms and ε of each setting; when quick, of MAIN, of one with few deletions, and of ONE_GOOD_ARM."""
    settings = (*((MAIN, Setting(1000, 80)) if plan.quick else GRID), ONE_GOOD_ARM)
    cells: dict[Setting, list[Cell]] = {}
    for number, setting in enumerate(settings):
        cells[setting] = [
            replace(
                plan.cell(
                    ("tradeoff", setting.name, "ε", epsilon),
                    *(setting.n, OneArm(arm, setting.k), METHODS),
                    epsilon=epsilon,
                    c_star=setting.c_star,
                    datasets=max(2, plan.datasets // 8),
                    environment=Environment.bernoulli(setting.means),
                ),
                seed=plan.seed + 100 * number + arm,  # the arms' values are added: they are independent
                protocol="sampled" if setting.c_star else "auto",  # only empirical Bayes has no exact way
            )
            for arm in range(len(setting.means))
            for epsilon in (QUICK_EPSILONS if plan.quick else EPSILONS)
        ]
    return cells


def tradeoff_section(run: Run) -> Section:
    """All methods in all settings: a picture, a table and paragraphs."""
    cells = tradeoff_cells(run.plan)
    rows = run.evaluate_and_record([cell for each in cells.values() for cell in each])
    found = {s: pick(rows, panel=s.name, n=s.n, k=s.k) for s in cells}
    papers = {setting: rows for setting, rows in found.items() if setting != ONE_GOOD_ARM}
    paragraphs = [
        *_paragraphs_on_main(found[MAIN]),
        _paragraph_on_averages(papers),
        _paragraph_on_one_good_arm(found[ONE_GOOD_ARM]),
    ]
    picture = _picture(found[MAIN], papers)
    return Section("Tilt's predictive: a trade-off", paragraphs, {"tradeoff": picture}, [_table(found)])


def pooled(rows: Sequence[Row], method: str, epsilon: float, arms: Collection[str] | None = None) -> Row:
    """The row of a request for one of these arms (None: all), drawn uniformly."""
    chosen = pick(rows, method=method, epsilon=epsilon)
    chosen = [row for row in chosen if arms is None or row["arms"] in arms]
    errors = [row["standard_error"] for row in chosen]
    return {
        **chosen[0],
        "suboptimality": float(np.mean([row["suboptimality"] for row in chosen])),
        "standard_error": float(np.hypot.reduce(errors)) / len(chosen),
        "blocks": np.mean([row["blocks"] for row in chosen], axis=0).tolist(),
    }


def distance(
    rows: Sequence[Row], method: str, epsilon: float, arms: Collection[str] | None = None
) -> Estimate:
    """The sub-optimality, divided by that of no deletion."""
    return ratio(pooled(rows, method, epsilon, arms), pooled(rows, NO_DELETION, epsilon, arms))


def average_distance(found: Found, method: str, epsilon: float) -> Row:
    """The distance with the requested arm drawn at random, averaged over the settings."""
    each = [distance(rows, method, epsilon) for rows in found.values()]
    value, error = sum(one.value for one in each), np.hypot.reduce([one.error for one in each])
    return {
        **{"method": method, "epsilon": epsilon},
        **{"suboptimality": value / len(each), "standard_error": float(error) / len(each)},
    }


def _epsilons(rows: Sequence[Row]) -> list[float]:
    return sorted({row["epsilon"] for row in rows})


def _picture(main: Sequence[Row], papers: Found) -> "Figure":
    """The main setting by requested arm, and the average over all settings."""
    points = [(method, epsilon) for method in METHODS for epsilon in _epsilons(main)]
    panels = [
        Panel(
            f"N = {MAIN.n}, {MAIN.k} records deleted: {case}",
            *("ε (log scale)", "sub-optimality (log scale)"),
            curves_of([pooled(main, *point, arms) for point in points], "epsilon", _LOOKS),
            x_log=True,
            y_log=True,
        )
        for case, arms in CASES.items()
    ]
    average = curves_of([average_distance(papers, *point) for point in points], "epsilon", _LOOKS)
    title = f"Of any arm, at random: average over {len(papers)} settings"
    panels.append(Panel(title, "ε (log scale)", "times no deletion", average, x_log=True))
    return picture_of_panels(
        [panels[:2], panels[2:]],
        title="Tilt's predictive: better for requests of some arms is worse for others",
        note=r"$\delta = 10^{-5}$. Bands: ± 2 standard errors.",
        row_height=3.5,
    )


def _paragraphs_on_main(rows: Sequence[Row]) -> list[str]:
    def shown(method: str) -> str:
        values = [pooled(rows, method, TEXT_EPSILON, arms)["suboptimality"] for arms in CASES.values()]
        return " / ".join(f"{value:.5f}" for value in values)

    return [
        "Tilt keeps the old decision as often as (ε, δ) allows. For this its reference has to predict the old"
        " decision. Flat assumes that the deleted records had about the mean of those that are left."
        " Empirical Bayes shrinks their mean towards those of the other arms. The guarantee is the same.",
        f"At N = {MAIN.n}, k = {MAIN.k}, ε = {TEXT_EPSILON:g} (hard / easy / the arm drawn at random):"
        f" no deletion {shown(NO_DELETION)}; flat {shown(FLAT)}; empirical Bayes {shown(PRIOR)};"
        f" rollback {shown(ROLLBACK)}. Empirical Bayes, which uses the other arms, is better in the easy case"
        " and worse in the hard one. Rollback goes further in the same direction: the penalty of the arm"
        " rises, so that it is served less often.",
    ]


def _paragraph_on_averages(found: Found) -> str:
    epsilons = _epsilons(found[MAIN])

    def listed(method: str) -> str:
        return ", ".join(loss(average_distance(found, method, epsilon), digits=3) for epsilon in epsilons)

    ratios = [
        ratio(pooled(rows, PRIOR, epsilon), pooled(rows, FLAT, epsilon))
        for rows in found.values()
        for epsilon in epsilons
    ]
    better = sum(each.value + 2 * each.error < 1 for each in ratios)
    worse = sum(each.value - 2 * each.error > 1 for each in ratios)
    prior, flat = (
        max(distance(rows, method, TEXT_EPSILON, BEST).value for rows in found.values())
        for method in (PRIOR, FLAT)
    )
    return (
        f"The average over arms and {len(found)} settings, in multiples of no deletion, for ε ="
        f" {', '.join(f'{e:g}' for e in epsilons)}: flat {listed(FLAT)}; empirical Bayes {listed(PRIOR)}."
        f" Of the {len(ratios)} pairs of setting and ε, empirical Bayes is better by two standard"
        f" errors in {better}, flat in {worse}. The worst hard case at ε = {TEXT_EPSILON:g} is {prior:.2f}"
        f" times no deletion for empirical Bayes, {flat:.2f} for flat."
    )


def _paragraph_on_one_good_arm(rows: Sequence[Row]) -> str:
    def shown(method: str, arms: str | None, digits: int) -> str:
        found = distance(rows, method, TEXT_EPSILON, arms)
        return with_error(found.value, found.error, digits)

    best, *others = ONE_GOOD_ARM.means
    return (
        "Flat is the default. Empirical Bayes has a slightly better average, but is worse if records of the"
        " best arm are deleted, and most of all if the other arms carry no information about the best one."
        f" With one arm of mean {best:g} and {len(others)} of {others[0]:g}, {ONE_GOOD_ARM.k} of"
        f" {ONE_GOOD_ARM.n // len(ONE_GOOD_ARM.means)} records deleted and ε = {TEXT_EPSILON:g},"
        f" a request for the best arm multiplies the sub-optimality by {shown(PRIOR, BEST, 1)} with empirical"
        f" Bayes and by {shown(FLAT, BEST, 1)} with flat; a request for an arm drawn at random, by"
        f" {shown(PRIOR, None, 2)} and {shown(FLAT, None, 2)}."
    )


def _table(found: Found) -> Table:
    rows = []
    for setting, each in found.items():
        for epsilon in QUICK_EPSILONS:
            distances = [
                distance(each, name, epsilon, a) for a in (None, BEST) for name in (ROLLBACK, FLAT, PRIOR)
            ]
            values = [with_error(one.value, one.error, 3) for one in distances]
            none = loss(pooled(each, NO_DELETION, epsilon))
            rows.append([setting.name, setting.n, setting.k, f"{epsilon:g}", none, *values])
    header = ["model", "N", "k", "ε", "no deletion"]
    header += [
        f"{c} arm: {name}" for c in ("any", "best") for name in ("rollback", "flat", "empirical Bayes")
    ]
    datasets = max(row["datasets"] for rows in found.values() for row in rows)
    caption = (
        f"Times no deletion, δ = 10⁻⁵; ± is one standard error, from {datasets:,} data sets per arm;"
        " values without it are exact. Any arm: the requested arm is drawn at random."
    )
    return Table(header, rows, caption=caption)
