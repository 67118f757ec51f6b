"""Another signing key: what was signed before stays valid, unless the old key may have been stolen."""

from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import Certificate, Vault
from armnesia.vault.keys import private_files
from tests.databases import Place
from tests.vault.raw_vaults import filled, raising

ANOTHER = (
    "the checkpoint is signed by another key: a newer public key of this vault, or a newer certificate, is"
    " needed; or it is not its certificate"
)


def test_certificates_before_and_after_a_rotation(place: Place) -> None:
    with filled(place) as vault:
        old_key, before = vault.public_key(), vault.forget(users=["ann"]).certificate
        assert before is not None
        done = vault.rotate_signing_key()
        assert (done.version, done.head.size) == (2, 3)
        fresh, after = vault.certificate(users=["ann"]), vault.forget(users=["bob"]).certificate
        assert after is not None
        keys = vault.public_keys()
        assert keys.keys == (old_key, vault.public_key())
        assert vault.public_key(1) == old_key
        assert (fresh.entry.signer, after.entry.signer) == (old_key, vault.public_key())
        for certificate in (before, fresh, after):
            assert certificate.verify(keys.keys) == []
        # Whoever has only the old key cannot check what the new one signed, and it is not called forged.
        assert before.verify(old_key) == []
        for certificate in (fresh, after):
            assert certificate.verify(vault.public_key()) == []
            assert certificate.verify(old_key) == [ANOTHER]
        assert vault.verify().problems == ()


def test_what_a_stolen_key_signed_is_refused_and_asked_for_again(place: Place) -> None:
    with filled(place) as vault:
        before = vault.forget(users=["ann"]).certificate
        since = vault.forget(users=["bob"]).certificate
        assert before is not None
        assert since is not None
        vault.rotate_signing_key(compromised_since=3)
        keys = vault.public_keys().keys
        assert keys == (vault.public_key(),)
        assert vault.ledger().entries[-1].facts["compromised_since"] == 3
        # A thief may sign a ledger of any size.
        assert before.verify(keys) == since.verify(keys) == [ANOTHER]
        again = Certificate.read(vault.certificate(users=["bob"]).to_json())
        assert again.entry == since.entry
        assert again.verify(keys) == again.verify(vault.public_key()) == []
        # It reaches back over earlier rotations.
        vault.rotate_signing_key()
        vault.rotate_signing_key(compromised_since=2)
        keys = vault.public_keys().keys
        assert keys == (vault.public_key(),)
        assert before.verify(keys) != []
        assert vault.certificate(users=["ann"]).verify(keys) == []
        assert vault.verify().problems == ()


@pytest.mark.parametrize("since", [0, -1, 4, True, 2.0, "2"])
def test_what_is_no_entry_is_refused_before_a_key_is_made(sqlite_place: Place, since: Any) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        vault.forget(users=["bob"])
        before = sqlite_place.keys.read_bytes()
        with pytest.raises(InvalidInputError, match=r"must be the number of a ledger entry, 1 to 3; got"):
            vault.rotate_signing_key(compromised_since=since)
        assert sqlite_place.keys.read_bytes() == before
        assert vault.head.size == 3


def test_another_process_finds_the_new_key(place: Place) -> None:
    with filled(place) as one, place.open() as other:
        for vault in (one, other):
            vault.forget(users=[f"nobody-{vault is one}"])
            vault.rotate_signing_key()
        assert one.checkpoint() == other.checkpoint()
        assert other.forget(users=["ann"]).certificate is not None
        assert one.verify().problems == other.verify().problems == ()
        assert one.public_key() == other.public_key() == one.public_keys().keys[-1]


def test_a_key_is_saved_before_it_is_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(place) as vault:
        with monkeypatch.context() as patched:
            patched.setattr(private_files, "write", raising(VaultError("the disk is full")))
            with pytest.raises(VaultError, match="the disk is full"):
                vault.rotate_signing_key()
        assert (vault.head.size, len(vault.public_keys().keys)) == (1, 1)
        # A crash after it was saved leaves a key that is not in use; the next rotation uses it.
        vault.all_keys.with_new_signing_key().save(place.keys, replace=True)
        saved = place.keys.read_bytes()
    with place.open() as vault:
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).certificate is not None
        assert vault.rotate_signing_key().version == 2
        assert place.keys.read_bytes() == saved
        assert vault.verify().problems == ()


def test_lost_keys_are_told(place: Place, tmp_path: Path) -> None:
    with filled(place) as vault:
        old = place.keys.read_bytes()
        vault.rotate_signing_key()
        place.keys.write_bytes(old)
        with pytest.raises(VaultError, match=r"lacks keys that were in it|does not have the keys"):
            vault.check_keys()
        with pytest.raises(VaultError, match="does not have the keys of this vault any more"):
            vault.rotate_signing_key()
    with pytest.raises(VaultError):
        Vault.open(place.url, keys=place.keys)
