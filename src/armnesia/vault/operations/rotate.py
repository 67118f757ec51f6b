"""New keys: a signing key from now on, or a digest key under which every stored digest is wrapped.

The new key reaches the keys' file before the database uses it. A crash in between leaves a key that is not
in use yet; the versions in the database say which ones are.
"""

from dataclasses import replace

from armnesia.core.errors import VaultError
from armnesia.vault.keys.keyring import REQUEST, SUPPRESSED_RECORD, USER, Keyring
from armnesia.vault.state.connection import Opened, appended
from armnesia.vault.state.table_digests import tallied
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import COLUMNS

_PURPOSE = {"user": USER, "record": SUPPRESSED_RECORD}


def rotate_signing_key(opened: Opened) -> int:
    """Sign with a new key from now on; certificates signed before stay valid, their keys stay in the ring."""
    with opened.writing() as session:
        before = opened.load(session)
        ring = opened.ring(before)
        opened.keyring = Keyring.load(opened.keys_path)  # a crash may have left a key there
        if opened.keyring.signing_version == before.signing_key:
            _save(opened, opened.keyring.with_new_signing_key())
        version = before.signing_key + 1
        _, state, to_ledger = appended(
            replace(before, signing_key=version),
            "rotate_signing",
            version=version,
            public=opened.keyring.public_key(version),
            signed_by_previous=ring.sign(opened.keyring.public_key(version).encode()).hex(),
        )
        opened.store(session, before, state, to_ledger)
    opened.pin.write(state.head)
    return version


def rotate_digest_key(opened: Opened) -> int:
    """Wrap every digest of a person or a request in a new key, in one transaction."""
    with opened.writing() as session:
        before = opened.load(session)
        if tallied(session, opened.ring(before), opened.mode) != before.tallies:
            # Tallied anew under the new key, it would look as if nothing had happened.
            raise VaultError(
                "rows of the vault were changed by something other than armnesia; run armnesia verify first"
            )
        opened.keyring = Keyring.load(opened.keys_path)  # a crash may have left a key there
        if opened.keyring.digest_version == before.digest_key:
            _save(opened, opened.keyring.with_new_digest_key())
        version = before.digest_key + 1
        _, state, to_ledger = appended(replace(before, digest_key=version), "rotate_digest", version=version)
        ring = opened.ring(state)
        _rewrap(session, ring)
        state = replace(state, tallies=tallied(session, ring, opened.mode))  # under the new key, too
        opened.store(session, before, state, to_ledger)
    opened.pin.write(state.head)
    opened.database.erase()  # what the old key made is to go, and is nobody's to wait for
    return version


def _save(opened: Opened, keyring: Keyring) -> None:
    """Use new keys only once they are in the file: a key that is lost makes its digests worthless."""
    keyring.save(opened.keys_path, replace=True)
    opened.keyring = keyring


def _rewrap(session: Session, ring: Keyring) -> None:
    listed = session.query(f"SELECT {COLUMNS['suppressed']} FROM suppressed")
    session.execute("DELETE FROM suppressed")
    session.load(
        "suppressed",
        COLUMNS["suppressed"],
        [(ring.wrapped(bytes(digest), _PURPOSE[kind]), kind, *rest) for digest, kind, *rest in listed],
    )
    answered = session.query(f"SELECT {COLUMNS['request']} FROM request")
    session.execute("DELETE FROM request")
    session.load(
        "request",
        COLUMNS["request"],
        [(ring.wrapped(bytes(digest), REQUEST), *rest) for digest, *rest in answered],
    )
