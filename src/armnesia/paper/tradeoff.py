"""Tilt with each of its predictives, for requests that concern the best arm, an easy arm or a random one.

A predictive that relies on the retained records of the arm is better if the best arm lost records. One that
relies on the other arms is better if a worse arm did. The average over arms is the fair comparison.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armnesia.paper.comparisons import Estimate, loss, only, pick, ratio, table_of_rows, with_error
from armnesia.paper.pictures import GREEN, METHOD_STYLE, split
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
BEST, EASY, ANY = "best arm", "easy arm", "any arm"
ARMS = {BEST: "0", EASY: "2", ANY: "012345"}
"""The arms that may be requested: the best one, the one of mean 0.06, or any."""
MAIN = (3000, 500)
GRID = ((1000, 80), (1000, 160), (2000, 80), (2000, 350), (3000, 80), (3000, 300), MAIN)
"""N and k, under both models."""
ONE_GOOD_ARM, ITS_MEANS = "M_f, one good arm of 6", (0.10, *[0.05] * 5)
"""Here the other arms carry no information about the best one."""


def tradeoff_cells(plan: Plan) -> list[Cell]:
    """All arms and ε of each setting; when quick, of MAIN, of one with few deletions, and of ONE_GOOD_ARM."""
    models, grid = (("M_f",), (MAIN, GRID[0])) if plan.quick else (("M_f", "M_d"), GRID)
    settings = [(model, *each, MEANS) for model in models for each in grid]
    return [
        replace(
            plan.cell(
                ("tradeoff", panel, "ε", epsilon),
                *(n, OneArm(arm, k), METHODS),
                epsilon=epsilon,
                c_star=C_STAR if panel == "M_d" else None,
                datasets=max(2, plan.datasets // 8),
                environment=Environment.bernoulli(means),
            ),
            seed=plan.seed + 100 * number + arm,  # the arms' values are added: they are independent
            protocol="sampled" if panel == "M_d" else "auto",  # only empirical Bayes has no exact way
        )
        for number, (panel, n, k, means) in enumerate([*settings, (ONE_GOOD_ARM, 2400, 332, ITS_MEANS)])
        for arm in range(len(means))
        for epsilon in (QUICK_EPSILONS if plan.quick else EPSILONS)
    ]


def tradeoff_section(run: Run) -> Section:
    """All methods in all settings: a picture, a table and paragraphs."""
    rows = by_request(run.evaluate_and_record(tradeoff_cells(run.plan)))
    papers = [row for row in rows if row["panel"] != ONE_GOOD_ARM]
    flat, prior = (pick(papers, request=ANY, method=method) for method in (FLAT, PRIOR))
    ratios = [ratio(*pair) for pair in zip(prior, flat, strict=True)]
    better = sum(each.value + 2 * each.error < 1 for each in ratios)
    worse = sum(each.value - 2 * each.error > 1 for each in ratios)
    paragraphs = [
        "Tilt keeps the old decision as often as (ε, δ) allows. For this its reference has to predict the old"
        " decision. Flat assumes that the deleted records had about the mean of those that are left."
        " Empirical Bayes shrinks their mean towards those of the other arms. The guarantee is the same.",
        "Empirical Bayes is better in the easy case and worse in the hard one. Rollback goes further in the"
        " same direction: the penalty of the arm rises, so that it is served less often. Of the"
        f" {len(ratios)} pairs of setting and ε, with the arm drawn at random, empirical Bayes is better by"
        f" two standard errors in {better}, flat in {worse}. Flat is the default: empirical Bayes costs most"
        f" where the other arms say nothing about the best one ({ONE_GOOD_ARM}).",
    ]
    average = averages(papers)
    pictures = {"tradeoff": _picture(pick(papers, panel="M_f", n=MAIN[0], k=MAIN[1]), average)}
    return Section("Tilt's predictive: a trade-off", paragraphs, pictures, [_table([*rows, *average])])


def by_request(rows: Sequence[Row]) -> list[Row]:
    """The mean over the arms that may be requested, in each setting, with its ratio to no deletion."""
    found: list[Row] = []
    settings = [each for panel in split(rows, "panel") for n in split(panel, "n") for each in split(n, "k")]
    for each in [chosen for setting in settings for chosen in split(setting, "epsilon")]:
        for request, arms in ARMS.items():
            chosen = [row for row in each if row["arms"] in arms]
            means = [{**_mean(pick(chosen, method=name)), "request": request} for name in METHODS]
            none = only(means, method=NO_DELETION)
            found += [{**row, "distance": ratio(row, none)} for row in means]
    return found


def _mean(rows: Sequence[Row]) -> Row:
    return {
        **rows[0],
        "suboptimality": float(np.mean([row["suboptimality"] for row in rows])),
        "standard_error": float(np.hypot.reduce([row["standard_error"] for row in rows])) / len(rows),
        "blocks": np.mean([row["blocks"] for row in rows], axis=0).tolist(),
    }


def averages(rows: Sequence[Row]) -> list[Row]:
    """The distance to no deletion for each kind of request, method and ε, averaged over the settings."""
    found: list[Row] = []
    for same in [s for e in split(rows, "epsilon") for r in split(e, "request") for s in split(r, "method")]:
        each: list[Estimate] = [row["distance"] for row in same]
        value = float(np.mean([one.value for one in each]))
        error = float(np.hypot.reduce([one.error for one in each])) / len(each)
        average = {"panel": f"average of {len(each)}", "n": "", "k": "", "distance": Estimate(value, error)}
        found.append({**same[0], **average, "suboptimality": value, "standard_error": error})
    return found


def _picture(main: Sequence[Row], average: Sequence[Row]) -> "Figure":
    """The main setting by requested arm, and the average over all settings."""
    n, k = MAIN
    panels = [
        Panel(
            f"N = {n}, {k} records deleted: {request}",
            *("ε (log scale)", "sub-optimality (log scale)"),
            curves_of(pick(main, request=request), "epsilon", _LOOKS),
            x_log=True,
            y_log=True,
        )
        for request in ARMS
    ]
    curves = curves_of(pick(average, request=ANY), "epsilon", _LOOKS)
    title = f"{ANY}: {average[0]['panel']} settings"
    panels.append(Panel(title, "ε (log scale)", "times no deletion", curves, x_log=True))
    return picture_of_panels(
        [panels[:2], panels[2:]],
        title="Tilt's predictive: better for requests of some arms is worse for others",
        note=r"$\delta = 10^{-5}$. Bands: ± 2 standard errors. Any arm: drawn at random.",
        row_height=3.5,
    )


def _table(rows: Sequence[Row]) -> Table:
    columns = {
        f"{r}: {name}": {"request": r, "method": name} for r in ARMS for name in (ROLLBACK, FLAT, PRIOR)
    }
    return table_of_rows(
        [row for row in rows if row["epsilon"] in QUICK_EPSILONS],
        {"model": "panel", "N": "n", "k": "k", "ε": "epsilon"},
        {NO_DELETION: {"request": ANY, "method": NO_DELETION}, **columns},
        lambda row: (
            loss(row)
            if row["method"] == NO_DELETION
            else with_error(row["distance"].value, row["distance"].error, 3)
        ),
        f"Times no deletion, δ = 10⁻⁵; ± is one standard error, from {max(row['datasets'] for row in rows):,}"
        " data sets per arm; values without it are exact. Any arm: drawn at random.",
    )
