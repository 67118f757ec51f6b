"""Logs of several experiments: a decision that mixes them is warned of."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armnesia.logs import open_source
from armnesia.logs.experiments import warn_of_experiments
from armnesia.vault import Configuration, Vault
from tests.cli.examples import write_exposures
from tests.logs.conftest import EVERY_KIND, Stored, Table

Store = Callable[[Table], Stored]
SENTENCE = "column 'experiment' has several values, whose rows are mixed into one decision"


def log_with(experiments: list[Any], name: str = "experiment") -> Table:
    return {"action": ["A", "B", "A"], "reward": [1, 0, 1], name: experiments}


@EVERY_KIND
@pytest.mark.parametrize("whole_rows", [False, True])
def test_several_experiments_are_noticed_in_every_kind_of_source(stored: Store, whole_rows: bool) -> None:
    names = {"action": "action", "reward": "reward", "whole_rows": whole_rows}
    mixed = stored(log_with(["checkout", "search", None]))
    assert mixed.open(**names).mixes_experiments()
    assert not mixed.open(**names, where="experiment = checkout").mixes_experiments()
    assert mixed.open(**names, where="reward >= 0").mixes_experiments()


@EVERY_KIND
@pytest.mark.parametrize("experiments", [["checkout"] * 3, ["checkout", None, "checkout"]])
def test_one_experiment_is_not(stored: Store, experiments: list[Any]) -> None:
    assert not stored(log_with(experiments)).open(action="action", reward="reward").mixes_experiments()


def test_other_columns_are_not() -> None:
    labels = ["a", "b", "c"]
    for log, action in ((log_with(labels, "page"), "action"), (log_with(labels), "experiment")):
        assert not open_source(log, action=action, reward="reward").mixes_experiments()


def test_nothing_is_said_where_nothing_is_mixed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_experiments(False, stacklevel=2)


@pytest.mark.slow
def test_the_commands_warn_unless_the_experiments_are_parted(
    run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_exposures(tmp_path)
    shown = tmp_path / "shown.csv"
    shown.write_text(shown.read_text() + "dora,A,2026-01-01T10:00:00Z,search\n")
    join = ("join", "--exposures", "shown.csv", "--metric", "bought.csv", "--window", "14d", "--clip", "0,1")
    for file in ("log.parquet", "log.csv"):
        assert run(*join, "--out", file).code == 0
        read = (file, "--actions", "A,B")
        assert SENTENCE in run("decide", *read).err
        assert SENTENCE in run("decide", *read, "--by", "action").err
        assert SENTENCE in run("unlearn", *read, "--user", "ann").err
        parted = (("--by", "experiment"), ("--where", "experiment = checkout"))
        for option in parted:
            assert SENTENCE not in run("decide", *read, *option).err
            assert SENTENCE not in run("unlearn", *read, "--user", "ann", *option).err
    run("init", "--actions", "A,B")
    assert SENTENCE not in run("ingest", "log.csv", "--dry-run", "--where", "experiment = checkout").err
    assert SENTENCE in run("ingest", "log.csv", "--dry-run").err
    keyed = ("--url", "sqlite:///keyed.db")
    assert run("init", "--actions", "A,B", "--by", "experiment", *keyed).code == 0
    assert SENTENCE not in run("ingest", "log.csv", "--dry-run", *keyed).err


def test_an_ingest_from_python_warns(tmp_path: Path) -> None:
    with (
        Vault.create(f"sqlite:///{tmp_path}/vault.db", Configuration(actions=("A", "B"))) as vault,
        pytest.warns(UserWarning, match=SENTENCE),
    ):
        assert vault.ingest(log_with(["checkout", "search", "search"]), no_user=True).added == 3
