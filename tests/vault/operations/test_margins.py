"""What the operator is told of a decision, and nobody else: the margin, and that the counts decide."""

from typing import Any

import numpy as np
import pytest

import armnesia as am
from armnesia.vault import Configuration
from tests.databases import Place

LOG: dict[str, list[Any]] = {
    "action": ["A"] * 40 + ["B"] * 40,
    "reward": [1] * 40 + [0, 1] * 20,
    "page": ["home", "search"] * 40,
    "user": [f"u{row}" for row in range(80)],
}


@pytest.mark.parametrize("by", [(), ("page",)])
def test_a_margin_is_the_difference_of_the_two_best_scores(sqlite_place: Place, by: tuple[str, ...]) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B", "C"), by=by, confidence=0.1)) as vault:
        vault.ingest(LOG, user="user")
        where = {"page": "home"} if by else None
        shown = [row for row in range(80) if not by or LOG["page"][row] == "home"]
        rewards = {arm: [LOG["reward"][row] for row in shown if LOG["action"][row] == arm] for arm in "ABC"}
        scores = am.LCB(confidence=0.1).scores(am.ArmStatistics.from_rewards(rewards))
        second, best = np.sort(scores)[-2:]
        told = vault.decide(where, statistics=True)
        assert told.margin == pytest.approx(best - second)
        assert told.to_dict()["margin"] == told.margin
        all_of_them = vault.decisions(statistics=True)
        assert all_of_them.margins is not None
        assert all_of_them.margins[0] == told.margin


@pytest.mark.parametrize("by", [(), ("page",)])
def test_nobody_is_told_who_does_not_ask(sqlite_place: Place, by: tuple[str, ...]) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B"), by=by)) as vault:
        vault.ingest(LOG, user="user")
        served = vault.decide({"page": "home"} if by else None)
        assert served.margin is None
        told = (served.to_dict(), vault.decisions().to_dict(), vault.signed_decisions().to_dict())
        assert "margin" not in repr(told)


@pytest.mark.parametrize("by", [(), ("page",)])
def test_an_ingest_says_where_the_counts_decide(sqlite_place: Place, by: tuple[str, ...]) -> None:
    few = {name: values[::20] for name, values in LOG.items()}
    with sqlite_place.create(Configuration(actions=("A", "B"), by=by)) as vault:
        with pytest.warns(UserWarning, match="every score lies below the lowest possible reward, 0") as told:
            vault.ingest(few, user="user")
        assert {warning.filename for warning in told} == {__file__}
