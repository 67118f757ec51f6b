"""Figures 1 to 3: the cells of each, and its section."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from armnesia.paper import settings
from armnesia.paper.comparisons import loss, table_of_rows
from armnesia.paper.pictures import name_of, note_on_uncertainty, panel_of, picture_of_models, split
from armnesia.paper.protocol import paper_protocol
from armnesia.paper.section import Section
from armnesia.paper.settings import BASE_GAMMA, BASE_K, BASE_N, HARD, Plan, Run
from armnesia.plotting.panels import picture_of_panels
from armnesia.privacy import privacy_curve
from armnesia.simulation import Cell, evaluate_all


def figure_1_cells(plan: Plan) -> list[Cell]:
    """Both models, hard and easy case."""
    return one_arm_cells(plan, "1", settings.ARM_OF_CASE, settings.FIGURE_1_METHODS)


def one_arm_cells(plan: Plan, figure: str, cases: Iterable[str], methods: Sequence[str]) -> list[Cell]:
    """Deletion of records of one arm: both models, the given cases, and sweeps over N, k and γ."""
    sweeps: list[tuple[str, float, int, int, float]]
    sweeps = [("N", n, n, BASE_K, BASE_GAMMA) for n in plan.ns]
    sweeps += [("k", k, BASE_N, k, BASE_GAMMA) for k in plan.ks]
    sweeps += [("γ", gamma, BASE_N, BASE_K, gamma) for gamma in plan.gammas]
    return [
        plan.cell(
            (figure, f"{model} {case}", varied, x),
            *(n, {settings.ARM_OF_CASE[case]: k}, methods),
            gamma=gamma,
            c_star=c_star,
        )
        for model, c_star in (("M_f", None), ("M_d", settings.C_STAR))
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


def figure_2_cells(plan: Plan) -> list[Cell]:
    """The sweeps of Figure 1."""
    return one_arm_cells(plan, "2", (HARD,), settings.RATIOS)


def figure_2_section(run: Run) -> Section:
    """A row of panels for each model."""
    rows = run.evaluate_and_record(figure_2_cells(run.plan))
    title = "Figure 2: mixing, from pure noise to pure rollback"
    text = "Mixing rolls back k′ of the k deleted records and hides the rest behind noise; hard case."
    pictures = {"figure-2": picture_of_models(rows, title, "panel", "varied")}
    return Section("Figure 2: mixing", [text], pictures)


def figure_3_cells(plan: Plan) -> list[Cell]:
    """Arms 0 and 1 (hard), or 2 and 3 (easy)."""
    methods = ("oracle", "rollback", "gaussian", "multi_source")
    return [
        plan.cell(("3", f"{case} k={k} N={n}", "γ", gamma), n, dict.fromkeys(arms, k), methods, gamma=gamma)
        for case, arms in settings.ARMS_OF_MULTI_CASE.items()
        for k in (40, 80)
        for n in (2000, 3000, 4000)
        for gamma in plan.gammas
    ]


def figure_3_section(run: Run) -> Section:
    """A row of panels for each case and k, a column for each N."""
    rows = run.evaluate_and_record(figure_3_cells(run.plan))
    panels = []
    for chosen in split(rows, "panel"):
        case, arms = chosen[0]["panel"].split()[0], chosen[0]["arms"].replace(" ", ", ")
        title = f"arms {{{arms}}} ({case}), k = {chosen[0]['k']}, N = {chosen[0]['n']}"
        panels.append(panel_of(chosen, title, "noise multiplier γ (log scale)", scale_group=case))
    grid = [panels[first : first + 3] for first in range(0, len(panels), 3)]
    title = "Figure 3: Algorithm 7 and its baselines, k points of each of two arms"
    picture = picture_of_panels(grid, title=title, note=note_on_uncertainty(rows))
    text = (
        "k records of each of two arms are deleted: arms 0 and 1 (hard), or 2 and 3 (easy). The Gaussian"
        " baseline is the paper's, with noise calibrated for each arm alone. Jointly its γ is smaller by a"
        " factor √2."
    )
    return Section("Figure 3: several arms", [text], {"figure-3": picture})
