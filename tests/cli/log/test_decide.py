"""The command `decide` on a log."""

from pathlib import Path
from typing import Any

import armnesia as am
from tests.cli.examples import COLUMNS


def test_decide_on_a_file_with_its_own_columns(run: Any, clicks: Path) -> None:
    result = run("decide", clicks, *COLUMNS, "--actions", "A,B,C", "--json").json
    assert result["action"] == "B"
    assert result["n_rows"] == 200
    assert [arm["count"] for arm in result["arms"]] == [100, 100, 0]
    assert result["arms"][2] == {"action": "C", "count": 0, "mean": None, "score": -1.0}
    shown = run("decide", clicks, *COLUMNS, "--actions", "A,B,C").out
    assert "← served" in shown
    assert "200 rows" in " ".join(shown.split())


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


def test_decide_on_a_column_of_ids_shows_few_of_them(run: Any, tmp_path: Path) -> None:
    """A table of 90,000 arms was printed."""
    log = tmp_path / "log.csv"
    log.write_text(
        "action,reward\n" + "".join(f"id-{number:05},{number % 70 == 50:d}\n" for number in range(9_000))
    )
    result = run("decide", log)
    assert result.code == 0
    assert result.out.count("id-") == 11
    assert "│ id-00009 │" in result.out
    assert "← served" in result.out
    assert (
        "9000 actions, of which the first 10 and the served one are shown; so many different values are"
        " probably ids: is --action-column right?" in result.out
    )
    assert result.err.startswith(
        "armnesia: warning: the actions were taken from the log: 'id-00000', 'id-00001'"
    )
    assert "'id-00009', … (9000 in all); declare them with" in result.err
    assert len(run("decide", log, "--json").json["arms"]) == 9_000


def test_decide_names_the_assumption_where_propensities_differ(run: Any, tmp_path: Path) -> None:
    """They were ignored without a word."""
    log = tmp_path / "log.csv"
    log.write_text("action,reward,pscore\n" + "A,1,0.9\nA,0,0.2\nB,1,0.8\nB,0,0.1\n" * 40)
    result = run("decide", log, "--actions", "A,B", "--json")
    assert result.code == 0
    assert result.err == (
        "armnesia: warning: column 'pscore' holds propensities that differ among rows of the same action, and"
        " they are not used: decisions assume that rewards are independent of who was shown which arm"
        ' (docs/data.md, "Is my log fit for this?")\n'
    )
    log.write_text("action,reward,pscore\n" + "A,1,0.2\nA,0,0.2\nB,1,0.8\nB,0,0.8\n" * 40)
    assert run("decide", log, "--actions", "A,B", "--json").err == ""


def test_decide_warns_when_the_penalty_of_the_range_dominates(run: Any, folder: Path) -> None:
    rows = [("A", 49)] * 60 + [("B", 51)] * 50
    Path("log.csv").write_text("action,reward\n" + "".join(f"{arm},{reward}\n" for arm, reward in rows))
    decide = ("decide", "log.csv", "--actions", "A,B")
    wide = run(*decide, "--reward-range", "0,50000", "--json")
    assert wide.json["action"] == "A"  # the mean of B is higher
    assert all(arm["score"] < 0 for arm in wide.json["arms"])
    assert wide.err.startswith("armnesia: warning: every score lies below the lowest possible reward, 0: the")
    narrow = run(*decide, "--reward-range", "0,100", "--json")
    assert (min(arm["score"] for arm in narrow.json["arms"]) > 0, narrow.err) == (True, "")
    assert run(*decide, "--reward-range", "0,50000", "--learner", "imitation", "--json").err == ""


def test_decide_by_says_in_how_many_decisions_the_penalty_dominates(run: Any, folder: Path) -> None:
    rows = [("A", 1, "DE")] * 300 + [("B", 0, "DE")] * 300 + [("A", 1, "FR")] * 2 + [("B", 0, "IT")] * 2
    text = "action,reward,country\n" + "".join(f"{arm},{reward},{key}\n" for arm, reward, key in rows)
    Path("log.csv").write_text(text)
    result = run("decide", "log.csv", "--actions", "A,B", "--by", "country", "--json")
    decisions = am.read_log("log.csv", actions=["A", "B"]).by("country")
    scores = am.LCB().bind(decisions.pooled).decide(decisions.statistics).scores
    assert (scores.max(axis=-1) < 0).tolist() == [False, True, True]
    assert result.err == (
        "armnesia: warning: in 2 of 3 decisions, every score lies below the lowest possible reward, 0: the"
        " penalty for the number of records outweighs the means, so that mostly the counts choose the arm;"
        " if rewards are rare, such as clicks, take --learner kl_lcb, in a vault at init;"
        " declare a narrower reward range than [0, 1] if you can defend it, collect more records, or part"
        " them by fewer keys\n"
    )
    run("init", "--actions", "A,B", "--by", "country", "--confidence", "0.001")
    run("ingest", "log.csv", "--no-user")
    assert "warning: in 2 of 3 decisions, every score lies below the" in run("decide").err
    few = run("status", "--scores", "--where", "country=FR").err
    assert few.startswith("armnesia: warning: every score lies below the lowest possible reward, 0: the")
    assert run("status", "--scores", "--where", "country=DE").err == ""
