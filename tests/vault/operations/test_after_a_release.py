"""An arm that was drawn against the decision of the learner is served until the next request or ingest."""

from typing import Any

import pytest

from armnesia.unlearners import base
from armnesia.vault import Configuration, UserType, Vault

TILT: dict[str, Any] = {"unlearner": "tilt", "unlearner_options": {"assumed_share": 0.95}}


def test_the_next_request_and_the_next_ingest_start_from_the_decision_of_the_learner(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = Configuration(
        actions=("A", "B"), epsilon=3.0, delta=1e-5, user_type=UserType.TEXT, **TILT
    )
    log = {
        "action": ["A", "B"] * 400,
        "reward": [1, 1, 1, 0] * 200,
        "user": [f"u{i}" for i in range(800)],
        "id": [f"r{i}" for i in range(800)],
    }
    with Vault.create(f"sqlite:///{tmp_path}/vault.db", configuration) as vault:
        assert vault.ingest(log, user="user", id="id").served == "A"
        monkeypatch.setattr(base, "draw_index", lambda probabilities: 1)  # the less likely arm is drawn
        done = vault.forget(users=["u0"])
        assert (done.served_before, done.served) == ("A", "B")
        assert done.release is not None
        assert done.release.probabilities[1] == pytest.approx(0.0024, abs=5e-5)
        assert vault.decide().action == "B"
        plan = vault.preview(users=["u1"])
        assert plan.probabilities is not None
        assert plan.probabilities["B"] == pytest.approx(0.0024, abs=5e-5)
        assert plan.method_lines == (
            "Unlearner: tilt (assumed_share=0.95, predictive=by_counts, insurance=0.02)",
            "Insured: 2 of 2 contenders",
        )
        more = {"action": ["A"], "reward": [1], "user": ["new"], "id": ["r-new"]}
        assert vault.ingest(more, user="user", id="id").served == "A"
