"""The command `bounds`."""

from typing import Any

from armnesia import Budget
from armnesia.theory import Setting
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
