"""Certificates as they are handed out: with the present state of erasure, and opened for one name."""

from contextlib import suppress
from typing import Any, NamedTuple

from armnesia.core.errors import InvalidInputError, UnfinishedError, UnknownEntryError, VaultError
from armnesia.core.messages import listed, without_unchanged
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, Erasure
from armnesia.vault.ledger.certificate_check import Issue
from armnesia.vault.ledger.commitments import HashTree, Opening
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.diagnosis import changed_values
from armnesia.vault.state.signing_keys import read_predecessors, read_public_keys
from armnesia.vault.state.similar_names import similar_forgotten
from armnesia.vault.state.source_erasures import read_erasures
from armnesia.vault.state.suppression import RequestHistory, SuppressionRows
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.state.whole_search import search_vault
from armnesia.vault.storage import tables

_AT_ONCE = 500
"""Certificates that are in memory at the same time."""


_ONE_OF_SEVERAL = "the request had several names: give all of them, and all are searched for"
_FOUND = (
    "the request is done, but digests of these people or records may still be in the vault, outside of its"
    " indexes: the database is damaged, or was changed by something other than armnesia; {}: run armnesia"
    " verify and repair what it finds (armnesia rebuild, or restore a backup; armnesia compact if it finds"
    " nothing), then run the same command again"
)


class _Answer(NamedTuple):
    """What answered a request, or a request in which a name is."""

    target: ErasureTarget
    sequence: int
    opening: Opening | None
    tree: HashTree | None
    head: Head
    keyring: Keyring


def certificate_of_target(connection: VaultConnection, target: ErasureTarget) -> Certificate:
    """The certificate of a request, or of one name in a request, opened for that name alone."""
    answer = _read_answer(connection, target)
    return _opened(connection, answer, certificate_of_entry(connection, answer.sequence))


def searched_certificate(
    connection: VaultConnection, target: ErasureTarget
) -> tuple[Certificate, str | None]:
    """As `certificate_of_target`, after a search of the whole vault; and why there was none.

    A certificate that says already what was searched is returned as it is.
    """
    answer = _read_answer(connection, target)
    sequence, head, reason = answer.sequence, None, None
    if not _is_searched(connection, sequence):
        if answer.opening is None or answer.opening.is_of_whole_request:
            erased = connection.erase(answer.head)
            reason = search_or_withhold(
                connection, answer.target, answer.keyring, answer.head, sequence, erased=erased
            )
        else:
            reason = _ONE_OF_SEVERAL
        head = answer.head if reason is None else None
    return _opened(connection, answer, certificate_of_entry(connection, sequence, searched_at=head)), reason


def search_or_withhold(
    connection: VaultConnection,
    target: ErasureTarget,
    keyring: Keyring,
    head: Head,
    sequence: int,
    *,
    erased: bool,
) -> str | None:
    """Search the whole vault for a request that is done; return why it was not searched, None if it was.

    If something is found, the certificate of this ledger entry is not signed before a search that finds
    nothing. The keys and the head are those of when the request was read.
    """
    found, reason = search_vault(connection, target, keyring, head, erased=erased)
    if found:
        try:
            _withhold(connection, sequence)
        except VaultError as error:
            withheld = f"their certificate could not be withheld ({without_unchanged(str(error))})"
        else:
            withheld = "their certificate is withheld"
        raise UnfinishedError(_FOUND.format(withheld))
    return reason


def _withhold(connection: VaultConnection, sequence: int) -> None:
    with connection.writing() as transaction:
        stored = read_stored(transaction, sequence)
        draft = stored.withheld(connection.erasure_covers(stored.kind))
        transaction.add(tables.put_certificate(sequence, draft.text, transaction.keyring.seal(draft.text)))
        transaction.store(transaction.state)


def _is_searched(connection: VaultConnection, sequence: int) -> bool:
    with connection.reading() as transaction:
        valid = read_stored(transaction, sequence).valid(read_public_keys(connection, transaction))
    return valid is not None and valid.searched is not None


