"""Results by setting, the tables and the section: they show what was computed, once."""

import re
from pathlib import Path

import pytest

from armnesia.paper.beyond.cells import EPSILONS, beyond_cells
from armnesia.paper.beyond.results import SettingResults, results_by_setting
from armnesia.paper.beyond.section import describe_results, paragraphs_on_budgets, paragraphs_on_distances
from armnesia.paper.beyond.tables import (
    format_distance,
    table_of_distances,
    table_of_mixing,
    table_of_values,
    table_of_worst,
)
from armnesia.paper.cells import Row
from armnesia.paper.plan import Plan
from tests.paper.beyond.distances import distance
from tests.paper.drawing import rows_of


@pytest.mark.slow
def test_tilt_on_several_arms_is_held_against_no_deletion_on_the_same_data(
    beyond_settings: list[SettingResults],
) -> None:
    setting = next(p for p in beyond_settings if p.panel == "M_f people")
    assert set(setting.oracles) == {"exact", "sampled"}
    assert setting.oracle["protocol"] == "exact"
    tilt = setting.rows["tilt", 3.0]
    assert tilt["protocol"] == "sampled"
    expected = tilt["suboptimality"] / setting.oracles["sampled"]["suboptimality"]
    assert distance(setting, "tilt", 3.0) == expected
    exactly = setting.rows["rollback", None]["suboptimality"] / setting.oracle["suboptimality"]
    assert distance(setting, "rollback", 3.0) == exactly
    assert setting.distance("adaptive", 3.0) is None


@pytest.mark.slow
def test_the_tables_hold_every_setting_once(beyond_settings: list[SettingResults]) -> None:
    distances = table_of_distances(beyond_settings)
    assert len(beyond_settings) == len({(p.panel, p.n, p.request) for p in beyond_settings})
    assert len(distances.rows) == len(beyond_settings)
    column = distances.header.index("tilt, ε = 3")
    for setting, shown in zip(beyond_settings, distances.rows, strict=True):
        assert shown[column] == format_distance(setting.distance("tilt", 3.0))
    worst = {tuple(row[:4]): row for row in table_of_worst(beyond_settings).rows}
    hard = [p for p in beyond_settings if p.panel == "M_f hard" and p.one_arm]
    row = worst["M_f hard", "one arm", len(hard), "Rollback"]
    assert str(row[-1]).endswith(f"/ {max(distance(p, 'rollback', 5.0) for p in hard):.2f}")
    assert len(worst) == len(table_of_worst(beyond_settings).rows)


@pytest.mark.slow
def test_the_table_of_mixing_names_the_best_part(
    beyond_settings: list[SettingResults], beyond_rows: list[Row]
) -> None:
    table = table_of_mixing(beyond_settings)
    assert len(table.rows) == 4
    for n, deleted, epsilon, share, value, _ in table.rows:
        k = int(str(deleted).split()[0])
        parts = [
            r
            for r in beyond_rows
            if (r["n"], r["k"], r["epsilon"]) == (n, k, float(str(epsilon))) and r["method"][:7] == "mixing "
        ]
        best = min(parts, key=lambda r: float(r["suboptimality"]))
        assert (best["method"], f"{best['suboptimality']:.5f}") == (f"mixing {share}", value)


@pytest.mark.slow
def test_the_section_says_what_was_computed(
    beyond_settings: list[SettingResults], beyond_rows: list[Row], tmp_path: Path
) -> None:
    section = describe_results(beyond_rows, tmp_path, quick=True)
    words = " ".join(section.paragraphs)
    assert "nan" not in words
    one = [p for p in beyond_settings if p.one_arm]
    largest = max(distance(p, "tilt", 5.0) for p in one)
    assert f"In {len(one)} settings" in words
    assert f"the distance of tilt is at most {largest:.2f} at ε = 5" in words
    # With 400 data sets per setting, sampled settings may seem weak by chance; under M_f values are exact.
    weak = re.search(r"in (\d+) of the (\d+) settings with one arm, (\d+|all) of them easy", words)
    assert weak is not None
    easy = int(weak[1] if weak[3] == "all" else weak[3])
    assert int(weak[1]) >= easy >= len([p for p in one if p.panel == "M_f easy"])
    assert {file.stem for file in tmp_path.iterdir()} == {"beyond", "beyond-distance", "beyond-epsilon"}
    assert len(section.pictures) == 3


def test_tables_and_paragraphs_of_invented_values() -> None:
    settings = results_by_setting(rows_of(beyond_cells(Plan(quick=True))))
    several = [setting for setting in settings if not setting.one_arm]
    assert len(table_of_distances(settings).rows) == len(settings) > len(several) > 0
    assert len(table_of_values(settings, lambda setting: not setting.one_arm, 3.0).rows) == len(several)
    assert {len(row) for row in table_of_worst(settings).rows} == {4 + len(EPSILONS)}
    assert [row[3] for row in table_of_mixing(settings).rows] == ["0"] * 4  # the first has the smallest value
    budgets, distances = paragraphs_on_budgets(settings), paragraphs_on_distances(settings)
    assert "at ε = 0.1, γ = " in budgets[0]
    assert f"In {len(settings) - len(several)} settings with one requested arm" in distances[0]
