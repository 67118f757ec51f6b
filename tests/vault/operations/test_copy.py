"""A vault copied to another database is the same vault: the same rows, keys, seal, head and certificates."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import EXTERNAL, Configuration, Keyring, Vault
from armnesia.vault.operations import copy as copying
from armnesia.vault.storage import tables
from tests.databases import DATABASES, Place, fresh_place
from tests.vault.raw_vaults import LOG, change, dumped, filled, values

PAGES = {**LOG, "page": ["x", "y", "x", "y", "x", "y"]}


def ways() -> list[Any]:
    """From each database to each; those with PostgreSQL are slow but for one in each direction."""
    return [
        pytest.param(*way, marks=[pytest.mark.slow] if way == ("postgresql", "postgresql") else [])
        for way in product(DATABASES, repeat=2)
    ]


def copied(vault: Vault, place: Place) -> Vault:
    assert vault.copy_to(place.url, keys=place.keys).keys_path == place.keys
    return place.open()


def in_use(place: Place) -> Vault:
    """A vault with everything that a vault can have but keys of decisions."""
    vault = filled(place)
    vault.forget(users=["ann", "nobody"])
    vault.rotate_digest_key()
    vault.forget(records=["r2"])
    vault.readmit(records=["r2"])
    vault.rotate_signing_key()
    vault.change_policy(max_epsilon=2.0)
    vault.add_arm("C")
    vault.retire_arm("B")
    vault.forget(users=["zed"])
    vault.compact()
    assert vault.finish().erasure == "complete"
    return vault


def rows_of(vault: Vault) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(rows, key=repr) for name, rows in dumped(vault).items()}


@pytest.mark.parametrize(("source", "target"), ways())
def test_a_copy_has_all_rows_and_the_same_head(source: str, target: str, tmp_path: Path) -> None:
    old, new = fresh_place(source, tmp_path), fresh_place(target, tmp_path)
    with in_use(old) as vault:
        before = rows_of(vault)
        done = vault.copy_to(new.url, keys=new.keys)
        assert (done.head, done.records, done.vault) == (vault.head, 3, vault.identity().vault)
        certificate = vault.certificate(users=["ann"])
        with new.open() as copy:
            assert rows_of(copy) == before == rows_of(vault)
            assert copy.verify(vault.head).problems == ()
            assert copy.status().erasure == "complete"
            assert copy.certificate(users=["ann"]) == certificate
            assert copy.forget(users=["ann", "nobody"]).repeated
            assert Keyring.read(new.keys) == Keyring.read(old.keys)
            assert Path(f"{new.keys}.head").read_text() == Path(f"{old.keys}.head").read_text()
            assert copy.ingest(LOG, user="who", id="id").suppressed == 2
            assert copy.forget(users=["dan"]).held == 1
            assert copy.verify(vault.head).problems == ()


@pytest.mark.parametrize("mode", ["managed", EXTERNAL])
@pytest.mark.parametrize("target", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_a_copy_has_all_decisions(mode: str, target: str, sqlite_place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    pd.DataFrame(PAGES).to_csv(log, index=False)
    configuration = Configuration(actions=("A", "B"), by=("page",), mode=mode)
    with sqlite_place.create(configuration) as vault:
        vault.ingest(str(log), user="who", id="id")
        vault.forget(users=["ann"])
        with copied(vault, fresh_place(target, tmp_path)) as copy:
            nodes = "SELECT node, digests FROM decision_node"
            assert values(copy, nodes) == values(vault, nodes) != []
            assert rows_of(copy) == rows_of(vault)
            assert copy.decisions() == vault.decisions()
            assert copy.verify().problems == ()
            assert copy.forget(users=["dan"]).held == 1
            assert copy.verify().problems == ()


def test_a_vault_goes_there_and_back(sqlite_place: Place, postgres_place: Place, tmp_path: Path) -> None:
    back = fresh_place("sqlite", tmp_path)
    with in_use(sqlite_place) as vault:
        before = rows_of(vault)
        with copied(vault, postgres_place) as there, copied(there, back) as again:
            assert rows_of(again) == before
            assert again.verify(vault.head).problems == ()


def test_a_copy_during_a_rotation_is_finished_there(
    sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armnesia.vault.operations.rotate._AT_ONCE", 2)
    with filled(sqlite_place) as vault:

        def interrupted(rows: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            vault.rotate_digest_key(progress=interrupted)
        with copied(vault, fresh_place("sqlite", tmp_path)) as copy:
            assert "not finished" in copy.verify().notes[0]
            assert copy.rotate_digest_key().version == 2
            assert copy.verify() == copy.verify()
            assert (copy.verify().problems, copy.verify().notes) == ((), ())


def test_bytes_of_forgotten_people_do_not_come_along(sqlite_place: Place, tmp_path: Path) -> None:
    """Also if they are still in the file: here somebody has switched the overwriting off."""
    log = pd.DataFrame({"action": "A", "reward": 1, "who": [f"u{n % 50}" for n in range(2000)]})
    log["id"] = [f"r{number}" for number in range(2000)]
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, user="who", id="id")
        vault._connection.database._connection.execute("PRAGMA secure_delete = OFF")  # type: ignore[attr-defined]
        vault.forget(users=["u7"])
        keyring, new = Keyring.read(sqlite_place.keys), fresh_place("sqlite", tmp_path)
        with copied(vault, new) as copy:
            assert copy.verify().problems == ()
    gone = [keyring.record_identity("id", f"r{number}") for number in range(7, 2000, 50)]
    kept = keyring.record_identity("id", "r8")
    old_bytes, new_bytes = sqlite_place.path.read_bytes(), new.path.read_bytes()
    assert any(digest in old_bytes for digest in gone)
    assert not any(digest in new_bytes for digest in gone)
    assert kept in new_bytes


def test_with_one_file_of_keys_the_old_vault_is_refused_after_the_next_entry(
    sqlite_place: Place, tmp_path: Path
) -> None:
    new = Place(f"sqlite:///{tmp_path}/new.db", sqlite_place.keys)
    with filled(sqlite_place) as vault:
        assert vault.copy_to(new.url, keys=new.keys).keys_path == sqlite_place.keys
        with new.open() as copy:
            copy.forget(users=["ann"])
        with pytest.raises(VaultError, match="older than its pinned head"):
            vault.forget(users=["bob"])
    with pytest.raises(VaultError, match="older than its pinned head"):
        sqlite_place.open()
    with new.open() as copy:
        assert copy.verify().holds


@pytest.mark.parametrize("target", DATABASES)
def test_nothing_is_written_where_there_is_a_vault(sqlite_place: Place, target: str, tmp_path: Path) -> None:
    other = fresh_place(target, tmp_path)
    with filled(sqlite_place) as vault, filled(other) as there:
        before, keys = dumped(there), other.keys.read_bytes()
        with pytest.raises(VaultError, match=r"there is already a vault at .*, and there are keys at"):
            vault.copy_to(other.url, keys=other.keys)
        elsewhere = tmp_path / "elsewhere.keys"
        with pytest.raises(VaultError, match="there is already a"):
            vault.copy_to(other.url, keys=elsewhere)
        with pytest.raises(VaultError, match="there is already a"):
            vault.copy_to(sqlite_place.url, keys=sqlite_place.keys)
        assert (dumped(there), other.keys.read_bytes()) == (before, keys)
        assert not elsewhere.exists()
        assert vault.verify().holds


def _other_row(vault: Vault) -> None:
    change(vault, "UPDATE record SET units = units + 1 WHERE arm = 0")


def _other_list(vault: Vault) -> None:
    assert change(vault, "DELETE FROM suppressed") == 1


def _other_entry(vault: Vault) -> None:
    assert change(vault, "UPDATE ledger SET entry = replace(entry, 'init', 'inix') WHERE sequence = 1") == 1


def _other_certificate(vault: Vault) -> None:
    assert change(vault, "UPDATE certificate SET body = replace(body, 'rollback', 'rollbacx')") == 1


def _no_certificate(vault: Vault) -> None:
    assert change(vault, "DELETE FROM certificate") == 1


def _foreign_certificate(vault: Vault) -> None:
    assert change(vault, "INSERT INTO certificate SELECT 0, body, signature FROM certificate") == 1


def _other_tally(vault: Vault) -> None:
    assert change(vault, "UPDATE owner SET records = records + 1") > 1


def _other_node(vault: Vault) -> None:
    assert (
        change(vault, "UPDATE decision_node SET digests = (SELECT seal FROM decision WHERE number = 1)") == 1
    )


def _other_state(vault: Vault) -> None:
    assert change(vault, "UPDATE vault SET erased_through = 50") == 1


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (_other_row, "tables: rows were added, changed or removed"),
        (_other_list, "tables: rows were added, changed or removed"),
        (_other_entry, "ledger: sequence 1"),
        (_other_certificate, "certificate 2: "),
        (_no_certificate, "certificate 2: missing"),
        (_foreign_certificate, "certificates: there is one without a ledger entry"),
        (_other_tally, "tallies: "),
        (_other_node, "decisions: their hash tree was changed"),
        (_other_state, "changed by something other than armnesia"),
    ],
)
def test_a_vault_that_is_not_intact_is_not_copied(
    place: Place, tmp_path: Path, tamper: Callable[[Vault], None], message: str
) -> None:
    new = fresh_place("sqlite", tmp_path)
    with place.create(Configuration(actions=("A", "B"), by=("page",), user_type="text")) as vault:  # type: ignore[arg-type]
        vault.ingest(PAGES, user="who", id="id")
        vault.forget(users=["ann"])
        vault.compact()
        assert vault.finish().erasure == "complete"
        tamper(vault)
        with pytest.raises(VaultError, match=message):
            vault.copy_to(new.url, keys=new.keys)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(new.path.name)]


def test_a_row_that_the_target_loses_is_noticed(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is checked is what the copy holds, not what was read."""

    def losing(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        found = list(rows)
        yield from found[:-1] if found and len(found) == 6 else found

    monkeypatch.setattr(copying, "_sorted_in_parts", losing)
    new = fresh_place("sqlite", tmp_path)
    with filled(place) as vault, pytest.raises(VaultError, match="tables: rows were added, changed"):
        vault.copy_to(new.url, keys=new.keys)
    assert not new.path.exists()
    assert not new.keys.exists()


@pytest.mark.parametrize("operation", ["ingest", "forget"])
def test_a_vault_that_changes_meanwhile_is_not_copied(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """An ingest does not change the head, and would be lost as well."""
    later = {"action": ["A"], "reward": [1.0], "who": ["eve"], "id": ["r9"]}
    load_rows = tables.load_rows

    def changing(*arguments: Any) -> None:
        monkeypatch.setattr(tables, "load_rows", load_rows)
        with place.open() as other:
            if operation == "ingest":
                other.ingest(later, user="who", id="id")
            else:
                other.forget(users=["bob"])
        load_rows(*arguments)

    new = fresh_place("sqlite", tmp_path)
    with filled(place) as vault:
        monkeypatch.setattr(tables, "load_rows", changing)
        with pytest.raises(VaultError, match="the vault was changed while it was copied"):
            vault.copy_to(new.url, keys=new.keys)
        assert not new.path.exists()
        vault.compact()  # PostgreSQL needs it where somebody was forgotten
        with copied(vault, new) as copy:
            assert copy.status().records == vault.status().records
            assert copy.verify().problems == ()


def test_pending_erasures_are_completed_first(
    sqlite_place: Place, postgres_place: Place, tmp_path: Path
) -> None:
    """The copy could otherwise certify that bytes are erased which are in the files of the old vault."""
    new = fresh_place("sqlite", tmp_path)
    with filled(sqlite_place) as vault, closing(sqlite3.connect(sqlite_place.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        vault.forget(users=["ann"])
    with sqlite_place.open(timeout=0.1) as vault, closing(sqlite3.connect(sqlite_place.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        vault.forget(users=["bob"])
        with pytest.raises(VaultError, match=r"erasure is pending for 2 certificates .* run armnesia finish"):
            vault.copy_to(new.url, keys=new.keys)
    with sqlite_place.open() as vault, copied(vault, postgres_place) as copy:
        assert copy.status().erasure == "complete"
        copy.forget(users=["dan"])
        with pytest.raises(VaultError, match="first run armnesia compact, then armnesia finish"):
            copy.copy_to(new.url, keys=new.keys)


def test_a_vault_with_a_pending_correction_is_not_left_behind(place: Place, tmp_path: Path) -> None:
    """The old contents of a corrected row are in the files as well, and no certificate is about them."""
    corrected = {"action": ["A"], "reward": [0.125], "who": ["ann"], "id": ["r1"]}
    new, options = fresh_place("sqlite", tmp_path), dict[str, Any](successor_keys=place.keys, timeout=0.1)
    filled(place).close()
    reads = ":memory:" if place.url.startswith("postgresql") else place.path
    with closing(sqlite3.connect(reads)) as reader:
        with place.open() as vault:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            assert vault.ingest(corrected, user="who", id="id", replace=True).erasure == "pending"
        with place.open(timeout=0.1) as vault:
            with pytest.raises(VaultError, match="erasure is pending for 1 correction of the vault"):
                vault.copy_to(new.url, keys=new.keys)
            with pytest.raises(VaultError, match="erasure is pending for 1 correction of the vault"):
                Vault.create(new.url, keys=new.keys, successor_of=place.url, **options)
            vault.forget(users=["bob"])
            with pytest.raises(VaultError, match="pending for 1 certificate and 1 correction of the vault"):
                vault.copy_to(new.url, keys=new.keys)
    assert not new.path.exists()
    with place.open() as vault:
        vault.compact()
        assert vault.finish().erasure == "complete"
        with copied(vault, new) as copy:
            assert copy.status().erasure == "complete"


def test_an_erasure_that_only_this_process_knows_of_is_known_to_the_copy(
    sqlite_place: Place, tmp_path: Path
) -> None:
    """After a correction alone; no certificate waits for it."""
    corrected = {"action": ["A"], "reward": [0.125], "who": ["ann"], "id": ["r1"]}
    with filled(sqlite_place) as vault:
        assert vault.ingest(corrected, user="who", id="id", replace=True).erasure == "complete"
        with copied(vault, fresh_place("sqlite", tmp_path)) as copy:
            assert values(copy, "SELECT erased_through FROM vault") == [(copy.head.sequence,)]


def test_an_old_copy_is_not_copied(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        vault.back_up(tmp_path / "backup.db")
        vault.forget(users=["ann"])
    shutil.copy(tmp_path / "backup.db", sqlite_place.path)
    new = fresh_place("sqlite", tmp_path)
    with (
        sqlite_place.open(accept="damaged") as vault,
        pytest.raises(VaultError, match="older than its pinned"),
    ):
        vault.copy_to(new.url, keys=new.keys)
    assert not new.path.exists()


KILLED = """
import os, signal, sys
from armnesia.vault import Vault
from armnesia.vault.storage import tables

def killed(session, table, rows, load_rows=tables.load_rows):
    load_rows(session, table, rows)
    if table.name == "record":
        os.kill(os.getpid(), signal.SIGKILL)

tables.load_rows = killed
url, keys, new_url, new_keys = sys.argv[1:]
Vault.open(url, keys=keys).copy_to(new_url, keys=new_keys)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", DATABASES)
def test_a_copy_that_is_killed_is_no_vault(sqlite_place: Place, target: str, tmp_path: Path) -> None:
    new = fresh_place(target, tmp_path)
    with filled(sqlite_place) as vault:
        arguments = [sqlite_place.url, str(sqlite_place.keys), new.url, str(new.keys)]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
        assert done.returncode == -9
        with pytest.raises(VaultError, match="there is no vault at"):
            new.open()
        with pytest.raises(VaultError, match="if an init or a copy was interrupted, remove them"):
            vault.copy_to(new.url, keys=new.keys)
        new.keys.unlink()
        if target == "sqlite":
            for path in tmp_path.glob(f"{new.path.name}*"):
                path.unlink()
        with copied(vault, new) as copy:
            assert copy.verify(vault.head).problems == ()
