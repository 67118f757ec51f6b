"""Whatever is changed in a vault by anything but armnesia is found by `verify`, which says where."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import DamagedDatabaseError, VaultError
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.db import statements
from armnesia.vault.db.schema import EntryRow
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.merkle import Frontier
from armnesia.vault.state.connection import envelope_of, line_after
from armnesia.vault.state.transaction import Transaction, entry_row
from tests.databases import Place
from tests.vault.raw_vaults import (
    LOG,
    Snapshot,
    arms,
    change,
    change_statistics,
    dumped,
    filled,
    journal_of,
    values,
)

FROZEN = Configuration(
    actions=("A", "B"), user_type=UserType.TEXT, unlearner="frozen_rollback", penalty="frozen"
)
STATE = (
    *("id", "schema_version", "configuration", "commits", "ledger_size", "frontier", "signing_key"),
    *("decisions", "check_sums", "seal"),
)
CHANGED = "{}: rows were added, changed or removed by something other than armnesia"
KEYS = {
    "suppressed": "digest",
    "people": "number",
    "record": "identity",
    "decision": "number",
    "vault": "id",
}
WORDS = {"suppressed": "suppression list", "people": "commitments", "record": "records"}
ROW = "arm = 0 AND units = 500000000"
CELLS = [
    *(("entry", column, "number = 2", "ledger: entry") for column in ("number", "kind", "envelope", "leaf")),
    *(("decision", column, "number = 1", "") for column in ("number", "key", "statistics")),
    *(("decision", column, "number = 1", "decisions:") for column in ("served", "served_by")),
    *(("vault", column, "1 = 1", "") for column in STATE),
    *(("suppressed", column, "kind = 'user'", "suppression list:") for column in ("digest", "kind", "since")),
    *(("people", column, "number = 2", "commitments:") for column in ("number", "leaves", "said")),
    ("people", "case_digest", "number = 2", "commitments:"),
    *(("token", column, "number = 1", "tokens:") for column in ("number", "digest", "facts")),
    *(("record", column, ROW, "records:") for column in ("identity", "owner", "arm", "units")),
]
LONG_TEXTS = ("envelope", "configuration", "check_sums")
REFUSED = "the database itself refused the change"


def changed_bytes(value: Any) -> Iterator[Any]:
    """The value with one bit of one byte changed, for each of its bytes."""
    if isinstance(value, int):
        yield from (value ^ (1 << 8 * byte) for byte in range(8))
        return
    data = value.encode() if isinstance(value, str) else value
    for place in range(len(data)):
        # The lowest bit: so that text stays text.
        other = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        yield other.decode() if isinstance(value, str) else other


def problems_of(vault: Vault, table: str, column: str, where: str, value: Any) -> tuple[str, ...]:
    """What `verify` says of a vault with this value in it, which is then put right again."""
    ((true,),) = values(vault, f"SELECT {column} FROM {table} WHERE {where}")
    key = where.replace(f"{column} = {true}", f"{column} = ?").replace(f"{column} = '{true}'", "1 = ?")
    key_values = [value] if f"{column} = ?" in key else [1] if "1 = ?" in key else []
    try:
        assert change(vault, f"UPDATE {table} SET {column} = ? WHERE {where}", value) == 1
    except VaultError:  # two rows of one key, a number too large
        return (REFUSED,)
    try:
        return vault.verify().problems
    finally:
        assert change(vault, f"UPDATE {table} SET {column} = ? WHERE {key}", true, *key_values) == 1


@pytest.fixture
def vault(place: Place) -> Iterator[Vault]:
    with filled(place, FROZEN) as vault:
        vault.forget(users=["ann"], case="DSR-7", by="clerk")
        vault.create_token("reader")
        assert vault.verify().holds
        yield vault
        assert vault.verify().holds  # all has been put right again: it was the change that was found


@pytest.mark.sampled(20)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("table", "column", "where", "said"),
    [pytest.param(*cell, marks=pytest.mark.slow) if cell[1] in LONG_TEXTS else cell for cell in CELLS],
    ids=lambda value: value,
)
def test_a_change_of_any_single_byte_is_found(
    vault: Vault, table: str, column: str, where: str, said: str
) -> None:
    ((true,),) = values(vault, f"SELECT {column} FROM {table} WHERE {where}")
    for value in changed_bytes(true):
        problems = problems_of(vault, table, column, where, value)
        assert any(said in problem or problem == REFUSED for problem in problems), (value, problems)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(data=st.data())
def test_other_changes_are_found(vault: Vault, data: st.DataObject) -> None:
    table, column, where, _ = data.draw(st.sampled_from(CELLS))
    ((true,),) = values(vault, f"SELECT {column} FROM {table} WHERE {where}")
    if isinstance(true, int):
        value: Any = data.draw(st.integers(-(2**31), 2**31 - 1).filter(lambda number: number != true))
    else:
        old = true.encode() if isinstance(true, str) else true
        place = data.draw(st.integers(0, len(old) - 1))
        byte = data.draw(st.integers(1, 127).filter(lambda byte: byte != old[place]))
        new = old[:place] + bytes([byte]) + old[place + 1 :]
        value = new.decode("utf-8", "ignore") if isinstance(true, str) else new
    assert problems_of(vault, table, column, where, value), (table, column, value)


def test_text_that_is_none_is_refused_without_being_repeated(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        change(vault, "UPDATE entry SET envelope = CAST(x'616e6eff' AS TEXT)")
        told = " ".join(vault.verify().problems)
        assert "damaged: column 'envelope' holds text that is not UTF-8" in told
        assert "ann" not in told


def test_a_vault_without_its_ledger_is_called_damaged(place: Place) -> None:
    with filled(place) as vault:
        change(vault, "DROP TABLE entry")
        assert not vault.verify().holds
        with pytest.raises(DamagedDatabaseError, match="is damaged: "):
            vault.ledger()


def test_entries_that_are_deleted_or_added_are_found(vault: Vault) -> None:
    for name in ("bob", "cem"):
        vault.forget(users=[name])
    rows = values(vault, "SELECT number, kind, envelope, leaf FROM entry ORDER BY number")
    for number, *rest in rows:
        change(vault, "DELETE FROM entry WHERE number = ?", number)
        assert any(problem.startswith(("ledger: ", "state: ")) for problem in vault.verify().problems)
        change(vault, "INSERT INTO entry VALUES (?, ?, ?, ?)", number, *rest)
    change(vault, "INSERT INTO entry VALUES (5, ?, ?, ?)", *rows[-1][1:])
    assert any("ledger: entry 5" in problem for problem in vault.verify().problems)
    change(vault, "DELETE FROM entry WHERE number = 5")
    for number in (0, -(2**63)):
        change(vault, "INSERT INTO entry VALUES (?, ?, ?, ?)", number, *rows[-1][1:])
        assert vault.verify().problems
        change(vault, "DELETE FROM entry WHERE number = ?", number)


@pytest.mark.parametrize("table", KEYS)
def test_rows_that_are_gone_doubled_or_exchanged_are_found(vault: Vault, table: str) -> None:
    vault.forget(users=["cem", "x"])
    rows = values(vault, f"SELECT * FROM {table} LIMIT 2")
    first, key = rows[0], KEYS[table]
    put = f"INSERT INTO {table} VALUES ({', '.join('?' * len(first))})"
    other: Any = 999 if isinstance(first[0], int) else b"0123456789abcdef"

    def told() -> bool:
        found = vault.verify().problems
        return CHANGED.format(WORDS[table]) in found if table in WORDS else found != ()

    assert change(vault, f"DELETE FROM {table} WHERE {key} = ?", first[0]) == 1
    assert told()
    if table not in ("vault", "decision"):
        change(vault, put, other, *first[1:])  # as many rows as before
        assert told()
        change(vault, f"DELETE FROM {table} WHERE {key} = ?", other)
    change(vault, put, *first)
    if len(rows) == 2 and table != "decision":
        second = rows[1]
        for row in rows:
            change(vault, f"DELETE FROM {table} WHERE {key} = ?", row[0])
        change(vault, put, first[0], *second[1:])
        change(vault, put, second[0], *first[1:])
        assert told() or first[1:] == second[1:]
        for row in rows:
            change(vault, f"DELETE FROM {table} WHERE {key} = ?", row[0])
            change(vault, put, *row)


def test_a_row_of_a_forgotten_person_is_found(vault: Vault) -> None:
    ann = vault.all_keys.owner_digests(["ann"])[0]
    change(vault, "INSERT INTO record VALUES (?, ?, 0, 7, 1)", b"x" * 16, ann)
    problems = vault.verify().problems
    assert any("1 row of forgotten people or records is present" in problem for problem in problems)
    with pytest.raises(VaultError, match=r"are in the vault again, put there by something other"):
        vault.forget(users=["ann"])
    change(vault, "DELETE FROM record WHERE units = 7")


def test_somebody_let_in_again_without_the_ledger_knowing_is_found(vault: Vault) -> None:
    for number in (1, 2, 99):
        change(vault, "UPDATE suppressed SET readmitted = ?", number)
        assert vault.verify().problems == (
            "journal: whoever is suppressed there is not who is suppressed in the vault",
            CHANGED.format("suppression list"),
        )
    with pytest.raises(VaultError, match="the suppression list was changed"):
        vault.ingest(LOG, user="who", id="id")
    change(vault, "UPDATE suppressed SET readmitted = NULL")
    vault.readmit(users=["ann"])
    assert vault.verify().holds


def test_the_list_of_sources_is_checked_before_it_is_used(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("action,reward,user\nA,1,ann\nB,0,bob\n", encoding="utf-8")
    external = Configuration(actions=("A", "B"), user_type=UserType.TEXT, mode="external")
    with place.create(external) as vault:
        vault.ingest(str(log), user="user")
        ((true,),) = values(vault, "SELECT description FROM source")
        change(vault, "UPDATE source SET description = ?", true.replace("csv", "txt"))
        assert CHANGED.format("sources") in vault.verify().problems
        for ask in (partial(vault.forget, users=["ann"]), partial(vault.ingest, str(log), user="user")):
            with pytest.raises(VaultError, match="the list of sources was changed"):
                ask()
        change(vault, "UPDATE source SET description = ?", true)
        assert vault.verify().holds


# A ledger that was exchanged for another consistent one: the journal tells, or a checkpoint kept elsewhere.


def rewritten(vault: Vault) -> None:
    """Tell another past: each entry a little later, in a tree and under a seal of the true keys."""
    connection = vault
    with connection.database.writing() as session:
        transaction = Transaction(session, connection.all_keys, connection.read_state(session))
        seed = transaction.keyring.signing_keys[-1]
        frontier = Frontier()
        for number, _, text, _ in list(statements.stream(session, EntryRow)):
            entry = Entry.of(envelope_of(text))
            envelope = replace(entry, time="2031" + entry.time[4:]).signed(seed)
            session.execute("DELETE FROM entry WHERE number = ?", number)
            session.execute_together([statements.insert(entry_row(entry, envelope))])
            frontier = frontier.append(envelope.leaf)
        transaction.state = replace(transaction.state, frontier=frontier)
        transaction.finish()


@pytest.mark.parametrize("how", ["shortened", "rewritten"])
def test_another_consistent_ledger_is_found_by_the_journal_or_a_kept_checkpoint(
    place: Place, how: str, tmp_path: Path
) -> None:
    vault = filled(place, FROZEN)
    vault.forget(users=["ann"])
    backup, old_journal = Snapshot(place, vault, tmp_path), journal_of(place).read_bytes()
    vault.forget(users=["bob"])
    kept = vault.checkpoint()
    assert vault.verify(kept).holds
    if how == "shortened":
        vault.close()
        backup.put_back()
        refused = "older than its journal"
        said = "the ledger has 2 entries, and the checkpoint 3: an older copy was put back"
    else:
        rewritten(vault)
        vault.close()
        refused = "is not that of its journal"
        said = "the ledger was rewritten since the checkpoint was kept"
    with pytest.raises(VaultError, match=refused):
        place.open()
    with place.open(checked=False) as vault:
        assert any(problem.startswith("journal: ") for problem in vault.verify().problems)
        with vault.database.reading() as session:
            state = vault.read_state(session)
            first = replace(vault.journal.last(), commit=0, size=0, root=Frontier().root)
            own = line_after(session, state, first)
    # Exchanged together with its journal it is consistent in itself: nothing inside could tell.
    journal_of(place).write_bytes(old_journal if how == "shortened" else own.to_bytes())
    with place.open() as vault:
        assert vault.verify().holds
        assert any(said in problem for problem in vault.verify(kept).problems)
        assert any(said in problem for problem in vault.check_ledger(kept).problems)


def test_a_changed_journal_is_called_so(sqlite_place: Place) -> None:
    filled(sqlite_place).close()
    journal = journal_of(sqlite_place)
    true = journal.read_bytes()
    for number, line in enumerate(true.splitlines(keepends=True)):
        for name in ("vault", "commit", "size", "root", "entries"):
            document = json.loads(line)
            document[name] = {"vault": "v", "commit": 99, "size": 7, "root": "00" * 32, "entries": []}[name]
            if document == json.loads(line):
                continue
            lines = true.splitlines(keepends=True)
            lines[number] = json.dumps(document, separators=(",", ":")).encode() + b"\n"
            journal.write_bytes(b"".join(lines))
            with sqlite_place.open(checked=False) as vault:
                assert any(problem.startswith("journal: ") for problem in vault.verify().problems), name
    journal.write_bytes(true)
    sqlite_place.open().close()


# Restoring is the way out, but not a way to have a change unnoticed.


@pytest.mark.parametrize("name", ["counts", "units", "deleted"])
def test_restore_mends_the_statistics(place: Place, name: str) -> None:
    vault = filled(place, FROZEN)
    vault.forget(users=["ann"])
    before, served = arms(vault), vault.decide().action
    change_statistics(vault, name, 1, 40)
    change(vault, "UPDATE decision SET served = 1 - served")
    assert not vault.verify().holds
    unchanged = dumped(vault)
    with pytest.raises(VaultError, match="accept it with --as-it-is, which the ledger records"):
        Vault.restore(place.url, keys=place.keys)
    assert dumped(vault) == unchanged
    assert not Vault.restore(place.url, keys=place.keys, as_it_is=True).as_it_was
    assert vault.verify().holds
    assert (arms(vault), vault.decide().action) == (before, served)
    assert vault.ledger().entries[-1].facts["as_it_was"] is False
    assert Vault.restore(place.url, keys=place.keys).as_it_was  # nothing is left to mend
    vault.close()


def test_an_exchanged_owner_is_found_and_accepted_as_it_is_only(vault: Vault, place: Place) -> None:
    """The statistics stay what they are; the one whose row it was would not be forgotten with it."""
    bob, dan = (vault.all_keys.owner_digests([name])[0] for name in ("bob", "dan"))
    assert change(vault, "UPDATE record SET owner = ? WHERE owner = ?", dan, bob) == 1
    assert vault.verify().problems == (CHANGED.format("records"),)
    with pytest.raises(VaultError, match="--as-it-is"):
        Vault.restore(place.url, keys=place.keys)
    assert not Vault.restore(place.url, keys=place.keys, as_it_is=True).as_it_was


def test_lists_and_rows_of_the_forgotten_are_mended_from_the_journal(vault: Vault, place: Place) -> None:
    ann = vault.all_keys.owner_digests(["ann"])[0]
    change(vault, "INSERT INTO record VALUES (?, ?, 0, 7, 1)", b"x" * 16, ann)
    for table in ("suppressed", "people"):
        assert change(vault, f"DELETE FROM {table} WHERE 1 = 1") == 1
    assert Vault.restore(place.url, keys=place.keys, as_it_is=True).rows_deleted == 1
    assert vault.verify().holds
    assert vault.forget(users=["ann"]).repeated
    assert vault.certificate(users=["ann"]).verify(vault.public_key()) == []
    assert vault.ingest(LOG, user="who", id="id").suppressed == 2
