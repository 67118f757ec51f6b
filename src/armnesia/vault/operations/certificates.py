"""Handing out certificates: issued with the present state of erasure, and opened for one name."""

from collections.abc import Iterator

from armnesia.core.errors import VaultError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import Certificate, Erasure
from armnesia.vault.ledger.commitments import HashTree, Opening
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.operations.public_keys import read_public_keys
from armnesia.vault.operations.similar_names import similar_forgotten
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


def certificate_of_target(connection: VaultConnection, target: ErasureTarget) -> Certificate:
    """The certificate of a request, or of one name in a request, opened for that name alone."""
    with connection.reading() as transaction:
        target = target.normalised(transaction.state.configuration.user_type)
        answer = _answer_to(transaction, target)
        if answer is None:
            raise VaultError(
                "there is no certificate for exactly this request: it was not made, or with other names"
                + similar_forgotten(transaction, target, target.names)
            )
        sequence, opening = answer
        tree = _read_tree(transaction, sequence, opening)
    certificate = certificate_of_entry(connection, sequence)
    return certificate if opening is None else _open(certificate, connection, target, opening, tree)


def certificates_of_each(
    connection: VaultConnection, target: ErasureTarget
) -> Iterator[tuple[str, Certificate | None]]:
    """Each name of a request with its own certificate, opened for it alone; None if there is none."""
    with connection.reading() as transaction:
        normalised = target.normalised(transaction.state.configuration.user_type)
        answers = [(one, _answer_to(transaction, one)) for one in normalised.each()]
    entry: int | None = None
    for one, answer in answers:
        sequence, opening = answer or (0, None)
        if opening is None:
            yield one.names[0], None
            continue
        if sequence != entry:  # most names were in the same request
            entry, certificate = sequence, certificate_of_entry(connection, sequence)
            with connection.reading() as transaction:
                tree = _read_tree(transaction, sequence, opening)
        yield one.names[0], _open(certificate, connection, one, opening, tree)


def _answer_to(transaction: Transaction, target: ErasureTarget) -> tuple[int, Opening | None] | None:
    """The ledger entry that answered a request, and the opening of its commitment; None if none did."""
    found = tables.read_request(transaction.session, transaction.ring.request_digest(target.request))
    if found is None:
        return None
    sequence, text = found
    return int(sequence), Opening.read(text) if text else None


def _read_tree(transaction: Transaction, sequence: int, opening: Opening | None) -> HashTree | None:
    """The hash tree of a request with several names, where the opening is a place in it."""
    if opening is None or opening.place is None:
        return None
    return HashTree.of_bytes(tables.read_tree(transaction.session, sequence))


def certificate_of_entry(connection: VaultConnection, sequence: int) -> Certificate:
    """The certificate of a ledger entry, which names nobody; one that has to be signed is stored."""
    with connection.reading() as transaction:
        stored, state, ring = read_stored(transaction, sequence), transaction.state, transaction.ring
        keys = read_public_keys(connection, transaction)
    erased = state.erased_through >= sequence or connection.erase(state.head.sequence)
    erasure: Erasure = "complete" if erased else "pending"
    certificate = stored.issue(ring, keys, erasure=erasure, covers=covered_files(connection, stored))
    if certificate is not stored.issued:
        with connection.writing() as transaction:
            to_certificates = tables.put_certificate(sequence, certificate.text, certificate.signature)
            transaction.store(transaction.state, to_certificates)
    return certificate


def covered_files(connection: VaultConnection, stored: StoredCertificate) -> str:
    """The files that erasure is about, in words, for the entry of a stored certificate."""
    excludes = connection.records.erasure_excludes if stored.draft.body["entry"]["kind"] == "forget" else ""
    return connection.database.erasure_covers + excludes


def _open(
    certificate: Certificate,
    connection: VaultConnection,
    target: ErasureTarget,
    opening: Opening,
    tree: HashTree | None,
) -> Certificate:
    """The certificate with the opening of its commitment; the salt is made from the keys and the nonce.

    The certificate of a request with several names stays closed: it is opened for one name at a time.
    """
    if len(target.names) > 1:
        return certificate
    entry = certificate.body["entry"]
    salt = connection.keyring.salt(entry["sequence"], entry["salt_key"], target.names[0], opening.nonce)
    return certificate.with_opening(salt, opening.request(target.request), opening.path_in(tree))


def read_stored(transaction: Transaction, sequence: int) -> StoredCertificate:
    """The certificate of an entry as it is stored; refuse one that something else has changed."""
    found = tables.read_certificate(transaction.session, sequence)
    if found is None:
        raise VaultError(f"entry {sequence} of the ledger has no certificate; see armnesia ledger")
    body, signature, entry = found
    try:
        return StoredCertificate.read(sequence, body, signature, entry, transaction.ring)
    except VaultError:
        raise VaultError(
            f"certificate {sequence} was changed by something other than armnesia: run armnesia verify"
        ) from None
