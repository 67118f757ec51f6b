"""The table of levels: which cells there are, and that its numbers are those of `evaluate`."""

import pytest

from armnesia.paper.cells import CellStore, Row, run_cells
from armnesia.paper.comparisons import Estimate
from armnesia.paper.level_costs.cells import EPSILONS, SETTINGS, level_cells
from armnesia.paper.level_costs.section import COLUMNS, Point, costs_by_point, describe_results
from armnesia.paper.plan import Plan
from armnesia.paper.settings import ENVIRONMENT, METHODS
from armnesia.privacy import Budget, Level
from armnesia.simulation import FixedSample, OneArm, evaluate


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return run_cells(level_cells(Plan(quick=True, datasets=4000)), CellStore())


def test_every_setting_is_there_at_every_epsilon() -> None:
    found = {(cell.n, cell.deletions[0][1], cell.epsilon) for cell in level_cells(Plan())}
    assert found == {(n, k, epsilon) for n, ks in SETTINGS for k in ks for epsilon in EPSILONS}
    assert {0.5, 1.0, 2.0, 3.0, 5.0} == set(EPSILONS)
    assert {cell.protocol for cell in level_cells(Plan(protocol="sampled"))} == {"sampled"}


def test_the_columns_name_the_level_of_their_method() -> None:
    for name, column in COLUMNS.items():
        method = METHODS[name]
        assert method is not None
        assert str(method.level) in column
        assert ("(0, 0)" in column) is not method.needs_budget
    strictness = [list(Level).index(method.level) for name in COLUMNS if (method := METHODS[name])]
    assert strictness == sorted(strictness)


def test_costs_are_those_of_evaluate_and_rise_with_the_level(rows: list[Row]) -> None:
    costs = costs_by_point(rows)
    assert len(costs) == 3 * len(EPSILONS)
    model, budget = FixedSample.round_robin(1000, 5), Budget(epsilon=1.0, delta=1e-5)
    methods = [METHODS[name] for name in ("oracle", "rollback", "tilt")]
    none, rollback, tilt = (
        evaluate(ENVIRONMENT, model, OneArm(0, 80), method, budget).suboptimality for method in methods
    )
    at_one = costs[Point(1000, 80, 1.0)]
    assert (at_one["rollback"].value, at_one["tilt"].value) == (rollback / none, tilt / none)
    assert (at_one["tilt"].error, at_one["rollback"].error) == (0, 0)
    # 400 data sets; the differences exceed five standard errors (seed 0, false alarm below 10⁻⁶).
    retained = at_one["tilt retained"]
    assert tilt / none + 5 * retained.error < retained.value < rollback / none - 5 * retained.error
    unasked = costs[Point(1000, 0, 1.0)]
    assert [unasked[name].value for name in ("rollback", "frozen_rollback", "tilt")] == [1.0, 1.0, 1.0]
    assert unasked["tilt retained"].value > 1 + 2 * unasked["tilt retained"].error > 1


def test_the_section_shows_them(rows: list[Row]) -> None:
    section = describe_results(rows)
    (table,) = section.tables
    assert len(table.rows) == 3 * len(EPSILONS)
    shown = next(row for row in table.rows if row[:3] == [1000, 80, "1"])
    costs = costs_by_point(rows)[Point(1000, 80, 1.0)]
    assert shown[list(table.header).index(COLUMNS["tilt"])] == f"{costs['tilt'].value:.2f}"
    assert f"{costs['tilt retained'].value:.2f} (ε = 1)" in " ".join(section.paragraphs)
    assert isinstance(costs["tilt"], Estimate)
