"""Ways that once led to a signed, valid and false certificate, or past `verify`: each is refused."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Head, Vault
from armnesia.vault.ledger.pinned_head import PinnedHead
from armnesia.vault.storage import tables
from armnesia.vault.storage.schema import VERSION
from tests.databases import Place, postgres_url
from tests.vault.operations.test_upgrade import FIRST_RELEASE, put_old_vault
from tests.vault.raw_vaults import Snapshot, change, damage_index, filled, values

NOT_COUNTED = "the records found are not those that the vault has counted for these people"


# Keys that are no longer the newest.


def with_flipped_bit(keys: Path, name: str, version: int) -> None:
    """Flip one bit of one key in the keys' file."""
    document = json.loads(keys.read_text(encoding="utf-8"))
    key = bytearray.fromhex(document[name][version - 1])
    key[7] ^= 4
    document[name][version - 1] = key.hex()
    keys.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize("name", ["digest_keys", "signing_keys"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_keys_file_that_differs_in_any_key_is_refused(place: Place, name: str, version: int) -> None:
    with filled(place) as vault:
        vault.rotate_digest_key()
        vault.rotate_signing_key()
    with_flipped_bit(place.keys, name, version)
    kind = name.removesuffix("_keys")
    with pytest.raises(VaultError, match=f"keys: {kind} key {version} of the keys' file is not the one"):
        place.open()
    with Vault.open(place.url, keys=place.keys, accept="any") as vault:
        assert f"keys: {kind} key {version} of the keys' file" in str(vault.verify().problems)
        with pytest.raises(VaultError):
            vault.forget(users=["ann"])
    with place.open(accept="damaged") as vault, pytest.raises(VaultError, match="is not the one"):
        vault.rebuild()


def test_an_older_vault_cannot_be_rebuilt_with_a_key_that_its_ledger_does_not_confirm(place: Place) -> None:
    put_old_vault(place, FIRST_RELEASE)
    broken = "UPDATE vault SET erased_through = erased_through + {}"
    with place.open() as vault:
        assert values(vault, "SELECT digest_key FROM vault") == [(2,)]
        change(vault, broken.format(1))
        with pytest.raises(VaultError, match="cannot confirm digest key 1: restore a backup"):
            vault.rebuild()
        change(vault, broken.format(-1))
        vault.rotate_digest_key()  # which notes all keys in the ledger
        change(vault, broken.format(1))
        assert vault.rebuild().changed
        assert vault.verify().problems == ()


# The pinned head.

_FORGET = """
import sys
from armnesia.vault import Vault
with Vault.open(sys.argv[1], keys=sys.argv[2]) as vault:
    vault.forget(users=["ann"])
"""


def forget_and_be_killed_before_pinning(place: Place) -> None:
    """Forget in a process that is killed between the commit and the writing of the pin."""
    program = (
        "import os, signal, sys\n"
        "from armnesia.vault.ledger.pinned_head import PinnedHead\n"
        "PinnedHead.write = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n" + _FORGET
    )
    done = subprocess.run([sys.executable, "-c", program, place.url, str(place.keys)], check=False)
    assert done.returncode == -signal.SIGKILL


def forget_again(vault: Vault) -> object:
    return vault.forget(users=["ann"]).certificate


LOOKS: list[Callable[[Vault], object]] = [
    forget_again,
    lambda vault: vault.certificate(users=["ann"]),
    Vault.status,
    Vault.decide,
    Vault.verify,
]


@pytest.mark.parametrize("look", LOOKS, ids=["forget", "certificate", "status", "decide", "verify"])
def test_a_pin_that_was_left_behind_catches_up(
    sqlite_place: Place, tmp_path: Path, look: Callable[[Vault], object]
) -> None:
    with filled(sqlite_place) as vault:
        yesterday = Snapshot(sqlite_place, vault, tmp_path)
    pin = PinnedHead(Path(f"{sqlite_place.keys}.head"))
    forget_and_be_killed_before_pinning(sqlite_place)
    assert pin.read() == vault_head(sqlite_place, -1)
    with Vault.open(
        sqlite_place.url, keys=sqlite_place.keys, accept="any" if look is LOOKS[-1] else "intact"
    ) as vault:
        look(vault)
    assert pin.read() == vault_head(sqlite_place)
    yesterday.put_back()
    with pytest.raises(VaultError, match="is older than its pinned head"):
        sqlite_place.open()


def vault_head(place: Place, before: int = 0) -> Head:
    """The head of the ledger, or the one before it."""
    with closing(sqlite3.connect(place.path)) as connection:
        rows = connection.execute("SELECT sequence, hash FROM ledger ORDER BY sequence").fetchall()
    return Head(*rows[-1 + before])


def test_a_longer_ledger_that_does_not_lead_on_from_the_pin_is_refused(
    sqlite_place: Place, tmp_path: Path
) -> None:
    """Two copies of one vault went different ways; the pin belongs to the other one."""
    with filled(sqlite_place) as vault:
        copy = Snapshot(sqlite_place, vault, tmp_path)
        vault.forget(users=["bob"])
    pin = Path(f"{sqlite_place.keys}.head")
    pinned = pin.read_bytes()
    copy.put_back()
    pin.unlink()
    with sqlite_place.open() as vault:
        vault.forget(users=["cem"])
        vault.forget(users=["dan"])
    pin.write_bytes(pinned)
    with pytest.raises(VaultError, match="was rewritten"):
        sqlite_place.open()


# Damaged indexes and rows.


@pytest.mark.parametrize("rows", [1, 2])
def test_a_damaged_index_is_no_reason_to_certify_anything(sqlite_place: Place, rows: int) -> None:
    with filled(sqlite_place) as vault:
        owner = vault._connection.all_keys.owner_digest("ann")
    damage_index(sqlite_place, "record_owner", owner, entries=rows)
    with sqlite_place.open() as vault:
        with pytest.raises(VaultError, match=f"{NOT_COUNTED}|damaged"):
            vault.forget(users=["ann"])
        assert any(problem.startswith("database: ") for problem in vault.verify().problems)
        with pytest.raises(VaultError, match="a copy would keep the damage: run armnesia rebuild first"):
            vault.compact()
        vault.rebuild()
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().problems == ()


def test_a_damaged_index_of_ids_is_confirmed_by_reading_all_rows(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        identity = vault._connection.all_keys.record_identity("id", "r3")
    damage_index(sqlite_place, "sqlite_autoindex_record_1", identity)
    with sqlite_place.open() as vault:
        with pytest.raises(VaultError, match="that their index does not find"):
            vault.forget(records=["r3"])
        vault.rebuild()
        assert vault.forget(records=["r3"]).records == 1


@pytest.mark.parametrize("column", ["arm", "units", "owner"])
def test_a_damaged_row_is_not_forgotten_as_if_it_were_whole(place: Place, column: str) -> None:
    with filled(place) as vault:
        ring = vault._connection.all_keys
        row = ring.record_identity("id", "r1")
        new = ring.owner_digest("zoe") if column == "owner" else 0 if column == "units" else 1
        assert change(vault, f"UPDATE record SET {column} = ? WHERE identity = ?", new, row) == 1
        with pytest.raises(VaultError, match=NOT_COUNTED):
            vault.forget(users=["ann"])
        if column == "owner":
            with pytest.raises(VaultError, match=NOT_COUNTED):
                vault.forget(users=["zoe"])
        assert vault.verify().problems
        assert vault.forget(users=["bob"]).records == 1  # of whom no row is damaged


def test_a_row_that_a_deletion_skips_is_not_certified_as_deleted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite skips a row that its damaged page does not find, though the row can be found afterwards."""
    delete = tables.delete_records

    def skipping(session: Any, layout: Any, column: str, keys: Any) -> Any:
        found = tables.read_records(session, layout, column, keys)
        return delete(session, layout, "identity", [identity for identity, *_ in found[1:]])

    with filled(place) as vault:
        monkeypatch.setattr(tables, "delete_records", skipping)
        with pytest.raises(VaultError, match=NOT_COUNTED):
            vault.forget(users=["ann"])
        monkeypatch.undo()
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().problems == ()


@pytest.mark.parametrize("changed", ["DELETE FROM owner", "UPDATE owner SET records = records + 1"])
def test_tallies_that_were_changed_stop_requests_and_are_made_again(place: Place, changed: str) -> None:
    with filled(place) as vault:
        change(vault, changed)
        with pytest.raises(VaultError, match=NOT_COUNTED):
            vault.forget(users=["ann"])
        assert "tallies: the records of people" in str(vault.verify().problems)
        vault.rebuild()
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).records == 2


def test_a_vault_of_the_first_release_has_tallies_from_its_first_change_on(place: Place) -> None:
    put_old_vault(place, FIRST_RELEASE)
    with place.open() as vault:
        assert vault.preview(users=["user-5"]).records == 5
        vault.change_policy(max_epsilon=vault.configuration.policy.max_epsilon)
        assert values(vault, "SELECT schema_version FROM vault") == [(VERSION,)]
        assert values(vault, "SELECT sum(records) FROM owner") == values(vault, "SELECT count(*) FROM record")
        assert vault.verify().problems == ()
        assert vault.forget(users=["user-5"]).records == 5


# The schema.

COPYING = (
    "CREATE TABLE copied (identity, owner)",
    "CREATE TRIGGER copying AFTER DELETE ON record BEGIN"
    " INSERT INTO copied VALUES (old.identity, old.owner); END",
)
SQLITE_CHANGES = {
    "trigger": COPYING,
    "view": (
        "ALTER TABLE suppressed RENAME TO hidden",
        "CREATE VIEW suppressed AS SELECT * FROM hidden WHERE false",
    ),
    "column": ("ALTER TABLE record ADD COLUMN name TEXT",),
    "index": ("DROP INDEX record_owner",),
    "other index": ("CREATE INDEX spy ON record (owner, units)",),
    "table": ("DROP TABLE owner",),
    "check": (
        "ALTER TABLE request RENAME TO old_request",
        "CREATE TABLE request (digest BLOB PRIMARY KEY, sequence BIGINT, opening TEXT NOT NULL)",
        "DROP TABLE old_request",
    ),
}
POSTGRES_CHANGES = {
    "trigger": (
        "CREATE FUNCTION {s}.nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$",
        "CREATE TRIGGER copying AFTER DELETE ON {s}.record FOR EACH ROW EXECUTE FUNCTION {s}.nothing()",
    ),
    "rule": ("CREATE RULE keeping AS ON DELETE TO {s}.record DO INSTEAD NOTHING",),
    "view": (
        "ALTER TABLE {s}.suppressed RENAME TO hidden",
        "CREATE VIEW {s}.suppressed AS SELECT * FROM {s}.hidden WHERE false",
    ),
    "column": ("ALTER TABLE {s}.record ADD COLUMN name TEXT",),
    "type": ("ALTER TABLE {s}.record ALTER COLUMN units TYPE integer",),
    "index": ("DROP INDEX {s}.record_owner",),
    "other index": ("CREATE INDEX spy ON {s}.record (owner, units)",),
    "table": ("DROP TABLE {s}.owner",),
    "row security": ("ALTER TABLE {s}.record ENABLE ROW LEVEL SECURITY",),
    "policy": ("CREATE POLICY hiding ON {s}.record USING (false)",),
    "owner": ("ALTER TABLE {s}.record OWNER TO pg_monitor",),
    "unlogged": ("ALTER TABLE {s}.record SET UNLOGGED",),
    "child": ("CREATE TABLE {s}.child () INHERITS ({s}.record)",),
    "constraint": ("ALTER TABLE {s}.record ADD CHECK (units > -1)",),
}


def check_refused(place: Place, vault: Vault) -> None:
    """Refused by a process that had it open, and by one that opens it; `verify` says what it is."""
    for use in (lambda: vault.forget(users=["ann"]), vault.decide, place.open):
        with pytest.raises(VaultError, match=r"schema: .*; nothing is read from such a vault"):
            use()
    assert any(problem.startswith("schema: ") for problem in vault.verify().problems)


@pytest.mark.parametrize("changes", SQLITE_CHANGES.values(), ids=SQLITE_CHANGES)
def test_a_changed_schema_is_refused_on_sqlite(sqlite_place: Place, changes: tuple[str, ...]) -> None:
    with filled(sqlite_place) as vault:
        with closing(sqlite3.connect(sqlite_place.path)) as other:
            for statement in changes:
                other.execute(statement)
            other.commit()
        check_refused(sqlite_place, vault)


@pytest.mark.parametrize("changes", POSTGRES_CHANGES.values(), ids=POSTGRES_CHANGES)
def test_a_changed_schema_is_refused_on_postgresql(postgres_place: Place, changes: tuple[str, ...]) -> None:
    with filled(postgres_place) as vault:
        schema = vault._connection.database.schema  # type: ignore[attr-defined]
        with closing(psycopg.connect(postgres_url(), autocommit=True)) as other:
            for statement in changes:
                other.execute(statement.format(s=schema))
        check_refused(postgres_place, vault)


def test_rebuild_creates_a_missing_index_and_refuses_a_trigger(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        with closing(sqlite3.connect(sqlite_place.path)) as other:
            other.execute("DROP INDEX record_owner")
        vault.rebuild()
        assert vault.verify().problems == ()
        with closing(sqlite3.connect(sqlite_place.path)) as other:
            for statement in COPYING:
                other.execute(statement)
        with pytest.raises(VaultError, match=r"copied|copying.*repair it by the database's own tools"):
            vault.rebuild()


def test_the_tables_of_every_version_and_mode_are_accepted(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("action,reward,user\nA,1,ann\nB,0,bob\n", encoding="utf-8")
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        vault.ingest(log, user="user")
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).records == 1
        assert vault.verify().problems == ()


def test_an_older_copy_of_the_keys_is_refused(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        shutil.copy(place.keys, tmp_path / "old.keys")
        vault.rotate_digest_key()
    os.replace(tmp_path / "old.keys", place.keys)
    with pytest.raises(VaultError, match="digest key"):
        place.open()
