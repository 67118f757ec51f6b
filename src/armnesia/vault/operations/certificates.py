"""Handing out certificates: issued with the present state of erasure, and opened for one name."""

from armnesia.core.errors import VaultError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.commitments import Opening
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.operations.similar_names import similar_forgotten
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


def certificate_of_target(connection: VaultConnection, target: ErasureTarget) -> Certificate:
    """The certificate of a request, or of one name in a request, opened for that name alone."""
    with connection.reading() as transaction:
        target = target.normalised(transaction.state.configuration.user_type)
        digest = transaction.ring.request_digest(target.request)
        found = tables.read_request(transaction.session, digest)
        if found is None:
            raise VaultError(
                "there is no certificate for exactly this request: it was not made, or with other names"
                + similar_forgotten(transaction, target, target.names)
            )
        sequence, text = found
        opening = Opening.read(text) if text else None
        leaves = b""
        if opening is not None and opening.place is not None:
            leaves = tables.read_tree(transaction.session, sequence)
    certificate = certificate_of_entry(connection, int(sequence))
    return certificate if opening is None else _open(certificate, connection, target, opening, leaves)


def certificate_of_entry(connection: VaultConnection, sequence: int) -> Certificate:
    """The certificate of a ledger entry, which names nobody; one that has to be signed is stored."""
    with connection.reading() as transaction:
        stored, state, ring = _read(transaction, sequence), transaction.state, transaction.ring
    erased = state.erased_through >= sequence or connection.erase(state.head.sequence)
    certificate = stored.issue(ring, erasure="complete" if erased else "pending")
    if certificate is not stored.issued:
        with connection.writing() as transaction:
            to_certificates = tables.put_certificate(sequence, certificate.text, certificate.signature)
            transaction.store(transaction.state, to_certificates)
    return certificate


def _open(
    certificate: Certificate,
    connection: VaultConnection,
    target: ErasureTarget,
    opening: Opening,
    leaves: bytes,
) -> Certificate:
    """The certificate with the opening of its commitment; the salt is made from the keys and the nonce.

    The certificate of a request with several names stays closed: it is opened for one name at a time.
    """
    if len(target.names) > 1:
        return certificate
    entry = certificate.body["entry"]
    salt = connection.keyring.salt(entry["sequence"], entry["salt_key"], target.names[0], opening.nonce)
    path = opening.path if opening.place is None else opening.path_in(leaves)
    return certificate.with_opening(salt, opening.request(target.request), path)


def _read(transaction: Transaction, sequence: int) -> StoredCertificate:
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
