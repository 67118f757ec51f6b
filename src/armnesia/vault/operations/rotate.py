"""New keys: another signing key from now on, or another digest key that wraps every stored digest.

A new key is saved in the keys' file before the database uses it. A crash in between leaves a key that is not
in use yet; the versions in the database say which ones are.
"""

from collections.abc import Callable
from dataclasses import replace

from armnesia.core.errors import VaultError
from armnesia.vault.keys.keyring import REQUEST, SUPPRESSED_RECORD, USER, Keyring
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.results import Rotated
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.state.transaction import Transaction, append_entry
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session

_PURPOSE = {"user": USER, "record": SUPPRESSED_RECORD}


def rotate_signing_key(connection: VaultConnection) -> Rotated:
    """Sign with a new key from now on; certificates signed before stay valid, and their keys are kept."""
    with connection.writing() as transaction:
        before, old_ring = transaction.state, transaction.ring
        version = before.signing_key + 1
        _use_new_key(connection, transaction, lambda ring: ring.signing_version, Keyring.with_new_signing_key)
        public = transaction.keyring.public_key(version)
        entry, state, to_ledger = append_entry(
            replace(before, signing_key=version),
            "rotate_signing",
            version=version,
            public=public,
            signed_by_previous=old_ring.sign(public.encode()).hex(),
        )
        transaction.store(state, to_ledger)
    return Rotated("signing", version, entry.head)


def rotate_digest_key(connection: VaultConnection) -> Rotated:
    """Wrap every digest of a person or a request in a new key, in one transaction."""
    layout = connection.records.layout
    with connection.writing() as transaction:
        session, before = transaction.session, transaction.state
        if compute_digests(session, transaction.ring, layout) != before.digests:
            # New digests under the new key would hide the change.
            raise VaultError(
                "rows of the vault were changed by something other than armnesia; run armnesia verify first"
            )
        version = before.digest_key + 1
        _use_new_key(connection, transaction, lambda ring: ring.digest_version, Keyring.with_new_digest_key)
        ring = transaction.keyring.at(digest_version=version, signing_version=before.signing_key)
        entry, state, to_ledger = append_entry(
            replace(before, digest_key=version),
            "rotate_digest",
            version=version,
            digest_key_checks=[ring.digest_check(number + 1) for number in range(version)],
        )
        _rewrap(session, ring)
        _reseal_drafts(session, transaction.ring, ring)
        transaction.store(replace(state, digests=compute_digests(session, ring, layout)), to_ledger)
    connection.database.erase()  # best effort: digests made with the old key alone leave the files
    return Rotated("digest", version, entry.head)


def _use_new_key(
    connection: VaultConnection,
    transaction: Transaction,
    version_of: Callable[[Keyring], int],
    with_new_key: Callable[[Keyring], Keyring],
) -> None:
    """Save a new key before it is used: digests made with a key that is lost are worthless."""
    keyring = Keyring.load(connection.keys_path)  # a crash may have left a key that is not in use
    if version_of(keyring) == version_of(transaction.ring):
        keyring = with_new_key(keyring)
        keyring.save(connection.keys_path, replace=True)
    connection.keyring = transaction.keyring = keyring


def _rewrap(session: Session, ring: Keyring) -> None:
    listed = tables.read_table(session, "suppressed")
    tables.replace_table(
        session,
        "suppressed",
        [(ring.wrapped(bytes(digest), _PURPOSE[kind]), kind, *rest) for digest, kind, *rest in listed],
    )
    answered = tables.read_table(session, "request")
    tables.replace_table(
        session, "request", [(ring.wrapped(bytes(digest), REQUEST), *rest) for digest, *rest in answered]
    )


def _reseal_drafts(session: Session, old: Keyring, new: Keyring) -> None:
    """Seal the drafts of certificates with the new key: whoever has the old one could forge them."""
    entries = {sequence: text for sequence, text, _ in tables.read_ledger(session)}
    statements = []
    for sequence, body, signature in list(tables.stream_certificates(session)):
        stored = StoredCertificate.read(sequence, body, signature, entries.get(sequence, ""), old)
        if stored.issued is None:
            statements.append(tables.put_certificate(sequence, body, stored.draft.seal(new)))
    session.execute_together(statements)
