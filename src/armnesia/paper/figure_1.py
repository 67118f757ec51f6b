"""Figure 1: Algorithm 2 and its baselines, one arm, both models, over N, k and γ."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from armnesia.paper.comparisons import loss, points
from armnesia.paper.pictures import name_of, picture_of_models
from armnesia.paper.protocol import paper_protocol
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import (
    ARM_OF_CASE,
    BASE_GAMMA,
    BASE_K,
    BASE_N,
    C_STAR,
    EASY,
    FIGURE_1_METHODS,
    HARD,
    Plan,
)
from armnesia.privacy import privacy_curve
from armnesia.simulation import Cell, evaluate_all


def figure_1_cells(plan: Plan) -> list[Cell]:
    """Both models, hard and easy case."""
    return one_arm_cells(plan, "1", (HARD, EASY), FIGURE_1_METHODS)


def one_arm_cells(plan: Plan, figure: str, cases: Iterable[str], methods: Sequence[str]) -> list[Cell]:
    """Deletion of records of one arm: both models, the given cases, and sweeps over N, k and γ."""
    sweeps: list[tuple[str, float, int, int, float]]
    sweeps = [("N", n, n, BASE_K, BASE_GAMMA) for n in plan.ns]
    sweeps += [("k", k, BASE_N, k, BASE_GAMMA) for k in plan.ks]
    sweeps += [("γ", gamma, BASE_N, BASE_K, gamma) for gamma in plan.gammas]
    return [
        plan.cell(
            (figure, f"{model} {case}", varied, x),
            n,
            {ARM_OF_CASE[case]: k},
            methods,
            gamma=gamma,
            c_star=c_star,
        )
        for model, c_star in (("M_f", None), ("M_d", C_STAR))
        for case in cases
        for varied, x, n, k, gamma in sweeps
    ]


def figure_1_section(run: Run) -> Section:
    """The picture, with a table of the paper's protocol beside exact values."""
    cells = figure_1_cells(run.plan)
    rows = run.evaluate_and_record(cells)
    exact = privacy_curve(BASE_GAMMA)
    return Section(
        "Figure 1: Algorithm 2 and its baselines",
        [
            "Expected sub-optimality of five methods: the oracle (no deletion), rollback, Gaussian noise,"
            " mixing and Algorithm 2, each as the paper ran it (its threshold times 1.3, its sensitivity).",
            "Hard case: records of the best arm are deleted. Easy case: of the arm with mean 0.06. Unless"
            f" varied, N = {BASE_N}, k = {BASE_K}, γ = {BASE_GAMMA:g}; by the exact curve that is ε ="
            f" {exact.epsilon(1e-5):.0f} at δ = 10⁻⁵, or ε = 5 at δ = {exact.delta(5.0):.3f}, which is weak.",
        ],
        {
            "figure-1": picture_of_models(
                rows, "Figure 1: Algorithm 2 and its baselines, one arm", "varied", "panel"
            )
        },
        [_table_of_protocols(run, cells)],
    )


def _table_of_protocols(run: Run, cells: Sequence[Cell]) -> Table:
    """The paper's protocol beside exact values, at four points of one panel."""
    xs = (1000, 1800, 3000, 5000)
    shown = [
        c for c in cells if (c.labels["panel"], c.labels["varied"]) == ("M_f hard", "N") and c.model.n in xs
    ]
    exact = points(run.evaluate([replace(c, protocol="exact", evaluate=evaluate_all) for c in shown]))
    papers = points(run.evaluate([replace(c, evaluate=paper_protocol) for c in shown]))
    rows = [
        [cell.model.n, name_of(name), loss(true[name]), loss(estimate[name])]
        for cell, true, estimate in zip(shown, exact, papers, strict=True)
        for name in cell.unlearners
    ]
    caption = (
        "The paper's protocol (200 trajectories, 5 requests, 10 runs) repeated; ± is one standard error."
    )
    return Table(["N", "method", "exact", "the paper's protocol"], rows, caption=caption)
