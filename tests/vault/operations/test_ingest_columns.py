"""A vault keeps the columns of its first source."""

from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, VaultError
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
            match=r"rewards from column 'retention_7', .* from column 'retention_1'",
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


def test_the_columns_are_known_after_a_rebuild(sqlite_place: Place, log: str) -> None:
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, reward="retention_7", **ROLES)
        Vault.restore(sqlite_place.url, keys=sqlite_place.keys, as_it_is=True)
    with sqlite_place.open() as vault, pytest.raises(VaultError, match="from column 'retention_7'"):
        vault.ingest(log, reward="retention_1", **ROLES)


IDS: dict[str, Any] = {"id": "event"}


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_ids_do_not_come_later(place: Place, tmp_path: Path, mode: str) -> None:
    """No row would be recognised, so that each would count twice."""
    (tmp_path / "log.csv").write_text("action,reward,user,event\nA,1,ann,e1\nB,0,bob,e2\n")
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        vault.ingest(tmp_path / "log.csv")
        for dry_run in (True, False):
            with pytest.raises(VaultError, match=r"knows its rows by their contents.*--id-column"):
                vault.ingest(tmp_path / "log.csv", **IDS, dry_run=dry_run)
        assert vault.status().records == 2
        assert vault.verify().holds


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_the_users_may_come_later_and_from_one_column(place: Place, tmp_path: Path, mode: str) -> None:
    logs = {"planes": "plane\nA,1,n7", "people": "who,user\nB,0,ann,x", "more": "who,user\nB,0,ann,y"}
    for name, rows in logs.items():
        (tmp_path / f"{name}.csv").write_text(f"action,reward,{rows}\n")
    with place.create(Configuration(actions=("A", "B"), mode=mode)) as vault:
        vault.ingest(tmp_path / "planes.csv", no_user=True)
        vault.ingest(tmp_path / "people.csv", user="who")
        with pytest.raises(VaultError, match="users from column 'who', and this source from column 'user'"):
            vault.ingest(tmp_path / "more.csv", user="user")
        vault.ingest(tmp_path / "more.csv")
        assert vault.configuration.columns == {"action": "action", "reward": "reward", "user": "who"}
        assert [entry.kind for entry in vault.ledger()] == ["init", "configured", "configured"]
        assert vault.forget(users=["ann"]).records == 2
        assert Vault.restore(place.url, keys=place.keys).as_it_was


def test_columns_are_declared_with_the_others(sqlite_place: Place) -> None:
    columns = {"action": "arm", "reward": "click", "user": "who"}
    with sqlite_place.create(Configuration(actions=("A", "B"), columns=columns)) as vault:
        assert vault.ingest({"arm": ["A"], "click": [1], "who": [7]}).added == 1
    for wrong in ({"action": "arm"}, {**columns, "key": "page"}, {**columns, "user": ""}):
        with pytest.raises(InvalidInputError, match="columns must name those of action and reward"):
            Configuration(actions=("A", "B"), columns=wrong)


def test_ids_come_from_the_column_of_before(place: Place) -> None:
    log = {"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"], "event": ["e1", "e2"]}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, **IDS)
        assert vault.ingest(log).already_there == 2
        with pytest.raises(InvalidLogError, match=r"id column 'event' is not in the source"):
            vault.ingest({name: own for name, own in log.items() if name != "event"})
