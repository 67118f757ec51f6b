"""Compacting an SQLite vault: every row stays, and writers are waited for."""

import pytest

from armnesia.core.errors import VaultBusyError
from tests.databases import Place
from tests.vault.raw_vaults import dumped, filled


def test_compact_keeps_every_row(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        before = dumped(vault)
        vault.compact()
        assert dumped(vault)["record"] == before["record"]
        assert vault.verify().holds


def test_compact_waits_its_turn(sqlite_place: Place) -> None:
    filled(sqlite_place).close()
    with (
        sqlite_place.open() as vault,
        sqlite_place.open(timeout=0.1) as other,
        vault.database.writing(),
        pytest.raises(VaultBusyError, match="in use by another process"),
    ):
        other.database.compact()
