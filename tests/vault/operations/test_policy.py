"""The policy: the weakest promise that a request may be answered with, and what happens beyond it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, UnsupportedError, VaultError
from armnesia.privacy import Level
from armnesia.vault import Configuration, Policy, Vault
from tests.databases import fresh_place
from tests.vault.raw_vaults import dumped, filled

ALL = tuple(Level)
GAUSSIAN: dict[str, Any] = {"unlearner": "gaussian", "epsilon": 1.0, "delta": 1e-5}


def vault_with(tmp_path: Path, policy: Policy | None, **others: Any) -> Vault:
    if policy is not None:
        others["policy"] = policy
    return filled(fresh_place("sqlite", tmp_path), Configuration(actions=("A", "B"), **others))


def told(vault: Vault) -> dict[str, Any]:
    """What the ledger says of the last deletion."""
    return dict(vault.ledger().entries[-1].facts)


def test_without_a_policy_only_the_default_answer_is_allowed(tmp_path: Path) -> None:
    with vault_with(tmp_path, None) as vault:
        before = dumped(vault)
        with pytest.raises(
            VaultError, match="allows up to epsilon = 0, delta = 0 at level retained; this request"
        ):
            vault.forget(users=["ann"], **GAUSSIAN)
        assert dumped(vault) == before
        assert vault.forget(users=["ann"]).records == 2


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"epsilon": 1.0, "delta": 1e-5}, True),
        ({"epsilon": 0.5, "delta": 1e-6}, True),
        ({"epsilon": 1.0000001, "delta": 1e-5}, False),
        ({"epsilon": 1.0, "delta": 1.1e-5}, False),
        ({"epsilon": 0.1, "delta": 1e-4}, False),
    ],
)
@pytest.mark.parametrize("preview", [False, True])
def test_the_limits_of_epsilon_and_delta(
    tmp_path: Path, asked: dict[str, float], allowed: bool, preview: bool
) -> None:
    with vault_with(tmp_path, Policy(1.0, 1e-5, ALL)) as vault:
        ask: Callable[..., Any] = vault.preview if preview else vault.forget
        if allowed:
            release = ask(users=["ann"], unlearner="gaussian", **asked).release
            assert (release.guarantee.epsilon, release.guarantee.delta) == tuple(asked.values())
            return
        before = dumped(vault)
        with pytest.raises(VaultError, match="the vault's policy allows up to epsilon = 1, delta = 1e-05"):
            ask(users=["ann"], unlearner="gaussian", **asked)
        assert dumped(vault) == before


@pytest.mark.parametrize(
    ("unlearner", "level"),
    [("rollback", "retained"), ("gaussian", "request_shape"), ("adaptive", "original_decision")],
)
def test_the_levels(tmp_path: Path, unlearner: str, level: str) -> None:
    for number, levels in enumerate([ALL[:1], ALL[:2], ALL]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with vault_with(folder, Policy(1.0, 1e-5, levels)) as vault:
            asked = {"unlearner": unlearner, "epsilon": 1.0, "delta": 1e-5}
            if Level(level) in levels:
                vault.forget(users=["ann"], **asked)  # type: ignore[arg-type]
                assert told(vault)["level"] == level
                assert ("counts" in told(vault)) == (level != "retained")
            else:
                with pytest.raises(VaultError, match=rf"answered with .* at level {level}"):
                    vault.forget(users=["ann"], **asked)  # type: ignore[arg-type]


def test_a_frozen_penalty_needs_a_policy_that_lets_counts_be_public(tmp_path: Path) -> None:
    with pytest.raises(
        VaultError,
        match=r"default answer, rollback .* level request_shape, is beyond .* at level retained",
    ):
        Configuration(actions=("A", "B"), penalty="frozen", policy=Policy(0.0, 0.0, ALL[:1]))
    with vault_with(tmp_path, None, penalty="frozen") as vault:
        vault.forget(users=["ann"])
        assert told(vault)["counts"] == [1, 1]


def test_beyond_the_policy_exact_rollback_answers_if_it_says_so(tmp_path: Path) -> None:
    with vault_with(tmp_path, Policy(0.5, 1e-6, ALL, "rollback")) as vault:
        done = vault.forget(users=["ann"], **GAUSSIAN)
        assert done.release is not None
        assert (done.release.guarantee.epsilon, done.release.guarantee.level) == (0.0, Level.RETAINED)
        assert told(vault)["unlearner"] == {"name": "rollback"}
        assert told(vault)["budget"] == {"epsilon": 0.0, "delta": 0.0}
        assert "counts" not in told(vault)
        vault.forget(users=["bob"], unlearner="gaussian", epsilon=0.5, delta=1e-6)
        assert told(vault)["unlearner"] == {"name": "gaussian"}


MIXING: dict[str, Any] = {"unlearner": "mixing", "epsilon": 1.0, "delta": 1e-5}


@pytest.mark.parametrize("beyond", ["refuse", "rollback"])
def test_an_unlearner_of_one_arm_asked_for_several(tmp_path: Path, beyond: Any) -> None:
    with vault_with(tmp_path, Policy(1.0, 1e-5, ALL, beyond)) as vault:
        before = dumped(vault)
        if beyond == "refuse":
            with pytest.raises(UnsupportedError, match="one arm"):
                vault.forget(users=["ann"], **MIXING)
            assert dumped(vault) == before
        else:
            assert vault.preview(users=["ann"], **MIXING).release.guarantee.level == "original_decision"  # type: ignore[union-attr]
            vault.forget(users=["ann"], **MIXING)
            # That mixing did not answer tells that it was several arms: no claim of level retained.
            fields = ("unlearner", "budget", "level", "counts")
            assert [told(vault)[field] for field in fields] == [
                {"name": "rollback"},
                {"epsilon": 0.0, "delta": 0.0},
                "original_decision",
                [1, 1],
            ]
        vault.forget(users=["bob"], **MIXING)
        assert told(vault)["unlearner"]["name"] == "mixing"


def test_exact_rollback_by_the_shape_of_a_request_is_no_better_than_its_shape(tmp_path: Path) -> None:
    """Noise that is not joint promises less for two arms than for one."""
    asked = GAUSSIAN | {"unlearner_options": {"joint": False}}
    with vault_with(tmp_path, Policy(1.0, 1e-5, ALL, "rollback")) as vault:
        vault.forget(users=["ann"], **asked)
        assert (told(vault)["unlearner"]["name"], told(vault)["level"]) == ("rollback", "request_shape")
        vault.forget(users=["bob"], **asked)
        assert told(vault)["unlearner"]["name"] == "gaussian"


def test_a_changed_policy_holds_from_then_on_and_the_ledger_says_so(tmp_path: Path) -> None:
    with vault_with(tmp_path, None) as vault:
        vault.change_policy(max_epsilon=2.0, max_delta=1e-4, levels=ALL)
        assert told(vault)["configuration"]["policy"]["max_epsilon"] == 2.0
        vault.forget(users=["ann"], **GAUSSIAN)
        vault.change_policy(max_epsilon=0.5)
        with pytest.raises(VaultError, match=r"allows up to epsilon = 0\.5"):
            vault.forget(users=["bob"], **GAUSSIAN)
        assert vault.forget(users=["ann"], **GAUSSIAN).repeated  # answered before: the answer stays
        assert vault.verify().holds


def test_a_policy_that_forbids_the_default_answer_is_refused(tmp_path: Path) -> None:
    with vault_with(tmp_path, Policy(1.0, 1e-5, ALL), **GAUSSIAN) as vault:
        before = dumped(vault)
        with pytest.raises(VaultError, match=r"default answer, gaussian .* allow at least that"):
            vault.change_policy(max_epsilon=0.5)
        assert dumped(vault) == before


@pytest.mark.parametrize(
    "budget",
    [(math.inf, 1e-5), (1.0, 1.0), (math.nan, 1e-5), (1.0, math.nan), (-1.0, 0.0), (1.0, -0.1), (1.0, 1.5)],
    ids=str,
)
def test_a_budget_that_is_none_or_promises_nothing_is_refused(
    tmp_path: Path, budget: tuple[float, float]
) -> None:
    epsilon, delta = budget
    with pytest.raises(InvalidInputError, match=r"epsilon|delta"):
        Policy(epsilon, delta, ALL)
    with pytest.raises(InvalidInputError, match=r"epsilon|delta"):
        Configuration(actions=None, unlearner="gaussian", epsilon=epsilon, delta=delta)
    with vault_with(tmp_path, Policy(1e9, 0.999, ALL, "rollback")) as vault:
        before = dumped(vault)
        for users in (["ann"], ["nobody"]):
            for ask in (vault.forget, vault.preview):
                with pytest.raises(InvalidInputError, match=r"epsilon|delta"):
                    ask(users=users, unlearner="gaussian", epsilon=epsilon, delta=delta)
        assert dumped(vault) == before


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"unlearner": "amnesia"}, "unlearner must be one of rollback, "),
        ({"unlearner_options": {"sigma": 1.0}}, "rollback has no option 'sigma'"),
        ({"unlearner": "tilt", "unlearner_options": {"assumed_share": 2.0}, "epsilon": 1.0}, "assumed_share"),
    ],
)
def test_what_no_unlearner_knows_is_refused(tmp_path: Path, asked: dict[str, Any], said: str) -> None:
    with vault_with(tmp_path, Policy(1.0, 1e-5, ALL)) as vault:
        before = dumped(vault)
        for users in (["ann"], ["nobody"]):
            with pytest.raises(ArmnesiaError, match=said):
                vault.forget(users=users, **asked)
        assert dumped(vault) == before


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({}, "by exactly one of users and records"),
        ({"users": ["ann"], "records": ["r1"]}, "by exactly one of users and records"),
        ({"users": []}, "at least one user or record"),
        ({"users": ["ann", ""]}, "none of them empty"),
        ({"users": ["ann", None]}, "none of them empty"),
        ({"users": "ann"}, "a list of names; got a single text"),
        ({"users": ["\ud800"]}, "surrogate"),
    ],
    ids=str,
)
def test_a_request_that_is_none_is_refused(tmp_path: Path, wanted: dict[str, Any], said: str) -> None:
    with vault_with(tmp_path, None) as vault:
        before = dumped(vault)
        for ask in (vault.forget, vault.preview):
            with pytest.raises(InvalidInputError, match=said):
                ask(**wanted)
        assert dumped(vault) == before
