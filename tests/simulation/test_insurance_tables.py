"""The tables of docs/theory.md on insurance are what the program prints."""

import math
import os
from pathlib import Path

import pytest

from armnesia import Budget, Tilt, Unlearner
from armnesia.paper.settings import DELTA, ENVIRONMENT
from armnesia.simulation import FixedSample, OneArm, evaluate
from armnesia.unlearners.tilt_reference import knee
from scripts.insurance_tables import (
    EASY,
    cost_table,
    noise_table,
    plausible_table,
    row_of_one_arm,
    shown,
    table_of_several,
    threshold_table,
    unlike_table,
)

DOCS = Path(__file__).parents[2] / "docs"
THEORY = (DOCS / "theory.md").read_text(encoding="utf-8")
CHOOSING = (DOCS / "choosing.md").read_text(encoding="utf-8")
takes_minutes = pytest.mark.skipif(
    "ARMNESIA_HARD_TEST" not in os.environ, reason="takes minutes; make hard-test runs it"
)


def test_a_row_of_the_table_of_costs() -> None:
    """The easy case at ε = 2, the largest cost beside no deletion in the table of the paper's arms."""
    name, n, arm, k, deleted_mean, (epsilon, _), means = EASY[1]
    found = row_of_one_arm(n, arm, k, epsilon, deleted_mean, means)
    assert f"| {name} | {epsilon:g} | " + " | ".join(map(shown, found.values())) + " |" in THEORY
    assert found["insured"] > 1.5 * found["`insurance=0`"]


def test_the_table_of_noise() -> None:
    lines = noise_table()
    assert "\n".join(lines) in THEORY
    _, none, tilt, centred = map(float, lines[2].strip("| ").split(" | "))
    assert lines[2].startswith("| 1 |")
    text = f"it loses {centred / 1e5:.4f} at ε = 1, tilt and rollback {tilt / 1e5:.4f}"
    assert f"{text}, no deletion {none / 1e5:.4f}" in CHOOSING


@takes_minutes
@pytest.mark.slow
def test_every_row_of_the_exact_tables() -> None:
    for line in (*cost_table(), *threshold_table(), *plausible_table(), *unlike_table()):
        assert line in THEORY


def test_what_the_guide_says_about_the_cost_of_insurance() -> None:
    """1.59 and 1.09 times no deletion in the easy case; from 0 to 0.008 where the log leaves no doubt."""
    _, n, arm, k, deleted_mean, epsilons, means = EASY[1]
    rows = [row_of_one_arm(n, arm, k, epsilon, deleted_mean, means) for epsilon in epsilons]
    two, three = (f"{row['insured'] / row['no deletion']:.2f}" for row in rows)
    assert (
        f"| 80 of 600 records of the worst of five arms | 2 | {two} times that of no deletion |" in CHOOSING
    )
    assert f"| the same | 3 | {three} times that of no deletion |" in CHOOSING
    _, n, arm, k, deleted_mean, (epsilon, _), means = EASY[5]
    row = row_of_one_arm(n, arm, k, epsilon, deleted_mean, means)
    assert row["no deletion"] < 1e-6
    assert (n, k, means, epsilon) == (2000, 1500, (0.6, 0.1), 2.0)
    assert "| 1500 of 2000 records of the worse of two arms, means 0.6 and 0.1:" in CHOOSING
    assert f"| 2 | {row['insured'] / 1e5:.3f}; 0 without a deletion |" in CHOOSING


def test_why_the_weaker_level_costs_more_in_one_row() -> None:
    """It is insured there, and the stricter one is not."""
    budget, model, request = Budget(epsilon=2.0, delta=DELTA), FixedSample((600,) * 5), OneArm(0, 300)
    assert max(ENVIRONMENT.means) == ENVIRONMENT.means[0]
    none, insured, plain = (
        evaluate(ENVIRONMENT, model, request, unlearner, budget).suboptimality
        for unlearner in (None, Tilt(), Tilt(insurance=0))
    )
    row = next(line for line in THEORY.splitlines() if line.startswith("| 3000, 300 | 2 | "))
    at_retained, at_shape = row.strip("| ").split(" | ")[3], row.strip("| ").split(" | ")[-1]
    assert at_shape == f"{insured / none:.2f}"
    assert at_retained == f"{plain / none:.2f}"
    sentence = f"({at_retained}) than at the weaker level `request_shape` ({at_shape})"
    assert sentence in THEORY
    assert f"With `insurance=0`, tilt at `request_shape` costs {plain / none:.2f} as well" in THEORY


def alike(n: int, k: int, arm: int, unlearner: Unlearner | None) -> float:
    """The exact loss at ε = 3 where the deleted records are like the others."""
    budget = Budget(epsilon=3.0, delta=DELTA)
    return evaluate(ENVIRONMENT, FixedSample((n,) * 5), OneArm(arm, k), unlearner, budget).suboptimality


def test_what_is_paid_on_the_grid_of_figure_1() -> None:
    """The largest price in the hard case and, for 3000 and 5000 records, in the easy one."""

    def more(n: int, k: int, arm: int) -> str:
        return f"{100 * (alike(n, k, arm, Tilt()) / alike(n, k, arm, Tilt(insurance=0)) - 1):.1f} %"

    assert f"it loses at most {more(600, 240, 0)} more in the hard case" in THEORY
    assert f"up to {more(600, 60, 2)} more with 3000 records" in THEORY
    assert f"up to {more(1000, 80, 2)} more with 5000" in THEORY
    assert f"at ε = 3, {more(600, 60, 2)} at most with 600 records" in CHOOSING
    assert f"and {more(600, 240, 0)} if the best one is" in CHOOSING


def test_the_least_price_of_the_bound() -> None:
    """e^{−ε}·(h − δ) times the gap of arm 2, beside the loss of no deletion."""
    least = math.exp(-3.0) * (knee(Budget(epsilon=3.0, delta=DELTA)) - DELTA) * 0.04
    none = alike(1000, 80, 2, None)
    assert f"= {1e5 * least:.1f}·10⁻⁵ where arm 2 is a contender" in THEORY
    assert f"that is {100 * least / none:.1f} % of the loss of no deletion, {1e5 * none:.0f}·10⁻⁵" in THEORY


@takes_minutes
@pytest.mark.slow
def test_every_row_of_the_sampled_table() -> None:
    for line in table_of_several(2.0):
        assert line in THEORY


@takes_minutes
@pytest.mark.slow
def test_the_means_of_the_sampled_table_at_three() -> None:
    means = [line.strip("| ").split(" | ") for line in table_of_several(3.0) if line.startswith("| mean, ")]
    plain, insured = (
        "{}, {} and {}".format(*(cells[column].strip(" |") for cells in means)) for column in (2, 6)
    )
    assert f"are then {plain} with `insurance=0`, and {insured} insured" in THEORY
