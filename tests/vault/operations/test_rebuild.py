"""After whatever went wrong: nobody who was forgotten comes back unnoticed, and there is a way out."""

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Head, UserType, Vault
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.pinned_head import PinnedHead
from armnesia.vault.storage.tables import insert_tree
from tests.databases import Place
from tests.vault.raw_vaults import LOG, TABLES, Snapshot, arms, change, dumped, filled, reader_of, values

FROZEN = Configuration(
    actions=("A", "B"), user_type=UserType.TEXT, unlearner="frozen_rollback", penalty="frozen"
)


def put_back_in_place(vault: Vault, tables: dict[str, list[tuple[Any, ...]]]) -> None:
    """An older state, by plain SQL, under a process that has the vault open."""
    with vault._connection.database.writing() as session:
        for table in TABLES:
            session.execute(f"DELETE FROM {table}")
            for row in tables[table]:
                session.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)


# The pin.


def test_a_process_that_is_open_notices_an_older_state_put_in_place(place: Place) -> None:
    with filled(place) as vault, place.open() as service:
        before = dumped(vault)
        vault.forget(users=["ann"])
        vault.forget(users=["bob"])
        assert service.decide().head == vault.head
        pinned = vault.head
        put_back_in_place(vault, before)
        for asked in (
            lambda: service.forget(users=["cem"]),
            service.decide,
            service.status,
            lambda: service.ingest(LOG, user="who", id="id"),
            service.rebuild,
            service.rotate_digest_key,
        ):
            with pytest.raises(VaultError, match="older than its pinned head"):
                asked()
        assert service._connection.pinned_head.read() == pinned
        assert any("shorter than the head that was kept" in problem for problem in service.verify().problems)


def test_the_pin_never_goes_back(tmp_path: Path) -> None:
    pin = PinnedHead(tmp_path / "pin")
    later, earlier = Head(5, "ab" * 32), Head(4, "cd" * 32)
    pin.write(later)
    pin.write(earlier)
    assert pin.read() == later
    pin.write(Head(5, "ef" * 32))
    assert pin.read() == later


def test_a_pin_that_is_no_private_plain_file_is_refused(tmp_path: Path) -> None:
    head = Head(1, "ab" * 32)
    PinnedHead(tmp_path / "true").write(head)

    def refused(name: str, why: str) -> None:
        for use in (PinnedHead(tmp_path / name).read, lambda: PinnedHead(tmp_path / name).write(head)):
            with pytest.raises(VaultError, match=why):
                use()

    (tmp_path / "empty").touch(0o600)
    refused("empty", "is empty; if the file is lost, remove it and run")
    shutil.copy(tmp_path / "true", tmp_path / "shared")
    (tmp_path / "shared").chmod(0o666)
    refused("shared", r"can be changed by other users \(mode 0666\): chmod 600 it")
    (tmp_path / "link").symlink_to(tmp_path / "true")
    refused("link", "must be a plain file, not a link")
    (tmp_path / "loose").symlink_to(tmp_path / "nowhere")
    refused("loose", "must be a plain file, not a link")
    os.mkfifo(tmp_path / "pipe", 0o600)
    refused("pipe", "must be a plain file, not a link")
    (tmp_path / "folder").mkdir(0o700)
    refused("folder", "must be a plain file|Is a directory")
    assert PinnedHead(tmp_path / "missing").read() is None
    assert PinnedHead(tmp_path / "true").read() == head


def test_a_process_may_go_to_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Vault.create("sqlite:///v.db", Configuration(actions=("A", "B"), user_type=UserType.TEXT)) as vault:
        os.chdir("elsewhere")
        vault.ingest(LOG, user="who", id="id")
        vault.forget(users=["ann"])
        vault.rotate_signing_key()
        assert vault.verify().holds
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert PinnedHead(tmp_path / "v.db.keys.head").read() == vault_head(tmp_path / "v.db")


