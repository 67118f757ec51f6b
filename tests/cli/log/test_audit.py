"""The command `audit`."""

from typing import Any

import pytest

import armnesia as am
from tests.cli.examples import BUDGET, FOUR_BUSIEST, GAUSSIAN


def test_audit_reports_both_directions(run: Any) -> None:
    result = run("audit", "flights", "--user", "N711ZX", *GAUSSIAN, "--json")
    assert result.code == 0
    assert result.json["holds"] is True
    assert result.json["delta"] == max(result.json["delta_forward"], result.json["delta_backward"])
    assert 0 < result.json["smallest_epsilon"] < 1
    assert 0 < result.json["renyi"]["1"] < result.json["renyi"]["2"] < result.json["renyi"]["inf"] < 1
    assert result.json["trade_off"][0] == [0.0, 1.0]
    shown = run("audit", "flights", "--user", "N711ZX", *GAUSSIAN).out
    assert f"advantage {result.json['advantage']:.6g} (membership inference)" in shown
    assert f"{result.json['renyi']['inf']:.6g} (order ∞)" in shown
    assert "The claim holds" in run("audit", "flights", "--user", "N711ZX", *BUDGET).out


def test_audit_has_exit_code_1_for_a_false_claim(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
    result = run("audit", "flights", *FOUR_BUSIEST, "--unlearner", "rollback")
    assert result.code == 1
    assert "The claim does not hold" in result.out
