"""Requests that depend on rewards: the bias moves rollback, and does not move the oracle."""

from pathlib import Path

from armnesia.paper.dependent_requests.section import dependent_requests_section
from armnesia.paper.plan import Plan
from armnesia.paper.run import Run
from armnesia.paper.section import Table


def test_rollback_follows_the_bias_of_the_requests_and_the_oracle_does_not(tmp_path: Path) -> None:
    """2000 data sets and a fixed seed; differences of rollback exceed five standard errors."""
    section = dependent_requests_section(Run(tmp_path, Plan(datasets=2000)))
    (table,) = section.tables
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


def values_of(table: Table, method: str) -> list[tuple[float, float]]:
    """The values of a method with their standard errors, row by row."""
    column = list(table.header).index(method)
    cells = [str(row[column]).split(" ± ") for row in table.rows]
    return [(float(value), float(error)) for value, error in cells]
