"""New keys: in one transaction, after a crash, for processes that were there before, and old certificates."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Keyring, Rotated, Vault
from armnesia.vault.operations import rotate
from tests.databases import Place
from tests.vault.raw_vaults import LOG, dumped, filled, values

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
        key = Keyring.load(place.keys).digest_keys[1]

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
        assert Keyring.load(place.keys).digest_version == 2  # saved, and not in use
        assert versions(vault) == (1, 1)
        assert vault.forget(users=["ann"]).repeated
        assert vault.rotate_digest_key().version == 2
        assert Keyring.load(place.keys).digest_version == 2
        assert vault.verify().holds


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_crash_after_saving_a_new_key_loses_nothing(place: Place, rotate: Rotate) -> None:
    old = filled(place)  # opened before the crash, so it does not know the new key
    ring = Keyring.load(place.keys)
    unused = ring.with_new_digest_key().with_new_signing_key()
    unused.save(place.keys, replace=True)
    with place.open() as vault:
        assert versions(vault) == (1, 1)
        assert vault.forget(users=["ann"]).certificate.verify(ring.public_key()) == []
    with old:
        assert rotate(old).version == 2
        assert Keyring.load(place.keys) == unused  # the key that was there is the one in use now
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
            "the certificate is signed with a key that is not among the public keys given"
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
        with pytest.raises(VaultError, match="1 of the 2 named are not on the suppression list"):
            vault.readmit(users=["ann", "bob"])
        assert values(vault, "SELECT readmitted FROM suppressed") == [(None,)]
        assert vault.ingest(LOG, user="who", id="id").added == 2
        assert vault.verify().holds
