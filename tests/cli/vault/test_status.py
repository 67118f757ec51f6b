"""The command `status`."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import WEAKER_POLICY


def test_scores_are_for_the_operator(run: Any, vault: Path) -> None:
    plain = run("status", "--json").json
    assert set(plain) == {
        *(
            "vault",
            "location",
            "served",
            "configuration",
            "records",
            "replaced",
            "suppressed",
            "head",
        ),
        *("signing_key", "uncompacted", "sources", "scores", "witness", "witnessed", "note"),
    }
    assert plain["scores"] is None
    assert (plain["records"], plain["uncompacted"]) == (200, 0)
    scores = run("status", "--scores", "--json").json["scores"]
    assert scores[0] == {"action": "A", "count": 100, "mean": 0.5, "score": pytest.approx(0.3, abs=0.1)}
    assert scores[2] == {"action": "C", "count": 0, "mean": None, "score": -1.0}
    assert "For the operator only" in run("status", "--scores").out


@pytest.mark.usefixtures("folder")
def test_the_status_has_penalty_and_policy(run: Any) -> None:
    run("init", "--penalty", "frozen", *WEAKER_POLICY)
    printed = run("status").out
    assert re.search(r"│ penalty +│ frozen ", printed)
    assert re.search(r"│ policy +│ up to ε = 1 and δ = 1e-05 at level retained or ", printed)


@pytest.mark.usefixtures("folder")
def test_names_that_look_like_markup_are_shown_as_they_are(run: Any) -> None:
    run("init", "--actions", "[red]A[/red],[/b]")
    assert "Served: [red]A[/red]" in run("decide").out
    assert "[red]A[/red]" in run("status", "--scores").out


@pytest.mark.usefixtures("folder")
def test_the_status_has_the_parameters_of_the_unlearner(run: Any) -> None:
    run("init", "--unlearner", "tilt", "--assumed-share", 0.95, "--epsilon", 1, "--delta", 1e-5)
    words = " ".join(run("status").out.replace("│", " ").split())
    assert "unlearner tilt (assumed_share=0.95, predictive=by_counts, insurance=0.02) budget" in words


@pytest.mark.usefixtures("folder")
def test_scores_are_those_of_one_decision(run: Any) -> None:
    rows = [f"{'AB'[row % 2]},{int(row % 4 == 1)},u{row},{('DE', 'FR')[row % 3 == 0]}" for row in range(60)]
    Path("log.csv").write_text("\n".join(["action,reward,user,country", *rows]) + "\n", encoding="utf-8")
    assert run("init", "--actions", "A,B,C", "--by", "country").code == 0
    assert run("ingest", "log.csv").code == 0
    refused = run("status", "--scores")
    assert refused.code == 2
    assert "a decision of this vault is named by 'country'" in " ".join(refused.err.split())
    assert run("status", "--where", "country=DE").code == 2
    found = run("status", "--scores", "--where", "country=FR", "--json").json
    own = [row.split(",") for row in rows if row.endswith("FR")]
    rewards = {arm: [int(row[1]) for row in own if row[0] == arm] for arm in "AB"}
    assert found["scores_of"] == {"country": "FR"}
    assert [(arm["count"], arm["mean"]) for arm in found["scores"]] == [
        *((len(rewards[arm]), sum(rewards[arm]) / len(rewards[arm])) for arm in "AB"),
        (0, None),
    ]
    printed = run("status", "--scores", "--where", "country=FR").out
    assert "Arms of country=FR" in printed
    plain = run("status", "--json").json
    assert (plain["decisions"], plain["scores"], "scores_of" in plain) == (2, None, False)
    Path("one").mkdir()
    assert run("init", "--url", "sqlite:///one/vault.db").code == 0
    assert run("status", "--url", "sqlite:///one/vault.db", "--scores", "--where", "country=FR").code == 2
