"""A log that cannot be emptied after a commit: the change is done; `compact` says what keeps bytes."""

import sqlite3
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Vault
from armnesia.vault.db.sqlite import SqliteDatabase
from tests.databases import Place
from tests.vault.raw_vaults import filled, reader_of


def failing(vault: Vault, code: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the vault's checkpoints fail with this error of SQLite."""
    database = vault.database
    assert isinstance(database, SqliteDatabase)
    connection = database._connection

    class Failing:
        def execute(self, sql: str, *parameters: Any) -> Any:
            if "wal_checkpoint" in sql:
                error = sqlite3.OperationalError(text)
                error.sqlite_errorcode = code
                raise error
            return connection.execute(sql, *parameters)

        def __getattr__(self, name: str) -> Any:
            return getattr(connection, name)

    monkeypatch.setattr(database, "_connection", Failing())


@pytest.mark.parametrize(
    ("code", "text", "told"),
    [
        (sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error", "cannot be read or written: disk I/O error"),
        (sqlite3.SQLITE_FULL, "database or disk is full", "the disk is full"),
        (sqlite3.SQLITE_READONLY, "attempt to write a readonly database", "cannot be read or written"),
        (sqlite3.SQLITE_CORRUPT, "database disk image is malformed", "is damaged: .* is malformed; "),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "database is locked", "is in use by another process"),
    ],
)
def test_a_checkpoint_that_fails_does_not_undo_a_commit(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, code: int, text: str, told: str
) -> None:
    with filled(sqlite_place) as vault:
        failing(vault, code, text, monkeypatch)
        assert vault.forget(users=["ann"]).records == 2
        with pytest.raises(VaultError, match=told):
            vault.compact()
        monkeypatch.undo()
        assert vault.forget(users=["ann"]).repeated
        vault.compact()
        assert vault.verify().holds


def test_who_reads_meanwhile_keeps_deleted_bytes_in_the_log(sqlite_place: Place) -> None:
    filled(sqlite_place).close()
    with sqlite_place.open(timeout=0.1) as vault:
        with reader_of(sqlite_place):
            assert vault.forget(users=["ann"]).records == 2
            with pytest.raises(
                VaultError, match=r"still in the files .* another process was using the vault"
            ):
                vault.compact()
        vault.compact()
