"""The option --timeout: how long a command waits for others that use the vault."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultBusyError
from armnesia.vault import Vault
from tests.cli.commands import commands, options
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import filled

OPENS_A_VAULT = [name for name in commands() if "--url" in options(name)]


@contextmanager
def writer() -> Iterator[None]:
    """Somebody who writes to the vault all the while."""
    connection = sqlite3.connect("vault.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.close()


def test_every_command_that_opens_a_vault_has_it() -> None:
    assert len(OPENS_A_VAULT) >= 18
    assert [name for name in OPENS_A_VAULT if "--timeout" not in options(name)] == []


def test_a_command_waits_as_long_as_asked(run: Any, vault: Path) -> None:
    with writer():
        start = time.monotonic()
        busy = run("forget", "--user", "u1", "--timeout", "0.3")
        assert 0.3 <= time.monotonic() - start < 29  # not the 30 seconds of the default
        assert (busy.code, busy.out) == (75, "")
        assert "is in use by another process" in busy.err
        assert run("policy", "--beyond", "rollback", "--timeout", "0").code == 75
    assert run("forget", "--user", "u1", "--timeout", "0").code == 0


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "1e7"])
@pytest.mark.parametrize(
    "command",
    [("decide",), ("status",), ("init", "--url", "sqlite:///new.db"), ("ledger",)],
)
def test_a_time_that_cannot_be_waited_is_refused(
    run: Any, vault: Path, command: tuple[str, ...], seconds: str
) -> None:
    refused = run(*command, "--timeout", seconds)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        f"armnesia: timeout must be a number of seconds from 0 to 1,000,000; got {float(seconds)}\n"
    )
    assert not Path("new.db").exists()


@pytest.mark.parametrize("timeout", [True, "3", None])
def test_python_refuses_what_is_no_number(sqlite_place: Place, timeout: Any) -> None:
    filled(sqlite_place).close()
    with pytest.raises(InvalidInputError, match="timeout must be a number of seconds"):
        sqlite_place.open(timeout=timeout)


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return fresh_place("sqlite", tmp_path)


@pytest.mark.parametrize("timeout", [0, 0.0004, 0.2])
def test_a_server_is_not_waited_for_longer(tmp_path: Path, timeout: float) -> None:
    """To PostgreSQL a time-out of 0 means to wait for ever."""
    place = fresh_place("postgresql", tmp_path)
    filled(place).close()
    with Vault.open(place.url, keys=place.keys) as vault, place.open(timeout=timeout) as other:
        start = time.monotonic()
        with vault.database.writing(), pytest.raises(VaultBusyError):
            other.forget(users=["ann"])
        assert time.monotonic() - start < 29
