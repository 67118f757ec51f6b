"""The settings at the same (ε, δ): which cells there are, distances, tables, pictures and words."""

import re
from typing import Any

import pytest

from armnesia.paper.beyond import (
    COMPARED_METHODS,
    EPSILONS,
    PEOPLE_K,
    WITHOUT_BUDGET,
    SettingResults,
    beyond_cells,
    describe_results,
    epsilon_panels,
    format_distance,
    one_arm_cells,
    people_cells,
    results_by_setting,
    rows_of_figure,
    table_of_distances,
    table_of_mixing,
    two_arm_cells,
)
from armnesia.paper.comparisons import pick
from armnesia.paper.figure_1 import figure_1_cells
from armnesia.paper.section import Section
from armnesia.paper.settings import Plan
from armnesia.plotting.panels import Panel
from armnesia.simulation import AcrossArms, Cell, FixedSample, Row, SeveralArms
from tests.paper.invented import assert_nothing_overlaps, rows_of, run_here


def deletions(cell: Cell) -> tuple[int, ...]:
    return tuple(cell.request.deletions.values()) if isinstance(cell.request, SeveralArms) else ()


def distance(setting: SettingResults, method: str, epsilon: float) -> float:
    measured = setting.distance(method, epsilon)
    assert measured is not None
    return measured.value


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return run_here(beyond_cells(Plan(quick=True, datasets=400)))


@pytest.fixture(scope="module")
def settings(rows: list[Row]) -> list[SettingResults]:
    return results_by_setting(rows)


@pytest.fixture(scope="module")
def panels() -> list[Panel]:
    return epsilon_panels(3)


def test_one_arm_has_every_setting_of_figure_1_at_every_epsilon() -> None:
    def found(cells: list[Cell], model: str) -> set[Any]:
        chosen = [
            c for c in cells if c.labels["panel"].startswith(model) and c.labels["varied"] in ("N", "k")
        ]
        return {(c.labels["panel"], c.model.n, deletions(c)) for c in chosen}

    whole = one_arm_cells(Plan())
    assert found(whole, "M_f") == found(figure_1_cells(Plan()), "M_f")
    assert found(whole, "M_d") < found(figure_1_cells(Plan()), "M_d")
    for panel, n, ks in found(whole, "M_"):
        here = [c for c in whole if (c.labels["panel"], c.model.n, deletions(c)) == (panel, n, ks)]
        assert {c.budget.epsilon for c in here if "tilt" in c.unlearners} == set(EPSILONS)
        assert {name for c in here for name in c.unlearners} >= {
            *WITHOUT_BUDGET,
            "adaptive",
            "strict_adaptive",
        }
        assert len({(c.seed, c.datasets) for c in here}) == 1  # all methods on the same data sets


def test_requests_over_several_arms_and_people_are_there_in_both_models() -> None:
    pairs = {(c.labels["panel"], c.model.n, deletions(c)) for c in two_arm_cells(Plan())}
    assert {("M_f hard", n, (k, k)) for n in (2000, 3000, 4000) for k in (40, 80)} <= pairs
    assert {("M_f hard", 1000, (80, 80)), ("M_d easy", 3000, (80, 80))} <= pairs
    cells = people_cells(Plan())
    assert {deletions(c) for c in cells} == {(160, 20, 20, 20, 20), (48,) * 5, ()}
    assert next(c for c in cells if not deletions(c)).request == AcrossArms(PEOPLE_K)


def test_what_is_exact_and_what_is_sampled_and_a_quick_plan_is_a_part() -> None:
    fixed = [c for c in beyond_cells(Plan()) if isinstance(c.model, FixedSample) and "tilt" in c.unlearners]
    protocols = {(len(deletions(cell)), cell.protocol) for cell in fixed}
    assert protocols == {(1, "exact"), (2, "exact"), (5, "sampled")}
    assert {cell.protocol for cell in beyond_cells(Plan(protocol="sampled"))} == {"sampled"}
    quick, whole = (
        {
            (
                c.labels["panel"],
                c.model.n,
                deletions(c),
                c.budget.epsilon * ("tilt" in c.unlearners),
                c.protocol,
            )
            for c in beyond_cells(Plan(quick=quick))
        }
        for quick in (True, False)
    )
    assert quick < whole


