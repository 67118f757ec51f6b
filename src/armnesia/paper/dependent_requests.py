"""Requests that do and do not depend on rewards, for every method at the same exact (ε, δ)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armnesia.paper.comparisons import loss, only, pick, table_of_rows
from armnesia.paper.pictures import name_of, note_on_uncertainty, panel_of
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import (
    ARM_OF_CASE,
    BASE_K,
    BASE_N,
    DELTA,
    ENVIRONMENT,
    FIGURE_1_METHODS,
    HARD,
    Plan,
    Run,
    all_insured_from,
)
from armnesia.plotting.panels import Curve, Panel, picture_of_panels
from armnesia.privacy import Budget
from armnesia.simulation import Cell, OneArm, RequestModel, Row, TiltedArm
from armnesia.simulation.requests import Choice
from armnesia.theory import insured_upper
from armnesia.unlearners import Tilt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS, TABLE_EPSILON = (0.5, 1.0, 2.0, 3.0, 5.0), 3.0
COMPARED_METHODS = (
    *("oracle", "rollback", "gaussian", "centred_gaussian", "mixing", "adaptive"),
    *("strict_adaptive", "frozen_rollback", "tilt", "tilt retained"),
)
"""Every unlearner that works with LCB and takes requests of one arm (Algorithm 7 is Algorithm 2 there)."""
CHOICES: dict[Choice, str] = {
    "random": "anyone",
    "highest": "the highest rewards",
    "lowest": "the lowest rewards",
}
_BOUND_LOOK = {"color": "#222222", "linestyle": (0, (1, 1)), "linewidth": 2.6}
BOUND_NAME = "Insured bound: no deletion + h · largest gap"
BEST = ARM_OF_CASE[HARD]
SETTINGS: dict[tuple[int, int, str], RequestModel] = {
    (3000, 120, "anyone"): OneArm(BEST, 120),
    (3000, 120, "the lowest rewards"): OneArm(BEST, 120, "lowest"),
    (3000, 120, "records with mean 0.2; the others have 0.075"): TiltedArm(BEST, 120, 0.2),
    (3000, 120, "the highest rewards"): OneArm(BEST, 120, "highest"),
    (3000, 300, "anyone"): OneArm(BEST, 300),
    (3000, 300, "records with mean 0.2; the others have 0"): TiltedArm(BEST, 300, 0.2),
    (1000, 80, "anyone"): OneArm(BEST, 80),
    (1000, 80, "the lowest rewards"): OneArm(BEST, 80, "lowest"),
    (1000, 80, "records with mean 0.15; the others have 0.0667"): TiltedArm(BEST, 80, 0.15),
    (1000, 80, "the highest rewards"): OneArm(BEST, 80, "highest"),
}
"""N, k, and which records of the best arm are deleted: the rows of the table."""
SHOWN = tuple(SETTINGS)[:4]
"""The panels of the picture: the same number of records, chosen in four ways."""


def rows_of(rows: Sequence[Row], n: int, k: int, who: str) -> list[Row]:
    """The rows of a setting."""
    return pick(rows, n=n, k=k, panel=f"M_f {who}")


def insured_excess(epsilon: float, delta: float = DELTA) -> float:
    """h times the largest gap: the most that a request of one arm costs over no deletion with insured tilt.

    There are at most two contenders, that arm and the best of the others. NaN where insuring both costs more
    than tilt pays by default.

    >>> insured_excess(3.0, delta=0.0), insured_excess(1.0, delta=0.0)
    (0.003794..., nan)
    """
    budget, gap = Budget(epsilon=epsilon, delta=delta), float(max(ENVIRONMENT.gaps))
    bound = insured_upper(contenders=2, budget=budget, largest_gap=gap, insurance=Tilt().insurance)
    return bound.value if bound.holds else math.nan


def dependent_cells(plan: Plan) -> list[Cell]:
    """All methods in all settings; a point has a fifth of the plan's data sets."""
    shown = (1.0, TABLE_EPSILON) if plan.quick else EPSILONS
    return [
        plan.cell(
            ("dependent_requests", f"M_f {setting[2]}", "ε", epsilon),
            *(setting[0], request, COMPARED_METHODS),
            epsilon=epsilon,
            protocol="sampled",
            datasets=max(plan.datasets // 5, 2),
        )
        for setting, request in SETTINGS.items()
        for epsilon in (shown if setting in SHOWN else (TABLE_EPSILON,))
    ]


def dependent_requests_section(run: Run) -> Section:
    """Every method at the same (ε, δ), and Figure 1's methods at the paper's noise (M_f, sampled)."""
    rows = run.evaluate_and_record(dependent_cells(run.plan))
    return Section(
        "When requests depend on rewards",
        [
            "The paper assumes that requests do not depend on the rewards. If the people with the best (or"
            " the worst) outcomes of an arm ask to be forgotten, what is left of it is biased. Rollback and"
            " Algorithm 2 follow the bias: in the hard case they lose more if the best outcomes are deleted,"
            " and less if the worst are. Noise on the old score has no such bias. The guarantees do not need"
            " the assumption.",
            "The picture compares all methods at the same exact (ε, δ), δ = 10⁻⁵. The same number of records"
            " of the best arm is deleted: of anyone, those with the lowest rewards, records with twice the"
            " arm's mean (that of all its records stays the same), or those with the highest rewards.",
            "The insured bound is that of tilt where its reference gives at least h = (1−δ)/(1+e^ε) to both"
            " arms that may have been the old decision: the requested arm and the best of the others. Then"
            " the old decision is kept with probability 1 − h, whoever asks. The excess over no deletion is"
            f" at most h times the largest gap: {insured_excess(TABLE_EPSILON):.4f} at ε = {TABLE_EPSILON:g}."
            f" Tilt does so where the price, e^(−ε)·h, is at most {Tilt().insurance:g} (see docs/theory.md)."
            " At level retained all five arms may have been the old decision. Tilt insures them all from"
            f" ε = {all_insured_from():.2f} on, with the same bound.",
        ],
        {"dependent-requests": picture_of_dependent_requests(rows)},
        [_table_of_settings(rows), _table_at_the_papers_noise(run)],
    )


def picture_of_dependent_requests(rows: Sequence[Row]) -> "Figure":
    """Sub-optimality over ε, with a panel for each way to choose the same number of records."""
    panels: list[Panel] = []
    for setting in SHOWN:
        chosen = rows_of(rows, *setting)
        epsilons = sorted({row["epsilon"] for row in chosen})
        none = only(chosen, method="oracle", epsilon=epsilons[0])["suboptimality"]  # the same at every ε
        fine = np.geomspace(epsilons[0], epsilons[-1], 60).tolist()
        bound = Curve(BOUND_NAME, fine, [none + insured_excess(each) for each in fine], look=_BOUND_LOOK)
        title = f"{setting[1]} of arm {BEST}: {setting[2]}".replace("; ", ";\n")
        panel = panel_of(chosen, title, "ε, log scale")
        panels.append(replace(panel, curves=[*panel.curves, bound]))
    note = note_on_uncertainty([row for setting in SHOWN for row in rows_of(rows, *setting)])
    title = "Who asks to be forgotten: requests that do and do not depend on rewards"
    return picture_of_panels([panels[:2], panels[2:]], title=title, note=note)


def _table_of_settings(rows: Sequence[Row]) -> Table:
    """All settings at one ε: every method, and the insured bound."""
    chosen = [{**row, "who": row["panel"].removeprefix("M_f ")} for row in pick(rows, epsilon=TABLE_EPSILON)]
    for row in pick(chosen, method="oracle"):
        bound = row["suboptimality"] + insured_excess(TABLE_EPSILON)
        chosen.append({**row, "method": "insured bound", "suboptimality": bound, "standard_error": 0.0})
    columns = {name_of(name): {"method": name} for name in COMPARED_METHODS}
    return table_of_rows(
        chosen,
        {"N": "n", "deleted of the best arm": "k", "who asks to be forgotten": "who"},
        columns | {"insured bound": {"method": "insured bound"}},
        loss,
        f"Sub-optimality at (ε, δ) = ({TABLE_EPSILON:g}, 10⁻⁵), M_f, hard case; ± is one standard error.",
    )


def _table_at_the_papers_noise(run: Run) -> Table:
    cells = [
        run.plan.cell(
            (case, who, "", 0.0),
            *(BASE_N, OneArm(arm, BASE_K, choice), FIGURE_1_METHODS),
            protocol="sampled",
            datasets=max(run.plan.datasets // 5, 2),
        )
        for case, arm in ARM_OF_CASE.items()
        for choice, who in CHOICES.items()
    ]
    return table_of_rows(
        run.evaluate(cells),
        {"case": "figure", "who asks to be forgotten": "panel"},
        {name_of(name): {"method": name} for name in FIGURE_1_METHODS},
        loss,
        "The paper's methods at its noise: N = 3000, k = 80, γ = 0.5, M_f; ± is one standard error.",
    )