def vault_head(path: Path) -> Head:
    with closing(sqlite3.connect(path)) as connection:
        return Head(*connection.execute("SELECT ledger_length, ledger_head FROM vault").fetchone())


# Rows that should not be there.


def test_rebuild_takes_out_again_whoever_was_forgotten(place: Place) -> None:
    with filled(place) as vault:
        rows = dumped(vault)["record"]
        vault.forget(users=["ann"])
        vault.forget(records=["r5"])
        left = dumped(vault)["record"]
        served = vault.decide().action
        for row in rows:
            if row not in left:
                change(vault, "INSERT INTO record VALUES (?, ?, ?, ?)", *row)
        assert any("3 rows of forgotten people or records" in p for p in vault.verify().problems)
        with pytest.raises(
            VaultError, match="are in the vault again, put there by something other than armnesia"
        ):
            vault.forget(users=["ann"])
        assert vault.rebuild().changed
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).repeated
        assert dumped(vault)["record"] == left
        assert vault.decide().action == served


def test_a_single_record_that_came_back_is_found(place: Place) -> None:
    with filled(place) as vault:
        rows = dumped(vault)["record"]
        vault.forget(records=["r5"])
        (gone,) = set(rows) - set(dumped(vault)["record"])
        change(vault, "INSERT INTO record VALUES (?, ?, ?, ?)", *gone)
        assert any("1 row of forgotten people or records" in p for p in vault.verify().problems)


@pytest.mark.parametrize("sql", ["UPDATE record SET arm = 7 WHERE arm = 1", "UPDATE record SET units = -1"])
def test_rows_that_cannot_be_are_not_counted(place: Place, sql: str) -> None:
    with filled(place) as vault:
        assert change(vault, sql) > 0
        before = dumped(vault)
        with pytest.raises(VaultError, match="rows that no ingest stored"):
            vault.rebuild()
        assert dumped(vault) == before


# What would make a change look as if nothing had happened.


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM suppressed",
        "DELETE FROM request",
    ],
)
def test_a_new_digest_key_does_not_hide_a_change(place: Place, sql: str) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        assert change(vault, sql) > 0
        before, keys = dumped(vault), place.keys.read_bytes()
        with pytest.raises(VaultError, match="changed by something other than armnesia; run armnesia verify"):
            vault.rotate_digest_key()
        assert (dumped(vault), place.keys.read_bytes()) == (before, keys)


@pytest.mark.parametrize(
    "sql", ["UPDATE record SET owner = NULL WHERE arm = 1", "DELETE FROM record WHERE arm = 1"]
)
def test_a_new_digest_key_does_not_hide_a_changed_record(place: Place, sql: str) -> None:
    with filled(place) as vault:
        assert change(vault, sql) > 0
        vault.rotate_digest_key()
        assert any(problem.startswith("records: ") for problem in vault.verify().problems)


@pytest.mark.parametrize(
    "sql", ["UPDATE record SET owner = NULL WHERE arm = 1", "UPDATE decision SET served = 9"]
)
def test_a_copy_that_was_changed_is_restored_only_as_it_is(place: Place, tmp_path: Path, sql: str) -> None:
    export = tmp_path / "latest.json"
    with filled(place) as vault:
        vault.forget(users=["bob"])
        copy = dumped(vault)
        vault.forget(users=["ann"])
        vault.export(export, for_restore=True)
        put_back_in_place(vault, copy)
        assert change(vault, sql) > 0
    with pytest.raises(VaultError, match="or accept it with --as-it-is, which the ledger records"):
        Vault.restore(place.url, export, keys=place.keys)
    assert Vault.restore(place.url, export, keys=place.keys, as_it_is=True).replayed == 1
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.ledger()[-1].fields["as_it_was"] is False
        assert vault.forget(users=["ann"]).repeated


