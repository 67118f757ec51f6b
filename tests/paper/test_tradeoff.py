"""Tilt's predictives: exact values, the average over arms and settings, the section."""

import numpy as np
import pytest

from armnesia import Tilt
from armnesia.paper.comparisons import only, pick
from armnesia.paper.section import Section
from armnesia.paper.settings import MEANS, Plan, Run
from armnesia.paper.tradeoff import (
    ANY,
    BEST,
    EPSILONS,
    FLAT,
    GRID,
    ITS_MEANS,
    MAIN,
    METHODS,
    NO_DELETION,
    ONE_GOOD_ARM,
    PRIOR,
    QUICK_EPSILONS,
    ROLLBACK,
    averages,
    by_request,
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
    main = pick(found[0], n=MAIN[0], k=MAIN[1], panel="M_f", epsilon=0.1)
    for arm, sign in (("0", 1), ("2", -1)):
        prior, flat = (only(main, arms=arm, method=method) for method in (PRIOR, FLAT))
        assert flat["protocol"] == "exact"
        assert sign * (prior["suboptimality"] - flat["suboptimality"]) > 3 * prior["standard_error"] > 0


def test_the_fair_summary_is_the_average_over_arms_and_settings() -> None:
    def row(n: int, method: str, arm: str, blocks: list[float]) -> Row:
        value = {"suboptimality": float(np.mean(blocks)), "standard_error": 1.0, "blocks": blocks}
        return {"panel": "M_f", "n": n, "k": 1, "method": method, "epsilon": 1.0, "arms": arm, **value}

    def pair(n: int, method: str, best: list[float], easy: list[float]) -> list[Row]:
        return [row(n, method, "0", best), row(n, method, "2", easy)]

    rows = [each for n in (1, 2) for each in pair(n, NO_DELETION, [1.0, 3.0], [3.0, 5.0])]
    rows += [each for m in (FLAT, PRIOR) for n in (1, 2) for each in pair(n, m, [1.0, 3.0], [1.0, 3.0])]
    rows += pair(1, ROLLBACK, [4.0, 8.0], [4.0, 8.0]) + pair(2, ROLLBACK, [8.0, 16.0], [8.0, 16.0])
    found = by_request(rows)
    assert only(found, n=1, method=NO_DELETION, request=ANY)["suboptimality"] == 3.0
    assert only(found, n=1, method=NO_DELETION, request=BEST)["suboptimality"] == 2.0
    assert only(found, n=1, method=NO_DELETION, request=ANY)["standard_error"] == pytest.approx(2**0.5 / 2)
    distance = only(found, n=1, method=ROLLBACK, request=ANY)["distance"]
    assert (distance.value, distance.error) == (2.0, 0.0)  # twice as much in both blocks
    assert only(averages(found), method=ROLLBACK, request=ANY)["suboptimality"] == 3.0


def test_the_section_is_drawn_and_its_numbers_are_those_found(found: tuple[list[Row], Section]) -> None:
    rows, section = found
    assert [len(axis.lines) for axis in section.pictures["tradeoff"].axes] == [len(METHODS)] * 4
    assert "Of the 6 pairs of setting and ε" in section.paragraphs[1]
    table = section.tables[0]
    assert len(table.rows) == 4 * len(QUICK_EPSILONS)
    main = pick(rows, n=MAIN[0], k=MAIN[1], panel="M_f", epsilon=1.0, arms="0")
    rollback, none = (only(main, method=method)["suboptimality"] for method in (ROLLBACK, NO_DELETION))
    (line,) = (row for row in table.rows if row[:4] == ["M_f", *MAIN, "1"])
    assert line[list(table.header).index(f"{BEST}: {ROLLBACK}")] == f"{rollback / none:.3f}"
    assert len(rows) == (5 + 5 + 6) * len(METHODS) * len(QUICK_EPSILONS)


def test_the_grid_has_both_models_and_each_arm_its_own_data() -> None:
    cells = tradeoff_cells(Plan())
    arms = 2 * len(GRID) * len(MEANS) + len(ITS_MEANS)
    assert len({cell.seed for cell in cells}) == arms == len(cells) / len(EPSILONS)
    assert {cell.labels["panel"] for cell in cells} == {"M_f", "M_d", ONE_GOOD_ARM}
    for cell in cells:
        assert cell.protocol == ("sampled" if cell.labels["panel"] == "M_d" else "auto")
    assert METHODS[FLAT] == Tilt(predictive="flat")
