"""The command `decide` on a log."""

from pathlib import Path
from typing import Any

from tests.cli.examples import COLUMNS


def test_decide_on_a_file_with_its_own_columns(run: Any, clicks: Path) -> None:
    result = run("decide", clicks, *COLUMNS, "--actions", "A,B,C", "--json").json
    assert result["action"] == "B"
    assert result["n_rows"] == 200
    assert [arm["count"] for arm in result["arms"]] == [100, 100, 0]
    assert result["arms"][2] == {"action": "C", "count": 0, "mean": None, "score": -1.0}
    assert "← served" in run("decide", clicks, *COLUMNS, "--actions", "A,B,C").out


def test_decide_warns_when_the_action_set_is_not_declared(run: Any, clicks: Path) -> None:
    result = run("decide", clicks, *COLUMNS, "--json")
    assert result.code == 0
    assert result.err.startswith("armnesia: warning:")
    assert len(result.json["arms"]) == 2


def test_decide_by_imitation_and_by_given_confidence(run: Any, clicks: Path) -> None:
    declared = ("decide", clicks, *COLUMNS, "--actions", "A,B,C", "--json")
    assert run(*declared, "--learner", "imitation").json["action"] == "A"
    learner = run(*declared, "--confidence", "0.05").json["learner"]
    assert learner == {"name": "lcb", "confidence": 0.05, "reveals": None}


def test_decide_says_that_the_confidence_was_bound_to_the_log(run: Any, clicks: Path) -> None:
    declared = ("decide", clicks, *COLUMNS, "--actions", "A,B,C")
    said = "τ = 1/200 was taken from the log, so its size is public"
    assert run(*declared, "--json").json["learner"]["reveals"] == said
    assert f"Public: {said} (--confidence fixes τ beforehand)." in run(*declared).out
    assert "Public" not in run(*declared, "--confidence", "0.05").out
    assert "Public" not in run(*declared, "--learner", "imitation").out
