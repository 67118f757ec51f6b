"""The least price of insurance: the linear program against exact losses, and the table of docs/theory.md."""

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from armnesia import Tilt
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate
from armnesia.unlearners.tilt_reference import knee
from scripts.insurance_tables import budget_of
from scripts.least_price import CASES, Loss, Unlike, alike, least_price, row_of
from scripts.unlike_requests import LABELS, MEANS, losses

DOCS = Path(__file__).parents[2] / "docs"
THEORY = (DOCS / "theory.md").read_text(encoding="utf-8")
CHOOSING = (DOCS / "choosing.md").read_text(encoding="utf-8")
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
    """Its own loss is the target. Without insurance the price is 1, so the least is at most 1."""
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


def test_what_is_paid_on_the_grid_of_figure_1() -> None:
    """The largest price at ε = 3 in the hard case and, for N = 3000 and N = 5000, in the easy one."""
    budget = budget_of(3.0)

    def more(n: int, k: int, arm: int) -> str:
        insured, plain = (alike(n, k, arm, tilt, budget) for tilt in (Tilt(), Tilt(insurance=0)))
        return f"{100 * (insured / plain - 1):.1f} %"

    assert f"it loses at most {more(600, 240, 0)} more in the hard case" in THEORY
    assert f"up to {more(600, 60, 2)} more with 3000 records" in THEORY
    assert f"up to {more(1000, 80, 2)} more with 5000" in THEORY
    assert f"at ε = 3, {more(600, 60, 2)} at most with 600 records" in CHOOSING
    assert f"and {more(600, 240, 0)} if the best one is" in CHOOSING


def test_the_least_price_of_the_bound() -> None:
    """e^{−ε}·(h − δ) times the gap of arm 2, beside the loss of no deletion."""
    budget, world = budget_of(3.0), Environment.bernoulli(MEANS.tolist())
    least = math.exp(-3.0) * (knee(budget) - budget.delta) * 0.04
    none = evaluate(world, FixedSample((1000,) * 5), OneArm(2, 80), None, budget, protocol="exact")
    assert f"= {1e5 * least:.1f}·10⁻⁵ where arm 2 is a contender" in THEORY
    text = f"that is {100 * least / none.suboptimality:.1f} % of the loss of no deletion"
    assert f"{text}, {1e5 * none.suboptimality:.0f}·10⁻⁵" in THEORY


@takes_minutes
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_row_of_the_table(case: Unlike) -> None:
    assert "| " + " | ".join(row_of(case)) + " |" in THEORY