def _read_answer(connection: VaultConnection, target: ErasureTarget) -> _Answer:
    with connection.reading() as transaction:
        target = target.normalised(transaction.state.configuration.user_type)
        answer = answer_to(transaction, target)
        if answer is None:
            raise VaultError(_no_certificate(transaction, target))
        if RequestHistory.read(transaction, target).answered_before:  # and nobody in it was readmitted
            refuse_returned_records(connection, transaction, target)
        sequence, opening = answer
        tree = read_tree(transaction, sequence, opening)
        return _Answer(target, sequence, opening, tree, transaction.state.head, transaction.keyring)


def _opened(connection: VaultConnection, answer: _Answer, certificate: Certificate) -> Certificate:
    if answer.opening is None:
        return certificate
    return open_certificate(certificate, connection, answer.target, answer.opening, answer.tree)


def refuse_returned_records(
    connection: VaultConnection, transaction: Transaction, target: ErasureTarget
) -> None:
    """Refuse to certify again what was done while rows of the request are in the vault again."""
    if connection.records.names_held(transaction, target, None):
        raise VaultError(
            "rows of a person or record forgotten by this request are in the vault again, put there by"
            " something other than armnesia: run armnesia verify, and armnesia rebuild to remove them"
        )


def _no_certificate(transaction: Transaction, target: ErasureTarget) -> str:
    """Say what to ask for instead: names that were forgotten in other requests, or similar ones."""
    others = target.one_by_one() if len(target.names) > 1 else []
    answered = [one.names[0] for one in others if answer_to(transaction, one) is not None]
    if answered:
        together = "they were" if len(answered) == len(others) else f"{listed(answered)} were"
        return (
            f"there is no certificate of {listed(target.names)} together: {together} forgotten in separate"
            " requests, or together with others; show the certificate of each alone, or of all with"
            " --out-folder"
        )
    digests = [digest for digest, _ in target.suppression_digests(transaction.keyring)]
    if set(digests) <= SuppressionRows.read(transaction, digests).inherited:
        before = read_predecessors(transaction)[-1]
        return (
            f"there is no certificate of {listed(target.names)} in this vault: it was forgotten in the vault"
            f" {before.vault}, which this one succeeds, or before; ask that vault, or forget it here as well"
        )
    similar = similar_forgotten(transaction, target, target.names)
    return f"there is no certificate for exactly this request: it was not made, or with other names{similar}"


def answer_to(transaction: Transaction, target: ErasureTarget) -> tuple[int, Opening | None] | None:
    """The ledger entry that answered a request, and the opening of its commitment; None if none did."""
    found = tables.read_request(transaction.session, transaction.keyring.request_digest(target.to_dict()))
    if found is None:
        return None
    sequence, text = found
    return int(sequence), Opening.read(text) if text else None


def read_tree(transaction: Transaction, sequence: int, opening: Opening | None) -> HashTree | None:
    """The hash tree of a request with several names, where the opening is a place in it."""
    if opening is None or opening.place is None:
        return None
    leaves = tables.read_tree(transaction.session, sequence)
    if leaves is None:
        raise changed_values()
    return HashTree.of_bytes(leaves)


class _Issued(NamedTuple):
    """A certificate as it would be handed out now."""

    certificate: Certificate
    is_stored: bool
    """Whether it is the one that was handed out before."""


def certificate_of_entry(
    connection: VaultConnection, sequence: int, *, searched_at: Head | None = None
) -> Certificate:
    """The certificate of a ledger entry, which names nobody; one that has to be signed is stored.

    `searched_at`: the whole vault was searched for everybody in the request after this head of the ledger was
    read, and nothing was found.
    """
    issued = _issue(connection, sequence, searched_at=searched_at)
    if not issued.is_stored:
        store_certificate(connection, issued.certificate)
    return issued.certificate


def store_certificate(connection: VaultConnection, certificate: Certificate) -> None:
    """Store a signed certificate in the place of its draft, or of an earlier one.

    Refused is one that is no longer true: rows may have come back, or its key is compromised.
    """
    sequence = certificate.body["sequence"]
    with connection.writing() as transaction:
        if certificate.erasure == "complete":
            check_still_erased(transaction, sequence)
        if certificate.searched is not None:
            check_not_restored(transaction, Issue.of(certificate.body).latest)
        if certificate.searched is None and read_stored(transaction, sequence).is_withheld:
            raise VaultError("the certificate was withheld meanwhile; run the same command again")
        if _is_compromised(connection, transaction, certificate):
            raise VaultError("the signing key was compromised meanwhile; run the same command again")
        transaction.add(tables.put_certificate(sequence, certificate.text, certificate.signature))
        transaction.store(transaction.state)


