"""The commands `unlearn`, `audit` and `compare` with --by."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armnesia as am

LOG = ("visits.csv", "--actions", "A,B,C", "--user", "u7")
BUDGET = ("--epsilon", "1", "--delta", "1e-5")
BY = ("--by", "country", "--by", "age:30")
BUDGET_VALUE = am.Budget(epsilon=1.0, delta=1e-5)


@pytest.fixture
def decisions(folder: Path) -> am.Decisions:
    """The decisions of 600 rows by country and age; u7 has rows in some of them, u50 in one of 31 pages."""
    drawn = random.Random(3)
    lines = ["action,reward,user,country,age,page"]
    lines += [
        f"{drawn.choice('ABC')},{int(drawn.random() < 0.4)},u{row % 50},{drawn.choice(['DE', 'FR', 'IT'])}"
        f",{drawn.randint(14, 70)},{row % 30}"
        for row in range(600)
    ]
    path = folder / "visits.csv"
    path.write_text("\n".join([*lines, "A,1,u50,DE,20,30"]) + "\n", encoding="utf-8")
    return am.read_log(path, actions=["A", "B", "C"]).by("country", "age:30")


def test_unlearn_agrees_with_the_library(run: Any, decisions: am.Decisions) -> None:
    result = run("unlearn", *LOG, *BY, *BUDGET, "--unlearner", "gaussian", "--json").json
    request = decisions.request(user="u7")
    learner = am.LCB().bind(decisions.pooled)
    release = am.release_jointly(am.Gaussian(), learner, decisions.statistics, request, BUDGET_VALUE)
    assert result["by"] == ["country", "age:30"]
    assert result["unlearner"] == "gaussian"
    assert result["n_rows"] == 601
    touched = int((request.counts.sum(axis=-1) > 0).sum())
    assert result["request"] == {"records": 12, "touched": touched}
    assert result["n_sharing"] == touched == release.n_sharing > 1
    assert result["budget"]["epsilon"] == 1.0
    assert result["budget_of_each"]["gamma"] == pytest.approx(BUDGET_VALUE.gamma * touched**0.5)
    assert result["guarantee"] == release.guarantee.to_dict()
    assert result["guarantee"]["reveals"] == "τ = 1/601 was taken from the log, so its size is public"
    assert [each["key"] for each in result["decisions"]] == [
        {"country": country, "age": age} for country in ("DE", "FR", "IT") for age in ("<30", ">=30")
    ]
    assert [list(each["counts"].values()) for each in result["decisions"]] == request.counts.tolist()
    assert [each["decision_before"] for each in result["decisions"]] == learner.decide(
        decisions.statistics
    ).action
    shown = [list(each["probabilities"].values()) for each in result["decisions"]]
    assert shown == release.probabilities.tolist()
    assert {each["drawn"] for each in result["decisions"]} == {None}


def test_the_arms_are_drawn_from_the_releases(run: Any, decisions: am.Decisions) -> None:
    arguments = (*LOG, *BY, *BUDGET, "--unlearner", "gaussian", "--draw")
    for each in run("unlearn", *arguments, "--json").json["decisions"]:
        assert each["probabilities"][each["drawn"]] > 0
    assert "released" in run("unlearn", *arguments).out


def test_touched_decisions_with_the_smallest_margins_stand_first(run: Any, decisions: am.Decisions) -> None:
    shown = run("unlearn", "visits.csv", "--actions", "A,B,C", "--user", "u50", "--by", "page").out
    printed = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    assert printed == ["30"]
    assert "30 decisions without records of the request keep their arms." in shown
    users = [argument for number in range(50) for argument in ("--user", f"u{number}")]
    shown = run("unlearn", "visits.csv", "--actions", "A,B,C", *users, "--by", "page").out
    printed = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    decided = run("decide", "visits.csv", "--actions", "A,B,C", "--by", "page", "--json").json["decisions"]
    touched = [each for each in decided if each["key"]["page"] != "30"]
    closest = sorted(touched, key=lambda each: each["margin"])[:20]
    assert printed == [each["key"]["page"] for each in closest]
    assert "10 more decisions with records of the request: --json prints all." in shown


def test_rollback_stays_at_retained_without_a_budget(run: Any, decisions: am.Decisions) -> None:
    result = run("unlearn", *LOG, *BY, "--json").json
    assert (result["guarantee"]["epsilon"], result["guarantee"]["level"]) == (0.0, "retained")
    remaining = decisions.statistics.without(decisions.request(user="u7"))
    served = am.LCB().bind(decisions.pooled).decide(remaining).action
    assert [
        max(each["probabilities"], key=each["probabilities"].get) for each in result["decisions"]
    ] == served
    assert (
        "Guarantee of all releases together: (ε = 0, δ = 0) at level retained"
        in run("unlearn", *LOG, *BY).out
    )


def test_a_budget_at_retained_is_refused_unless_it_is_split_over_all(
    run: Any, decisions: am.Decisions
) -> None:
    tilt = ("--unlearner", "tilt", "--assumed-share", "0.1", *BUDGET)
    done = run("unlearn", "visits.csv", "--actions", "A,B,C", "--user", "u50", "--by", "page", *tilt)
    assert done.code == 2
    assert done.err.startswith(
        "armnesia: tilt at level retained cannot split its budget over the decisions that a request touches,"
        " because that level conceals how many there are"
    )
    every = (*tilt, "--over", "all", "--json")
    result = run("unlearn", "visits.csv", "--actions", "A,B,C", "--user", "u50", "--by", "page", *every).json
    assert (result["n_sharing"], result["guarantee"]["level"]) == (31, "retained")
    assert result["request"]["touched"] == 1
    compared = run("compare", *LOG, *BY, *BUDGET, "--assumed-share", "0.1", "--json").json["unlearners"]
    (tilted,) = [each for each in compared if each["name"] == "tilt (retained)"]
    assert tilted["guarantee"] is None
    assert tilted["refused"].startswith("tilt at level retained cannot split its budget")
    compared = run("compare", *LOG, *BY, *BUDGET, "--assumed-share", "0.1", "--over", "all", "--json").json
    (tilted,) = [each for each in compared["unlearners"] if each["name"] == "tilt (retained)"]
    assert (tilted["guarantee"]["level"], tilted["refused"]) == ("retained", None)


@pytest.mark.parametrize("name", ["rollback", "gaussian", "tilt"])
def test_audit_agrees_with_the_library(run: Any, decisions: am.Decisions, name: str) -> None:
    result = run("audit", *LOG, *BY, *BUDGET, "--unlearner", name, "--json").json
    learner, request = am.LCB().bind(decisions.pooled), decisions.request(user="u7")
    found = am.audit_jointly(
        am.UNLEARNERS[name](), learner, decisions.statistics, request, am.Budget(epsilon=1.0, delta=1e-5)
    )
    measured = (
        "delta_forward",
        "delta_backward",
        "delta",
        "delta_error",
        "smallest_epsilon",
        "holds",
        "verdict",
        "is_exact",
    )
    assert {each: result[each] for each in measured} == {each: getattr(found, each) for each in measured}
    assert result["holds"]
    references = [list(each["reference"].values()) for each in result["decisions"]]
    assert np.array_equal(references, found.reference)
    assert (
        "The claim holds on this log and request."
        in run("audit", *LOG, *BY, *BUDGET, "--unlearner", name).out
    )


def test_an_audit_of_a_false_claim_ends_with_one(
    run: Any, decisions: am.Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole(unlearner: Any, budget: am.Budget, number: int, composition: str) -> am.Budget:
        return am.Budget(epsilon=40.0 * budget.epsilon, delta=budget.delta)

    monkeypatch.setattr("armnesia.unlearners.joint.budget_of_each", whole)
    done = run("audit", *LOG, *BY, "--epsilon", "0.02", "--delta", "1e-9", "--unlearner", "gaussian")
    assert done.code == 1
    assert "The claim does not hold on this log and request." in done.out


def test_a_claim_that_is_only_enclosed_is_not_shown(
    run: Any, decisions: am.Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claiming(delta: float) -> Any:
        return lambda unlearner, *rest: am.Guarantee(0.0, delta, unlearner.level)

    monkeypatch.setattr("armnesia.privacy.joint_loss.MOST_OUTCOMES", 4)
    learner, request = am.LCB().bind(decisions.pooled), decisions.request(user="u7")
    monkeypatch.setattr("armnesia.unlearners.joint.joint_guarantee", claiming(1e-5))
    found = am.audit_jointly(am.Gaussian(), learner, decisions.statistics, request, BUDGET_VALUE)
    least, most = found.delta_at_claim
    arguments = ("audit", *LOG, *BY, *BUDGET, "--unlearner", "gaussian")
    monkeypatch.setattr("armnesia.unlearners.joint.joint_guarantee", claiming((least + most) / 2))
    done = run(*arguments)
    assert done.code == 1
    assert (
        f"The claim is not shown on this log and request: δ is between {least:.6g} and {most:.6g} at ε = 0."
        in done.out
    )
    assert f" ε ≤ {found.smallest_epsilon:.6g} at δ = 1e-05" in done.out
    result = run(*arguments, "--json").json
    assert (result["holds"], result["verdict"], result["is_exact"]) == (False, "not shown", False)
    monkeypatch.setattr("armnesia.unlearners.joint.joint_guarantee", claiming(most))
    done = run(*arguments)
    assert (done.code, "The claim holds on this log and request." in done.out) == (0, True)


def test_compare_agrees_with_the_library(run: Any, decisions: am.Decisions) -> None:
    result = run("compare", *LOG, *BY, *BUDGET, "--json").json
    learner, request = am.LCB().bind(decisions.pooled), decisions.request(user="u7")
    found = am.compare_jointly(learner, decisions.statistics, request, am.Budget(epsilon=1.0, delta=1e-5))
    assert [each["name"] for each in result["unlearners"]] == [each.name for each in found]
    for shown, each in zip(result["unlearners"], found, strict=True):
        assert shown["refused"] == (each.refused or None)
        if each.guarantee is not None:
            assert shown["guarantee"] == each.guarantee.to_dict()
            assert (shown["changes"], shown["expected_loss"]) == (each.changes, each.expected_loss)
    table = run("compare", *LOG, *BY, *BUDGET).out
    assert "A guarantee is that of all releases together." in table
    assert "mixing: mixing takes requests of one arm" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("unlearn", *LOG, "--by", "planet"), "key column 'planet' is not in the source; it has 'action', "),
        (("unlearn", *LOG, *BY, "--picture", "x.png"), "--picture draws the arms of one decision; leave it "),
        (("unlearn", *LOG, "--over", "all"), "--over is about the decisions of --by, which was not given"),
        (
            ("compare", *LOG, *BUDGET, "--over", "all"),
            "--over is about the decisions of --by, which was not ",
        ),
        (("audit", *LOG, *BY, "--over", "some"), "--over must be touched or all; got 'some'"),
        (("compare", *LOG, *BUDGET, "--by", "reward"), "a key must be another column than those of the "),
        (("audit", *LOG, *BY, "--unlearner", "tilt"), "a budget is --epsilon with --delta, or --gamma with "),
    ],
)
@pytest.mark.usefixtures("decisions")
def test_what_is_refused(run: Any, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"armnesia: {message}")
    assert done.err.count("\n") == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "options", [(), ("--assumed-share", "0.5", "--over", "all")], ids=["shape", "retained"]
)
@pytest.mark.parametrize("epsilon", [3.0, 12.0, 18.0])
def test_it_says_in_how_many_decisions_the_contenders_are_insured(
    run: Any, decisions: am.Decisions, options: tuple[str, ...], epsilon: float
) -> None:
    tilt = am.Tilt(assumed_share=0.5) if options else am.Tilt()
    request, statistics = decisions.request(user="u7"), decisions.statistics
    learner, budget = am.LCB().bind(decisions.pooled), am.Budget(epsilon=epsilon, delta=1e-5)
    over: Any = "all" if options else "touched"
    each = am.release_jointly(tilt, learner, statistics, request, budget, over=over).each
    remarks = []
    for place in np.flatnonzero(request.counts.sum(axis=-1)):  # one decision after the other
        one, own = (
            am.ArmStatistics(found.actions, found.counts[place], found.sums[place])
            for found in (statistics, request.records)
        )
        remarks.append(tilt.remark(learner, one, am.DeletionRequest(own, binary=True), each).split())
    every = sum(insured == of for _, insured, _, of, _ in remarks)
    some = sum(0 < int(insured) < int(of) for _, insured, _, of, _ in remarks)
    expected = f"Insured: all contenders in {every} of {len(remarks)} decisions"
    expected += f", some of them in {some}" if some else ""
    assert (every + some > 0) or (options and epsilon < 13)  # three contenders need 2.26 in each of six
    arguments = (*LOG, *BY, "--epsilon", epsilon, "--delta", "1e-5", "--unlearner", "tilt", *options)
    for command in ("unlearn", "audit"):
        assert f"\n{expected}\n" in run(command, *arguments).out
        assert run(command, *arguments, "--json").json["remark"] == expected


def test_headings_fit_into_80_columns_and_one_decision_is_no_they(run: Any, decisions: am.Decisions) -> None:
    shown = run("audit", *LOG, *BY, *BUDGET, "--unlearner", "tilt").out
    assert "P(reference)" in shown
    assert max(map(len, shown.splitlines()[:6])) <= 80
    one = ("visits.csv", "--actions", "A,B,C", "--user", "u50", "--by", "age:18", *BUDGET)
    assert "\n1 decision without records of the request keeps its arm.\n" in run("unlearn", *one).out
    every = run("unlearn", *one, "--unlearner", "tilt", "--assumed-share", "0.5", "--over", "all").out
    assert "\n1 decision without records of the request is answered as well.\n" in every
