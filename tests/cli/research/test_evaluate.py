"""The command `evaluate`."""

import re
from pathlib import Path
from typing import Any

import pytest

from armnesia import KLLCB, Budget, FrozenRollback
from armnesia.simulation import Environment, FixedSample, OneArm, evaluate

ROOT = Path(__file__).parents[3]

EXACT = {
    1000: {"oracle": 0.005409, "rollback": 0.019004, "gaussian": 0.011602, "adaptive": 0.014173},
    2000: {"oracle": 0.003194, "rollback": 0.008367, "gaussian": 0.010079, "adaptive": 0.011572},
    3000: {"oracle": 0.002139, "rollback": 0.004599, "gaussian": 0.009102, "adaptive": 0.004599},
}


@pytest.mark.parametrize("n", EXACT)
@pytest.mark.parametrize("unlearner", ["oracle", "rollback", "gaussian", "adaptive"])
def test_evaluate_gives_the_exact_values(run: Any, n: int, unlearner: str) -> None:
    result = run(
        *(
            "research",
            "evaluate",
            "--model",
            "fixed",
            "--n",
            n,
            "--deletions",
            80,
            "--arms",
            0,
            "--gamma",
            0.5,
        ),
        *("--unlearner", unlearner, "--json"),
    ).json
    assert result["suboptimality"] == pytest.approx(EXACT[n][unlearner], abs=1e-6)
    assert result["standard_error"] == 0
    assert result["protocol"] == "exact"
    assert sum(result["probabilities"]) == pytest.approx(1.0)


def test_evaluate_takes_counts_means_and_several_arms(run: Any) -> None:
    setting = ("--means", "0.6,0.5,0.4", "--counts", "50,60,70", "--arms", "0,2", "--deletions", "10,20")
    exact = run(
        "research", "evaluate", "--unlearner", "multi_source", *setting, "--epsilon", 20, "--json"
    ).json
    sampled = run(
        *("research", "evaluate", "--unlearner", "multi_source", *setting, "--epsilon", 20, "--json"),
        *("--protocol", "sampled", "--datasets", 40_000, "--seed", 3),
    ).json
    assert sampled["protocol"] == "sampled"
    # Five standard errors: a false alarm in 1.7 million runs, and the seed is fixed.
    assert abs(exact["suboptimality"] - sampled["suboptimality"]) < 5 * sampled["standard_error"]


def test_an_assumed_share_alone_has_its_default_predictive(run: Any) -> None:
    share = (
        *(
            "research",
            "evaluate",
            "--unlearner",
            "tilt",
            "--assumed-share",
            0.95,
            "--epsilon",
            1,
            "--delta",
            1e-5,
        ),
        *("--n", 1000, "--deletions", 80, "--datasets", 200, "--json"),
    )
    by_default, by_counts, flat = (
        run(*share, *chosen).json["suboptimality"]
        for chosen in ((), ("--predictive", "by_counts"), ("--predictive", "flat"))
    )
    assert by_default == by_counts != flat


@pytest.mark.slow
def test_evaluate_in_the_distribution_model_has_an_error(run: Any) -> None:
    arguments = "research", "evaluate", "--model", "distribution", "--n", 1000, "--datasets", 2000
    result = run(*arguments, "--json").json
    assert (result["protocol"], result["datasets"]) == ("sampled", 2000)
    assert 0 < result["standard_error"] < 0.1 * result["suboptimality"]
    few = run(*arguments[:-1], 16, "--protocol", "exact").out
    assert "1,024 vectors of counts" in few  # fewer would miss rare losses


def test_evaluate_gives_tilts_value_exactly_for_one_arm(run: Any) -> None:
    arguments = ("research", "evaluate", "--n", 1000, "--unlearner", "tilt", "--epsilon", 1, "--delta", 1e-5)
    result = run(*arguments, "--json").json
    assert (result["protocol"], result["standard_error"]) == ("exact", 0)
    assert result["suboptimality"] <= 0.0067
    assert "(exact)" in run(*arguments).out


