"""Mistakes that people make: told in one sentence before anything is written, or no mistakes any more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, InvalidLogError, VaultBusyError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import LOG, dumped, filled


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ann", "bob"]),
        pd.Series(["ann", "bob"]),
        pd.Index(["ann", "bob"]),
        pl.Series(["ann", "bob"]),
    ],
    ids=lambda names: f"{type(names).__module__}.{type(names).__name__}",
)
def test_names_come_in_any_list(place: Place, names: Any) -> None:
    with filled(place) as vault:
        done = vault.forget(users=names)
        assert (done.named, done.held, done.records) == (2, 2, 3)
        assert vault.readmit(users=names).readmitted == 2
        with pytest.raises(InvalidInputError, match="must name at least one"):
            vault.forget(users=names[:0])


@pytest.mark.slow
@pytest.mark.parametrize(("names", "got"), [("ann", "text"), (b"ann", "bytes"), (5, "int"), (1.5, "float")])
def test_a_single_name_is_no_list(place: Place, names: Any, got: str) -> None:
    with filled(place) as vault:
        before = dumped(vault)
        with pytest.raises(InvalidInputError, match=f"must be a list of names; got a single {got}"):
            vault.forget(users=names)
        assert dumped(vault) == before


def test_a_closed_vault_says_that_it_is_closed(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    vault.close()
    vault.close()
    calls: list[Callable[[], Any]] = [
        *(vault.decide, vault.status, vault.verify, vault.compact, vault.ledger),
        lambda: vault.forget(users=["ann"]),
        lambda: vault.ingest(LOG, user="who", id="id"),
        lambda: vault.export(tmp_path / "export.json"),
    ]
    for call in calls:
        with pytest.raises(VaultError, match=r"^the vault '.*' is closed; open it again$"):
            call()
    with place.open() as again:
        assert again.verify().holds


def test_a_vault_that_another_connection_holds_open_is_closed_all_the_same(place: Place) -> None:
    with filled(place):
        vault = place.open()
        vault.close()
        with pytest.raises(VaultError, match="is closed; open it again"):
            vault.decide()


def test_an_id_that_means_another_row_is_located(place: Place) -> None:
    with filled(place) as vault:
        before = dumped(vault)
        changed = LOG | {"reward": [1.0, 0.5, 0.25, 0.0, 0.5, 0.0]}
        with pytest.raises(
            VaultError, match=r"at least 2 rows of this source have an id .* the first is row 4; rows that"
        ):
            vault.ingest(changed, user="who", id="id")
        assert dumped(vault) == before


def test_the_user_column_is_the_id_column_if_each_person_has_one_row(place: Place) -> None:
    log = {"action": ["A", "B", "A"], "reward": [1, 0, 0], "who": [7, 8, 9]}
    names: dict[str, Any] = {"user": "who", "id": "who"}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        assert vault.ingest(log, **names).added == 3
        as_floats = log | {"who": [7.0, 8.0, 9.0], "new": [1, 2, 3]}
        assert vault.ingest(as_floats, **names).already_there == 3
        with pytest.raises(VaultError, match="at least 1 row of this source has an id"):
            vault.ingest(log | {"reward": [1, 1, 0]}, **names)
        assert vault.forget(users=[7]).records == 1
        assert vault.ingest(log, **names).suppressed == 1
        assert vault.forget(records=["8"]).records == 1
        assert vault.ingest(log, **names).suppressed == 2
        assert vault.verify().holds


@pytest.mark.parametrize(
    ("again", "match"),
    [
        ("7", "is the user column as well, .* row 1 is the first of a person"),
        ("7.0", "integers that became floats: '7.0' in row 3"),
    ],
)
def test_a_second_row_of_a_person_is_refused_where_the_user_is_the_id(
    sqlite_place: Place, again: str, match: str
) -> None:
    log = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "who": ["7", "8", again]}
    with sqlite_place.create(Configuration(actions=("A", "B"), user_type=UserType.INTEGER)) as vault:
        for dry_run in (True, False):
            with pytest.raises(ArmnesiaError, match=match):
                vault.ingest(log, user="who", id="who", dry_run=dry_run)
        assert vault.status().records == 0


def test_a_column_of_people_does_not_become_the_actions(place: Place) -> None:
    people: dict[str, Any] = {"action": [f"user-{i}" for i in range(101)], "reward": [1] * 101}
    with place.create() as vault:
        before = dumped(vault)
        with pytest.raises(InvalidLogError, match=r"101 different values, .* is it the right column"):
            vault.ingest(people, no_user=True)
        assert dumped(vault) == before
    declared = Configuration(actions=tuple(people["action"]))
    elsewhere = place.keys.parent / "declared"
    elsewhere.mkdir()
    with fresh_place("sqlite", elsewhere).create(declared) as vault:
        assert vault.ingest(people, no_user=True).added == 101


def test_an_action_has_a_name(place: Place) -> None:
    with pytest.raises(InvalidInputError, match=r"must have a name; got an empty one"):
        place.create(Configuration(actions=("A", "", "B")))
    with place.create() as vault, pytest.raises(InvalidLogError, match="no empty labels"):
        vault.ingest({"action": ["A", ""], "reward": [1, 0]}, no_user=True)


def test_what_is_no_configuration_is_refused(place: Place) -> None:
    wrong: Any = "lcb"
    with pytest.raises(InvalidInputError, match="must be a Configuration; got a str"):
        Vault.create(place.url, wrong, keys=place.keys)


@pytest.mark.parametrize("keys", [".", "", "folder"])
def test_keys_are_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(InvalidInputError, match="keys must be a file; got the folder"):
        Vault.create("sqlite:///vault.db", keys=keys)
    assert not Path("vault.db").exists()


def test_a_vault_that_is_in_use_is_told_apart(place: Place) -> None:
    """A program that gets this may try again."""
    with (
        filled(place) as busy,
        place.open(timeout=0.1) as vault,
        busy.database.writing(),
        pytest.raises(VaultBusyError, match="in use by another process; nothing was changed, try again"),
    ):
        vault.forget(users=["ann"])


def test_an_option_that_postgresql_does_not_know_is_told(postgres_place: Place) -> None:
    with pytest.raises(VaultError, match="password, rights and options right"):
        Vault.create(postgres_place.url.replace("schema=", "schma="), keys=postgres_place.keys)


def test_a_vault_without_actions_forgets_nobody_and_says_so(place: Place) -> None:
    with place.create(Configuration(actions=None)) as vault:
        assert vault.preview(users=["ann"]).records == 0
        done = vault.forget(users=["ann"])
        assert (done.records, done.not_held) == (0, ("ann",))
        assert vault.verify().holds


@pytest.mark.parametrize(
    "mistaken",
    [
        lambda vault: vault.ledger(after=2**70),
        lambda vault: vault.ledger(after=-(2**70)),
        lambda vault: vault.ledger(most=2**70),
        lambda vault: vault.certificate(entry=2**70),
        lambda vault: vault.forget(users=[10**5000]),
        lambda vault: vault.ingest(
            {"action": ["A"], "reward": [1], "who": [10**5000], "id": [9]}, user="who", id="id"
        ),
        lambda vault: vault.forget(users=["ann"], epsilon=10**400, delta=0),
        lambda vault: vault.change_policy(max_epsilon=10**400),
        lambda vault: vault.export("a\0"),
        lambda vault: vault.back_up("a\0"),
        lambda vault: vault.save_certificates("a\0", users=["ann"]),
        lambda vault: Vault.open("sqlite:///a\0"),
    ],
)
def test_numbers_and_paths_that_nothing_takes_are_refused_in_words(
    sqlite_place: Place, mistaken: Callable[[Vault], object]
) -> None:
    with filled(sqlite_place) as vault:
        head = vault.head
        with pytest.raises(ArmnesiaError) as refused:
            mistaken(vault)
        assert "\n" not in str(refused.value)
        assert vault.head == head
        assert vault.verify().holds
