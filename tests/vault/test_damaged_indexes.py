"""One flipped bit in an index, then ordinary work: nothing comes in twice, comes back, or stays unseen."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from armnesia.core.errors import VaultError
from armnesia.logs import CHUNK
from armnesia.vault import Configuration, ForgetRequest, Forgotten, Vault
from armnesia.vault.state import owner_tallies
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.storage import sqlite_session, tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.digest_arrays import packed
from tests.databases import Place
from tests.vault.raw_vaults import LOG, change, damage_index, empty_tree, filled, values

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


def test_where_reading_all_records_costs_less_a_hidden_row_is_found_so(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on PostgreSQL, where no test can damage an index."""
    vault_with_hidden_record(sqlite_place, "r3")
    monkeypatch.setitem(vars(sqlite_session.DIALECT), "rows_scanned_per_lookup", 6)
    with sqlite_place.open() as vault:
        new = {column: values_[:2] for column, values_ in LOG.items()} | {"id": ["n1", "n2"]}
        monkeypatch.setattr(tables, "count_of_owners", None)  # is not called
        assert vault.ingest(new, **COLUMNS).added == 2
        with pytest.raises(VaultError, match=HIDDEN.format("ingested")):
            vault.ingest({column: values_[2:3] for column, values_ in LOG.items()}, **COLUMNS)
        assert vault.status().records == 8


@pytest.mark.parametrize("again", range(0, 40, 13))
def test_among_the_rows_of_many_people_one_that_the_index_hides_is_found(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, again: int
) -> None:
    """Their records are read in the order of the table, some at a time; the index of ids is not asked."""
    monkeypatch.setattr(sqlite_session, "_AT_ONCE", 7)
    rows = range(40)
    log: dict[str, list[Any]] = {
        "action": ["A"] * 40,
        "reward": [1.0] * 40,
        "who": [f"person {row % 20}" for row in rows],
        "id": [f"r{row}" for row in rows],
    }
    with sqlite_place.create(Configuration(actions=("A", "B", "C"))) as vault:
        assert vault.ingest(log, **COLUMNS).added == 40
        identity = vault._connection.all_keys.record_identity("id", f"r{again}")
    damage_index(sqlite_place, IDS, identity)
    people = {f"person {number}" for number in range(10, 20)} | {f"person {again % 20}"}
    chosen = [row for row in rows if log["who"][row] in people and row >= 20 and row % 20 != again % 20]
    more: dict[str, list[Any]] = {
        "action": ["A"] * (len(chosen) + 1),
        "reward": [1.0] * (len(chosen) + 1),
        "who": [*(log["who"][row] for row in chosen), f"person {again % 20}"],
        "id": [*(f"n{row}" for row in chosen), f"r{again}"],
    }
    with sqlite_place.open() as vault:
        with pytest.raises(VaultError, match=HIDDEN.format("ingested")):
            vault.ingest(more, **COLUMNS)
        assert vault.status().records == 40
        without = {column: values_[:-1] for column, values_ in more.items()}
        assert vault.ingest(without, **COLUMNS).added == len(chosen)


def test_a_place_that_is_found_twice_is_counted_once(sqlite_place: Place) -> None:
    """Here because an owner is asked for twice; a damaged index may have a place twice as well."""
    with filled(sqlite_place) as vault, vault._connection.database.reading() as session:
        owners = packed([vault._connection.all_keys.owner_digest("ann")])
        (found,) = session.identities_of(owners)
        both = np.concatenate([owners, owners])
        assert [len(each) for each in session.identities_of(both)] == [len(found)] == [2]


