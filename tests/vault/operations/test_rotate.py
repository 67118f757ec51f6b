"""New keys: in short transactions, after a crash, for processes that were there before."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Keyring, Rotated, Vault
from armnesia.vault.operations import rotate
from tests.databases import Place
from tests.vault.raw_vaults import LOG, Snapshot, change, change_statistics, dumped, filled, values

Rotate = Callable[[Vault], Rotated]
ROTATIONS = [Vault.rotate_signing_key, Vault.rotate_digest_key]


def versions(vault: Vault) -> tuple[int, int]:
    status = vault.status()
    return status.digest_key, status.signing_key


def test_every_digest_of_the_list_is_wrapped_in_the_new_key(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        vault.forget(records=["r2"])
        before = dumped(vault)
        assert vault.rotate_digest_key().version == 2
        after = dumped(vault)
        key = Keyring.read(place.keys).digest_keys[1]

        def wrapped(digest: bytes, purpose: bytes) -> bytes:
            return hashlib.blake2b(digest, digest_size=16, key=key, person=purpose).digest()

        purposes = {"user": b"user", "record": b"suppressed"}
        listed = [
            (wrapped(digest, purposes[kind]), kind, *rest) for digest, kind, *rest in before["suppressed"]
        ]
        answered = [(wrapped(digest, b"request"), *rest) for digest, *rest in before["request"]]
        assert after["suppressed"] == sorted(listed, key=repr)
        assert after["request"] == sorted(answered, key=repr)
        assert after["record"] == before["record"]
        assert vault.verify().holds
        assert vault.forget(users=["ann"]).repeated
        assert vault.ingest(LOG, user="who", id="id").suppressed == 3
        assert vault.certificate(records=["r2"]).verify(vault.public_keys()) == []


def test_a_failure_in_the_middle_leaves_the_list_as_it_was(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann"])
        before = dumped(vault)
        rewrap = rotate._rewrap

        def failing(*arguments: Any) -> None:
            rewrap(*arguments)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(rotate, "_rewrap", failing)
            with pytest.raises(KeyboardInterrupt):
                vault.rotate_digest_key()
        assert dumped(vault) == before
        assert Keyring.read(place.keys).digest_version == 2  # saved, and not in use
        assert versions(vault) == (1, 1)
        assert vault.forget(users=["ann"]).repeated
        assert vault.rotate_digest_key().version == 2
        assert Keyring.read(place.keys).digest_version == 2
        assert vault.verify().holds


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_crash_after_saving_a_new_key_loses_nothing(place: Place, rotate: Rotate) -> None:
    old = filled(place)  # opened before the crash, so it does not know the new key
    ring = Keyring.read(place.keys)
    unused = ring.with_new_digest_key().with_new_signing_key()
    unused.save(place.keys, replace=True)
    with place.open() as vault:
        assert versions(vault) == (1, 1)
        assert vault.forget(users=["ann"]).certificate.verify(ring.public_key()) == []
    with old:
        assert rotate(old).version == 2
        assert Keyring.read(place.keys) == unused  # the key that was there is the one in use now
        assert old.forget(users=["ann"]).repeated
        assert old.verify().holds


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_key_that_cannot_be_saved_is_not_used(
    place: Place, rotate: Rotate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise VaultError("the disk is full")

    with filled(place) as vault:
        before = dumped(vault)
        for _ in range(2):  # the second time, too: the key of the first must not be left in memory
            with monkeypatch.context() as patched:
                patched.setattr(Keyring, "save", full)
                with pytest.raises(VaultError, match="disk is full"):
                    rotate(vault)
        assert dumped(vault) == before
        assert rotate(vault).version == 2
    with place.open() as vault:
        assert vault.verify().holds


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_process_that_was_there_before_goes_on_with_the_new_key(place: Place, rotate: Rotate) -> None:
    with filled(place) as old, place.open() as new:
        old.forget(users=["ann"])
        for version in (2, 3):
            assert rotate(new).version == version
            assert old.decide() == new.decide()
            assert old.forget(users=["ann"]).repeated
        assert rotate(new).version == 4
        assert old.check_ledger(new.head).problems == ()
        done = old.forget(users=["bob"])
        assert done.certificate.verify(new.public_key()) == []
        assert old.public_keys() == new.public_keys()
        assert old.verify().holds
        assert rotate(old).version == 5
        assert new.verify().holds


def test_old_certificates_stay_valid(place: Place) -> None:
    with filled(place) as vault:
        first = vault.forget(users=["ann"]).certificate
        old_key = vault.public_key()
        assert vault.rotate_signing_key().version == 2
        second = vault.forget(users=["bob"]).certificate
        assert list(vault.public_keys()) == [old_key, vault.public_key()]
        for certificate in (first, second):
            assert certificate.verify(vault.public_keys()) == []
        assert first.verify(old_key) == []
        assert second.verify(old_key) == [
            "the certificate is signed with a key that is not among the public keys given: if the list is an"
            " old one, get the newest"
        ]
        assert vault.public_key(1) == old_key
        told = next(entry for entry in vault.ledger() if entry.kind == "rotate_signing").fields
        assert (told["version"], told["public"]) == (2, vault.public_key())
        with pytest.raises(VaultError, match="signing keys 1 to 2; got 3"):
            vault.public_key(3)


def test_the_erased_leave_the_list(place: Place) -> None:
    with filled(place) as vault:
        vault.forget(users=["ann", "bob"])
        assert vault.readmit(users=["ann"], erase=True).readmitted == 1
        assert values(vault, "SELECT count(*) FROM suppressed") == [(1,)]
        # Nor is a digest of her left among the answered requests; bob and the two together are.
        assert values(vault, "SELECT count(*) FROM request") == [(2,)]
        with pytest.raises(VaultError, match="no certificate for exactly this request"):
            vault.certificate(users=["ann"])
        assert vault.certificate(users=["bob"]).verify(vault.public_keys()) == []
        with pytest.raises(VaultError, match="1 of the 2 named is not on the suppression list"):
            vault.readmit(users=["ann", "bob"])
        assert values(vault, "SELECT readmitted FROM suppressed") == [(None,)]
        assert vault.ingest(LOG, user="who", id="id").added == 2
        assert vault.verify().holds


def rotate_partly(vault: Vault, monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    """Begin a rotation and interrupt it after so many chunks of two records."""
    monkeypatch.setattr(rotate, "_AT_ONCE", 2)
    left = iter(range(chunks))
    rotate_records = rotate._rotate_records

    def interrupted(connection: Any) -> int:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return rotate_records(connection)

    with monkeypatch.context() as patched:
        patched.setattr(rotate, "_rotate_records", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vault.rotate_digest_key()


@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_between_its_transactions_the_vault_can_be_used_and_verified(
    place: Place, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    with filled(place) as vault:
        vault.forget(users=["bob"])
        rotate_partly(vault, monkeypatch, chunks)
    with place.open() as vault:
        checked = vault.verify()
        assert checked.problems == ()
        assert "rotation of the digest key is not finished" in str(checked.notes)
        assert vault.forget(users=["bob"]).repeated
        new = {"action": list("ABAB"), "reward": [1, 0, 1, 0], "who": ["eve"] * 4, "id": list("wxyz")}
        assert vault.ingest(new, user="who", id="id").added == 4
        assert vault.forget(users=["ann"]).records == 2
        assert vault.forget(records=["w"]).records == 1
        assert vault.verify().problems == ()
        assert vault.rotate_digest_key().version == 2  # finishes the one that was begun
        checked = vault.verify()
        assert (checked.problems, checked.notes) == ((), ())
        assert vault.rotate_digest_key().version == 3
        assert vault.verify().problems == ()


def test_a_changed_record_is_not_hidden_by_a_rotation(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(place) as vault:
        rotate_partly(vault, monkeypatch, 1)
        identities = sorted(row[0] for row in values(vault, "SELECT identity FROM record"))
        for identity in (identities[0], identities[-1]):
            change(vault, "UPDATE record SET units = units + 1 WHERE identity = ?", identity)
            assert any(problem.startswith("records:") for problem in vault.verify().problems)
        vault.rotate_digest_key()
        assert any(problem.startswith("records:") for problem in vault.verify().problems)


def test_a_backup_from_within_a_rotation_is_restored_and_rebuilt(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with filled(place) as vault:
        rotate_partly(vault, monkeypatch, 1)
        backup = Snapshot(place, vault, tmp_path)
        vault.rotate_digest_key()
        vault.forget(users=["ann"])
        vault.export(tmp_path / "latest.json", for_restore=True)
    backup.put_back()
    Vault.restore(place.url, tmp_path / "latest.json", keys=place.keys)
    with place.open() as vault:
        assert vault.verify().problems == ()
        rotate_partly(vault, monkeypatch, 1)
        assert not vault.rebuild().changed
        assert vault.verify().problems == ()
        change_statistics(vault, "counts", 0, 1)
        vault.rebuild()
        assert vault.verify().problems == ()
        assert vault.forget(users=["dan"]).records == 2


@pytest.mark.parametrize("rotate", [Vault.rotate_signing_key, Vault.rotate_digest_key])
def test_the_keys_of_another_vault_get_no_new_key(place: Place, rotate: Rotate) -> None:
    """The file was exchanged while a process had the vault open."""
    with filled(place) as vault:
        own = place.keys.read_bytes()
        place.keys.unlink()
        Keyring.create("another vault").save(place.keys)
        with pytest.raises(VaultError, match="does not have the keys of this vault any more: restore it"):
            rotate(vault)
        place.keys.write_bytes(own)
        assert vault.verify().problems == ()
    with place.open() as vault:
        assert vault.forget(users=["ann"]).records == 2
