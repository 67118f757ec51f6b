"""The tables of docs/theory.md on what did not help tilt are what the program prints."""

import os
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from armnesia import LCB, ArmStatistics, DeletionRequest, Tilt
from armnesia.core.units import UNIT
from armnesia.unlearners.predictive import flat, flat_belief
from scripts.insurance_tables import budget_of
from scripts.predictive_tables import (
    CELLS,
    PRICED_CELLS,
    Outcomes,
    by_value,
    knowing_the_means,
    price_table,
    row_of_prices,
    row_of_values,
    value_table,
    variant_table,
)
from scripts.unlike_requests import LABELS, MEANS

THEORY = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
takes_minutes = pytest.mark.skipif(
    "ARMNESIA_HARD_TEST" not in os.environ, reason="takes a minute; make hard-test runs it"
)
LEARNER = LCB(confidence=0.01)


@pytest.mark.slow
def test_a_row_of_the_sampled_table() -> None:
    assert row_of_values(*CELLS[0]) in THEORY.splitlines()


@pytest.mark.slow
def test_a_row_of_the_exact_table() -> None:
    assert row_of_prices(*PRICED_CELLS[1]) in THEORY.splitlines()


@takes_minutes
@pytest.mark.slow
def test_every_row() -> None:
    for make in (value_table, variant_table, price_table):
        assert "\n".join(make()) in THEORY


def requests(data_sets: int) -> tuple[ArmStatistics, DeletionRequest]:
    """40 of 100 records of arm 1 are deleted."""
    rng, at = np.random.default_rng(2), np.arange(5) == 1
    deleted = np.tile(np.where(at, 40, 0), (data_sets, 1))
    removed = ArmStatistics(LABELS, deleted, rng.binomial(deleted, 0.3) * UNIT)
    left = ArmStatistics(LABELS, 100 - deleted, rng.binomial(100 - deleted, 0.3) * UNIT)
    return left.merge(removed), DeletionRequest(removed, binary=True)


def test_by_value_no_other_reference_has_a_higher_expected_score() -> None:
    """Against a grid of all references on the two arms that can be served."""
    statistics, request = requests(5)
    retained, budget = statistics.without(request), budget_of(1.0)
    tilt = Tilt(predictive=by_value(flat_belief), insurance=0)
    chosen = tilt.reference(LEARNER, retained, budget, shape=request.counts)
    found = Outcomes.under(
        flat_belief(retained.sums / UNIT, retained.counts), LEARNER, retained, request.counts
    )
    up, down, delta = np.exp(1.0), np.exp(-1.0), budget.delta

    def value(reference: float, row: int) -> float:
        """Of the requested arm's probability: the expected score, with what (ε, δ) allows at each outcome."""
        total = 0.0
        for score, chance in zip(found.scores[:, row], found.chances[:, row], strict=True):
            ahead = score > found.to_beat[row]
            r = reference if ahead else 1 - reference
            kept = max(r, min(1.0, up * r + delta, 1 - down * (1 - r - delta)))
            high, low = max(score, found.to_beat[row]), min(score, found.to_beat[row])
            total += chance * (kept * high + (1 - kept) * low)
        return total

    for row in range(5):
        best = max(value(r, row) for r in np.linspace(0, 1, 401))
        assert value(float(chosen[row, 1]), row) >= best - 1e-12


def test_the_chance_of_being_ahead_is_that_of_the_predictive() -> None:
    statistics, request = requests(50)
    retained = statistics.without(request)
    belief = flat_belief(retained.sums / UNIT, retained.counts)
    found = Outcomes.under(belief, LEARNER, retained, request.counts)
    ahead = np.where(found.scores > found.to_beat, found.chances, 0.0).sum(axis=0)
    tied = np.where(found.scores == found.to_beat, found.chances, 0.0).sum(axis=0)
    q = flat(LEARNER, retained, request.counts)[:, 1]
    assert (ahead - 1e-12 <= q).all()
    assert (q <= ahead + tied + 1e-12).all()
    assert ((q > 0.05) & (q < 0.95)).sum() > 10


def test_knowing_the_means_by_trying_all_assignments_and_numbers_of_ones() -> None:
    """With the learner's decision on every old log."""
    k, counts, sums = 20, np.array([60, 40, 60, 60, 60]), np.array([4, 3, 4, 2, 1])
    shape = np.where(np.arange(5) == 1, k, 0)
    expected, total = np.zeros(5), 0.0
    for order in permutations(range(5)):
        weight = float(np.prod(binom.pmf(sums, counts, MEANS[list(order)])))
        total += weight
        for ones in range(k + 1):
            old = ArmStatistics(LABELS, counts + shape, (sums + ones * (shape > 0)) * UNIT)
            expected[LEARNER.decide(old).index] += weight * binom.pmf(ones, k, MEANS[order[1]])
    retained = ArmStatistics(LABELS, counts[None], sums[None] * UNIT)
    found = knowing_the_means(LEARNER, retained, shape[None])[0]
    assert 0.1 < expected[1] / total < 0.9
    np.testing.assert_allclose(found, expected / total, atol=1e-6)
