"""Requests that depend on rewards: the bias moves rollback, and does not move the oracle."""

import math
from typing import Any

import pytest

from armnesia.paper.comparisons import only
from armnesia.paper.dependent_requests import (
    BOUND_NAME,
    COMPARED_METHODS,
    EPSILONS,
    SETTINGS,
    SHOWN,
    dependent_requests_section,
    insured_excess,
    rows_of,
)
from armnesia.paper.pictures import name_of
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import Plan, Run
from armnesia.simulation.parallel import workers
from armnesia.unlearners import UNLEARNERS
from tests.paper.invented import legend_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> tuple[Run, Section]:
    """2000 data sets for the paper's methods, 400 for each point of the others, and a fixed seed."""
    with workers(1) as this_process:
        run = Run(Plan(datasets=2000, quick=True), this_process)
        return run, dependent_requests_section(run)


def test_rollback_follows_the_bias_of_the_requests_and_the_oracle_does_not(
    found: tuple[Run, Section],
) -> None:
    """Differences beyond five standard errors, which chance makes for 6·10⁻⁷ of seeds; this one is fixed."""
    table = found[1].tables[1]
    assert [row[:2] for row in table.rows[:3]] == [
        ["hard", "anyone"],
        ["hard", "the highest rewards"],
        ["hard", "the lowest rewards"],
    ]
    (anyone, error), (highest, _), (lowest, _), *_ = values_of(table, "Rollback")
    assert highest - anyone > 5 * error
    assert anyone - lowest > 5 * error
    (anyone, error), (highest, _), (lowest, _), *_ = values_of(table, "Oracle (no deletion)")
    assert max(abs(highest - anyone), abs(lowest - anyone)) < 5 * error


def test_every_method_is_compared_at_the_same_budget(found: tuple[Run, Section]) -> None:
    """Noise on the old score has no bias: its values differ by less than five standard errors.

    A false alarm in fewer than 6·10⁻⁷ of comparisons; the seed is fixed.
    """
    run, section = found
    table = section.tables[0]
    assert len(table.rows) == len(SETTINGS)
    named = set(COMPARED_METHODS) - {"oracle", "tilt retained"}
    assert named == set(UNLEARNERS) - {"multi_source", "imitation_rollback"}
    anyone, lowest, tilted, highest = values_of(table, "Centred Gaussian")[:4]
    for other in (lowest, tilted, highest):
        assert abs(other[0] - anyone[0]) < 5 * math.hypot(other[1], anyone[1])
    rollback = values_of(table, "Rollback")
    assert rollback[1][0] < rollback[0][0] < rollback[2][0] < rollback[3][0]
    assert {row["figure"] for row in run.rows} == {"dependent_requests"}


def test_the_insured_bound_is_no_deletion_plus_h_times_the_largest_gap(found: tuple[Run, Section]) -> None:
    """The gaps are 0 to 0.08. e^(−ε)·h = 1/50 at δ = 0 where e^ε·(1 + e^ε) = 50."""
    assert insured_excess(3.0, delta=0.0) == pytest.approx(0.08 / (1 + math.exp(3)))
    assert insured_excess(3.0, delta=0.1) == pytest.approx(0.9 * 0.08 / (1 + math.exp(3)))
    first = math.log((math.sqrt(201) - 1) / 2)
    assert math.isnan(insured_excess(first - 1e-9, delta=0.0))
    assert insured_excess(first + 1e-9, delta=0.0) == pytest.approx(0.08 / (1 + math.exp(first)))
    table = found[1].tables[0]
    column = list(table.header).index("insured bound")
    for row, (oracle, _) in zip(table.rows, values_of(table, "Oracle (no deletion)"), strict=True):
        assert float(str(row[column])) == pytest.approx(
            oracle + 0.08 * (1 - 1e-5) / (1 + math.exp(3)), abs=2e-5
        )
    # On the same data sets the bound has no sampling error; the values are rounded to five digits.
    for method in ("Tilt", "Tilt, level retained"):
        for row, (tilt, _) in zip(table.rows, values_of(table, method), strict=True):
            assert tilt <= float(str(row[column])) + 2e-5
    rollback = values_of(table, "Rollback")
    assert any(value > float(str(row[column])) for row, (value, _) in zip(table.rows, rollback, strict=True))


def test_the_picture_has_every_method_and_the_bound(found: tuple[Run, Section]) -> None:
    rows = found[0].rows
    figure: Any = found[1].pictures["dependent-requests"]
    assert legend_of(figure) == [*(name_of(name) for name in COMPARED_METHODS), BOUND_NAME]
    assert len(figure.axes) == len(SHOWN)
    for axis, setting in zip(figure.axes, SHOWN, strict=True):
        chosen = rows_of(rows, *setting)
        curves = {line.get_label(): line for line in axis.lines}
        tilt = curves[name_of("tilt")]
        epsilons = [float(x) for x in tilt.get_xdata()]
        assert [float(y) for y in tilt.get_ydata()] == [
            only(chosen, method="tilt", epsilon=epsilon)["suboptimality"] for epsilon in epsilons
        ]
        bound = axis.lines[-1]
        assert float(bound.get_ydata()[-1]) == pytest.approx(
            only(chosen, method="oracle", epsilon=3.0)["suboptimality"]
            + 0.08 * (1 - 1e-5) / (1 + math.exp(3))
        )
        shown = [x for x, y in zip(bound.get_xdata(), bound.get_ydata(), strict=True) if not math.isnan(y)]
        assert float(shown[0]) > math.log((math.sqrt(201) - 1) / 2) - 1e-4


def test_tilted_settings_say_what_is_left() -> None:
    """(60 − 24)/480, 0 of 300, and (20 − 12)/120."""
    texts = [who for _, _, who in SETTINGS if "mean" in who]
    assert [text.rsplit(" ", 1)[1] for text in texts] == ["0.075", "0", "0.0667"]
    assert {1.0, 3.0} < set(EPSILONS)


def values_of(table: Table, method: str) -> list[tuple[float, float]]:
    """The values of a method with their standard errors, row by row."""
    column = list(table.header).index(method)
    cells = [str(row[column]).split(" ± ") for row in table.rows]
    return [(float(value), float(error)) for value, error in cells]