@pytest.mark.slow
def test_evaluate_gives_tilts_value_exactly_for_two_arms(run: Any) -> None:
    tilt = ("research", "evaluate", "--n", 1000, "--unlearner", "tilt", "--epsilon", 3, "--delta", 1e-5)
    result = run(*tilt, "--arms", "0,1", "--deletions", "80,80", "--json").json
    assert (result["protocol"], result["standard_error"]) == ("exact", 0)
    assert 0.005 < result["suboptimality"] <= 0.0057


@pytest.mark.slow
def test_evaluate_samples_to_one_percent_where_tilt_is_not_known_exactly(run: Any) -> None:
    tilt = ("research", "evaluate", "--n", 1000, "--unlearner", "tilt", "--epsilon", 3, "--delta", 1e-5)
    more = ("--predictive", "empirical_bayes")
    result = run(*tilt, *more, "--json").json
    assert result["protocol"] == "sampled"
    assert 0 < result["standard_error"] <= 0.01 * result["suboptimality"]
    assert 0.005 < result["suboptimality"] <= 0.0056
    assert "(sampled: 50 data sets)" in run(*tilt, *more, "--datasets", 50).out


def test_evaluate_takes_a_learner_and_its_confidence(run: Any) -> None:
    setting = ("research", "evaluate", "--n", 1000, "--unlearner", "frozen_rollback", "--json")
    found = run(*setting, "--learner", "kl_lcb", "--confidence", 0.01).json
    environment = Environment.bernoulli([0.10, 0.08, 0.06, 0.04, 0.02])
    model, budget = FixedSample.round_robin(1000, 5), Budget.from_gamma(0.5, delta=1e-5)
    truth = evaluate(
        environment, model, OneArm(0, 80), FrozenRollback(), budget, learner=KLLCB(confidence=0.01)
    )
    assert (found["learner"], found["suboptimality"]) == ("kl_lcb", truth.suboptimality)
    assert run(*setting).json["learner"] == "lcb"


def test_a_rare_loss_is_not_printed_as_0(run: Any) -> None:
    setting = ("--model", "distribution", "--n", 900, "--c-star", 1.3, "--deletions", 580)
    imitation = ("research", "evaluate", "--unlearner", "imitation_rollback", *setting)
    assert "Sub-optimality 3.87e-05 ± 0 (exact)" in run(*imitation).out
    few = run(*imitation, "--protocol", "sampled", "--datasets", 500, "--seed", 2)
    assert "95 % interval: 0 to 0.00059" in few.out


def test_evaluate_takes_an_assumed_share(run: Any) -> None:
    arguments = (
        "research",
        "evaluate",
        "--n",
        1000,
        "--unlearner",
        "tilt",
        "--epsilon",
        3,
        "--datasets",
        100,
        "--json",
    )
    assumed, given = run(*arguments, "--assumed-share", 0.3).json, run(*arguments).json
    assert (assumed["protocol"], given["protocol"]) == ("sampled", "exact")


def test_evaluate_defaults_to_the_papers_parameters_and_takes_others(run: Any) -> None:
    as_printed = run("research", "evaluate", "--n", 2000, "--json").json["suboptimality"]
    exact = run(
        "research", "evaluate", "--n", 2000, "--threshold", "exact", "--threshold-scale", 1, "--json"
    ).json
    assert as_printed == pytest.approx(0.011572, abs=1e-6)
    assert exact["suboptimality"] == pytest.approx(0.008367, abs=1e-6)  # rolls back, and is better for it


def test_the_documented_unlearner_is_the_default(run: Any) -> None:
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"(?ms)^### `research evaluate`$.*?(?=^##)", text)
    (documented,) = re.findall(r"`--unlearner` \(by default `(\w+)`\)", section)
    setting = ("research", "evaluate", "--n", 2000, "--json")
    assert run(*setting).json == run(*setting, "--unlearner", documented).json
    assert f"in `research evaluate` `{documented}`" in text
