"""Tilt's predictives: exact values, the average over arms and settings, the section."""

import re

import numpy as np
import pytest

from armnesia import Tilt
from armnesia.paper.comparisons import only, pick
from armnesia.paper.section import Section
from armnesia.paper.settings import Plan, Run
from armnesia.paper.tradeoff import (
    FLAT,
    GRID,
    MAIN,
    METHODS,
    NO_DELETION,
    ONE_GOOD_ARM,
    PRIOR,
    QUICK_EPSILONS,
    ROLLBACK,
    average_distance,
    distance,
    pooled,
    tradeoff_cells,
    tradeoff_section,
)
from armnesia.simulation import Row
from armnesia.simulation.parallel import workers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> tuple[list[Row], Section]:
    with workers(1) as this_process:
        run = Run(Plan(quick=True, datasets=20_000), this_process)
        section = tradeoff_section(run)
        return run.rows, section


def test_the_prior_helps_the_easy_arm_and_costs_the_best_one(found: tuple[list[Row], Section]) -> None:
    """By more than three standard errors; flat is exact. By chance in 1e-3 of seeds; this is one."""
    main = pick(found[0], n=MAIN.n, k=MAIN.k, panel=MAIN.name, epsilon=0.1)
    for arm, sign in (("0", 1), ("2", -1)):
        prior, flat = (only(main, arms=arm, method=method) for method in (PRIOR, FLAT))
        assert flat["protocol"] == "exact"
        assert sign * (prior["suboptimality"] - flat["suboptimality"]) > 3 * prior["standard_error"] > 0


def test_the_fair_summary_is_the_average_over_arms_and_settings() -> None:
    def row(method: str, arm: str, blocks: list[float]) -> Row:
        value = {"suboptimality": float(np.mean(blocks)), "standard_error": 1.0, "blocks": blocks, "x": 1.0}
        return {"method": method, "epsilon": 1.0, "arms": arm, **value}

    rows = [row(NO_DELETION, "0", [1.0, 3.0]), row(NO_DELETION, "1", [3.0, 5.0])]
    rows += [row(ROLLBACK, "0", [4.0, 8.0]), row(ROLLBACK, "1", [4.0, 8.0])]
    assert pooled(rows, NO_DELETION, 1.0)["suboptimality"] == 3.0
    assert pooled(rows, NO_DELETION, 1.0, "0")["suboptimality"] == 2.0
    assert pooled(rows, NO_DELETION, 1.0)["standard_error"] == pytest.approx(2**0.5 / 2)
    assert distance(rows, ROLLBACK, 1.0).value == 2.0
    assert distance(rows, ROLLBACK, 1.0).error == 0.0  # twice as much in both blocks
    assert average_distance({GRID[0]: rows, GRID[1]: rows}, ROLLBACK, 1.0)["suboptimality"] == 2.0


def test_the_section_is_drawn_and_its_numbers_are_those_found(found: tuple[list[Row], Section]) -> None:
    rows, section = found
    assert [len(axis.lines) for axis in section.pictures["tradeoff"].axes] == [len(METHODS)] * 4
    words = " ".join(section.paragraphs)
    main = pick(rows, n=MAIN.n, k=MAIN.k, panel=MAIN.name)
    for method in METHODS:
        values = [pooled(main, method, 1.0, arms)["suboptimality"] for arms in ("0", "2", None)]
        assert " / ".join(f"{value:.5f}" for value in values) in words
    assert re.search(r"With one arm of mean 0\.1 and 5 of 0\.05, 332 of 400 records", words)
    assert len(section.tables[0].rows) == 3 * len(QUICK_EPSILONS)
    assert len(rows) == (5 + 5 + 6) * len(METHODS) * len(QUICK_EPSILONS)


def test_the_grid_has_both_models_and_each_arm_its_own_data() -> None:
    cells = tradeoff_cells(Plan())
    assert {setting.name for setting in GRID} == {"M_f", "M_d"}
    assert MAIN in GRID
    assert ONE_GOOD_ARM.name == "M_f, one good arm of 6"
    for setting, each in cells.items():
        assert len({cell.seed for cell in each}) == len(setting.means)
        assert {cell.protocol for cell in each} == {"sampled" if setting.c_star else "auto"}
    assert METHODS[FLAT] == Tilt(predictive="flat")