@pytest.mark.slow
def test_tilt_on_several_arms_is_held_against_no_deletion_on_the_same_data(
    settings: list[SettingResults],
) -> None:
    setting = next(each for each in settings if each.panel == "M_f people")
    assert set(setting.oracles) == {"exact", "sampled"}
    assert setting.oracle["protocol"] == "exact"
    tilt, rollback = setting.rows["tilt", 3.0], setting.rows["rollback", None]
    assert tilt["protocol"] == "sampled"
    assert (
        distance(setting, "tilt", 3.0) == tilt["suboptimality"] / setting.oracles["sampled"]["suboptimality"]
    )
    assert distance(setting, "rollback", 3.0) == rollback["suboptimality"] / setting.oracle["suboptimality"]
    assert setting.distance("adaptive", 3.0) is None


@pytest.mark.slow
def test_the_tables_hold_every_setting_once(
    settings: list[SettingResults], rows: list[Row], panels: list[Panel]
) -> None:
    table = table_of_distances(settings)
    assert len({(each.panel, each.n, each.request) for each in settings}) == len(settings) == len(table.rows)
    column = table.header.index("tilt, ε = 3")
    for setting, shown in zip(settings, table.rows, strict=True):
        assert shown[column] == format_distance(setting.distance("tilt", 3.0))
    _, worst, mixing, _ = describe_results(rows, panels).tables
    hard = [each for each in settings if each.panel == "M_f hard" and each.kind == "one arm"]
    row = next(r for r in worst.rows if list(r[:4]) == ["M_f hard", "one arm", len(hard), "Rollback"])
    assert str(row[-1]).endswith(f"/ {max(distance(each, 'rollback', 5.0) for each in hard):.2f}")
    assert mixing == table_of_mixing(settings)
    for n, deleted, epsilon, share, value, _ in mixing.rows:
        parts = pick(rows, n=n, k=int(str(deleted).split()[0]), epsilon=float(str(epsilon)))
        best = min(
            (r for r in parts if r["method"].startswith("mixing ")), key=lambda r: float(r["suboptimality"])
        )
        assert (best["method"], f"{best['suboptimality']:.5f}") == (f"mixing {share}", value)


@pytest.mark.slow
def test_the_words_are_about_what_was_computed(
    settings: list[SettingResults], rows: list[Row], panels: list[Panel]
) -> None:
    section = describe_results(rows, panels)
    words = " ".join(section.paragraphs)
    one_arm = [each for each in settings if each.kind == "one arm"]
    for method, epsilon, digits in (("tilt", 5.0, 2), ("tilt", 3.0, 2), ("rollback", 1.0, 1)):
        assert f"{max(distance(each, method, epsilon) for each in one_arm):.{digits}f}" in words
    assert f"In {len(one_arm)} settings with one requested arm" in words
    assert not re.search(r"\bnan\b|\binf\b|None", words)
    drawn = rows_of_figure(rows)
    assert {row["varied"] for row in drawn} == {"N", "k", "ε"}
    assert {row["epsilon"] for row in drawn if row["varied"] != "ε"} == {1.0}
    over_epsilon = [row for row in drawn if row["varied"] == "ε"]
    assert {(row["n"], row["k"]) for row in over_epsilon} == {(3000, 80)}
    for method in ("rollback", "tilt"):
        assert sorted(row["x"] for row in pick(over_epsilon, method=method, panel="M_f hard")) == [
            1.0,
            3.0,
            5.0,
        ]


@pytest.mark.slow
@pytest.mark.parametrize("quick", [True, False])
def test_pictures_have_all_panels_and_no_words_overlap(quick: bool, panels: list[Panel]) -> None:
    section: Section = describe_results(rows_of(beyond_cells(Plan(quick=quick))), panels)
    figures: dict[str, Any] = dict(section.pictures)
    assert [len(figure.axes) for figure in figures.values()] == [12, 6 if quick else 9, 2]
    assert {axis.get_xlabel() for axis in figures["beyond"].axes} == {
        "data points N\n(k = 80, ε = 1)",
        "deleted points k\n(N = 3000, ε = 1)",
        "ε, log scale\n(N = 3000, k = 80)",
    }
    assert {axis.get_ylabel() for axis in figures["beyond-distance"].axes} == {"times no deletion", ""}
    assert set(COMPARED_METHODS) >= {"tilt", "rollback"}
    for figure in figures.values():
        assert_nothing_overlaps(figure)
