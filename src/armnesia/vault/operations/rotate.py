"""New keys: another signing key from now on, or another digest key that wraps every stored digest.

A new key is saved in the keys' file before the database uses it. A crash in between leaves a key that is not
in use yet; the versions in the database say which ones are.
"""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

from armnesia.core.errors import InvalidInputError, UnfinishedError, VaultError
from armnesia.core.messages import without_unchanged
from armnesia.core.progress import Progress
from armnesia.vault.keys.keyring import REQUEST, Keyring
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.results.upkeep import Rotated
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import with_new_tree
from armnesia.vault.state.decision_tree import build_tree
from armnesia.vault.state.subject_requests import reseal_subject_requests
from armnesia.vault.state.suppression import PURPOSES
from armnesia.vault.state.table_digests import compute_list_digests
from armnesia.vault.state.tokens import reseal_tokens
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session

_AT_ONCE = 20_000
"""Records whose digests are rotated in one transaction: about a tenth of a second."""
_CERTIFICATES_AT_ONCE = 500
"""Certificates that are in memory at the same time."""


def rotate_signing_key(connection: VaultConnection, *, compromised_since: int | None = None) -> Rotated:
    """Sign with a new key from now on; certificates signed before stay valid, and their keys are kept.

    With `compromised_since`, certificates that any earlier key signed at this ledger entry or later must be
    issued again. The ledger entry also says how far erasure was complete, so that a key that is stolen later
    cannot say more.
    """
    with connection.reading() as transaction:
        head = transaction.state.head
    connection.erase(head)  # best effort: what is not erased by now, the old key cannot certify any more
    with connection.writing() as transaction:
        before, old_keyring = transaction.state, transaction.keyring
        facts = _compromise(compromised_since, before.head.sequence)
        version = before.signing_key + 1
        keys = _save_new_key(
            connection, transaction, attrgetter("signing_version"), Keyring.with_new_signing_key
        )
        state = replace(before, signing_key=version)
        keyring = state.keyring_in_use(keys)
        entry = transaction.append(
            "rotate_signing",
            new_signer=keyring,
            version=version,
            public=keyring.public_key(),
            signed_by_previous=old_keyring.sign(keyring.public_key().encode()).hex(),
            erased_through=min(before.erased_through, before.head.sequence),
            **facts,
        )
        transaction.store(state, all_keys=keys)
    return Rotated("signing", version, entry.head)


def _compromise(since: int | None, length: int) -> dict[str, int]:
    if since is None:
        return {}
    if type(since) is not int or not 1 <= since <= length:
        raise InvalidInputError(
            f"compromised_since must be the number of a ledger entry, 1 to {length}; got {since!r}"
        )
    return {"compromised_since": since}


def rotate_digest_key(connection: VaultConnection, progress: Progress | None = None) -> Rotated:
    """Wrap every digest of a person or a request in a new key, then make the digests of records with it.

    The first transaction makes the key the one in use. The records follow in many short ones, between which
    the vault can be used and verified. A rotation that was interrupted is finished, without another key.
    """
    with connection.writing() as transaction:
        if transaction.state.rotated_below is None:
            _begin_rotation(connection, transaction)
        version = transaction.state.digest_key
    rotated = 0
    try:
        while some := _rotate_records(connection):
            rotated += some
            if progress is not None:
                progress(rotated)
    except VaultError as error:
        raise UnfinishedError(
            f"the new digest key is in use, but not for all records yet: {without_unchanged(str(error))}; run"
            " armnesia rotate-key digest again, which goes on"
        ) from None
    connection.database.erase()  # best effort: digests made with the old key alone leave the files
    return Rotated("digest", version, transaction.state.head)


