"""The least price of insurance: the linear program against exact losses, and the table of docs/theory.md."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from armnesia import Tilt
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate
from scripts.insurance_tables import budget_of
from scripts.least_price import CASES, Loss, Unlike, alike, least_price, row_of
from scripts.unlike_requests import LABELS, MEANS, losses

THEORY = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
SMALL = Unlike(40, 16, 0.2, 0.1 / 3, 3.0, target=0.0)
takes_minutes = pytest.mark.skipif(
    "ARMNESIA_HARD_TEST" not in os.environ, reason="takes minutes; make hard-test runs it"
)


@pytest.mark.parametrize("arm", LABELS)
def test_the_loss_of_keeping_the_old_decision_is_that_of_no_deletion(arm: int) -> None:
    """Also if the requested arm is never released: then it is the loss of the best other arm."""
    loss = Loss.of(30, 12, arm, MEANS[arm], MEANS[arm])
    world, model = Environment.bernoulli(MEANS.tolist()), FixedSample((30,) * 5)
    exact = evaluate(world, model, OneArm(arm, 12), None, budget_of(1.0), protocol="exact").suboptimality
    assert loss.fixed + loss.if_served.sum() == pytest.approx(1e5 * exact, rel=1e-9)
    others = [mean for other, mean in enumerate(MEANS.tolist()) if other != arm]
    world, model = Environment.bernoulli(others), FixedSample((30,) * 4)
    rest = evaluate(world, model, OneArm(0, 1), None, budget_of(1.0), protocol="exact").suboptimality
    assert loss.fixed == pytest.approx(1e5 * (rest + 0.1 - max(others)), rel=1e-9)


def test_tilt_pays_no_less_than_the_least_price() -> None:
    """Its own loss is the target. Without insurance the price is 1 by definition, so the least is at most 1."""
    budget = budget_of(SMALL.epsilon)
    world = (SMALL.n, SMALL.k, SMALL.deleted_mean, SMALL.kept_mean)
    found = losses(*world, {"plain": Tilt(insurance=0), "insured": Tilt()}, budget)
    plain, insured = (replace(SMALL, target=1e5 * loss * (1 + 1e-5)) for loss in found.values())
    assert least_price(plain, rising=False) <= 1 + 1e-6
    paid = max(
        alike(SMALL.n, SMALL.k, arm, Tilt(), budget) / alike(SMALL.n, SMALL.k, arm, Tilt(insurance=0), budget)
        for arm in LABELS
    )
    least = [least_price(insured, rising=rising) for rising in (False, True)]
    assert least[0] <= least[1] + 1e-6
    assert least[0] <= paid + 1e-6


def test_less_to_lose_costs_more() -> None:
    """From a target that costs nothing to one that only an unlearner which favours the arm can reach."""
    prices = [least_price(replace(SMALL, target=target), rising=True) for target in (2600.0, 1000.0, 200.0)]
    assert prices[0] <= 1
    assert 1 < prices[1] < prices[2]


@takes_minutes
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_row_of_the_table(case: Unlike) -> None:
    assert "| " + " | ".join(row_of(case)) + " |" in THEORY