@pytest.mark.parametrize("by", [(), ("page",)], ids=["one decision", "many"])
def test_nothing_comes_in_twice_though_both_indexes_are_empty(sqlite_place: Place, by: tuple[str]) -> None:
    log: dict[str, list[Any]] = {**LOG, "page": ["home"] * 6}
    with sqlite_place.create(Configuration(actions=("A", "B", "C"), by=by)) as vault:
        assert vault.ingest(log, **COLUMNS).added == 6
    for index in (IDS, "record_owner"):
        empty_tree(sqlite_place, index)
    with sqlite_place.open() as vault:
        with pytest.raises(VaultError, match=r"database: .*; nothing was ingested: run armnesia rebuild"):
            vault.ingest(log, **COLUMNS)
        vault.rebuild()
        assert vault.ingest(log, **COLUMNS).already_there == 6
        assert vault.verify().problems == ()


def test_a_rebuild_does_not_take_a_broken_table_for_an_empty_one(sqlite_place: Place) -> None:
    """Its rows would be in the file for ever, and "nothing held" a false certificate."""
    with filled(sqlite_place):
        pass
    empty_tree(sqlite_place, "record")
    with sqlite_place.open(accept="damaged") as vault, pytest.raises(VaultError, match="restore a backup"):
        vault.rebuild()
    with sqlite_place.open() as vault, pytest.raises(VaultError, match=r"malformed|not those that the vault"):
        vault.forget(users=["ann"])