def _begin_rotation(connection: VaultConnection, transaction: Transaction) -> None:
    """Use a new key for everything but the digests of records."""
    session, before, old_keyring = transaction.session, transaction.state, transaction.keyring
    tree, _ = build_tree(tables.stream_decisions(session), old_keyring)
    lists = compute_list_digests(session, old_keyring)
    if lists._replace(record=before.digests.record, decision=tree.root) != before.digests:
        # New digests under the new key would hide the change.
        raise VaultError(
            "rows of the vault were changed by something other than armnesia; run armnesia verify first"
        )
    version = before.digest_key + 1
    keys = _save_new_key(connection, transaction, attrgetter("digest_version"), Keyring.with_new_digest_key)
    state = replace(before, digest_key=version, rotated_below=b"")
    keyring = state.keyring_in_use(keys)
    transaction.append(
        "rotate_digest",
        version=version,
        digest_key_checks=[keyring.digest_check(number + 1) for number in range(version)],
    )
    _rewrap(session, keyring)
    _reseal_drafts(session, old_keyring, keyring)
    reseal_tokens(session, old_keyring, keyring)
    reseal_subject_requests(session, old_keyring, keyring)
    lists = compute_list_digests(session, keyring)
    state = replace(state, digests=lists._replace(record=before.digests.record))
    transaction.store(
        with_new_tree(session, state, keyring) if state.configuration.by else state, all_keys=keys
    )


def _rotate_records(connection: VaultConnection) -> int:
    """Make the table digests of some records with the new key; return how many, 0 at the end.

    A record that something else has changed stays noticeable: its digest with the old key, which is taken
    out, is not the one that was put in.
    """
    with connection.writing() as transaction:
        state = transaction.state
        if state.rotated_below is None:
            return 0
        layout, rows = connection.records.layout, list[Row]()
        if layout.holds_rows:
            rows = tables.read_records_from(transaction.session, layout, state.rotated_below, _AT_ONCE)
        rotated = replace(state, rotated_below=rows[-1][0] + b"\0" if len(rows) == _AT_ONCE else None)
        digests = state.digests.update(transaction.keyring, "record", rows)
        newest = replace(state, rotated_below=None).keyring_in_use(transaction.all_keys)
        transaction.store(replace(rotated, digests=digests.update(newest, "record", rows)))
    return len(rows)


def _save_new_key(
    connection: VaultConnection,
    transaction: Transaction,
    version_of: Callable[[Keyring], int],
    with_new_key: Callable[[Keyring], Keyring],
) -> Keyring:
    """Save a new key before it is used: digests made with a key that is lost are worthless."""
    keys = Keyring.read(connection.keys_path)  # a crash may have left a key that is not in use
    if not keys.extends(transaction.all_keys):
        raise VaultError(f"{connection.keys_path} does not have the keys of this vault any more: restore it")
    if version_of(keys) == version_of(transaction.keyring):
        keys = with_new_key(keys)
        keys.save(connection.keys_path, replace=True)
    return keys


def _rewrap(session: Session, keyring: Keyring) -> None:
    listed = tables.read_table(session, "suppressed")
    tables.replace_table(
        session,
        "suppressed",
        [(keyring.wrapped(bytes(digest), PURPOSES[kind]), kind, *rest) for digest, kind, *rest in listed],
    )
    answered = tables.read_table(session, "request")
    tables.replace_table(
        session, "request", [(keyring.wrapped(bytes(digest), REQUEST), *rest) for digest, *rest in answered]
    )


def _reseal_drafts(session: Session, old: Keyring, new: Keyring) -> None:
    """Seal the drafts of certificates with the new key: whoever has the old one could forge them."""
    last = 0
    while rows := tables.read_certificates_after(session, last, _CERTIFICATES_AT_ONCE):
        statements = []
        for sequence, body, signature, entry in rows:
            stored = StoredCertificate.read(sequence, body, signature, entry or "", old)
            if stored.issued is None:
                statements.append(tables.put_certificate(sequence, body, new.seal(stored.draft.text)))
        session.execute_together(statements)
        last = rows[-1][0]
