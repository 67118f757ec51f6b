"""The command `unlearn`."""

import csv
from pathlib import Path
from typing import Any

import pytest

import armnesia as am
from tests.cli.examples import BUDGET, COLUMNS, FOUR_BUSIEST, GAUSSIAN, USER_COLUMN

ON_CLICKS = (*COLUMNS, "--actions", "A,B,C")


def test_unlearn_agrees_with_the_library(run: Any) -> None:
    result = run("unlearn", "flights", *FOUR_BUSIEST, *GAUSSIAN, "--json").json
    log = am.datasets.flights()
    statistics = log.statistics()
    release = am.Gaussian().release(
        am.LCB().bind(statistics),
        statistics,
        log.request(users=FOUR_BUSIEST[1::2]),
        am.Budget(epsilon=1.0, delta=1e-5),
    )
    assert list(result["probabilities"].values()) == release.probabilities.tolist()
    assert result["request"] == {"records": 480, "counts": {"AA": 0, "B6": 0, "DL": 480, "UA": 0, "VX": 0}}
    assert result["guarantee"]["level"] == "request_shape"
    assert result["drawn"] is None


def test_unlearn_by_rollback_needs_no_budget_and_flips_the_decision(run: Any, clicks: Path) -> None:
    arguments = ("unlearn", clicks, *ON_CLICKS, *USER_COLUMN, "--user", "u1", "--unlearner", "rollback")
    result = run(*arguments, "--draw", "--json").json
    assert result["decision_before"] == "B"
    assert result["probabilities"] == {"A": 1.0, "B": 0.0, "C": 0.0}
    assert result["drawn"] == "A"
    assert "Released: A" in run(*arguments, "--draw").out
    assert "Released" not in run(*arguments).out


@pytest.mark.parametrize("command", ["unlearn", "audit", "compare"])
def test_a_guarantee_says_that_its_confidence_was_bound_to_the_log(
    command: str, run: Any, clicks: Path
) -> None:
    asked = (command, clicks, *ON_CLICKS, "--rows", "1,2,101", *BUDGET)
    said = "τ = 1/200 was taken from the log, so its size is public"
    assert said in run(*asked).out
    result = run(*asked, "--json").json
    for found in result["unlearners"] if command == "compare" else [result]:
        assert found["guarantee"] is None or found["guarantee"]["reveals"] == said
    assert "public" not in run(*asked, "--confidence", "0.05").out.replace("not to be published", "")


def test_unlearn_by_rows_needs_no_user_column(run: Any, clicks: Path) -> None:
    result = run("unlearn", clicks, *ON_CLICKS, "--rows", "1,2,101", "--unlearner", "rollback", "--json").json
    assert result["request"]["counts"] == {"A": 2, "B": 1, "C": 0}


def test_unlearn_takes_the_parameters_of_the_paper(run: Any, clicks: Path) -> None:
    result = run(
        *("unlearn", clicks, *ON_CLICKS, "--rows", "101,102", "--unlearner", "adaptive"),
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


def test_tilts_predictive_can_be_chosen_where_tilt_is_used(run: Any, tmp_path: Path) -> None:
    """Of A five records stay, three of them ones; B, C, D and E have 80 each, half of them ones."""
    path = tmp_path / "five.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["action", "reward", "user"])
        writer.writerows([("A", int(i < 3), f"a{i}") for i in range(5)])
        writer.writerows([("A", i % 2, "u1") for i in range(75)])
        writer.writerows([(arm, i % 2, f"{arm}{i}") for arm in "BCDE" for i in range(80)])
    common = (path, "--actions", "A,B,C,D,E", "--user", "u1", "--epsilon", "0.3", "--delta", "1e-5")
    tilt, shrunk = ("--unlearner", "tilt"), ("--predictive", "empirical_bayes")
    flat = run("unlearn", *common, *tilt, "--predictive", "flat", "--json").json["probabilities"]
    assert flat == run("unlearn", *common, *tilt, "--json").json["probabilities"]
    other = run("unlearn", *common, *tilt, *shrunk, "--json").json["probabilities"]
    assert other != flat
    assert run("audit", *common, *tilt, *shrunk, "--json").json["holds"]
    compared = run("compare", *common, *shrunk, "--json").json["unlearners"]
    assert [each["probabilities"] for each in compared if each["name"] == "tilt"] == [other]
    for command in (("unlearn", *common, *tilt), ("compare", *common)):
        refused = run(*command, "--predictive", "guess")
        assert refused.code == 2
        assert "predictive must be one of flat, empirical_bayes" in refused.err


def test_people_are_named_by_a_file(run: Any, clicks: Path, tmp_path: Path) -> None:
    declared = (clicks, *COLUMNS, *USER_COLUMN, "--actions", "A,B,C", "--json")
    people = tmp_path / "people.csv"
    people.write_text("n,person\n1,u1\n2,a1\n")
    named = ("--file", people, "--column", "person")
    for command in ("unlearn", "audit", "compare"):
        budget = ("--epsilon", "1", "--delta", "1e-5")
        by_file = run(command, *declared, *named, *budget).json
        assert by_file == run(command, *declared, "--user", "u1", "--user", "a1", *budget).json
        assert by_file["request"]["records"] == 41
    for options, message in (
        ((*named, "--user", "u1"), "name people by one of --user (repeatable) and --file; got both"),
        (("--user", "u1", "--column", "person"), "--column belongs to --file; got --column person alone"),
        ((*named, "--rows", "1"), "exactly one of --user (repeatable), --file and --rows"),
        ((), "exactly one of --user (repeatable), --file and --rows"),
        (named[:2], "has 2 columns; choose one with --column"),
    ):
        refused = run("unlearn", *declared, *options)
        assert refused.code == 2
        assert message in refused.err


def test_the_parameters_in_force_and_what_is_insured_are_printed(run: Any) -> None:
    request = ("flights", "--user", "N711ZX", "--unlearner", "tilt", "--epsilon", 3, "--delta", 1e-5)
    for command in ("unlearn", "audit"):
        plain = run(command, *request).out
        assert "Unlearner: tilt (predictive=flat, insurance=0.02)\nInsured: 2 of 2 contenders\n" in plain
        assert "Insured: 5 of 5 contenders" in run(command, *request, "--assumed-share", 0.95).out
        assert "Insured: nothing, because insurance is 0" in run(command, *request, "--insurance", 0).out
    assert "Unlearner: rollback\nBranch" in run("unlearn", "flights", "--user", "N711ZX").out
