"""The command `decide --by`."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armnesia as am

REVEALS = "τ = 1/600 was taken from the log, so its size is public"
LOG = ("decide", "visits.csv", "--actions", "A,B,C")


@pytest.fixture
def visits(folder: Path) -> Path:
    """600 rows with a country, an age and a device."""
    drawn = random.Random(3)
    lines = ["action,reward,user,country,age,page"]
    lines += [
        f"{drawn.choice('ABC')},{int(drawn.random() < 0.4)},u{row % 50},{drawn.choice(['DE', 'FR', 'IT'])}"
        f",{drawn.randint(14, 70)},{row % 30}"
        for row in range(600)
    ]
    path = folder / "visits.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_it_agrees_with_the_library(run: Any, visits: Path) -> None:
    result = run(*LOG, "--by", "country", "--by", "age:18,30", "--json").json
    decisions = am.read_log(visits, actions=["A", "B", "C"]).by("country", "age:18,30")
    served = am.LCB(confidence=1 / 600).decide(decisions.statistics)
    assert result["by"] == ["country", "age:18,30"]
    assert result["learner"] == {"name": "lcb", "confidence": 1 / 600, "reveals": REVEALS}
    assert result["n_rows"] == 600
    assert result["picture"] is None
    assert [each["key"] for each in result["decisions"]] == [
        {"country": country, "age": age}
        for country in ("DE", "FR", "IT")
        for age in ("<18", "18..30", ">=30")
    ]
    assert [each["action"] for each in result["decisions"]] == served.action
    scores = np.sort(served.scores, axis=-1)
    assert [each["margin"] for each in result["decisions"]] == pytest.approx(scores[:, -1] - scores[:, -2])
    second = [served.actions[arm] for arm in np.argsort(served.scores, axis=-1)[:, -2]]
    assert [each["runner_up"] for each in result["decisions"]] == second
    assert [each["n_rows"] for each in result["decisions"]] == decisions.statistics.total.tolist()


def test_each_decision_has_the_counts_and_means_of_its_arms(run: Any, folder: Path) -> None:
    """Those of `decide` on the rows of that decision, under the same keys; without rows there is no mean."""
    Path("visits.csv").write_text(
        "action,reward,country\nA,1,DE\nA,0,DE\nB,1,DE\nB,1,FR\nB,0.5,FR\n", encoding="utf-8"
    )
    options = (*LOG, "--confidence", "0.5", "--json")
    every = run(*options, "--by", "country").json["decisions"]
    assert [(arm["action"], arm["count"], arm["mean"]) for arm in every[1]["arms"]] == [
        ("A", 0, None),
        ("B", 2, 0.75),
        ("C", 0, None),
    ]
    for each in every:
        assert each["arms"] == run(*options, "--where", f"country = {each['key']['country']}").json["arms"]


def test_the_smallest_margins_stand_first(run: Any, visits: Path) -> None:
    every = run(*LOG, "--by", "page", "--json").json["decisions"]
    shown = run(*LOG, "--by", "page").out
    assert "30 decisions, smallest margins first" in shown
    assert "10 more decisions: --json prints all of them." in shown
    closest = sorted(every, key=lambda each: each["margin"])[:20]
    printed = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    assert printed == [each["key"]["page"] for each in closest]
    assert "more decision" not in run(*LOG, "--by", "country").out


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys", [("country",), ("country", "age:18,30"), ("country", "page"), ("page", "age")]
)
def test_it_draws_its_picture(run: Any, visits: Path, keys: tuple[str, ...]) -> None:
    by = [argument for key in keys for argument in ("--by", key)]
    result = run(*LOG, *by, "--picture", "decisions.png", "--json")
    assert result.json["picture"] == "decisions.png"
    assert Path("decisions.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*LOG, "--by", "planet"), "key column 'planet' is not in the source; it has 'action', 'reward', "),
        ((*LOG, "--by", "age:30,18"), "edges of key 'age' must be finite numbers that rise; got 30,18"),
        (
            (*LOG, "--by", "country:1"),
            "key column 'country' has edges, so it must hold a number in every row",
        ),
        ((*LOG, "--by", "reward"), "a key must be another column than those of the action, the reward"),
        ((*LOG, "--picture", "x.png"), "--picture draws the decisions of --by, which was not given"),
        (("decide", "--by", "country"), "the vault has its own columns, actions and learner; such options "),
        (
            ("decide", "flights", "--by", "month"),
            "key column 'month' is not in the source; it has 'action', ",
        ),
    ],
)
def test_what_is_refused(run: Any, visits: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"armnesia: {message}")
    assert done.err.count("\n") == 1


def test_propensities_are_compared_within_each_decision(run: Any, folder: Path) -> None:
    rows = ["A,1,0.9,home", "A,0,0.9,home", "B,1,0.1,home", "A,1,0.2,cart", "B,0,0.8,cart", "B,1,0.8,cart"]
    Path("log.csv").write_text("action,reward,pscore,page\n" + "\n".join(rows * 200) + "\n")
    decide = ("decide", "log.csv", "--actions", "A,B")
    assert "'pscore' holds propensities that differ among rows of the same action, and" in run(*decide).err
    assert run(*decide, "--by", "page").err == ""
    Path("log.csv").write_text("action,reward,pscore,page\n" + "\n".join([*rows, "A,1,0.7,home"] * 200))
    assert "differ among rows of the same action and decision, and" in run(*decide, "--by", "page").err
