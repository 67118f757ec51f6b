"""The cells beyond the paper: which settings, methods and budgets there are."""

from dataclasses import replace

import pytest

from armnesia.paper.beyond.cells import (
    EPSILONS,
    PEOPLE_K,
    WITHOUT_BUDGET,
    beyond_cells,
    one_arm_cells,
    people_cells,
    two_arm_cells,
)
from armnesia.paper.cells import Cell, Row, run_cell
from armnesia.paper.figures.cells import figure_1_cells
from armnesia.paper.plan import Plan
from armnesia.paper.settings import ENVIRONMENT
from armnesia.privacy import privacy_curve
from armnesia.simulation import AcrossArms, evaluate
from armnesia.unlearners import Tilt

QUICK = Plan(quick=True, datasets=400)


def test_one_arm_has_every_setting_of_figure_1_at_every_epsilon() -> None:
    def settings(cells: list[Cell], model: str) -> set[tuple[str, int, int]]:
        chosen = [c for c in cells if c.panel.startswith(model) and c.varied in ("N", "k")]
        return {(c.panel, c.n, c.deletions[0][1]) for c in chosen}

    whole, paper = one_arm_cells(Plan()), figure_1_cells(Plan())
    assert settings(whole, "M_f") == settings(paper, "M_f")
    assert settings(whole, "M_d") < settings(paper, "M_d")
    for panel, n, k in settings(whole, "M_"):
        here = [c for c in whole if (c.panel, c.n, c.deletions[0][1]) == (panel, n, k)]
        assert {c.epsilon for c in here if "tilt" in c.methods} == set(EPSILONS)
        assert {name for c in here for name in c.methods} >= {*WITHOUT_BUDGET, "adaptive", "strict_adaptive"}


def test_requests_over_several_arms_and_people_are_there_in_both_models() -> None:
    pairs = {(c.panel, c.n, c.deletions) for c in two_arm_cells(Plan())}
    assert {("M_f hard", n, ((0, k), (1, k))) for n in (2000, 3000, 4000) for k in (40, 80)} <= pairs
    assert {("M_f hard", 1000, ((0, 80), (1, 80))), ("M_d easy", 3000, ((2, 80), (3, 80)))} <= pairs
    cells = people_cells(Plan())
    assert {tuple(k for _, k in c.deletions) for c in cells} == {(160, 20, 20, 20, 20), (48,) * 5, ()}
    by_chance = next(c for c in cells if not c.deletions)
    assert by_chance.request == AcrossArms(PEOPLE_K)
    assert by_chance.c_star == 5.0
    (row,) = run_cell(replace(by_chance, methods=("rollback",), datasets=100))
    assert (row["arms"], row["k"]) == ("any", PEOPLE_K)


def test_a_cell_with_an_epsilon_keeps_exactly_that() -> None:
    cell = one_arm_cells(QUICK)[0]
    assert (cell.budget.epsilon, cell.budget.delta) == (cell.epsilon, 1e-5)
    by_noise = replace(cell, epsilon=None)
    assert by_noise.budget.gamma == by_noise.gamma
    assert by_noise.key != cell.key
    (row, *_) = run_cell(replace(cell, methods=("tilt",), epsilon=3.0))
    direct = evaluate(ENVIRONMENT, cell.model, cell.request, Tilt(), replace(cell, epsilon=3.0).budget)
    assert row["suboptimality"] == direct.suboptimality
    assert row["epsilon"] == 3.0
    assert privacy_curve(row["gamma"]).delta(3.0) == pytest.approx(1e-5, rel=1e-6)


def test_a_quick_plan_is_a_part_of_the_whole_but_for_its_data_sets() -> None:
    def settings(plan: Plan) -> set[object]:
        return {
            (c.panel, c.n, c.deletions, c.epsilon if "tilt" in c.methods else 0, c.methods, c.protocol)
            for c in beyond_cells(plan)
        }

    assert settings(Plan(quick=True)) < settings(Plan())


def test_under_fixed_counts_tilt_is_exact_for_one_arm_and_two_and_sampled_for_all() -> None:
    protocols = {
        (len(cell.deletions), cell.protocol)
        for cell in beyond_cells(Plan())
        if cell.c_star is None and "tilt" in cell.methods
    }
    assert protocols == {(1, "exact"), (2, "exact"), (5, "sampled")}


@pytest.mark.slow
def test_the_exact_value_of_two_arms_agrees_with_sampled_data_sets() -> None:
    """Within five standard errors; the seed is fixed."""
    cell = next(c for c in two_arm_cells(QUICK) if c.c_star is None and "tilt" in c.methods)
    (exact,) = run_cell(replace(cell, methods=("tilt",)))
    direct = evaluate(ENVIRONMENT, cell.model, cell.request, Tilt(), cell.budget, protocol="exact")
    assert (exact["suboptimality"], exact["standard_error"]) == (direct.suboptimality, 0.0)
    (sampled,) = run_cell(replace(cell, methods=("tilt",), protocol="sampled", datasets=2000))
    assert abs(sampled["suboptimality"] - exact["suboptimality"]) < 5 * sampled["standard_error"]


def test_a_sampled_plan_samples_everything() -> None:
    assert {cell.protocol for cell in beyond_cells(Plan(protocol="sampled"))} == {"sampled"}


@pytest.mark.slow
def test_methods_of_a_setting_share_their_data_sets(beyond_rows: list[Row]) -> None:
    """Under M_d frozen rollback is evaluated in one cell and tilt in another: the same data, by the seed."""
    base = next(c for c in one_arm_cells(QUICK) if c.c_star and "tilt" in c.methods)
    together = run_cell(replace(base, methods=("frozen_rollback", "tilt")))
    alone = [
        r for r in beyond_rows if (r["panel"], r["n"], r["k"]) == (base.panel, base.n, base.deletions[0][1])
    ]
    for row in together:
        same = [r for r in alone if r["method"] == row["method"] and r["varied"] == base.varied]
        assert row["suboptimality"] in [r["suboptimality"] for r in same]
