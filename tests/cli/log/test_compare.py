"""The command `compare`."""

import math
from pathlib import Path
from typing import Any

import pytest

import armnesia as am
from tests.cli.examples import BUDGET, COLUMNS, FOUR_BUSIEST, USER_COLUMN, write_clicks

BY_ROW = ("clicks.csv", *COLUMNS, *USER_COLUMN, "--actions", "A,B", "--user", "u1", "--by", "row")


def test_compare_sets_all_unlearners_side_by_side(run: Any) -> None:
    result = run("compare", "flights", *FOUR_BUSIEST, *BUDGET, "--json").json
    found = {each["name"]: each for each in result["unlearners"]}
    assert set(found) == set(am.UNLEARNERS)
    assert result["decision_before"] == "DL"
    assert found["rollback"]["change"] == 1.0
    assert found["tilt"]["change"] < 1e-3
    assert found["tilt"]["guarantee"]["level"] == "request_shape"
    assert found["imitation_rollback"]["refused"]
    shown = run("compare", "flights", *FOUR_BUSIEST, *BUDGET)
    assert shown.code == 0
    assert "Not possible here:" in shown.out
    assert run("compare", "flights", *FOUR_BUSIEST).code == 2


def test_with_a_share_tilt_is_compared_at_both_levels(run: Any, folder: Path) -> None:
    share = ("--assumed-share", 0.2, "--insurance", 0.01)
    result = run("compare", "flights", *FOUR_BUSIEST, *BUDGET, *share, "--json").json
    found = {each["name"]: each for each in result["unlearners"]}
    assert set(found) == {*am.UNLEARNERS, "tilt (retained)"}
    assert found["tilt"]["guarantee"]["level"] == "request_shape"
    assert found["tilt (retained)"]["guarantee"]["level"] == "retained"
    assert found["tilt"]["change"] < 1e-3 < found["tilt (retained)"]["change"] < 1
    write_clicks(folder / "clicks.csv")
    jointly = run("compare", *BY_ROW, *BUDGET, *share, "--over", "all", "--json").json
    levels = {each["name"]: each["guarantee"]["level"] for each in jointly["unlearners"] if each["guarantee"]}
    assert (levels["tilt"], levels["tilt (retained)"]) == ("request_shape", "retained")


def test_the_insurance_that_is_given_is_used_at_both_levels(run: Any) -> None:
    """Nothing is insured by 0.001 at ε = 3; by 0.02, two contenders and at retained all five."""
    budget = ("--epsilon", 3, "--delta", 1e-5, "--assumed-share", 0.95)
    changes = []
    for insurance in (0.001, 0.02):
        given = (*budget, "--insurance", insurance)
        result = run("compare", "flights", "--user", "N711ZX", *given, "--json").json
        found = {each["name"]: each["change"] for each in result["unlearners"]}
        changes.append((found["tilt"], found["tilt (retained)"]))
    one = math.exp(-3) * (1 - 1e-5) / (1 + math.exp(3))  # what each other contender costs: e^(−ε)·h
    assert changes[1] == pytest.approx((one, 4 * one), rel=1e-3)
    assert changes[0] == pytest.approx((0.0, 2 * one), rel=1e-3)  # the estimate is in doubt of two arms


def test_the_note_says_how_to_choose_and_what_the_loss_presupposes(run: Any, folder: Path) -> None:
    write_clicks(folder / "clicks.csv")
    for arguments in (("flights", *FOUR_BUSIEST), BY_ROW):
        note = run("compare", *arguments, *BUDGET).out
        assert "a choice made after seeing what each would release is not covered" in note
        assert "as if those who leave resembled those who stay" in note
