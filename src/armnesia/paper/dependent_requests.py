"""Requests that do and do not depend on rewards, for every method at the same exact (ε, δ)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armnesia.paper.comparisons import loss, only, pick
from armnesia.paper.pictures import BOUND_LOOK, name_of, note_on_uncertainty, panel_of
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import (
    ARM_OF_CASE,
    BASE_K,
    BASE_N,
    DELTA,
    EASY,
    ENVIRONMENT,
    FIGURE_1_METHODS,
    HARD,
    Plan,
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
BOUND_NAME = "Insured bound: no deletion + h · largest gap"


@dataclass(frozen=True)
class DependentSetting:
    """N records, equally many of each arm, of which k of the best arm are deleted; which ones: `choice`."""

    n: int
    k: int
    choice: Choice
    deleted_mean: float | None = None

    @property
    def request(self) -> RequestModel:
        """The request, for the simulation."""
        if self.deleted_mean is not None:
            return TiltedArm(ARM_OF_CASE[HARD], self.k, self.deleted_mean)
        return OneArm(ARM_OF_CASE[HARD], self.k, self.choice)

    @property
    def who(self) -> str:
        """Whose records are deleted, as text.

        >>> DependentSetting(3000, 120, "tilted", 0.2).who
        'records with mean 0.2; the others have 0.075'
        """
        if self.deleted_mean is None:
            return CHOICES[self.choice]
        count, mean = self.n // ENVIRONMENT.n_actions, float(ENVIRONMENT.means[ARM_OF_CASE[HARD]])
        left = max(0.0, (count * mean - self.k * self.deleted_mean) / (count - self.k))
        return f"records with mean {self.deleted_mean:g}; the others have {left:.3g}"

    def rows_among(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of this setting."""
        return pick(rows, n=self.n, k=self.k, panel=f"M_f {self.who}")


SHOWN = (
    DependentSetting(3000, 120, "random"),
    DependentSetting(3000, 120, "lowest"),
    DependentSetting(3000, 120, "tilted", 0.2),
    DependentSetting(3000, 120, "highest"),
)
"""The panels of the picture: the same number of records, chosen in four ways."""
SETTINGS = (
    *SHOWN,
    DependentSetting(3000, 300, "random"),
    DependentSetting(3000, 300, "tilted", 0.2),
    DependentSetting(1000, 80, "random"),
    DependentSetting(1000, 80, "lowest"),
    DependentSetting(1000, 80, "tilted", 0.15),
    DependentSetting(1000, 80, "highest"),
)
"""The rows of the table. A deletion of 300 records with mean 0.2 leaves an arm without any ones."""


def insured_excess(epsilon: float, delta: float = DELTA) -> float | None:
    """h times the largest gap, h = (1−δ)/(1+e^ε): the most that a deletion costs with insured tilt.

    It bounds the excess over no deletion, whoever asks. A request of one arm has at most two contenders, that
    arm and the best of the others. None where insuring both costs more than tilt pays by default.

    >>> insured_excess(3.0, delta=0.0), insured_excess(1.0, delta=0.0)
    (0.003794..., None)
    """
    budget, gap = Budget(epsilon=epsilon, delta=delta), float(max(ENVIRONMENT.gaps))
    bound = insured_upper(contenders=2, budget=budget, largest_gap=gap, insurance=Tilt().insurance)
    return bound.value if bound.holds else None


