"""Requests of controllers that the service was sent, kept until they are answered, with names encrypted.

The names are encrypted with a key of the vault, and their ciphertext is deleted with the answer.
"""

from dataclasses import replace

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.canonical_json import canonical, read_object
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.schema import SubjectRequestRow
from armnesia.vault.subject_requests import SubjectRequest


def add_subject_request(connection: VaultConnection, request: SubjectRequest, body: bytes) -> SubjectRequest:
    """Store a new request; one with the same id and body, which was stored before, is returned as it is now.

    Refused if there is another request with the id.
    """
    with connection.writing() as transaction:
        digest = transaction.keyring.digest(b"subject request", body.hex())
        request = replace(request, body_digest=digest.hex())
        known = _read(transaction, request.id)
        if known is not None:
            if (known.body_digest, known.controller) != (request.body_digest, request.controller):
                raise InvalidInputError("there is another request with the same id")
            return known
        _put(transaction, request)
    return request


def find_subject_request(connection: VaultConnection, id_: str) -> SubjectRequest | None:
    """The request with this id; None if there is none."""
    with connection.reading() as transaction:
        return _read(transaction, id_)


def list_subject_requests(
    connection: VaultConnection, *, only_open: bool = False
) -> tuple[SubjectRequest, ...]:
    """All requests, or those with something left to do, the oldest first."""
    with connection.reading() as transaction:
        session = transaction.session
        rows = tables.open_subject_requests(session) if only_open else tables.read(session, SubjectRequestRow)
        found = [_request(row, transaction.keyring) for row in rows]
    return tuple(sorted(found, key=lambda request: (request.received, request.id)))


def change_subject_request(
    connection: VaultConnection, before: SubjectRequest, after: SubjectRequest
) -> SubjectRequest:
    """Put a request in the place of the one that was read; refuse if it has changed meanwhile."""
    with connection.writing() as transaction:
        found = _read(transaction, before.id)
        if found != before or after.id != before.id:
            raise InvalidInputError("the request has changed meanwhile; read it again")
        _put(transaction, after)
    return after


def _read(transaction: Transaction, id_: str) -> SubjectRequest | None:
    found = tables.read(transaction.session, SubjectRequestRow, id=id_)
    return _request(found[0], transaction.keyring) if found else None


def _request(row: SubjectRequestRow, keyring: Keyring) -> SubjectRequest:
    facts = read_object(row.facts, "the facts of a request")
    users = None if row.identity is None else tuple(keyring.decrypted(row.identity, row.id))
    return SubjectRequest.of_facts(row.id, row.status, facts, users, row.sequence)


def _put(transaction: Transaction, request: SubjectRequest) -> None:
    """Store a request, a new one or in the place of that with the same id."""
    keyring, state = transaction.keyring, transaction.state
    names = None if request.users is None else keyring.encrypted(list(request.users), request.id)
    facts = canonical(request.facts())
    row = SubjectRequestRow(request.id, request.status, facts, names, request.sequence)
    rows = [*tables.read(transaction.session, SubjectRequestRow, id=request.id), row]
    transaction.add(tables.put(row))
    transaction.store(state, check_sums=state.check_sums.update(keyring, "subject_request", rows))
