"""The registry of databases: a new one is one module and one entry."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.vault import Configuration, Vault
from armnesia.vault.storage import sqlite
from armnesia.vault.storage.opening import DATABASES, DatabaseKind
from tests.cli.commands import options

ROWS = {"action": ["A", "B"] * 20, "reward": [1, 0] * 20, "user": [f"u-{row % 10}" for row in range(40)]}


class NotedDatabase(sqlite.SqliteDatabase):
    """An SQLite database that counts its write transactions."""

    erasure_covers = "the files of the noted vault"
    written = 0

    def writing(self) -> Any:
        type(self).written += 1
        return super().writing()


def connect(url: str, *, create: bool, timeout: float) -> NotedDatabase:
    return NotedDatabase(url.removeprefix("noted://"), create=create, timeout=timeout)


def default_keys_path(url: str) -> Path:
    return Path(f"{url.removeprefix('noted://')}.secret")


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("a_new_database")
    vars(module).update(connect=connect, default_keys_path=default_keys_path)
    monkeypatch.setitem(sys.modules, "a_new_database", module)
    monkeypatch.setitem(DATABASES, "noted://", DatabaseKind("a_new_database", "noted://FILE", "beside it"))
    monkeypatch.setattr(NotedDatabase, "written", 0)


@pytest.mark.usefixtures("noted")
def test_a_new_database_holds_a_vault(tmp_path: Path) -> None:
    url = f"noted://{tmp_path}/v"
    with Vault.create(url, Configuration(actions=("A", "B"))) as vault:
        assert vault.ingest(ROWS, action="action", reward="reward", user="user").added == 40
    assert (tmp_path / "v.secret").exists()
    with Vault.open(url) as vault:
        done = vault.forget(users=["u-3"])
        assert (done.records, done.erasure) == (4, "complete")
        assert "the files of the noted vault" in done.certificate.words()
        found = vault.verify()
        assert (found.holds, found.records) == (True, 36)
    assert NotedDatabase.written == 3


@pytest.mark.usefixtures("noted")
def test_the_command_line_opens_it(run: Any, tmp_path: Path) -> None:
    url = f"noted://{tmp_path}/v"
    Vault.create(url, Configuration(actions=("A", "B"))).close()
    assert run("decide", "--url", url, "--json").json["action"] == "A"


@pytest.mark.usefixtures("noted")
def test_an_unknown_address_is_refused_with_the_registered_ones() -> None:
    accepted = "url must be sqlite:///FILE, postgresql://USER@HOST/DATABASE or noted://FILE; got 'mysql://db'"
    for url in ("mysql://db", "mysql//db"):
        with pytest.raises(InvalidInputError) as refusal:
            Vault.open(url)
        assert str(refusal.value) == accepted.replace("mysql://db", url)


def test_sqlite_names_the_address_of_the_registry() -> None:
    assert DATABASES["sqlite://"].address == sqlite.ADDRESS
    with pytest.raises(InvalidInputError, match=r"url must be sqlite:///FILE; got 'sqlite://v\.db'"):
        Vault.open("sqlite://v.db")


def test_the_help_names_every_database() -> None:
    shown = options("status")
    for kind in DATABASES.values():
        assert kind.address in shown["--url"].help
        assert f"with {kind.address}, {kind.keys}" in shown["--keys"].help