def _is_compromised(connection: VaultConnection, transaction: Transaction, certificate: Certificate) -> bool:
    if certificate.body["signing_key"]["public"] == transaction.keyring.public_key():
        return False
    signed = StoredCertificate(certificate.draft, certificate)
    return signed.valid(read_public_keys(connection, transaction)) is None


def deletion_of_entry(connection: VaultConnection, sequence: int) -> dict[str, Any]:
    """The main facts of a deletion; no certificate is handed out, so that none has to be stored."""
    return _issue(connection, sequence).certificate.summary()


def _issue(connection: VaultConnection, sequence: int, *, searched_at: Head | None = None) -> _Issued:
    """Sign the certificate of an entry with the present state of erasure, unless it is stored like that."""
    with connection.reading() as transaction:
        stored, state, keyring = read_stored(transaction, sequence), transaction.state, transaction.keyring
        keys = read_public_keys(connection, transaction)
        erasures = read_erasures(transaction.session, state.configuration)
        if searched_at is not None:
            check_not_restored(transaction, searched_at.sequence)
    erased = state.erased_through >= sequence or connection.erase(state.head)
    erasure: Erasure = "complete" if erased else "pending"
    covers = connection.erasure_covers(stored.kind)
    searched = None if searched_at is None else connection.database.search_covers
    certificate = stored.issue(
        keyring, keys, erasure=erasure, covers=covers, erasures=erasures, searched=searched
    )
    return _Issued(certificate, certificate is stored.issued)


def check_still_erased(transaction: Transaction, sequence: int) -> None:
    """Refuse to store that erasure is complete where a restore or a rebuild has come in between."""
    if transaction.state.erased_through < sequence:
        raise _restored_meanwhile()


def check_not_restored(transaction: Transaction, sequence: int) -> None:
    """Refuse to say that the vault was searched where rows may have come back after an entry."""
    if tables.has_restored_since(transaction.session, sequence):
        raise _restored_meanwhile()


def _restored_meanwhile() -> VaultError:
    return VaultError("the vault was restored or rebuilt meanwhile; run the same command again")


def redraft_certificates(connection: VaultConnection, transaction: Transaction) -> None:
    """Turn every signed certificate into a draft again: each is issued anew when it is handed out.

    For when deleted bytes may be in the files again. One that was changed by something else stays as it is,
    and is refused when it is asked for.
    """
    last = 0
    while rows := tables.read_certificates_after(transaction.session, last, _AT_ONCE):
        statements = []
        for sequence, body, signature, entry in rows:
            with suppress(VaultError):
                stored = StoredCertificate.read(sequence, body, signature, entry or "", transaction.keyring)
                covers = connection.erasure_covers(stored.kind)
                draft = stored.withheld(covers) if stored.is_withheld else stored.reissue_draft(covers)
                seal = transaction.keyring.seal(draft.text)
                statements.append(tables.put_certificate(sequence, draft.text, seal))
        transaction.session.execute_together(statements)
        last = rows[-1][0]


def open_certificate(
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
    salt = connection.all_keys.salt(entry["sequence"], entry["salt_key"], target.names[0], opening.nonce)
    try:
        return certificate.with_opening(salt, opening.request(target.to_dict()), opening.path_in(tree))
    except InvalidInputError:  # the nonce, the path or the tree is not the one that was stored
        raise changed_values() from None


def read_stored(transaction: Transaction, sequence: int) -> StoredCertificate:
    """The certificate of an entry as it is stored; refuse one that something else has changed."""
    found = tables.read_certificate(transaction.session, sequence)
    if found is None:
        raise UnknownEntryError(f"entry {sequence} of the ledger has no certificate; see armnesia ledger")
    body, signature, entry = found
    try:
        return StoredCertificate.read(sequence, body, signature, entry, transaction.keyring)
    except VaultError:
        raise VaultError(
            f"certificate {sequence} was changed by something other than armnesia: run armnesia verify"
        ) from None
