"""Logs of every kind that rows are erased from, as sources of an external vault."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pytest

from armnesia import ArmStatistics
from armnesia.vault import Configuration, Ingested, Vault
from tests.databases import Place
from tests.logs.erasing.conftest import make_store
from tests.logs.erasing.stores import (
    STORES,
    DeltaStore,
    IcebergStore,
    PostgresStore,
    Row,
    SqliteStore,
    Store,
    found_in,
    needles,
)
from tests.logs.lakes.tables import compact_iceberg
from tests.vault.raw_vaults import arms

PERMITTED = Configuration(actions=("A", "B"), mode="external", may_erase_at_source=True)


class OrderedSqliteStore(SqliteStore):
    """With a number that grows with every row."""

    def append(self, rows: Sequence[Row]) -> None:
        self.folder.mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            columns = "n INTEGER PRIMARY KEY, user, action, reward, page"
            connection.execute(f"CREATE TABLE IF NOT EXISTS clicks ({columns})")
            connection.execute("CREATE INDEX IF NOT EXISTS by_user ON clicks (user)")
            connection.executemany("INSERT INTO clicks VALUES (NULL, ?, ?, ?, ?)", rows)


class OrderedPostgresStore(PostgresStore):
    """With a number that grows with every row."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with self.connected() as connection:
            connection.execute(f"ALTER TABLE {self.schema}.clicks ADD n bigserial")

    def append(self, rows: Sequence[Row]) -> None:
        with self.connected() as connection, connection.cursor() as cursor:
            columns = '("user", action, reward, page)'
            cursor.executemany(f"INSERT INTO {self.schema}.clicks {columns} VALUES (%s, %s, %s, %s)", rows)

    def rows(self) -> list[Row]:
        with self.connected() as connection:
            return list(connection.execute(f'SELECT "user", action, reward, page FROM {self.schema}.clicks'))


KINDS: dict[str, type[Store]] = {
    **STORES,
    "sqlite": OrderedSqliteStore,
    "postgresql": OrderedPostgresStore,
}


def make_log(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty log of a kind."""
    monkeypatch.setitem(STORES, kind, KINDS[kind])
    return make_store(kind, folder, monkeypatch)


def address_of(log: Store) -> dict[str, Any]:
    """How the log is named to a vault."""
    described = log.open().description
    ordered = {"ordered_by": "n"} if described["table"] is not None else {}
    return {"source": described["location"], "table": described["table"], "user": "user", **ordered}


def ingest(vault: Vault, log: Store) -> Ingested:
    return vault.ingest(**address_of(log))


def compact(log: Store) -> bool:
    """Write the same rows to other files; False if the kind has no such thing."""
    if isinstance(log, DeltaStore):
        deltalake.DeltaTable(str(log.folder)).optimize.compact()
        return True
    if isinstance(log, IcebergStore):
        compact_iceberg(log.table())
        return True
    return False


def counted_vault(place: Place, log: Store, configuration: Configuration = PERMITTED) -> Vault:
    """A vault that has counted the log."""
    vault = place.create(configuration)
    ingest(vault, log)
    return vault


def plain_statistics(rows: Iterable[Row], forgotten: Iterable[str]) -> ArmStatistics:
    """What a vault must have counted: all rows but those of forgotten people."""
    gone = set(forgotten)
    rewards: dict[str, list[float]] = {"A": [], "B": []}
    for user, action, reward, _ in rows:
        if user not in gone:
            rewards[action].append(reward)
    return ArmStatistics.from_rewards({arm: np.array(own) for arm, own in rewards.items()})


def assert_is_plain(vault: Vault, rows: Iterable[Row], forgotten: Iterable[str]) -> None:
    """The statistics and the served arm are those of the plain model, and everything verifies."""
    expected = plain_statistics(rows, forgotten)
    found = [(count, units) for count, units, _ in arms(vault)]
    assert found == list(zip(expected.counts.tolist(), expected.sums.tolist(), strict=True))
    assert vault.decide().action == vault.configuration.make_learner().decide(expected).action
    assert vault.verify().problems == ()


def vault_contents(place: Place) -> Iterable[bytes]:
    """Every file of an SQLite vault."""
    return [path.read_bytes() for path in place.path.parent.glob(f"{place.path.name}*")]


def traces(log: Store, place: Place, rows: Iterable[Row]) -> set[bytes]:
    """Which names and rewards of rows are in any file of the log or of the vault."""
    return found_in([*log.contents(), *vault_contents(place)], needles(rows))
