"""The command line, run as a user runs it: arguments in, text or JSON and an exit code out."""

import csv
from pathlib import Path
from typing import Any

import pytest

import armnesia as am

BUDGET = ("--epsilon", "1", "--delta", "1e-5")
FOUR_BUSIEST = ("N711ZX", "N718TW", "N722TW", "N705TW")


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    """A small log with column names of its own; B leads A before u1 is forgotten and not after."""
    path = tmp_path / "clicks.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["variant", "clicked", "user_id"])
        writer.writerows([("A", i % 2, f"a{i}") for i in range(100)])
        writer.writerows([("B", int(i % 5 < 3), "u1" if i % 5 < 2 else f"b{i}") for i in range(100)])
    return path


COLUMNS = ("--action", "variant", "--reward", "clicked", "--actions", "A,B,C")


def test_calibrate_gives_the_analytic_noise(run: Any) -> None:
    result = run("calibrate", *BUDGET, "--json")
    assert result.code == 0
    assert result.json["gamma"] == pytest.approx(3.730631634816, rel=1e-9)
    assert set(result.json) == {"gamma", "epsilon", "delta", "method", "exact_delta"}
    assert "3.7306316" in run("calibrate", *BUDGET).out


def test_classic_calibration_warns_above_one_and_is_refused_where_false(run: Any) -> None:
    warned = run("calibrate", "--epsilon", "3", "--delta", "1e-5", "--classic", "--json")
    assert warned.code == 0
    assert warned.json["gamma"] == pytest.approx(1.6149350875)
    assert "proved for epsilon <= 1 only" in warned.err
    refused = run("calibrate", "--epsilon", "12", "--delta", "1e-5", "--classic")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "false at epsilon = 12" in refused.err


