"""The table of levels: which cells there are, and that its numbers are those of `evaluate`."""

import pytest

from armnesia.paper.comparisons import Estimate, distance_as_text, only, pick, with_distances
from armnesia.paper.level_costs import (
    CHOICES,
    COLUMNS,
    EPSILONS,
    SETTINGS,
    WITHOUT_COUNTS,
    choice_cells,
    describe_results,
    level_cells,
)
from armnesia.paper.settings import ENVIRONMENT, METHODS, Plan
from armnesia.privacy import Budget, Level
from armnesia.simulation import FixedSample, OneArm, Row, SeveralArms, evaluate
from armnesia.unlearners import Unlearner
from tests.paper.invented import run_here


def unlearner_named(name: str) -> Unlearner | None:
    return CHOICES[name][1] if name in CHOICES else METHODS[name]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return run_here(level_cells(Plan(quick=True, datasets=8000)))


@pytest.fixture(scope="module")
def choice_rows() -> list[Row]:
    return run_here(choice_cells(Plan(quick=True, datasets=8000)))


def test_every_setting_is_there_at_every_epsilon() -> None:
    found = set()
    for cell in level_cells(Plan()):
        assert isinstance(cell.request, SeveralArms)
        found.add((cell.model.n, cell.request.deletions[0], cell.budget.epsilon))
    assert found == {(n, k, epsilon) for _, n, ks, _ in SETTINGS[:2] for k in ks for epsilon in EPSILONS}
    assert {0.5, 1.0, 2.0, 3.0, 5.0} == set(EPSILONS)
    assert {cell.protocol for cell in level_cells(Plan(protocol="sampled"))} == {"sampled"}


def test_the_columns_name_the_level_of_their_method() -> None:
    for name, column in COLUMNS.items():
        method = unlearner_named(name)
        assert method is not None
        assert str(method.level) in column
        assert ("(0, 0)" in column) is not method.needs_budget
    strictness = [list(Level).index(method.level) for name in COLUMNS if (method := unlearner_named(name))]
    assert strictness == sorted(strictness)


@pytest.mark.slow
def test_costs_are_those_of_evaluate_and_rise_with_the_level(rows: list[Row]) -> None:
    def costs(k: int, epsilon: float) -> dict[str, Estimate]:
        chosen = pick(with_distances(rows), k=k, epsilon=epsilon)
        return {row["method"]: row["distance"] for row in chosen}

    model, budget = FixedSample.round_robin(1000, 5), Budget(epsilon=1.0, delta=1e-5)
    methods = [METHODS[name] for name in ("oracle", "rollback", "tilt")]
    none, rollback, tilt = (
        evaluate(ENVIRONMENT, model, OneArm(0, 80), method, budget).suboptimality for method in methods
    )
    at_one = costs(80, 1.0)
    assert (at_one["rollback"].value, at_one["tilt"].value) == (rollback / none, tilt / none)
    assert (at_one["tilt"].error, at_one["rollback"].error) == (0, 0)
    # 400 data sets; the differences exceed five standard errors (seed 0, false alarm below 10⁻⁶).
    retained = at_one[WITHOUT_COUNTS]
    assert tilt / none + 5 * retained.error < retained.value < rollback / none - 5 * retained.error
    # Equal counts show what was deleted: as good as at request_shape.
    assert abs(at_one["tilt retained"].value - tilt / none) < 5 * at_one["tilt retained"].error
    unasked = costs(0, 1.0)
    free = ("rollback", "frozen_rollback", "tilt", "tilt retained")
    assert [unasked[name].value for name in free] == [1.0] * 4
    assert unasked[WITHOUT_COUNTS].value > 1 + 2 * unasked[WITHOUT_COUNTS].error > 1
    insured = costs(0, 3.0)["tilt retained"]
    assert insured.value > 1 + 2 * insured.error > 1


@pytest.mark.slow
def test_the_choices_at_retained_are_compared_on_the_same_data_sets(choice_rows: list[Row]) -> None:
    """200 data sets and a fixed seed: the values do not change."""
    assert all(u.level is Level.RETAINED for name in CHOICES if (u := unlearner_named(name)))
    value = {(r["k"], r["epsilon"], r["method"]): r["suboptimality"] for r in choice_rows}
    assert value[0, 1.0, "tilt retained"] == value[0, 1.0, "oracle"]
    assert value[80, 1.0, "tilt retained"] == value[80, 1.0, "tilt retained, equal counts"]
    shares = ("tilt retained, share 0.1", "tilt retained, nothing or share", "tilt retained, share 0.95")
    small, half, large = (value[80, 1.0, name] for name in shares)
    assert small > half + 0.004
    assert half > large + 0.001
    assert large > value[80, 1.0, "tilt retained"] + 0.001
    # Insurance costs more than nothing, at ε = 3 only, and at most its price times the largest gap.
    price = value[0, 3.0, "tilt retained"] - value[0, 3.0, "tilt retained, uninsured"]
    assert 0 < price <= 0.0095 * 0.08
    assert value[80, 1.0, "tilt retained"] == value[80, 1.0, "tilt retained, uninsured"]
    panels = {cell.labels["panel"] for cell in choice_cells(Plan())}
    assert {"choices M_f N = 1000", "choices M_d C* = 2 N = 1000", "choices M_d C* = 10 N = 1000"} < panels


@pytest.mark.slow
def test_the_section_shows_them(rows: list[Row], choice_rows: list[Row]) -> None:
    section = describe_results(rows, choice_rows)
    table, choices = section.tables
    assert [len(line) for line in choices.rows] == [3 + len(CHOICES)] * 6
    shown = next(line for line in choices.rows if line[1:3] == [80, "1"])
    same = only(choice_rows, k=80, epsilon=1.0, method="tilt retained, share 0.1")
    column = list(choices.header).index("ρ = 0.1, flat")
    assert str(shown[column]).startswith(f"{1e5 * same['suboptimality']:.0f} ± ")
    assert "C* =" not in " ".join(section.paragraphs)  # a quick run has no such rows
    by_chance = [*choice_rows, {**choice_rows[0], "model": "distribution", "panel": "choices M_d"}]
    assert "With C* = 10 it is wrong" in " ".join(describe_results(rows, by_chance).paragraphs)
    assert len(table.rows) == 3 * len(EPSILONS)
    shown = next(line for line in table.rows if line[:3] == [1000, 80, "1"])
    for name, column_name in COLUMNS.items():
        cost = only(with_distances(rows), k=80, epsilon=1.0, method=name)
        assert shown[list(table.header).index(column_name)] == distance_as_text(cost)