def test_a_damaged_table_of_sources_is_told_in_a_sentence(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        change(vault, "UPDATE source SET description = 'null'")
        with pytest.raises(VaultError, match="values in the vault's tables were changed"):
            vault.ingest(LOG, **COLUMNS)


def test_a_person_with_rows_in_several_chunks_of_ids_like_floats_comes_in(place: Place) -> None:
    """The ids of a chunk are compared with those of the chunks before, whose rows are stored for that."""
    with filled(place) as vault:
        people = ["ann", *(f"new {row}" for row in range(CHUNK - 1)), "ann"]
        more: dict[str, list[Any]] = {
            "action": ["A"] * len(people),
            "reward": [1.0] * len(people),
            "who": people,
            "id": [*(f"n{row}" for row in range(CHUNK)), "7.0"],
        }
        with pytest.warns(UserWarning, match="looks like integers that became floats"):
            assert vault.ingest(more, **COLUMNS).added == CHUNK + 1
        assert vault.verify().problems == ()


def test_a_damaged_index_of_owners_stops_an_ingest(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        owner = vault._connection.all_keys.owner_digest("ann")
    damage_index(sqlite_place, "record_owner", owner, entries=2)
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
            some: dict[str, list[Any]] = {
                "action": ["A"] * 100,
                "reward": [1.0] * 100,
                "who": ["ann", "bob"] * 50,
                "id": ids,
            }
            assert vault.ingest(some, **COLUMNS).added == 100
            one = {column: values_[:1] for column, values_ in some.items()} | {"id": [f"m{start}"]}
            assert vault.ingest(one, **COLUMNS).added == 1
        assert vault.verify().problems == ()


# Nothing held.

TALLIES = "sqlite_autoindex_owner_1"
NOBODY = "are not those that the vault has counted for these people"


def forgotten(vault: Vault, together: bool) -> list[Any]:
    if not together:
        return [vault.forget(users=["ann"])]
    requests = [ForgetRequest(users=[name]) for name in ("ann", "eve")]
    return [each for each in vault.forget_many(requests) if not isinstance(each, Exception)]


@pytest.mark.parametrize("by", [(), ("page",)], ids=["one decision", "many"])
@pytest.mark.parametrize("together", [False, True])
def test_nothing_held_is_not_said_where_the_indexes_find_nobody(
    sqlite_place: Place, together: bool, by: tuple[str]
) -> None:
    log: dict[str, list[Any]] = {**LOG, "page": ["home"] * 6}
    with sqlite_place.create(Configuration(actions=("A", "B", "C"), by=by)) as vault:
        vault.ingest(log, **COLUMNS)
    for index in ("record_owner", TALLIES):
        empty_tree(sqlite_place, index)
    with sqlite_place.open() as vault, pytest.raises(VaultError, match=NOBODY):
        forgotten(vault, together)


@pytest.mark.parametrize("together", [False, True])
def test_nothing_held_is_not_said_where_the_indexes_lead_elsewhere(
    sqlite_place: Place, together: bool
) -> None:
    """Both have another digest in the place of the person's, but not the same."""
    with filled(sqlite_place) as vault:
        owner = vault._connection.all_keys.owner_digest("ann")
    damage_index(sqlite_place, "record_owner", owner, entries=2)
    damage_index(sqlite_place, TALLIES, owner, bit=2)
    with sqlite_place.open() as vault, pytest.raises(VaultError, match=NOBODY):
        forgotten(vault, together)


@pytest.mark.parametrize("no_user", [False, True])
def test_nothing_is_held_in_a_vault_without_people(place: Place, no_user: bool) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        if no_user:
            vault.ingest({"action": ["A"], "reward": [1.0]}, no_user=True)
        for user in ("ann", "bob"):
            assert vault.forget(users=[user]).certificate.body["entry"]["kind"] == "nothing_held"


def test_nothing_is_held_of_people_beside_others_who_are_forgotten_with_them(place: Place) -> None:
    with filled(place) as vault:
        done = vault.forget(users=["ann", "bob", "eve", "fay"])
        assert (done.held, done.not_held) == (2, ("eve", "fay"))
        names = [["gus"], ["cem"], ["dan", "hal"], ["ian"]]
        each = vault.forget_many(ForgetRequest(users=some) for some in names)
        assert [one.held for one in each if isinstance(one, Forgotten)] == [0, 1, 1, 0]
        assert vault.verify().problems == ()


# The suppression list.

SUPPRESSED = "sqlite_autoindex_suppressed_1"


@pytest.mark.parametrize("kind", ["users", "records"])
def test_nobody_comes_back_because_the_index_of_the_list_is_damaged(sqlite_place: Place, kind: str) -> None:
    with filled(sqlite_place) as vault:
        if kind == "users":
            vault.forget(users=["dan"])
        else:
            vault.forget(records=["r5"])
        held = vault.status().records
        ((digest,),) = values(vault, "SELECT digest FROM suppressed")
    damage_index(sqlite_place, SUPPRESSED, digest)
    with sqlite_place.open() as vault:
        again = vault.ingest(LOG, **COLUMNS)
        assert (again.added, again.suppressed) == (0, 6 - held)
        assert any(problem.startswith("database: ") for problem in vault.verify().problems)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM suppressed",
        "UPDATE suppressed SET readmitted = 2",
        "UPDATE suppressed SET kind = 'record'",
        "UPDATE suppressed SET digest = (SELECT digest FROM request LIMIT 1)",
    ],
)
def test_nothing_comes_in_while_the_list_is_not_as_it_was_sealed(place: Place, sql: str) -> None:
    with filled(place) as vault:
        vault.forget(users=["dan"])
        change(vault, sql)
        with pytest.raises(VaultError, match=r"the suppression list was changed by something other"):
            vault.ingest(LOG, **COLUMNS)
        assert vault.status().records == 4


def test_the_list_is_read_once_for_all_batches_unless_it_changes(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[str] = []
    scan = tables.stream_by_scan

    def counted(session: Session, table: str) -> Iterator[Row]:
        scans.append(table)
        return scan(session, table)

    with filled(sqlite_place) as vault:
        vault.forget(users=["dan"])
        monkeypatch.setattr(tables, "stream_by_scan", counted)
        vault.ingest(LOG, **COLUMNS, batch_rows=1)
        assert scans == ["suppressed"] * 2  # once by the comparison before the first batch
        known = vault_list(vault)
        with vault._connection.reading() as transaction:
            assert SuppressionList.read(transaction, known) is known
        vault.forget(users=["ann"])
        with vault._connection.reading() as transaction:
            assert len(SuppressionList.read(transaction, known).digests["user"]) == 2


def vault_list(vault: Vault) -> SuppressionList:
    with vault._connection.reading() as transaction:
        return SuppressionList.read(transaction)