def dependent_cells(plan: Plan) -> list[Cell]:
    """All methods in all settings; a point has a fifth of the plan's data sets."""
    shown = (1.0, TABLE_EPSILON) if plan.quick else EPSILONS
    return [
        plan.cell(
            ("dependent_requests", f"M_f {setting.who}", "ε", epsilon),
            *(setting.n, setting.request, COMPARED_METHODS),
            epsilon=epsilon,
            protocol="sampled",
            datasets=max(plan.datasets // 5, 2),
        )
        for setting in SETTINGS
        for epsilon in (shown if setting in SHOWN else (TABLE_EPSILON,))
    ]


def dependent_requests_section(run: Run) -> Section:
    """Every method at the same (ε, δ), and Figure 1's methods at the paper's noise (M_f, sampled)."""
    rows = run.evaluate_and_record(dependent_cells(run.plan))
    return Section(
        "When requests depend on rewards",
        [
            "The paper assumes that requests do not depend on the rewards. If the people with the best (or"
            " the worst) outcomes of an arm ask to be forgotten, what is left of it is biased, and rollback"
            " and Algorithm 2 follow the bias: in the hard case their sub-optimality rises if the best"
            " outcomes are deleted, and falls if the worst are. Noise on the old score does not depend on"
            " what is left, so it has no such bias. The guarantees do not need the assumption.",
            *_paragraphs(rows),
        ],
        {"dependent-requests": picture_of_dependent_requests(rows)},
        [_table_of_settings(rows), _table_at_the_papers_noise(run)],
    )


def picture_of_dependent_requests(rows: Sequence[Row]) -> "Figure":
    """Sub-optimality over ε, with a panel for each way to choose the same number of records."""
    panels: list[Panel] = []
    for setting in SHOWN:
        chosen = setting.rows_among(rows)
        epsilons = [row["epsilon"] for row in chosen]
        none = only(chosen, method="oracle", epsilon=epsilons[0])["suboptimality"]  # the same at every ε
        fine = [float(epsilon) for epsilon in np.geomspace(min(epsilons), max(epsilons), 60)]
        bound = {
            epsilon: none + excess for epsilon in fine if (excess := insured_excess(epsilon)) is not None
        }
        curve = Curve(BOUND_NAME, list(bound), list(bound.values()), look=BOUND_LOOK)
        title = f"{setting.k} of arm 0: {setting.who}".replace("; ", ";\n")
        panels.append(panel_of(chosen, title, "ε, log scale", bound=curve))
    note = note_on_uncertainty([row for setting in SHOWN for row in setting.rows_among(rows)])
    title = "Who asks to be forgotten: requests that do and do not depend on rewards"
    return picture_of_panels([panels[:2], panels[2:]], title=title, note=note)


def _paragraphs(rows: Sequence[Row]) -> list[str]:
    def shown(method: str) -> str:
        each = [only(s.rows_among(rows), method=method, epsilon=TABLE_EPSILON) for s in SHOWN]
        values = [f"{row['suboptimality']:.4f}" for row in each]
        return f"{', '.join(values[:-1])} and {values[-1]}"

    excess = insured_excess(TABLE_EPSILON)
    return [
        "The picture compares all methods at the same exact (ε, δ), δ = 10⁻⁵. The same number of records of"
        " the best arm is deleted: of anyone, those with the lowest rewards, records with twice the arm's"
        " mean (the mean of all its records stays the same), or those with the highest rewards."
        f" At ε = {TABLE_EPSILON:g}, tilt has {shown('tilt')}, rollback {shown('rollback')}, the centred"
        f" Gaussian {shown('centred_gaussian')}; no deletion has {shown('oracle').split(',')[0]}.",
        "The insured bound is that of tilt where its reference gives both arms that may have been the old"
        " decision, the requested arm and the best of the others, at least h = (1−δ)/(1+e^ε). Then the old"
        " decision is kept with probability 1 − h, whoever asks, and the excess over no deletion is at most h"
        f" times the largest gap: {excess:.4f} at ε = {TABLE_EPSILON:g}. Tilt does so where the price,"
        f" e^(−ε)·h, is at most {Tilt().insurance:g} (see docs/theory.md); the bound is drawn there. At level"
        " retained all five arms may have been the old decision; from"
        f" ε = {all_insured_from():.2f} on tilt insures them all, and the bound is the same. At"
        f" ε = {TABLE_EPSILON:g} it has {shown('tilt retained')}.",
    ]


def _table_of_settings(rows: Sequence[Row]) -> Table:
    """All settings at one ε: every method, and the insured bound."""
    excess = insured_excess(TABLE_EPSILON)
    assert excess is not None  # at this ε the bound exists
    lines: list[list[object]] = []
    for setting in SETTINGS:
        found = {row["method"]: row for row in pick(setting.rows_among(rows), epsilon=TABLE_EPSILON)}
        values = [loss(found[name]) for name in COMPARED_METHODS]
        bound = f"{found['oracle']['suboptimality'] + excess:.5f}"
        lines.append([setting.n, setting.k, setting.who, *values, bound])
    header = ["N", "deleted of the best arm", "who asks to be forgotten"]
    header += [*map(name_of, COMPARED_METHODS), "insured bound"]
    caption = (
        f"Sub-optimality at (ε, δ) = ({TABLE_EPSILON:g}, 10⁻⁵), M_f, hard case; ± is one standard error."
    )
    return Table(header, lines, caption=caption)


def _table_at_the_papers_noise(run: Run) -> Table:
    cases = [(case, choice) for case in (HARD, EASY) for choice in CHOICES]
    cells = [
        run.plan.cell(
            ("", f"{case} {choice}", "", 0.0),
            *(BASE_N, OneArm(ARM_OF_CASE[case], BASE_K, choice), FIGURE_1_METHODS),
            protocol="sampled",
        )
        for case, choice in cases
    ]
    rows = run.evaluate(cells)
    lines = [
        [case, CHOICES[choice], *(loss(row) for row in pick(rows, panel=f"{case} {choice}"))]
        for case, choice in cases
    ]
    caption = "The paper's methods at its noise: N = 3000, k = 80, γ = 0.5, M_f; ± is one standard error."
    return Table(["case", "who asks to be forgotten", *map(name_of, FIGURE_1_METHODS)], lines, caption)
