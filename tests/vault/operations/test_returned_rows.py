"""Rows of forgotten people that come back and are deleted again: no certificate says that they are erased."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Vault
from tests.databases import Place
from tests.vault.raw_vaults import Snapshot, change, filled, reader_of, values


def rows_of(vault: Vault, user: str) -> list[tuple[object, ...]]:
    owner = vault._connection.all_keys.owner_digest(user)
    return values(vault, "SELECT * FROM record WHERE owner = ?", owner)


def put_back(vault: Vault, rows: list[tuple[object, ...]]) -> None:
    for row in rows:
        change(vault, "INSERT INTO record VALUES (?, ?, ?, ?)", *row)


def forget_and_erase(vault: Vault, user: str) -> None:
    vault.forget(users=[user])
    vault.compact()
    vault.finish()
    assert vault.certificate(users=[user]).erasure == "complete"


def test_certificates_are_pending_again_after_a_rebuild_that_deleted_rows(
    place: Place, tmp_path: Path
) -> None:
    with filled(place) as vault:
        rows = rows_of(vault, "ann")
        forget_and_erase(vault, "ann")
        put_back(vault, rows)
        with reader_of(place):  # who keeps the deleted rows in the files
            assert vault.rebuild().changed
            assert vault.certificate(users=["ann"]).erasure == "pending"
            assert vault.status().erasure == "pending"
            vault.export(tmp_path / "export.json")
            export = (tmp_path / "export.json").read_text(encoding="utf-8")
            assert '"state":"pending"' in export
            assert '"state":"complete"' not in export
            with place.open(timeout=0.1) as other:
                assert other.certificate(users=["ann"]).erasure == "pending"
                assert other.finish().erasure == "pending"
        assert vault.compact().erasure == "complete"
        assert vault.finish().erasure == "complete"
        assert vault.certificate(users=["ann"]).erasure == "complete"
        assert vault.verify().problems == ()


def test_nothing_is_in_the_files_when_a_rebuild_says_complete(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        rows = rows_of(vault, "ann")
        forget_and_erase(vault, "ann")
        put_back(vault, rows)
        assert vault.rebuild().changed
        assert vault.certificate(users=["ann"]).erasure == "complete"
        found = sqlite_place.path.read_bytes() + Path(f"{sqlite_place.path}-wal").read_bytes()
        assert not any(bytes(row[0]) in found for row in rows)  # type: ignore[call-overload]


def test_a_rebuild_that_deletes_nothing_leaves_certificates_as_they_are(place: Place) -> None:
    with filled(place) as vault:
        forget_and_erase(vault, "ann")
        before = values(vault, "SELECT body FROM certificate")
        assert not vault.rebuild().changed
        assert values(vault, "SELECT body FROM certificate") == before
        assert vault.certificate(users=["ann"]).erasure == "complete"


def test_a_process_that_stayed_open_across_a_restore_knows_nothing_of_erasure_any_more(
    postgres_place: Place, tmp_path: Path
) -> None:
    """What it learned holds of the rows before the backup was put back."""
    with filled(postgres_place) as vault:
        yesterday = Snapshot(postgres_place, vault, tmp_path)
        vault.forget(users=["ann"])
        assert vault.compact().erasure == "complete"
        assert vault.certificate(users=["ann"]).erasure == "complete"
        vault.export(tmp_path / "export.json", for_restore=True)
        yesterday.put_back()
        with pytest.raises(VaultError, match="older than its pinned head"):
            vault.decide()
        Vault.restore(postgres_place.url, tmp_path / "export.json", keys=postgres_place.keys)
        assert vault.certificate(users=["ann"]).erasure == "pending"
        assert vault.finish().erasure == "pending"
        assert vault.status().erasure == "pending"
        with postgres_place.open() as other:
            assert other.certificate(users=["ann"]).erasure == "pending"
            assert other.compact().erasure == "complete"
        assert vault.certificate(users=["ann"]).erasure == "complete"


def test_a_process_that_stayed_open_across_a_rebuild_knows_nothing_of_erasure_any_more(
    place: Place,
) -> None:
    with filled(place) as vault:
        rows = rows_of(vault, "ann")
        forget_and_erase(vault, "ann")
        put_back(vault, rows)
        with reader_of(place):
            with place.open(timeout=0.1) as other:
                other.rebuild()
            assert vault.certificate(users=["ann"]).erasure == "pending"


def test_a_backup_does_not_say_how_far_it_is_erased(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        forget_and_erase(vault, "bob")
        yesterday = Snapshot(sqlite_place, vault, tmp_path)
        vault.forget(users=["ann"])
        vault.export(tmp_path / "export.json", for_restore=True)
    yesterday.put_back()
    Vault.restore(sqlite_place.url, tmp_path / "export.json", keys=sqlite_place.keys)
    with closing(sqlite3.connect(sqlite_place.path)) as connection:
        assert connection.execute("SELECT erased_through FROM vault").fetchall() == [(0,)]


@pytest.mark.parametrize("only_tally", [False, True])
def test_no_certificate_is_shown_while_rows_of_the_person_are_there_again(
    place: Place, only_tally: bool
) -> None:
    """Found by the index, or by the tally where the index is damaged."""
    with filled(place) as vault:
        rows = rows_of(vault, "ann")
        owner = rows[0][1]
        ((_, records, digest),) = values(vault, "SELECT * FROM owner WHERE owner = ?", owner)
        forget_and_erase(vault, "ann")
        if only_tally:
            change(vault, "INSERT INTO owner VALUES (?, ?, ?)", owner, records, digest)
        else:
            put_back(vault, rows)
        for again in (vault.certificate, vault.forget):
            with pytest.raises(VaultError, match="are in the vault again, put there by something other"):
                again(users=["ann"])
        vault.rebuild()
        assert vault.certificate(users=["ann"]).body["entry"]["kind"] == "forget"


def test_the_certificate_of_somebody_who_was_readmitted_is_still_shown(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        vault.readmit(users=["ann"])
        new = {"action": ["A"], "reward": [1.0], "who": ["ann"], "id": ["r9"]}
        assert vault.ingest(new, user="who", id="id").added == 1
        assert vault.certificate(users=["ann"]).body["entry"]["kind"] == "forget"
