"""Logs with propensities: the assumption of decisions is named where they depend on more than the action."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from armnesia.core.errors import ConfoundedLogWarning
from armnesia.logs import open_source, read_log, read_opened
from armnesia.logs.keys import checked_keys
from armnesia.logs.propensities import propensity_columns
from armnesia.vault import Configuration, Vault
from tests.logs.conftest import EVERY_KIND, SOME_KINDS, Schema, Stored, Table, write_csv, write_parquet

Store = Callable[[Table], Stored]
SENTENCE = (
    "column 'pscore' holds propensities that differ among rows of the same action, and they are not used:"
    " decisions assume that rewards are independent of who was shown which arm"
    ' (docs/data.md, "Is my log fit for this?")'
)


def log_with(propensities: list[Any], name: str = "pscore") -> Table:
    return {"action": ["A", "B", "A", "B"], "reward": [1, 0, 1, 1], name: propensities}


def warned_of(read: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read()
    return [str(each.message) for each in caught if each.category is ConfoundedLogWarning]


@EVERY_KIND
def test_propensities_that_depend_on_the_context_are_named(stored: Store) -> None:
    source = stored(log_with([0.9, 0.1, 0.2, 0.8]))
    assert warned_of(lambda: source.log(actions=["A", "B"])) == [SENTENCE]
    for whole_rows in (False, True):
        opened = source.open(action="action", reward="reward", whole_rows=whole_rows)
        assert opened.varying_propensity() == "pscore"


@SOME_KINDS
@pytest.mark.parametrize(
    "propensities",
    [
        [0.5, 0.5, 0.5, 0.5],
        [0.25, 0.75, 0.25, 0.75],
        [0.1, 0.3, 0.1 * (1 + 1e-9), 0.3],
        [0.25, None, None, 0.75],
        [1, 7, 3, 2],
        [-0.5, 0.5, 0.5, 0.5],
    ],
    ids=["uniform", "per action", "rounded", "missing", "counts", "not probabilities"],
)
def test_propensities_of_a_policy_without_context_are_not(stored: Store, propensities: list[Any]) -> None:
    assert stored(log_with(propensities)).open(action="action", reward="reward").varying_propensity() is None


@SOME_KINDS
def test_texts_are_no_propensities(kind: str, stored: Store) -> None:
    source = stored(log_with(["high", "low", "low", "high"]))
    assert source.open(action="action", reward="reward").varying_propensity() is None


@SOME_KINDS
def test_a_missing_propensity_hides_no_other(stored: Store) -> None:
    source = stored(log_with([0.9, None, 0.2, 0.8]))
    assert source.open(action="action", reward="reward").varying_propensity() == "pscore"


@SOME_KINDS
@pytest.mark.parametrize("where", [None, "reward >= 0"])
def test_a_policy_that_looked_at_the_keys_is_no_fault_within_a_decision(stored: Store, where: Any) -> None:
    table = log_with([0.9, 0.1, 0.2, 0.8]) | {"age": [17, 17.5, 44, 31], "country": ["DE", "DE", "FR", "FR"]}
    table["device"] = ["phone", "tablet", "phone", "tablet"]
    source = stored(table).open(action="action", reward="reward", where=where)
    for keys in ("country",), ("age:18,30",), ("country", "age"), ("age:18",):
        assert source.keyed_by(checked_keys(keys)).varying_propensity() is None
    for keys in ("age:50",), ("device",), ("device", "age:50"):
        assert source.keyed_by(checked_keys(keys)).varying_propensity() == "pscore"
    assert source.varying_propensity() == "pscore"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_log_and_a_vault_parted_by_what_the_policy_used_give_no_warning(
    suffix: str, tmp_path: Path
) -> None:
    write = {"csv": write_csv, "parquet": write_parquet}[suffix]
    log = write(tmp_path / f"log.{suffix}", log_with([0.9, 0.1, 0.2, 0.8]) | {"page": [1, 1, 2, 2]})
    parted = SENTENCE.replace("same action", "same action and decision")
    for by, expected in ((("page",), []), (("page:5",), [parted])):
        configuration = Configuration(actions=("A", "B"), by=by)
        with Vault.create(f"sqlite:///{tmp_path}/{len(expected)}.db", configuration) as vault:
            ingest = partial(vault.ingest, str(log), no_user=True)
            assert warned_of(ingest) == expected
        opened = open_source(str(log), action="action", reward="reward")
        keys = checked_keys(by)
        read = lambda: read_opened(opened, ("A", "B"), (0.0, 1.0), by=keys)  # noqa: B023, E731
        assert warned_of(read) == expected


def test_numbers_of_every_type_of_a_server(schema: Schema) -> None:
    for type_ in ("real", "double precision", "numeric"):
        rows = [("A", 1, 0.25), ("A", 0, 0.5), ("A", 0, None)]
        if type_ != "numeric":
            rows.append(("A", 0, float("nan")))
        table = schema.create(
            type_.replace(" ", "_"), {"action": "TEXT", "reward": "INTEGER", "P": type_}, rows
        )
        source = open_source(schema.url, table=table, action="action", reward="reward")
        assert source.varying_propensity() == "P"


NAMES = ["pscore", "propensity", "propensity_score", "Propensity Score", "action_prob", "p", "prob"]
NAMES += ["probability", "PSCORE", "action-probability", "logging_probability", "behavior_prob"]


@pytest.mark.parametrize("name", NAMES)
def test_usual_names_of_propensities(name: str) -> None:
    source = open_source(log_with([0.9, 0.1, 0.2, 0.8], name), action="action", reward="reward")
    assert source.varying_propensity() == name


def test_other_names_are_not_taken_for_propensities() -> None:
    others = ["price", "page", "score", "problem", "probe", "p_value", "position", "property", "actions", "q"]
    assert propensity_columns(others) == []


def test_a_column_that_has_a_role_is_no_propensity() -> None:
    table: Table = {"action": ["A", "A"], "p": [0.1, 0.9], "prob": ["x", "y"]}
    source = open_source(table, action="action", reward="p", user="prob")
    assert source.varying_propensity() is None


def feedback(pscore: Any) -> dict[str, Any]:
    """The feedback of the Open Bandit Pipeline, which also has the whole policy."""
    return {
        "n_rounds": 4,
        "n_actions": 2,
        "action": np.array([0, 1, 0, 1]),
        "reward": np.array([1, 0, 1, 1]),
        "position": None,
        "context": np.zeros((4, 3)),
        "pi_b": np.full((4, 2, 1), 0.5),
        "pscore": pscore,
    }


@pytest.mark.parametrize("make", [dict, lambda given: SimpleNamespace(**given)], ids=["mapping", "object"])
def test_feedback_of_the_open_bandit_pipeline(make: Any) -> None:
    varying = make(feedback(np.array([0.9, 0.1, 0.2, 0.8])))
    assert warned_of(lambda: read_log(varying)) == [SENTENCE]
    assert open_source(varying, action="action", reward="reward").varying_propensity() == "pscore"
    for pscore in (np.full(4, 0.5), None):
        uniform = make(feedback(pscore))
        assert warned_of(lambda given=uniform: read_log(given)) == []  # type: ignore[misc]
    log = read_log(make(feedback(None)))
    assert (log.actions, log.statistics().counts.tolist()) == ((0, 1), [2, 2])


def test_the_warning_is_at_the_line_of_the_caller(tmp_path: Path) -> None:
    table = log_with([0.9, 0.1, 0.2, 0.8])
    with pytest.warns(ConfoundedLogWarning) as caught:
        read_log(table, actions=["A", "B"])
    with (
        Vault.create(f"sqlite:///{tmp_path}/vault.db", Configuration(actions=("A", "B"))) as vault,
        pytest.warns(ConfoundedLogWarning) as of_vault,
    ):
        vault.ingest(pd.DataFrame(table), no_user=True)
    assert [each.filename for each in [*caught, *of_vault]] == [__file__] * 2


@pytest.mark.parametrize("ids", [False, True])
def test_an_ingest_names_the_assumption_once(ids: bool, tmp_path: Path) -> None:
    table = log_with([0.9, 0.1, 0.2, 0.8]) | ({"id": [1, 2, 3, 4]} if ids else {})
    for path in (write_csv(tmp_path / "log.csv", table), write_parquet(tmp_path / "log.parquet", table)):
        url = f"sqlite:///{tmp_path}/{path.suffix[1:]}.db"
        with Vault.create(url, Configuration(actions=("A", "B"))) as vault:
            ingest = partial(vault.ingest, str(path), no_user=True)
            assert warned_of(ingest) == [SENTENCE]
            assert vault.status().records == 4


def test_a_glob_is_judged_as_a_whole(tmp_path: Path) -> None:
    write_parquet(tmp_path / "1.parquet", log_with([0.5] * 4))
    write_parquet(tmp_path / "2.parquet", log_with([0.25] * 4))
    assert warned_of(lambda: read_log(tmp_path / "*.parquet", actions=["A", "B"])) == [SENTENCE]
    assert warned_of(lambda: read_log(tmp_path / "1.parquet", actions=["A", "B"])) == []
