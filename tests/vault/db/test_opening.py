"""The registry of databases: a new one is one module and one entry."""

from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault import Configuration, Vault
from armnesia.vault.db import sqlite
from armnesia.vault.db.opening import DATABASES
from tests.cli.commands import options

ROWS = {"action": ["A", "B"] * 20, "reward": [1, 0] * 20, "user": [f"u-{row % 10}" for row in range(40)]}


class NotedDatabase(sqlite.SqliteDatabase):
    """An SQLite database that counts its write transactions."""

    address = "noted://FILE"
    keys = "beside it"
    written = 0

    def __init__(self, url: str, *, create: bool, timeout: float) -> None:
        super().__init__(url.replace("noted://", "sqlite:///"), create=create, timeout=timeout)

    @staticmethod
    def default_keys_path(url: str) -> Path:
        return Path(f"{url.removeprefix('noted://')}.secret")

    def writing(self) -> Any:
        type(self).written += 1
        return super().writing()


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DATABASES, "noted://", NotedDatabase)
    monkeypatch.setattr(NotedDatabase, "written", 0)


@pytest.mark.usefixtures("noted")
def test_a_new_database_holds_a_vault(tmp_path: Path) -> None:
    url = f"noted://{tmp_path}/v"
    with Vault.create(url, Configuration(actions=("A", "B"))) as vault:
        assert vault.ingest(ROWS, action="action", reward="reward", user="user").added == 40
    assert (tmp_path / "v.secret").exists()
    with Vault.open(url) as vault:
        done = vault.forget(users=["u-3"])
        assert done.records == 4
        found = vault.verify()
        assert (found.holds, found.records) == (True, 36)
    assert NotedDatabase.written == 3


@pytest.mark.usefixtures("noted")
def test_an_unknown_address_is_refused_with_the_registered_ones() -> None:
    accepted = "url must be sqlite:///FILE, postgresql://USER@HOST/DATABASE or noted://FILE; got 'mysql://db'"
    for url in ("mysql://db", "mysql//db"):
        with pytest.raises(InvalidInputError) as refusal:
            Vault.open(url)
        assert str(refusal.value) == accepted.replace("mysql://db", url)


def test_the_help_names_every_database() -> None:
    shown = options("status")
    for kind in DATABASES.values():
        assert kind.address in shown["--url"].help
        assert f"with {kind.address}, {kind.keys}" in shown["--keys"].help
