"""The tables of docs/theory.md on insurance are what the program prints."""

from pathlib import Path

import pytest

from scripts.insurance_tables import (
    EASY,
    cost_table,
    plausible_table,
    row_of_one_arm,
    shown,
    table_of_several,
    threshold_table,
)

THEORY = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


def test_a_row_of_the_table_of_costs() -> None:
    """The easy case at ε = 2, the largest cost beside no deletion in the table of the paper's arms."""
    name, n, arm, k, deleted_mean, (epsilon, _), means = EASY[1]
    found = row_of_one_arm(n, arm, k, epsilon, deleted_mean, means)
    assert f"| {name} | {epsilon:g} | " + " | ".join(map(shown, found.values())) + " |" in THEORY
    assert found["insured"] > 1.5 * found["`insurance=0`"]


@pytest.mark.slow
def test_every_row_of_the_exact_tables() -> None:
    for line in (*cost_table(), *threshold_table(), *plausible_table()):
        assert line in THEORY


@pytest.mark.slow
def test_every_row_of_the_sampled_table() -> None:
    for line in table_of_several(2.0):
        assert line in THEORY
