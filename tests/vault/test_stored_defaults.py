"""A default that has changed: old vaults keep the former one, and new ones record what they use."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from armnesia import Adaptive, Tilt
from armnesia.core.identifiers import UserType
from armnesia.unlearners import UNLEARNERS
from armnesia.vault import Configuration
from armnesia.vault.configuration import make_unlearner
from armnesia.vault.state.request_options import RequestOptions
from tests.databases import fresh_place
from tests.vault.raw_vaults import filled

SHARE: dict[str, Any] = {"unlearner": "tilt", "epsilon": 1.0, "delta": 1e-5}
STORED = {"assumed_share": 0.5, "predictive": "by_counts"}


def new(actions: tuple[str, ...] | None = ("A", "B"), **options: Any) -> Configuration:
    return Configuration(actions=actions, unlearner_options={"assumed_share": 0.5, **options}, **SHARE)


def of_an_old_vault(actions: tuple[str, ...] | None = ("A", "B")) -> Configuration:
    """As a version wrote it whose default was "flat"."""
    values = new(actions).to_dict()
    del values["options"]["predictive"]
    return Configuration.from_dict(values)


@pytest.mark.parametrize("options", [{}, {"predictive": None}, {"predictive": "by_counts"}])
def test_a_new_configuration_records_the_predictive(options: dict[str, Any]) -> None:
    made = new(**options)
    assert made.to_dict()["options"] == STORED
    again = Configuration.from_text(made.text)
    assert again.text == made.text
    assert again.make_unlearner().resolved() == made.make_unlearner().resolved()
    assert made.make_unlearner().resolved() == Tilt(assumed_share=0.5).resolved()


def test_a_predictive_that_was_chosen_is_kept() -> None:
    assert new(predictive="flat").make_unlearner() == Tilt(assumed_share=0.5, predictive="flat")
    assert new(predictive="flat").to_dict()["options"]["predictive"] == "flat"


def test_without_a_share_nothing_more_is_recorded() -> None:
    made = Configuration(actions=("A", "B"), **SHARE)
    assert made.to_dict()["options"] == {}
    assert made.make_unlearner().resolved() == Tilt().resolved()


def test_an_old_configuration_keeps_its_text_and_its_predictive() -> None:
    old = of_an_old_vault(None)
    flat = Tilt(assumed_share=0.5, predictive="flat")
    policy = {"max_epsilon": 2.0}
    for later in (
        old,
        old.with_actions(("A", "B")),
        old.with_user_type(UserType.TEXT),
        old.with_policy(**policy),
    ):
        assert later.make_unlearner() == flat
        assert json.loads(later.text)["options"] == {"assumed_share": 0.5}
        assert Configuration.from_text(later.text).text == later.text


@pytest.mark.parametrize("asked", [{}, {"unlearner": "tilt"}, {"unlearner_options": {"assumed_share": 0.5}}])
def test_the_ledger_says_which_predictive_answered(tmp_path: Path, asked: dict[str, Any]) -> None:
    """In a new vault always; in an old one only where the request has options of its own."""
    used: list[Any] = []
    for name, configuration in (("new", new()), ("old", of_an_old_vault())):
        folder = tmp_path / name
        folder.mkdir()
        with filled(fresh_place("sqlite", folder), configuration) as vault:
            vault.forget(users=["ann"], **asked)
            used.append(dict(list(vault.ledger())[-1].fields)["unlearner"])
            assert not vault.verify().problems
    old = (
        {"assumed_share": 0.5}
        if "unlearner_options" not in asked
        else {"assumed_share": 0.5, "predictive": "flat"}
    )
    assert used == [{"name": "tilt", **STORED}, {"name": "tilt", **old}]


def test_every_changed_default_is_that_of_a_parameter() -> None:
    for kind in UNLEARNERS.values():
        for name in kind.stored_defaults:
            assert hasattr(kind(), name)


@pytest.mark.parametrize(
    ("made", "asked", "used"),
    [
        (new(), {"insurance": 0.01}, Tilt(assumed_share=0.5, insurance=0.01)),
        (new(insurance=0.01), {"assumed_share": 0.9}, Tilt(assumed_share=0.9, insurance=0.01)),
        (new(insurance=0.01), {"assumed_share": None, "predictive": None}, Tilt(insurance=0.01)),
        (
            of_an_old_vault(),
            {"insurance": 0.01},
            Tilt(assumed_share=0.5, predictive="flat", insurance=0.01),
        ),
        (
            Configuration(actions=("A", "B"), **SHARE),
            {"assumed_share": 0.9},
            Tilt(assumed_share=0.9, predictive="by_counts"),
        ),
    ],
)
def test_parameters_of_a_request_replace_those_of_the_same_name(
    made: Configuration, asked: dict[str, Any], used: Tilt
) -> None:
    for unlearner in (None, "tilt"):
        resolved = RequestOptions(unlearner=unlearner, unlearner_options=asked).resolve(made)
        assert resolved.unlearner.resolved() == used.resolved()
        by_the_ledger = make_unlearner("tilt", resolved.options, stored=True)
        assert by_the_ledger.resolved() == used.resolved()


def test_another_unlearner_has_its_own_defaults() -> None:
    gaussian: dict[str, Any] = {"unlearner": "gaussian", "unlearner_options": {"sensitivity": "paper"}}
    made = Configuration(actions=("A", "B"), epsilon=1.0, delta=1e-5, **gaussian)
    adaptive = RequestOptions(unlearner="adaptive")
    assert adaptive.resolve(made).unlearner == Adaptive()
    by_the_paper = replace(adaptive, unlearner_options={"threshold": "paper"})
    assert by_the_paper.resolve(made).unlearner == Adaptive(threshold="paper")
