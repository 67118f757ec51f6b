"""Figure 1: Algorithm 2 and its baselines, one arm, both models, over N, k and γ."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from armnesia.paper.comparisons import loss, table_of_rows
from armnesia.paper.pictures import name_of, picture_of_models
from armnesia.paper.protocol import paper_protocol
from armnesia.paper.run import Run
from armnesia.paper.section import Section
from armnesia.paper.settings import ARM_OF_CASE, BASE_GAMMA, BASE_K, BASE_N, C_STAR, FIGURE_1_METHODS, Plan
from armnesia.privacy import privacy_curve
from armnesia.simulation import Cell, evaluate_all


def figure_1_cells(plan: Plan) -> list[Cell]:
    """Both models, hard and easy case."""
    return one_arm_cells(plan, "1", ARM_OF_CASE, FIGURE_1_METHODS)


def one_arm_cells(plan: Plan, figure: str, cases: Iterable[str], methods: Sequence[str]) -> list[Cell]:
    """Deletion of records of one arm: both models, the given cases, and sweeps over N, k and γ."""
    sweeps: list[tuple[str, float, int, int, float]]
    sweeps = [("N", n, n, BASE_K, BASE_GAMMA) for n in plan.ns]
    sweeps += [("k", k, BASE_N, k, BASE_GAMMA) for k in plan.ks]
    sweeps += [("γ", gamma, BASE_N, BASE_K, gamma) for gamma in plan.gammas]
    return [
        plan.cell(
            (figure, f"{model} {case}", varied, x),
            *(n, {ARM_OF_CASE[case]: k}, methods),
            gamma=gamma,
            c_star=c_star,
        )
        for model, c_star in (("M_f", None), ("M_d", C_STAR))
        for case in cases
        for varied, x, n, k, gamma in sweeps
    ]


def figure_1_section(run: Run) -> Section:
    """The picture, and the paper's protocol beside exact values at four points of one panel."""
    cells = figure_1_cells(run.plan)
    rows = run.evaluate_and_record(cells)
    curve = privacy_curve(BASE_GAMMA)
    title = "Figure 1: Algorithm 2 and its baselines, one arm"
    shown = [c for c in cells if (c.labels["panel"], c.labels["varied"]) == ("M_f hard", "N")]
    shown = [c for c in shown if c.model.n in (1000, 1800, 3000, 5000)]
    protocols = {
        "exact": [replace(cell, protocol="exact", evaluate=evaluate_all) for cell in shown],
        "the paper's protocol": [replace(cell, evaluate=paper_protocol) for cell in shown],
    }
    compared = [
        {**row, "how": how, "name": name_of(row["method"])}
        for how, chosen in protocols.items()
        for row in run.evaluate(chosen)
    ]
    return Section(
        "Figure 1: Algorithm 2 and its baselines",
        [
            "Expected sub-optimality of the oracle (no deletion), rollback, Gaussian noise, mixing and"
            " Algorithm 2. Each is as the paper ran it, with its sensitivity and its threshold times 1.3.",
            "Hard case: records of the best arm are deleted. Easy case: of the arm with mean 0.06. Unless"
            f" varied, N = {BASE_N}, k = {BASE_K} and γ = {BASE_GAMMA:g}. By the exact curve this γ is weak:"
            f" ε = {curve.epsilon(1e-5):.0f} at δ = 10⁻⁵, or ε = 5 at δ = {curve.delta(5.0):.3f}.",
        ],
        {"figure-1": picture_of_models(rows, title, "varied", "panel")},
        [
            table_of_rows(
                compared,
                {"N": "n", "method": "name"},
                {how: {"how": how} for how in protocols},
                loss,
                "The paper's protocol (200 trajectories, 5 requests, 10 runs) repeated; ± is one standard"
                " error.",
            )
        ],
    )
