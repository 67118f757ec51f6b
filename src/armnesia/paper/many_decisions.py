"""One person in many decisions, with one guarantee for all of them.

The decisions are alike and independent, and each of those that the request touches gets the same share of the
budget. So the expected loss of one decision, exact, is that of a single decision with that share.
"""

from collections.abc import Sequence

from armnesia.paper.comparisons import loss, only, table_of_rows
from armnesia.paper.pictures import split
from armnesia.paper.section import Section
from armnesia.paper.settings import DELTA, Plan, Run
from armnesia.plotting.panels import Panel, curves_of, look, picture_of_panels
from armnesia.privacy import Budget, Composition
from armnesia.simulation import Cell, Row
from armnesia.unlearners import UNLEARNERS, Tilt, Unlearner
from armnesia.unlearners.joint import budget_of_each

NUMBERS = (1, 5, 20, 100)
EPSILONS = (1.0, 3.0)
N, K = 1000, 80
METHODS: dict[str, tuple[Unlearner | None, Composition]] = {
    "no deletion": (None, "best"),
    **{name.replace("_", " "): (kind(), "best") for name, kind in UNLEARNERS.items()},
    "tilt, even split": (Tilt(), "even"),
}
"""Every unlearner with its default options, by the best composition; tilt also by the even split."""


def many_decisions_cells(plan: Plan) -> list[Cell]:
    """Every method with its share of every total budget, which the panel names."""
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
                        *(N, {0: K}, {name: unlearner}),
                        epsilon=budget.epsilon,
                        delta=budget.delta,
                        protocol="exact",
                    )
                )
    return cells


def with_the_budget_of_all(rows: Sequence[Row]) -> list[Row]:
    """The rows with the budget of all decisions in place of the share of one."""
    totals = {f"epsilon {epsilon:g}": Budget(epsilon=epsilon, delta=DELTA) for epsilon in EPSILONS}
    found = [(row, totals[row["panel"]]) for row in rows]
    return [{**row, "epsilon": total.epsilon, "delta": DELTA, "gamma": total.gamma} for row, total in found]


def many_decisions_section(run: Run) -> Section:
    """One person in 1, 5, 20 and 100 decisions: the loss of each decision with one guarantee for all."""
    rows = with_the_budget_of_all(run.evaluate(many_decisions_cells(run.plan)))
    run.rows += rows
    tilt, even = (loss(only(rows, method=m, epsilon=1.0, x=100)) for m in ("tilt", "tilt, even split"))
    # Methods that coincide stay visible: the later ones are narrower.
    looks = {m: (m, look(i, linewidth=max(1.4, 3.2 - 0.2 * i))) for i, m in enumerate(METHODS)}
    panels = [
        Panel(
            f"ε = {of_one[0]['epsilon']:g} for all decisions together",
            "decisions touched",
            "sub-optimality of each decision",
            curves_of(of_one, "x", looks),
            x_log=True,
            scale_group="",
        )
        for of_one in split(rows, "epsilon")
    ]
    title = "One person in many decisions"
    note = f"$M_f$, N = {N}, k = {K} of the best arm in each decision, δ = 10⁻⁵; exact."
    return Section(
        title,
        [
            "A request that touches d decisions is answered by d releases with one guarantee for all."
            " Noise is composed as Gaussian noise, so that it grows with √d. The budget of tilt is split by"
            " the optimal composition theorem where that is better than ε/d each. With d = 100 and ε = 1 it"
            f" loses {tilt}, by the even split {even}. Rollback, frozen rollback and imitation have no budget"
            " to split.",
            "With so little for each decision tilt is close to frozen rollback. Its loss does not always fall"
            " as its share rises. It keeps the old decision as often as it can, which need not give the"
            " highest expected reward.",
        ],
        {"many_decisions": picture_of_panels([panels], title=title, note=note, row_height=3.9)},
        [
            table_of_rows(
                rows,
                {"method": "method"},
                {
                    f"ε = {e:g}, d = {number}": {"epsilon": e, "x": number}
                    for e in EPSILONS
                    for number in NUMBERS
                },
                loss,
                f"Expected sub-optimality of one decision, exact; M_f, N = {N}, k = {K} of the best arm."
                " (ε, 10⁻⁵) is for all d releases together.",
            )
        ],
    )