def test_whoever_was_readmitted_before_the_copy_keeps_their_rows(place: Place, tmp_path: Path) -> None:
    vault = filled(place)
    vault.forget(users=["ann"])
    vault.readmit(users=["ann"])
    vault.forget(users=["bob"])
    assert vault.ingest(LOG, user="who", id="id").added == 2
    backup = Snapshot(place, vault, tmp_path)
    vault.readmit(users=["bob"])
    vault.forget(users=["cem"])
    vault.export(tmp_path / "latest.json", for_restore=True)
    vault.close()
    backup.put_back()
    assert Vault.restore(place.url, tmp_path / "latest.json", keys=place.keys).replayed == 2
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).records == 2
        assert vault.ledger()[-2].fields["as_it_was"] is True


# Erasure.


def test_nothing_held_is_not_complete_while_bytes_wait(place: Place) -> None:
    with filled(place) as vault:
        with reader_of(place):
            first = vault.forget(users=["ann"]).certificate
            second = vault.forget(users=["ann", "nobody"]).certificate
            assert first.body["erasure"]["state"] == second.body["erasure"]["state"] == "pending"
            assert second.body["entry"]["kind"] == "nothing_held"
            assert vault.status().erasure == "pending"
            assert vault.certificate(users=["nobody"]).body["erasure"]["state"] == "pending"
        assert vault.compact().complete
        assert vault.status().erasure == "complete"
        for name in ("ann", "nobody"):
            assert vault.certificate(users=[name]).body["erasure"]["state"] == "complete"


# States that something else has broken.

BROKEN = [
    "UPDATE decision SET statistics = replace(statistics, 'counts\":[', 'counts\":[-')",
    "UPDATE decision SET statistics = replace(statistics, 'counts\":[', 'counts\":[1')",
    "UPDATE decision SET statistics = replace(statistics, 'units\":[', 'units\":[9000000000')",
    "UPDATE decision SET statistics = replace(statistics, 'counts\":[', 'counts\":[1,')",
    "UPDATE decision SET statistics = replace(statistics, 'counts', 'deleted')",
    "UPDATE decision SET statistics = '{'",
    "UPDATE decision SET key = '[\"C\"]'",
    "UPDATE decision SET number = 2",
    "DELETE FROM decision",
    "UPDATE vault SET configuration = replace(configuration, '0.001', '0.002')",
    "UPDATE vault SET configuration = '{'",
    "UPDATE vault SET configuration = replace(configuration, 'managed', 'external')",
    "UPDATE decision SET served = 7",
    "UPDATE decision SET served_by = 'chance'",
    "UPDATE vault SET decisions = 0",
    "UPDATE vault SET signing_key = 1",
    "UPDATE vault SET digest_key = 1",
    "UPDATE vault SET digest_key = 9",
    "UPDATE vault SET erased_through = 99",
]


@pytest.mark.parametrize("configuration", [None, FROZEN], ids=["retained", "frozen"])
@pytest.mark.parametrize("sql", BROKEN)
def test_a_broken_state_is_told_and_made_anew(
    place: Place, sql: str, configuration: Configuration | None
) -> None:
    with filled(place, configuration) as vault:
        vault.rotate_signing_key()
        vault.rotate_digest_key()
        vault.forget(users=["bob"])
        before, statistics = dumped(vault), arms(vault)
        assert change(vault, sql) > 0
    with pytest.raises(VaultError, match=r"changed by something other than armnesia|the vault uses 9"):
        place.open()
    with place.open(accept="damaged") as vault:  # another process, which knows nothing
        with pytest.raises(VaultError):
            vault.decide()
        assert any(problem.startswith("state:") for problem in vault.verify().problems)
        assert vault.rebuild().changed
        assert vault.verify().problems == ()
        after = dumped(vault)
        for table in ("record", "suppressed", "request"):
            assert after[table] == before[table]
        assert arms(vault) == statistics
        assert (
            vault.configuration.policy == Configuration(actions=("A", "B"), user_type=UserType.TEXT).policy
            or configuration
        )
        assert vault.forget(users=["bob"]).repeated
        assert vault.forget(users=["dan"]).records == 2


