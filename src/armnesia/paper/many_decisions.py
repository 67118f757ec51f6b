"""One person in many decisions, with one guarantee for all of them.

The decisions are alike and independent, and each of those that the request touches gets the same share of the
budget. So the expected loss of one decision, exact, is that of a single decision with that share.
"""

from typing import TYPE_CHECKING

from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import ARM_OF_CASE, DELTA, HARD, Plan
from armnesia.plotting.panels import Curve, Panel, look, picture_of_panels
from armnesia.privacy import Budget, Composition
from armnesia.simulation import Cell, Row
from armnesia.unlearners import UNLEARNERS, Tilt, Unlearner
from armnesia.unlearners.joint import budget_of_each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = (1, 5, 20, 100)
EPSILONS = (1.0, 3.0)
N, K = 1000, 80
METHODS: dict[str, tuple[Unlearner | None, Composition]] = {
    "no deletion": (None, "best"),
    **{name.replace("_", " "): (kind(), "best") for name, kind in UNLEARNERS.items()},
    "tilt, even split": (Tilt(), "even"),
}
"""Every unlearner with its default options, by the best composition; tilt also by the even split."""

Losses = dict[tuple[str, float, int], float]
"""Expected sub-optimality of one decision, by method, total ε and the number of decisions touched."""


def many_decisions_cells(plan: Plan) -> list[Cell]:
    """Every method with its share of every total budget."""
    cells = []
    for name, (unlearner, composition) in METHODS.items():
        for epsilon in EPSILONS:
            for number in NUMBERS:
                budget = Budget(epsilon=epsilon, delta=DELTA)
                if unlearner is not None:
                    budget = budget_of_each(unlearner, budget, number, composition)
                cells.append(
                    plan.cell(
                        ("many_decisions", f"epsilon {epsilon:g}", "decisions", number),
                        *(N, {ARM_OF_CASE[HARD]: K}, {name: unlearner}),
                        epsilon=budget.epsilon,
                        delta=budget.delta,
                        protocol="exact",
                    )
                )
    return cells


def many_decisions_section(run: Run) -> Section:
    """One person in 1, 5, 20 and 100 decisions: the loss of each decision with one guarantee for all."""
    rows = run.evaluate(many_decisions_cells(run.plan))
    run.rows += [_for_all(row) for row in rows]
    found = losses(rows)
    header = ["method", *(f"ε = {epsilon:g}, d = {number}" for epsilon in EPSILONS for number in NUMBERS)]
    lines = [
        [name, *(f"{found[name, epsilon, number]:.5f}" for epsilon in EPSILONS for number in NUMBERS)]
        for name in METHODS
    ]
    caption = (
        f"Expected sub-optimality of one decision, exact: M_f, N = {N}, k = {K} records of the best arm in"
        f" each of d decisions, (ε, {DELTA:g}) for all d releases together."
    )
    return Section(
        "One person in many decisions",
        _paragraphs(found),
        {"many_decisions": _picture(found)},
        [Table(header, lines, caption=caption)],
    )


def losses(rows: list[Row]) -> Losses:
    """The values by method, total ε and number of decisions."""
    return {
        (row["method"], float(row["panel"].split()[1]), int(row["x"])): row["suboptimality"] for row in rows
    }


def _for_all(row: Row) -> Row:
    """The row with the budget of all decisions in place of the share of one."""
    budget = Budget(epsilon=float(row["panel"].split()[1]), delta=DELTA)
    return {**row, "epsilon": budget.epsilon, "delta": DELTA, "gamma": budget.gamma}


def _paragraphs(found: Losses) -> list[str]:
    def shown(name: str, number: int) -> str:
        return f"{found[name, 1.0, number]:.5f}"

    return [
        "A request that touches d decisions is answered by d releases, and the guarantee is for all of them"
        " together. Noise is composed as Gaussian noise, so that it grows with √d; the budget of tilt is"
        " split by the optimal composition theorem where that is better than ε/d each. Rollback, frozen"
        " rollback and imitation have no budget to split.",
        f"At ε = 1 in all, tilt loses {shown('tilt', 1)} in a single decision, {shown('tilt', 20)} in each of"
        f" 20 ({shown('tilt, even split', 20)} by the even split) and {shown('tilt', 100)} in each of 100"
        f" ({shown('tilt, even split', 100)}); frozen rollback, at the same level and (0, 0), loses"
        f" {shown('frozen rollback', 1)}, rollback {shown('rollback', 1)}, and without a deletion it would be"
        f" {shown('no deletion', 1)}.",
        "With so little for each decision tilt is close to frozen rollback, and its loss does not always fall"
        " as its share rises: tilt keeps the old decision as often as it can, which is not quite the same as"
        " the highest expected reward.",
    ]


def _picture(found: Losses) -> "Figure":
    panels = [
        Panel(
            f"ε = {epsilon:g} for all decisions together",
            "decisions touched",
            "sub-optimality of each decision",
            [
                # Methods that coincide stay visible: the later ones are narrower.
                Curve(
                    name,
                    NUMBERS,
                    [found[name, epsilon, number] for number in NUMBERS],
                    look=look(place, linewidth=max(1.4, 3.2 - 0.2 * place)),
                )
                for place, name in enumerate(METHODS)
            ],
            x_log=True,
            scale_group="",
        )
        for epsilon in EPSILONS
    ]
    note = f"$M_f$, N = {N}, k = {K} of the best arm in each decision, δ = {DELTA:g}; exact."
    return picture_of_panels([panels], title="One person in many decisions", note=note, row_height=3.9)
