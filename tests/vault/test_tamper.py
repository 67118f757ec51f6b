"""Whatever is changed in a vault by anything but armnesia is found by `verify`, which says where."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import DamagedDatabaseError, VaultError
from armnesia.vault import Configuration, Head, UserType, Vault
from armnesia.vault.ledger.certificate import CertificateDraft
from armnesia.vault.ledger.export_file import ExportFile
from armnesia.vault.ledger.ledger import GENESIS, Entry
from armnesia.vault.operations.restore import restore
from armnesia.vault.storage import tables
from tests.databases import Place
from tests.vault.raw_vaults import LOG, Snapshot, arms, change, change_statistics, dumped, filled, values

FROZEN = Configuration(
    actions=("A", "B"), user_type=UserType.TEXT, unlearner="frozen_rollback", penalty="frozen"
)
STATE = (
    *("id", "schema_version", "configuration", "ledger_length", "ledger_head"),
    *("erased_through", "digest_key", "signing_key", "decisions", "tallies", "seal"),
)
CHANGED = "{}: rows were added, changed or removed by something other than armnesia"
LISTS = {
    "suppressed": "suppression list",
    "request": "answered requests",
    "record": "records",
    "tree": "commitments",
}
CELLS = [
    ("ledger", "sequence", "sequence = 2", "ledger: sequence"),
    ("ledger", "entry", "sequence = 2", "ledger: sequence 2:"),
    ("ledger", "hash", "sequence = 2", "ledger: sequence 2:"),
    ("certificate", "sequence", "sequence = 2", "certificate "),
    ("certificate", "body", "sequence = 2", "certificate 2:"),
    ("certificate", "signature", "sequence = 2", "certificate 2:"),
    *(
        ("decision", column, "number = 1", "state:")
        for column in ("number", "key", "statistics", "served", "served_by", "seal")
    ),
    *(("vault", column, "one = 1", "state:") for column in STATE),
    *(("suppressed", column, "kind = 'user'", "suppression list:") for column in ("digest", "kind", "since")),
    *(
        ("request", column, "length(opening) = 32", "answered requests:")
        for column in ("digest", "sequence", "opening")
    ),
    *(("record", column, "arm = 0 AND units = 500000000", "records:") for column in ("identity", "owner")),
]
LONG_TEXTS = ("body", "entry", "configuration", "tallies")
REFUSED = "the database itself refused the change"
RECORD_CELLS = [
    ("record", "arm", "arm = 0 AND units = 500000000", "statistics of action"),
    ("record", "units", "arm = 0 AND units = 500000000", "statistics of action"),
]


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
    key = where if column not in where else f"{column} = ?"
    try:
        assert change(vault, f"UPDATE {table} SET {column} = ? WHERE {where}", value) == 1
    except VaultError:  # two rows of one key, a number too large
        return (REFUSED,)
    try:
        return vault.verify().problems
    finally:
        change(vault, f"UPDATE {table} SET {column} = ? WHERE {key}", true, *[value] * ("?" in key))


@pytest.fixture
def vault(place: Place) -> Iterator[Vault]:
    with filled(place, FROZEN) as vault:
        vault.forget(users=["ann"])
        assert vault.verify().holds
        yield vault
        assert vault.verify().holds  # all has been put right again: it was the change that was found


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


@pytest.mark.parametrize(("table", "column", "where", "said"), RECORD_CELLS, ids=lambda value: value)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_change_of_a_row_is_found(vault: Vault, table: str, column: str, where: str, said: str) -> None:
    ((true,),) = values(vault, f"SELECT {column} FROM {table} WHERE {where}")
    for value in changed_bytes(true):
        change(vault, f"UPDATE record SET {column} = ? WHERE {where}", value)
        problems = vault.verify().problems
        assert any(said in problem or "arms that the vault does not have" in problem for problem in problems)
        other = where.replace(f"{column} = {true}", f"{column} = {value}")
        assert change(vault, f"UPDATE record SET {column} = ? WHERE {other}", true) == 1


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
        change(vault, "UPDATE ledger SET entry = CAST(x'616e6eff' AS TEXT)")
        told = " ".join(vault.verify().problems)
        assert "damaged: column 'entry' holds text that is not UTF-8: restore a backup" in told
        assert "ann" not in told


def test_a_vault_without_its_ledger_is_called_damaged(place: Place) -> None:
    with filled(place) as vault:
        change(vault, "DROP TABLE ledger")
        assert not vault.verify().holds
    with pytest.raises(DamagedDatabaseError, match=r"is damaged: .*table.*; .*restore a backup"):
        place.open(accept="any")


def test_ledger_rows_that_are_deleted_or_added_are_found(vault: Vault) -> None:
    for name in ("bob", "cem"):
        vault.forget(users=[name])
    rows = values(vault, "SELECT sequence, entry, hash FROM ledger ORDER BY sequence")
    for sequence, *rest in rows:
        change(vault, "DELETE FROM ledger WHERE sequence = ?", sequence)
        assert any(f"ledger: sequence {sequence}: missing" in problem for problem in vault.verify().problems)
        change(vault, "INSERT INTO ledger VALUES (?, ?, ?)", sequence, *rest)
    change(vault, "INSERT INTO ledger VALUES (5, ?, ?)", *rows[-1][1:])
    assert any("ledger: sequence 5:" in problem for problem in vault.verify().problems)
    change(vault, "DELETE FROM ledger WHERE sequence = 5")


def test_rows_that_are_deleted_added_or_of_forgotten_people_are_found(vault: Vault) -> None:
    for table in ("decision", "certificate", "vault"):
        rows = values(vault, f"SELECT * FROM {table}")
        change(vault, f"DELETE FROM {table} WHERE 1 = 1")
        assert vault.verify().problems, table
        for row in rows:
            change(vault, f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    ann = vault._connection.all_keys.owner_digest("ann")
    change(vault, "INSERT INTO record (identity, owner, arm, units) VALUES (?, ?, 0, 7)", b"x" * 16, ann)
    problems = vault.verify().problems
    assert any("statistics of action" in problem for problem in problems)
    assert any("1 row of forgotten people or records is present" in problem for problem in problems)
    change(vault, "DELETE FROM record WHERE units = 7")


def test_somebody_let_in_again_without_the_ledger_knowing_is_found(vault: Vault) -> None:
    for sequence in (1, 2, 99):
        change(vault, "UPDATE suppressed SET readmitted = ?", sequence)
        assert vault.verify().problems == (CHANGED.format("suppression list"),)
    change(vault, "UPDATE suppressed SET readmitted = NULL")
    vault.readmit(users=["ann"])
    assert vault.verify().holds


@pytest.mark.parametrize("table", LISTS)
def test_rows_that_are_gone_doubled_or_exchanged_are_found(vault: Vault, table: str) -> None:
    vault.forget(users=["cem", "x"])
    vault.forget(users=["y", "z"])
    first, second = values(vault, f"SELECT * FROM {table} LIMIT 2")
    marks = ", ".join("?" * len(first))
    key = {"record": "identity", "tree": "sequence"}.get(table, "digest")
    other: Any = 999 if table == "tree" else b"0123456789abcdef"
    put = f"INSERT INTO {table} VALUES ({marks})"
    told = CHANGED.format(LISTS[table])

    assert change(vault, f"DELETE FROM {table} WHERE {key} = ?", first[0]) == 1
    assert told in vault.verify().problems
    change(vault, put, other, *first[1:])  # as many rows as before
    assert told in vault.verify().problems
    change(vault, f"DELETE FROM {table} WHERE {key} = ?", other)
    change(vault, f"DELETE FROM {table} WHERE {key} = ?", second[0])
    change(vault, put, first[0], *second[1:])
    change(vault, put, second[0], *first[1:])
    if first[1:] != second[1:]:
        assert told in vault.verify().problems
    for row in (first, second):
        change(vault, f"DELETE FROM {table} WHERE {key} = ?", row[0])
        change(vault, put, *row)


def test_an_owner_that_is_exchanged_is_found_and_rebuild_says_so(vault: Vault) -> None:
    """The statistics stay what they are; the one whose row it was would not be forgotten with it."""
    bob, dan = (vault._connection.all_keys.owner_digest(name) for name in ("bob", "dan"))
    assert change(vault, "UPDATE record SET owner = ? WHERE owner = ?", dan, bob) == 1
    counted = "tallies: the records of people are not those that the vault has counted"
    assert vault.verify().problems == (CHANGED.format("records"), counted)
    for name in ("bob", "dan"):
        with pytest.raises(VaultError, match="not those that the vault has counted for these people"):
            vault.forget(users=[name])
    assert vault.rebuild().changed  # the rows as they are, from now on; the ledger says that it was done
    assert vault.ledger()[-1].fields["changed"]


def test_what_the_lists_say_is_mended_by_the_latest_export_only(vault: Vault, tmp_path: Path) -> None:
    vault.export(tmp_path / "latest.json", for_restore=True)
    place = (vault._connection.database, vault._connection.keys_path)
    assert change(vault, "DELETE FROM suppressed WHERE kind = 'user'") == 1
    with pytest.raises(
        VaultError, match="the suppression list, the answered requests, the commitments or their digests"
    ):
        vault.rebuild()
    change_statistics(vault, "counts", 0, 1)  # nor by breaking the seal as well
    with pytest.raises(
        VaultError, match="the suppression list, the answered requests, the commitments or their digests"
    ):
        vault.rebuild()
    change_statistics(vault, "counts", 0, -1)
    assert place == (vault._connection.database, vault._connection.keys_path)
    with ExportFile.opened(tmp_path / "latest.json", vault._connection.all_keys) as export:
        restore(vault._connection, export)
    assert vault.verify().holds
    assert vault.ingest(LOG, user="who", id="id").suppressed == 2


def test_the_sources_of_an_external_vault_are_tallied(place: Place, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n", encoding="utf-8")
    external = Configuration(actions=("A", "B"), user_type=UserType.TEXT, mode="external")
    with place.create(external) as vault:
        log = str(tmp_path / "log.csv")
        vault.ingest(log, user="user")
        for table, column, said in (
            ("source", "number", "sources"),
            ("source", "description", "sources"),
        ):
            rows = values(vault, f"SELECT {column} FROM {table} ORDER BY {column} LIMIT 1")
            ((true,),) = rows
            value = next(iter(changed_bytes(true))) if column != "description" else true.replace("csv", "txt")
            change(vault, f"UPDATE {table} SET {column} = ? WHERE {column} = ?", value, true)
            assert CHANGED.format(said) in vault.verify().problems, column
            for ask in (partial(vault.forget, users=["ann"]), partial(vault.ingest, log, user="user")):
                with pytest.raises(VaultError, match="the list of sources was changed"):
                    ask()
            change(vault, f"UPDATE {table} SET {column} = ? WHERE {column} = ?", true, value)
        assert vault.verify().holds


def test_a_changed_certificate_is_neither_handed_out_nor_signed_anew(vault: Vault) -> None:
    ((body,),) = values(vault, "SELECT body FROM certificate")
    change(vault, "UPDATE certificate SET body = ?", body.replace('"counts":[1,1]', '"counts":[1,0]'))
    for asked in (lambda: vault.certificate_of_entry(2), lambda: vault.forget(users=["ann"])):
        with pytest.raises(VaultError, match="certificate 2 was changed by something other than armnesia"):
            asked()
    change(vault, "UPDATE certificate SET body = ?", body)


def test_nothing_is_decided_from_statistics_that_were_changed(vault: Vault) -> None:
    change_statistics(vault, "counts", 0, 1)
    for asked in (
        vault.decide,
        vault.status,
        lambda: vault.forget(users=["bob"]),
        lambda: vault.preview(["bob"]),
    ):
        with pytest.raises(VaultError, match="changed by something other than armnesia"):
            asked()
    change_statistics(vault, "counts", 0, -1)


# A ledger that was exchanged for another consistent one: only a head kept elsewhere can tell.


def shortened(vault: Vault, place: Any, folder: Path) -> Callable[[], None]:
    """The ledger as it was two entries ago, with everything else that belongs to it."""
    snapshot = Snapshot(place, vault, folder)
    vault.forget(users=["bob"])
    vault.forget(users=["cem"])
    return snapshot.put_back


def rewritten(vault: Vault) -> None:
    """Tell another past: each entry a little later, chained and certified and sealed with the true keys."""
    connection = vault._connection
    with connection.writing() as transaction:
        session = transaction.session
        head = Head(0, GENESIS)
        for sequence, text in session.query("SELECT sequence, entry FROM ledger ORDER BY sequence"):
            fields = Entry.from_text(text).fields
            entry = Entry({**fields, "previous": head.hash, "time": "2031" + fields["time"][4:]})
            session.execute(
                "UPDATE ledger SET entry = ?, hash = ? WHERE sequence = ?", entry.text, entry.hash, sequence
            )
            if entry.kind == "forget":
                draft = CertificateDraft.of(entry, connection.database.erasure_covers)
                stored = tables.put_certificate(sequence, draft.text, transaction.keyring.seal(draft.text))
                session.execute_together([stored])
            head = entry.head
        transaction.store(replace(transaction.state, head=head))


@pytest.mark.parametrize("how", ["shortened", "rewritten"])
def test_another_consistent_ledger_is_found_by_a_pinned_head(place: Place, how: str, tmp_path: Path) -> None:
    vault = filled(place, FROZEN)
    vault.forget(users=["ann"])
    if how == "shortened":
        put_back = shortened(vault, place, tmp_path)
        head = vault.head
        vault.close()
        put_back()
        said, refused = (
            "sequence 3 to 4: missing, the ledger is shorter than the head that was kept",
            "older than its",
        )
    else:
        head = vault.head
        rewritten(vault)
        vault.close()
        said, refused = (
            "sequence 2: the hash of the entry differs from the head that was kept",
            "not the one that was pinned",
        )
    with pytest.raises(VaultError, match=refused):
        place.open()
    pin = place.keys.with_name(place.keys.name + ".head")
    pinned = pin.read_bytes()
    pin.unlink()
    with place.open() as vault:
        assert vault.verify().holds  # consistent in itself: nothing inside could tell
        assert any(said in problem for problem in vault.verify(head).problems)
        assert any(said in problem for problem in vault.check_ledger(head).problems)
        pin.write_bytes(pinned)
        assert any(said in problem for problem in vault.verify().problems)


def test_a_changed_pin_is_called_so(place: Place) -> None:
    filled(place).close()
    pin = place.keys.with_name(place.keys.name + ".head")
    pinned = pin.read_bytes()
    for place_in_it in range(len(str(Head.parse(pinned.decode())))):
        pin.write_bytes(pinned[:place_in_it] + bytes([pinned[place_in_it] ^ 1]) + pinned[place_in_it + 1 :])
        with pytest.raises(VaultError, match="pinned"):
            place.open()


# Rebuilding is the way out, but not a way to have a change sealed.


@pytest.mark.parametrize("name", ["counts", "units", "deleted"])
def test_rebuild_mends_the_statistics(place: Place, name: str) -> None:
    with filled(place, FROZEN) as vault:
        vault.forget(users=["ann"])
        before, served = arms(vault), vault.decide().action
        change_statistics(vault, name, 1, 40)
        change(vault, "UPDATE decision SET served = 1 - served")
        change(vault, "UPDATE vault SET erased_through = 99")
        assert not vault.verify().holds
        assert vault.rebuild().changed
        assert vault.verify().holds
        assert (arms(vault), vault.decide().action) == (before, served)
        assert values(vault, "SELECT erased_through FROM vault") == [(0,)]
        assert not vault.rebuild().changed  # nothing is left to mend


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "UPDATE ledger SET entry = replace(entry, '0.001', '0.002')",
            "the stored hash is not the hash of the entry",
        ),
        ("DELETE FROM ledger WHERE sequence = 4", "entry 4 is not there"),
        ("DELETE FROM ledger WHERE sequence = 2", "missing"),
        ("UPDATE vault SET tallies = replace(tallies, 'a', 'b')", "or their digests were changed"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_rebuild_seals_nothing_that_it_cannot_make_anew(place: Place, sql: str, said: str) -> None:
    with filled(place) as vault:
        vault.rotate_signing_key()
        vault.rotate_digest_key()
        vault.forget(users=["bob"])
        assert change(vault, sql) > 0
        before = dumped(vault)
        with pytest.raises(VaultError, match=said):
            vault.rebuild()
        assert dumped(vault) == before
        assert not vault.verify().holds


def test_tallies_that_two_people_have_exchanged_are_found(place: Place) -> None:
    """Both have as many records as before, and all tallies together are the same."""
    with filled(place) as vault:
        keys = vault._connection.all_keys
        pair = [keys.owner_digest(user) for user in ("ann", "dan")]
        digests = [values(vault, "SELECT digest FROM owner WHERE owner = ?", owner)[0][0] for owner in pair]
        for owner, digest in zip(pair, reversed(digests), strict=True):
            assert change(vault, "UPDATE owner SET digest = ? WHERE owner = ?", digest, owner) == 1
        problems = vault.verify().problems
        assert problems == ("tallies: the records of people are not those that the vault has counted",)
        vault.rebuild()
        assert vault.verify().problems == ()
