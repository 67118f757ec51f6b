"""One flipped bit in an index, then ordinary work: nothing comes in twice, comes back, or stays unseen."""

from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault.state import owner_tallies
from tests.databases import Place
from tests.vault.raw_vaults import LOG, damage_index, filled, values

IDS = "sqlite_autoindex_record_1"
HIDDEN = "holds records with these ids that their index does not find: the index is damaged; nothing was {}"
COLUMNS: dict[str, Any] = {"user": "who", "id": "id"}


def vault_with_hidden_record(place: Place, record: str) -> None:
    """A vault whose index of ids does not find one of its records."""
    with filled(place) as vault:
        identity = vault._connection.all_keys.record_identity("id", record)
    damage_index(place, IDS, identity)


def test_a_row_that_the_index_hides_does_not_come_in_twice(sqlite_place: Place) -> None:
    vault_with_hidden_record(sqlite_place, "r3")
    with sqlite_place.open() as vault:
        with pytest.raises(VaultError, match=HIDDEN.format("ingested")):
            vault.ingest(LOG, **COLUMNS)
        assert vault.status().records == 6
        vault.rebuild()
        assert vault.ingest(LOG, **COLUMNS).already_there == 6
        assert vault.verify().problems == ()


def test_many_rows_that_come_in_have_the_index_checked_as_a_whole(sqlite_place: Place) -> None:
    """More rows belong to their people than the vault holds: it costs less to check everything once."""
    vault_with_hidden_record(sqlite_place, "r3")
    more = {column: [*LOG[column]] for column in LOG}
    more["id"] = ["n1", "n2", "r3", "n4", "n5", "n6"]
    with sqlite_place.open() as vault:
        with pytest.raises(VaultError, match=r"database: .*; nothing was ingested: run armnesia rebuild"):
            vault.ingest(more, **COLUMNS)
        assert vault.status().records == 6


def test_a_damaged_index_of_owners_stops_an_ingest(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        owner = vault._connection.all_keys.owner_digest("ann")
    damage_index(sqlite_place, "record_owner", owner)
    with sqlite_place.open() as vault:
        one = {column: values_[:1] for column, values_ in LOG.items()} | {"id": ["r7"]}
        with pytest.raises(VaultError, match="are not those that the vault has counted for these people"):
            vault.ingest(one, **COLUMNS)


def test_a_record_is_not_certified_while_its_double_is_hidden(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an earlier version has let the same row in twice, or under another user."""
    vault_with_hidden_record(sqlite_place, "r3")
    monkeypatch.setattr(owner_tallies.IdIndexCheck, "confirm_new", lambda *_: None)
    with sqlite_place.open() as vault:
        assert vault.ingest(LOG, **COLUMNS).added == 1
        with pytest.raises(VaultError, match=HIDDEN.format("forgotten")):
            vault.forget(records=["r3"])
        identity = vault._connection.all_keys.record_identity("id", "r3")
        left = values(vault, "SELECT count(*) FROM record NOT INDEXED WHERE identity = ?", identity)
        assert left == [(2,)]


def test_people_may_have_many_rows_and_get_more(place: Place) -> None:
    """The check itself refuses nothing that is intact, in small ingests and in large ones."""
    with filled(place) as vault:
        for start in range(0, 400, 100):
            ids = [f"n{row}" for row in range(start, start + 100)]
            some = {"action": ["A"] * 100, "reward": [1.0] * 100, "who": ["ann", "bob"] * 50, "id": ids}
            assert vault.ingest(some, **COLUMNS).added == 100
            one = {column: values_[:1] for column, values_ in some.items()} | {"id": [f"m{start}"]}
            assert vault.ingest(one, **COLUMNS).added == 1
        assert vault.verify().problems == ()
