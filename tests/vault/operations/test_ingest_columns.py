"""A vault has its actions, rewards and ids from the same columns, unless others are stated to fit."""

from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidLogError, VaultError
from armnesia.vault import Configuration, Vault
from tests.databases import Place

LOG = "userid,version,retention_1,retention_7\n1,A,1,0\n2,B,1,1\n3,A,0,0\n4,B,0,1\n"
ROLES: dict[str, Any] = {"action": "version", "user": "userid"}


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "log.csv").write_text(LOG)
    return str(tmp_path / "log.csv")


def means_of(vault: Vault) -> list[float]:
    return [arm.mean for arm in vault.status(scores=True).scores or ()]


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_another_reward_column_is_refused_and_changes_nothing(place: Place, log: str, mode: str) -> None:
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        vault.ingest(log, reward="retention_7", **ROLES)
        with pytest.raises(
            VaultError,
            match=r"rewards from column 'retention_7', .* from column 'retention_1'.*--reward-column",
        ):
            vault.ingest(log, reward="retention_1", **ROLES)
        assert means_of(vault) == [0, 1]
        done = vault.ingest(log, reward="retention_7", **ROLES)
        assert (done.added, done.already_there) == (0, 4 if mode == "managed" else 0)
        assert vault.verify().holds


def test_another_action_column_is_refused(sqlite_place: Place) -> None:
    log = {"arm": ["A"], "shown": ["B"], "reward": [1], "user": ["ann"]}
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, action="arm")
        with pytest.raises(VaultError, match=r"actions from column 'arm', .* from column 'shown'"):
            vault.ingest(log, action="shown")


def test_a_second_log_with_other_names_comes_in_if_that_is_stated(place: Place) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest({"arm": ["A"], "click": [1], "user": ["ann"]}, action="arm", reward="click")
        other = {"variant": ["B"], "clicked": [0], "user": ["bob"]}
        names: dict[str, Any] = {"action": "variant", "reward": "clicked"}
        assert vault.ingest(other, **names, other_columns=True).added == 1
        assert vault.ingest(other, **names).already_there == 1  # from now on both are known
        assert vault.verify().holds
        assert Vault.restore(place.url, keys=place.keys).as_it_was
        vault.forget(users=["bob"])
        with pytest.raises(VaultError, match=r"rewards from column 'click', 'clicked', .* from column 'won'"):
            vault.ingest({"arm": ["A"], "won": [1], "user": ["cat"]}, action="arm", reward="won", user="user")


def test_the_columns_are_known_after_a_rebuild(sqlite_place: Place, log: str) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, reward="retention_7", **ROLES)
        Vault.restore(sqlite_place.url, keys=sqlite_place.keys, as_it_is=True)
    with sqlite_place.open() as vault, pytest.raises(VaultError, match="from column 'retention_7'"):
        vault.ingest(log, reward="retention_1", **ROLES)


IDS: dict[str, Any] = {"id": "event"}


def test_the_same_log_with_and_without_its_ids_is_refused(place: Place) -> None:
    """No row would be recognised, so that each would count twice."""
    log = {"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"], "event": ["e1", "e2"]}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log)
        for dry_run in (True, False):
            with pytest.raises(VaultError, match=r"would count twice: .*--id-column.*--other-ids"):
                vault.ingest(log, **IDS, dry_run=dry_run)
        assert vault.status().records == 2
        others = {"action": ["A"], "reward": [1], "user": ["cat"], "event": ["e3"]}
        assert vault.ingest(others, **IDS, other_ids=True).added == 1
        assert vault.ingest(others, **IDS).already_there == 1  # from now on both are known
        assert vault.ingest(log).already_there == 2
        assert vault.verify().holds


def test_ids_come_from_the_column_of_before(place: Place) -> None:
    log = {"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"], "event": ["e1", "e2"]}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, **IDS)
        assert vault.ingest(log).already_there == 2
        with pytest.raises(InvalidLogError, match=r"id column 'event' is not in the source"):
            vault.ingest({name: own for name, own in log.items() if name != "event"})


def test_an_external_vault_knows_rows_by_where_they_are(place: Place, log: str, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text(LOG)
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(log, reward="retention_7", **ROLES)
        assert vault.ingest(tmp_path / "other.csv", reward="retention_7", id="userid", **ROLES).added == 4
