"""The command `bounds`."""

import json
from typing import Any, get_args

import pytest

from armnesia import Budget
from armnesia.theory import LowerForm, Setting
from armnesia.theory import bounds as all_bounds


def test_bounds_agree_with_the_library(run: Any) -> None:
    result = run(
        "research", "bounds", "--n", 3000, "--deletions", 80, "--gamma", 0.5, "--best", 0, "--json"
    ).json
    setting = Setting.fixed(
        counts=[600] * 5,
        deletions={0: 80},
        budget=Budget.from_gamma(0.5, delta=1e-5),
        best=0,
        threshold_scale=1.3,
    )
    assert [bound["value"] for bound in result["bounds"]] == [bound.value for bound in all_bounds(setting)]
    assert {"name", "value", "kind", "holds", "conditions", "reference"} <= set(result["bounds"][0])
    assert "Algorithm 2" in run("research", "bounds", "--counts", "600,600", "--deletions", 80).out


def test_bounds_say_what_is_missing(run: Any) -> None:
    shown = run("research", "bounds", "--model", "distribution", "--n", 100, "--c-star", 5, "--json").json[
        "bounds"
    ]
    assert any(not bound["holds"] for bound in shown)
    assert any(not condition["holds"] for bound in shown for condition in bound["conditions"])


@pytest.mark.slow
def test_bounds_of_several_arms_under_the_distribution_model(run: Any) -> None:
    """With every form; an unknown one, or two arms of which one is not there, is refused in one sentence."""
    options = ("research", "bounds", "--model", "distribution", "--n", 3000, "--c-star", 3, "--epsilon", 3)
    setting = Setting.distribution(
        n=3000, n_actions=5, c_star=3, deletions={0: 100, 1: 50}, budget=Budget(epsilon=3.0, delta=1e-5),
        threshold_scale=1.3,
    )  # fmt: skip
    for form in get_args(LowerForm):
        shown = run(*options, "--arms", "0,1", "--deletions", "100,50", "--form", form, "--json").json
        expected = [bound.to_dict() for bound in all_bounds(setting, form=form)]
        assert shown["bounds"] == json.loads(json.dumps(expected))
    assert [bound["name"].split(",")[0] for bound in shown["bounds"]] == [
        "LCB", "Rollback", "Insured tilt", "Lower bound",
    ]  # fmt: skip
    for bad, said in (
        (("--form", "KL"), "form must be one of"),
        (("--arms", "0,7"), "every arm of deletions must be between 0 and 4"),
    ):
        refused = run(*options, *bad)
        assert refused.code == 2
        assert said in refused.err
