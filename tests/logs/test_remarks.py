"""What logs are warned of: propensities that depend on more than the action."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armnesia.core.errors import ConfoundedLogWarning
from armnesia.logs import open_source, read_log, read_opened
from armnesia.logs.columns import propensity_columns
from armnesia.logs.keys import checked_keys
from armnesia.vault import Configuration, Vault
from tests.logs.conformance.sources import write_csv, write_sqlite

SENTENCE = (
    "column 'pscore' holds propensities that differ among rows of the same action, and they are not used:"
    " decisions assume that rewards are independent of who was shown which arm"
    ' (docs/data.md, "Is my log fit for this?")'
)
VARYING = [0.9, 0.1, 0.2, 0.8]
Held = dict[str, list[Any]]


def log_with(values: list[Any], name: str = "pscore") -> Held:
    return {
        "action": ["A", "B", "A", "B"][: len(values)],
        "reward": [1, 0, 1, 1][: len(values)],
        name: values,
    }


@pytest.fixture(params=["mapping", "CSV", "SQLite"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Held], dict[str, Any]]:
    def store(held: Held) -> dict[str, Any]:
        (tmp_path / "log.db").unlink(missing_ok=True)
        if request.param == "SQLite":
            return {"source": write_sqlite(tmp_path / "log.db", held), "table": "log"}
        if request.param == "CSV":
            return {"source": write_csv(tmp_path / "log.csv", held)}
        return {"source": held}

    return store


def warned_of(read: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read()
    return [str(each.message) for each in caught if each.category is ConfoundedLogWarning]


def test_propensities_that_depend_on_more_than_the_action_are_named(stored: Any) -> None:
    source = stored(log_with(VARYING))
    assert warned_of(lambda: read_log(**source, actions=["A", "B"])) == [SENTENCE]
    assert open_source(**source, whole_rows=True).varying_propensity() == "pscore"


@pytest.mark.parametrize(
    ("propensities", "named"),
    [
        ([0.5, 0.5, 0.5, 0.5], None),
        ([0.25, 0.75, 0.25, 0.75], None),
        ([0.1, 0.3, 0.1 * (1 + 1e-9), 0.3], None),
        ([0.25, None, None, 0.75], None),
        ([0.9, None, 0.2, 0.8], "pscore"),
        ([1.0, 7.0, 3.0, 2.0], None),
        ([-0.5, 0.5, 0.5, 0.5], None),
        (["high", "low", "low", "high"], None),
    ],
)
def test_what_is_a_propensity(stored: Any, propensities: list[Any], named: str | None) -> None:
    assert open_source(**stored(log_with(propensities))).varying_propensity() == named


def test_names_of_propensities() -> None:
    usual = ["pscore", "propensity", "propensity_score", "Propensity Score", "action_prob", "p", "prob"]
    usual += ["probability", "PSCORE", "action-probability", "logging_probability", "behavior_prob"]
    others = ["price", "page", "score", "problem", "probe", "p_value", "position", "property", "actions", "q"]
    assert propensity_columns([*usual, *others]) == usual
    table: Held = {"action": ["A", "A"], "p": [0.1, 0.9], "prob": ["x", "y"]}
    assert open_source(table, reward="p", user="prob").varying_propensity() is None


def test_a_policy_that_looked_at_the_keys_is_no_fault_within_a_decision(stored: Any, tmp_path: Path) -> None:
    table = log_with(VARYING) | {"age": [17.0, 17.5, 44.0, 31.0], "device": ["phone", "tablet"] * 2}
    given = stored(table)
    for where in (None, "reward >= 0"):
        source = open_source(**given, where=where)
        assert source.keyed_by(checked_keys(["age:18,30"])).varying_propensity() is None
        assert source.keyed_by(checked_keys(["device", "age:50"])).varying_propensity() == "pscore"
    parted = SENTENCE.replace("same action", "same action and decision")
    for by, expected in ((("age:18",), []), (("age:50",), [parted])):
        read = partial(read_opened, open_source(**given), ("A", "B"), (0.0, 1.0), by=checked_keys(by))
        assert warned_of(read) == expected
        configuration = Configuration(actions=("A", "B"), by=by)
        with Vault.create(f"sqlite:///{tmp_path}/{len(expected)}.db", configuration) as vault:
            assert warned_of(partial(vault.ingest, **given, no_user=True)) == expected


def test_feedback_of_the_open_bandit_pipeline() -> None:
    feedback: dict[str, Any] = {"n_rounds": 4, "n_actions": 2, "position": None, "context": np.zeros((4, 3))}
    feedback |= {"action": np.array([0, 1, 0, 1]), "reward": np.array([1, 0, 1, 1])}
    for pscore, expected in ((np.array(VARYING), [SENTENCE]), (np.full(4, 0.5), []), (None, [])):
        assert warned_of(partial(read_log, feedback | {"pscore": pscore})) == expected