def test_curve_shows_both_directions(run: Any, tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    result = run(
        "curve", "--gamma", "0.5", "--epsilon", "5", "--delta", "1e-5", "--picture", picture, "--json"
    )
    at_epsilon, at_delta = result.json["points"]
    assert at_epsilon["delta"] == pytest.approx(0.0323, abs=1e-4)
    assert at_delta["epsilon"] == pytest.approx(9.9973, abs=1e-3)
    assert "<svg" in picture.read_text()


def test_curve_without_noise_writes_infinity_as_text(run: Any) -> None:
    points = run("curve", "--gamma", "0", "--delta", "1e-5", "--json").json["points"]
    assert points == [{"epsilon": "inf", "delta": 1e-5}]


def test_decide_on_a_file_with_its_own_columns(run: Any, clicks: Path) -> None:
    result = run("decide", clicks, *COLUMNS, "--json").json
    assert result["action"] == "B"
    assert result["n_rows"] == 200
    assert [arm["count"] for arm in result["arms"]] == [100, 100, 0]
    assert result["arms"][2] == {"action": "C", "count": 0, "mean": None, "score": -1.0}
    assert "← served" in run("decide", clicks, *COLUMNS).out


def test_decide_warns_when_the_action_set_is_not_declared(run: Any, clicks: Path) -> None:
    result = run("decide", clicks, "--action", "variant", "--reward", "clicked", "--json")
    assert result.code == 0
    assert result.err.startswith("armnesia: warning:")
    assert len(result.json["arms"]) == 2


def test_decide_by_imitation_and_by_given_confidence(run: Any, clicks: Path) -> None:
    assert run("decide", clicks, *COLUMNS, "--learner", "imitation", "--json").json["action"] == "A"
    learner = run("decide", clicks, *COLUMNS, "--confidence", "0.05", "--json").json["learner"]
    assert learner == {"name": "lcb", "confidence": 0.05}


def test_unlearn_agrees_with_the_library(run: Any) -> None:
    users = [argument for user in FOUR_BUSIEST for argument in ("--user", user)]
    result = run("unlearn", "flights", *users, "--unlearner", "gaussian", *BUDGET, "--json").json
    log = am.datasets.flights()
    statistics = log.statistics()
    release = am.Gaussian().release(
        am.LCB().bind(statistics),
        statistics,
        log.request(users=FOUR_BUSIEST),
        am.Budget(epsilon=1.0, delta=1e-5),
    )
    assert list(result["probabilities"].values()) == release.probabilities.tolist()
    assert result["request"] == {"records": 480, "counts": {"AA": 0, "B6": 0, "DL": 480, "UA": 0, "VX": 0}}
    assert result["guarantee"]["level"] == "request_shape"
    assert result["drawn"] is None


def test_unlearn_by_rollback_needs_no_budget_and_flips_the_decision(run: Any, clicks: Path) -> None:
    arguments = (
        "unlearn",
        clicks,
        *COLUMNS,
        "--user-column",
        "user_id",
        "--user",
        "u1",
        "--unlearner",
        "rollback",
    )
    result = run(*arguments, "--draw", "--json").json
    assert result["decision_before"] == "B"
    assert result["probabilities"] == {"A": 1.0, "B": 0.0, "C": 0.0}
    assert result["drawn"] == "A"
    assert "Released: A" in run(*arguments, "--draw").out
    assert "Released" not in run(*arguments).out


def test_unlearn_by_rows_needs_no_user_column(run: Any, clicks: Path) -> None:
    result = run("unlearn", clicks, *COLUMNS, "--rows", "0,1,100", "--unlearner", "rollback", "--json").json
    assert result["request"]["counts"] == {"A": 2, "B": 1, "C": 0}


def test_unlearn_takes_the_variants_of_the_paper(run: Any, clicks: Path) -> None:
    result = run(
        *("unlearn", clicks, *COLUMNS, "--rows", "100,101", "--unlearner", "adaptive"),
        *("--gamma", "0.1", "--delta", "1e-5"),
        *("--threshold", "paper", "--threshold-scale", "1.3", "--sensitivity", "paper", "--json"),
    ).json
    assert result["branch"] == "gaussian"
    assert result["budget"]["gamma"] == 0.1
    assert result["budget"]["epsilon"] == pytest.approx(am.privacy_curve(0.1).epsilon(1e-5))


def test_unlearn_draws_its_picture(run: Any, tmp_path: Path) -> None:
    picture = tmp_path / "new folder" / "forgetting.png"
    run("unlearn", "flights", "--user", "N711ZX", *BUDGET, "--picture", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_imitation_rollback_takes_its_own_learner(run: Any) -> None:
    result = run("unlearn", "flights", "--user", "N711ZX", "--unlearner", "imitation_rollback", "--json").json
    assert result["learner"]["name"] == "imitation"
    assert result["probabilities"]["UA"] == 1.0


def test_audit_reports_both_directions(run: Any) -> None:
    result = run("audit", "flights", "--user", "N711ZX", "--unlearner", "gaussian", *BUDGET, "--json")
    assert result.code == 0
    assert result.json["holds"] is True
    assert result.json["delta"] == max(result.json["delta_forward"], result.json["delta_backward"])
    assert 0 < result.json["smallest_epsilon"] < 1
    assert "The claim holds" in run("audit", "flights", "--user", "N711ZX", *BUDGET).out


def test_audit_fails_loudly_for_a_false_claim(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(am.Rollback):
        """Claims to roll back, and serves the old decision."""

        def release(
            self,
            learner: am.Learner,
            statistics: am.ArmStatistics,
            request: am.DeletionRequest,
            budget: am.Budget,
        ) -> am.Release:
            kept = am.DeletionRequest(am.ArmStatistics.empty(statistics.actions))
            return super().release(learner, statistics, kept, budget)

    monkeypatch.setitem(am.UNLEARNERS, "rollback", Careless)
    users = [argument for user in FOUR_BUSIEST for argument in ("--user", user)]
    result = run("audit", "flights", *users, "--unlearner", "rollback")
    assert result.code == 1
    assert "DOES NOT HOLD" in result.out


def test_levels_refutes_and_confirms(run: Any) -> None:
    arguments = ("levels", "--unlearner", "adaptive", "--epsilon", "5", "--delta", "1e-5", "--max-count", "4")
    rows = run(*arguments, "--json").json["levels"]
    assert {row["level"]: row["holds"] for row in rows} == {
        "retained": False,
        "request_shape": False,
        "original_decision": True,
    }
    shown = run(*arguments).out
    assert "claimed" in shown
    assert "gaussian: " in shown  # how often noise was added: without it nothing is tested
    imitation = run("levels", "--unlearner", "imitation_rollback", "--max-count", "3", "--json").json[
        "levels"
    ]
    assert [row["holds"] for row in imitation] == [True, None, None]


def test_compare_sets_all_unlearners_side_by_side(run: Any) -> None:
    users = [argument for user in FOUR_BUSIEST for argument in ("--user", user)]
    result = run("compare", "flights", *users, *BUDGET, "--json").json
    found = {each["name"]: each for each in result["unlearners"]}
    assert set(found) == set(am.UNLEARNERS)
    assert result["decision_before"] == "DL"
    assert found["rollback"]["change"] == 1.0
    assert found["tilt"]["change"] < 1e-3
    assert found["tilt"]["guarantee"]["level"] == "request_shape"
    assert found["imitation_rollback"]["refused"]
    told_less = run("compare", "flights", *users, *BUDGET, "--assumed-share", 0.2, "--json").json[
        "unlearners"
    ]
    (tilt,) = [each for each in told_less if each["name"] == "tilt"]
    assert tilt["guarantee"]["level"] == "retained"
    assert 0 < tilt["change"] < 1
    shown = run("compare", "flights", *users, *BUDGET)
    assert shown.code == 0
    assert "Not possible here:" in shown.out
    assert run("compare", "flights", *users).code == 2


def test_tilts_predictive_can_be_chosen_where_tilt_is_used(run: Any, tmp_path: Path) -> None:
    """Of A five records stay, three of them ones; B, C, D and E have 80 each, half of them ones."""
    path = tmp_path / "five.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["action", "reward", "user"])
        writer.writerows([("A", int(i < 3), f"a{i}") for i in range(5)])
        writer.writerows([("A", i % 2, "u1") for i in range(75)])
        writer.writerows([(arm, i % 2, f"{arm}{i}") for arm in "BCDE" for i in range(80)])
    asked = (path, "--actions", "A,B,C,D,E", "--user", "u1", "--epsilon", "0.3", "--delta", "1e-5")
    tilt, shrunk = ("--unlearner", "tilt"), ("--predictive", "empirical_bayes")
    flat = run("unlearn", *asked, *tilt, "--predictive", "flat", "--json").json["probabilities"]
    assert flat == run("unlearn", *asked, *tilt, "--json").json["probabilities"]
    other = run("unlearn", *asked, *tilt, *shrunk, "--json").json["probabilities"]
    assert other != flat
    assert run("audit", *asked, *tilt, *shrunk, "--json").json["holds"]
    compared = run("compare", *asked, *shrunk, "--json").json["unlearners"]
    assert [each["probabilities"] for each in compared if each["name"] == "tilt"] == [other]
    for command in (("unlearn", *asked, *tilt), ("compare", *asked)):
        refused = run(*command, "--predictive", "guess")
        assert refused.code == 2
        assert "predictive must be one of flat, empirical_bayes, or a function" in refused.err
