"""The claims table: its arithmetic, its verdicts, and the true values that it must show."""

import math

import numpy as np
import pytest

from armnesia.paper.cells import Row, Store, run_cells
from armnesia.paper.claims.claims import FAILS, HOLDS, WITHIN_ERROR, End, all_claims, verdict
from armnesia.paper.claims.evidence import Evidence
from armnesia.paper.figures.cells import Plan
from armnesia.paper.measures import Measured, distance_to_best, points, reduction


def row(method: str, blocks: list[float], x: float = 1.0) -> Row:
    mean = sum(blocks) / len(blocks)
    return {
        "figure": "1",
        "panel": "p",
        "varied": "N",
        "x": x,
        "method": method,
        "suboptimality": mean,
        "blocks": blocks,
    }


def test_a_reduction_is_in_per_cent_of_the_other() -> None:
    point = {"a": row("a", [0.01]), "b": row("b", [0.04])}
    assert reduction(point, "a", "b") == Measured(75.0, 0.0, 1.0)
    assert distance_to_best(point, "b", ["a"]).value == pytest.approx(300.0)
    assert distance_to_best(point, "a", ["b"]).value == 0.0


def test_the_error_of_a_reduction_is_that_of_correlated_means() -> None:
    """Against the spread over 4000 repetitions; the jackknife is within 10 % of it, and far from ignoring the
    correlation, which would give four times as much. (The seed is fixed.)"""
    rng = np.random.default_rng(1)
    errors, values = [], []
    for _ in range(4000):
        common = rng.normal(1.0, 0.2, 20)
        a = common + rng.normal(0, 0.05, 20)
        b = 2 * common + rng.normal(0, 0.05, 20)
        found = reduction({"a": row("a", a.tolist()), "b": row("b", b.tolist())}, "a", "b")
        errors.append(found.error)
        values.append(found.value)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)
    independent = 50 * math.sqrt(2 * (0.2 / 1.0) ** 2 / 20)
    assert np.mean(errors) < independent / 3


def test_points_are_grouped_by_setting() -> None:
    rows = [row("a", [1.0]), row("b", [2.0]), row("a", [3.0], x=2.0)]
    assert [sorted(point) for point in points(rows)] == [["a", "b"], ["a"]]
    assert points(rows, x=2.0)[0]["a"]["suboptimality"] == 3.0


@pytest.mark.parametrize(
    ("kind", "printed", "true", "paper_error", "expected"),
    [
        ("about", 35.0, 35.4, 0.0, HOLDS),
        ("about", 35.0, 36.0, 0.0, FAILS),
        ("about", 35.0, 36.0, 0.5, WITHIN_ERROR),
        ("at least", 76.0, 90.0, 0.0, HOLDS),
        ("at least", 76.0, 74.0, 0.1, FAILS),
        ("at least", 76.0, 74.0, 1.0, WITHIN_ERROR),
        ("at most", 11.0, 2.0, 0.0, HOLDS),
        ("at most", 11.0, 13.0, 0.2, FAILS),
    ],
)
def test_verdicts(kind: str, printed: float, true: float, paper_error: float, expected: str) -> None:
    assert verdict([End(printed, Measured(true, 0.0), paper_error, kind)]) == expected  # type: ignore[arg-type]


def test_a_claim_is_as_good_as_its_worst_number() -> None:
    good = End(10.0, Measured(10.0, 0.0), 0.0, "about")
    bad = End(10.0, Measured(30.0, 0.0), 1.0, "about")
    assert verdict([good, bad]) == FAILS


# The exact values of the fixed-sample model, on the quick grid, which holds N = 1000, 1300, 2200 and 5000.
EXACT = {
    "M_f hard, N ≥ 2200: Algorithm 2 gives up less than gaussian": "26.8–74.6 %",
    "M_f hard, N ≥ 2200: Algorithm 2 gives up less than mixing": "32.3–69.7 %",
    "M_f hard, N ≤ 1300: Algorithm 2 gives up less than rollback": "8.5–25.4 %",
    "M_f easy: Algorithm 2 gives up less than gaussian": "75.5 %",
    "M_f easy: distance to the best method": "10.5 %",
    "M_f arms {0, 1}, N = 2000, γ = 0.05, k = 40: Algorithm 7 gives up less than gaussian": "10.9 %",
    "M_f arms {0, 1}, N = 2000, γ = 0.05, k = 80: Algorithm 7 gives up less than rollback": "18.1 %",
}


def test_the_claims_of_the_paper() -> None:
    """All of them in one test, because they share ten seconds of computation."""
    store = Store()
    plan = Plan(datasets=4000, quick=True)
    claims = all_claims(Evidence(plan, lambda cells: run_cells(cells, store)))
    by_text = {claim.text: claim for claim in claims}
    assert len(by_text) == 18
    assert {claim.verdict for claim in claims} == {HOLDS, WITHIN_ERROR, FAILS}
    assert all(claim.why for claim in claims if claim.verdict != HOLDS)
    for text, ours in EXACT.items():
        assert by_text[text].ours == ours
        assert set(by_text[text].error.split(" / ")) == {"0.0"}
    imitation = next(claim for claim in claims if claim.text.startswith("Table 2"))
    assert imitation.verdict == HOLDS
    assert "rollback" in imitation.why
