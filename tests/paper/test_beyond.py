"""The settings at the same (ε, δ): which cells there are, distances, tables, pictures and words."""

import re
from typing import Any

import pytest

from armnesia.paper.beyond import (
    EPSILONS,
    PEOPLE_K,
    WITHOUT_BUDGET,
    beyond_cells,
    describe_results,
    described,
    epsilon_panels,
    rows_of_figure,
)
from armnesia.paper.comparisons import distance_as_text, loss, only, pick, setting_of
from armnesia.paper.figures import figure_1_cells
from armnesia.paper.section import Section
from armnesia.paper.settings import Plan
from armnesia.plotting.panels import Panel
from armnesia.simulation import AcrossArms, Cell, FixedSample, Row, SeveralArms
from tests.paper.invented import assert_nothing_overlaps, rows_of, run_here


def deletions(cell: Cell) -> tuple[int, ...]:
    return tuple(cell.request.deletions.values()) if isinstance(cell.request, SeveralArms) else ()


@pytest.fixture(scope="module")
def recorded() -> list[Row]:
    return run_here(beyond_cells(Plan(quick=True, datasets=400)))


@pytest.fixture(scope="module")
def rows(recorded: list[Row]) -> list[Row]:
    return described(recorded)


@pytest.fixture(scope="module")
def panels() -> list[Panel]:
    return epsilon_panels(3)


def test_one_arm_has_every_setting_of_figure_1_at_every_epsilon() -> None:
    def found(cells: list[Cell], model: str) -> set[Any]:
        chosen = [
            c for c in cells if c.labels["panel"].startswith(model) and c.labels["varied"] in ("N", "k")
        ]
        return {(c.labels["panel"], c.model.n, deletions(c)) for c in chosen}

    whole = [cell for cell in beyond_cells(Plan()) if len(deletions(cell)) == 1]
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
    cells = [cell for cell in beyond_cells(Plan()) if len(deletions(cell)) != 1]
    pairs = {(c.labels["panel"], c.model.n, deletions(c)) for c in cells}
    assert {("M_f hard", n, (k, k)) for n in (2000, 3000, 4000) for k in (40, 80)} <= pairs
    assert {("M_f hard", 1000, (80, 80)), ("M_d easy", 3000, (80, 80))} <= pairs
    cells = [cell for cell in cells if len(deletions(cell)) != 2]
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
    recorded: list[Row], rows: list[Row]
) -> None:
    people = pick(recorded, panel="M_f people")
    none = {row["protocol"]: row["suboptimality"] for row in pick(people, method="oracle")}
    assert set(none) == {"exact", "sampled"}
    assert only(rows, panel="M_f people", method="oracle")["protocol"] == "exact"
    for method, protocol in (("tilt", "sampled"), ("rollback", "exact")):
        row = only(rows, panel="M_f people", method=method, epsilon=3.0)
        assert row["protocol"] == protocol
        assert row["distance"].value == row["suboptimality"] / none[protocol]


@pytest.mark.slow
def test_the_tables_hold_every_setting_once(
    recorded: list[Row], rows: list[Row], panels: list[Panel]
) -> None:
    worst, mixing, losses, all_settings = describe_results(recorded, panels).tables
    tilts = pick(rows, method="tilt", epsilon=3.0)
    assert len(set(map(setting_of, rows))) == len(tilts) == len(all_settings.rows)
    column = all_settings.header.index("tilt, ε = 3")
    assert [line[column] for line in all_settings.rows] == [distance_as_text(row) for row in tilts]
    assert [line[losses.header.index("Tilt")] for line in losses.rows] == [loss(row) for row in tilts]
    hard = pick(rows, panel="M_f hard", kind="one arm", method="rollback", epsilon=5.0)
    line = next(r for r in worst.rows if list(r[:4]) == ["M_f hard", "one arm", len(hard), "Rollback"])
    assert str(line[-1]).endswith(f"/ {max(row['distance'].value for row in hard):.2f}")
    assert len(mixing.rows) == 4
    for n, deleted, epsilon, share, value, _ in mixing.rows:
        parts = pick(recorded, n=n, k=int(str(deleted).split()[0]), epsilon=float(str(epsilon)))
        best = min(
            (r for r in parts if r["method"].startswith("mixing ")), key=lambda r: float(r["suboptimality"])
        )
        assert (best["method"], f"{best['suboptimality']:.5f}") == (f"mixing {share}", value)


@pytest.mark.slow
def test_the_words_are_about_what_was_computed(
    recorded: list[Row], rows: list[Row], panels: list[Panel]
) -> None:
    words = " ".join(describe_results(recorded, panels).paragraphs)
    tilt, rollback = (pick(rows, kind="one arm", method=m, epsilon=1.0) for m in ("tilt", "rollback"))
    behind = sum(a["suboptimality"] > b["suboptimality"] for a, b in zip(tilt, rollback, strict=True))
    assert f"better than tilt in {behind} of the {len(tilt)} settings with one requested arm" in words
    assert not re.search(r"\bnan\b|\binf\b|None", words)
    drawn = rows_of_figure(rows)
    assert {row["varied"] for row in drawn} == {"N", "k", "ε"}
    assert {row["epsilon"] for row in drawn if row["varied"] != "ε"} == {1.0}
    over_epsilon = pick(drawn, varied="ε")
    assert {(row["n"], row["k"]) for row in over_epsilon} == {(3000, 80)}
    for method in ("rollback", "tilt"):
        shown = pick(over_epsilon, method=method, panel="M_f hard")
        assert sorted(row["x"] for row in shown) == [1.0, 3.0, 5.0]


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
    for figure in figures.values():
        assert_nothing_overlaps(figure)