def test_tallies_that_were_changed_are_mended_by_the_latest_export(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        vault.forget(users=["bob"])
        vault.export(tmp_path / "latest.json", for_restore=True)
        ((tallies,),) = values(vault, "SELECT tallies FROM vault")
        change(
            vault,
            "UPDATE vault SET tallies = ?",
            "0" + tallies[1:] if tallies[0] != "0" else "1" + tallies[1:],
        )
        with pytest.raises(VaultError, match="run armnesia restore with the latest export"):
            vault.rebuild()
    with pytest.raises(VaultError, match="--as-it-is"):
        Vault.restore(place.url, tmp_path / "latest.json", keys=place.keys)
    assert Vault.restore(place.url, tmp_path / "latest.json", keys=place.keys, as_it_is=True).replayed == 0
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.forget(users=["bob"]).repeated


# Keys.


@pytest.fixture
def other_machine(place: Place, tmp_path: Path) -> Place:
    folder = tmp_path / "machine"
    folder.mkdir()
    return Place(place.url, folder / place.keys.name)


def test_a_key_that_the_ledger_does_not_know_is_found(place: Place, other_machine: Place) -> None:
    with filled(place) as vault:
        shutil.copy(place.keys, other_machine.keys)
        Keyring.read(other_machine.keys).with_new_signing_key().save(other_machine.keys, replace=True)
        vault.rotate_signing_key()
        assert vault.verify().holds
    foreign = "keys: signing key 2 of the keys' file is not the one in the ledger"
    with pytest.raises(VaultError, match=foreign):
        other_machine.open()
    with Vault.open(other_machine.url, keys=other_machine.keys, accept="any") as vault:
        assert foreign in str(vault.verify().problems)


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM tree", "UPDATE tree SET sequence = sequence + 1", "INSERT INTO tree VALUES (1, ?)"],
    ids=["deleted", "moved", "added"],
)
def test_commitments_that_were_changed_are_not_sealed_again(place: Place, tmp_path: Path, sql: str) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann", "bob", "zoe"])
        vault.export(tmp_path / "export.json", for_restore=True)
        change(vault, sql, *([bytes(32)] if "?" in sql else []))
        assert any(problem.startswith("commitments: ") for problem in vault.verify().problems)
        with pytest.raises(VaultError, match=r"the commitments .* run armnesia restore"):
            vault.rebuild()
    Vault.restore(place.url, tmp_path / "export.json", keys=place.keys, as_it_is=True)
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.certificate(users=["bob"]).verify(vault.public_keys()) == []


@pytest.mark.parametrize(
    ("leaves", "problem"),
    [(None, "has none for a name that it answered"), (bytes(96), "do not lead to its root in the ledger")],
    ids=["none", "others"],
)
def test_verify_compares_commitments_with_the_ledger_also_where_they_are_sealed(
    place: Place, leaves: bytes | None, problem: str
) -> None:
    """As an earlier version's rebuild has sealed them."""
    with filled(place) as vault:
        vault.forget(users=["ann", "bob", "zoe"])
        with vault._connection.writing() as transaction:
            transaction.session.execute("DELETE FROM tree")
            digests = transaction.state.digests._replace(tree=0)
            if leaves is not None:
                row = (transaction.state.head.sequence, leaves)
                transaction.add(insert_tree(row))
                digests = digests.update(transaction.keyring, "tree", [row])
            transaction.store(replace(transaction.state, digests=digests))
        assert vault.verify().problems == (f"commitments: {_said(vault, problem)}",)


def _said(vault: Vault, problem: str) -> str:
    entry = f"entry {vault.head.sequence}"
    return f"{entry} {problem}" if problem.startswith("has") else f"those of {entry} {problem}"
