"""Requests of controllers that the service was sent: adding, reading and changing them."""

from dataclasses import replace

from armnesia.core.errors import InvalidInputError
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.subject_requests import (
    digest_of_body,
    read_subject_request,
    read_subject_requests,
    subject_request_row,
)
from armnesia.vault.storage import tables
from armnesia.vault.storage.schema import WITH_SERVICE
from armnesia.vault.subject_requests import SubjectRequest


def add_subject_request(connection: VaultConnection, request: SubjectRequest, body: bytes) -> SubjectRequest:
    """Store a new request; one with the same id and body, which was stored before, is returned as it is now.

    Refused if there is another request with the id.
    """
    with connection.writing() as transaction:
        request = replace(request, body_digest=digest_of_body(body, transaction.keyring))
        known = read_subject_request(transaction.session, request.id, transaction.keyring)
        if known is not None:
            if (known.body_digest, known.controller) != (request.body_digest, request.controller):
                raise InvalidInputError("there is another request with the same id")
            return known
        row = subject_request_row(request, transaction.keyring)
        transaction.session.execute_together([tables.put_subject_request(row)])
    return request


def find_subject_request(connection: VaultConnection, id_: str) -> SubjectRequest | None:
    """The request with this id; None if there is none."""
    with connection.reading() as transaction:
        if transaction.state.version < WITH_SERVICE:
            return None
        return read_subject_request(transaction.session, id_, transaction.keyring)


def list_subject_requests(connection: VaultConnection, *, only_open: bool) -> tuple[SubjectRequest, ...]:
    """All requests, or those with something left to do, the oldest first."""
    with connection.reading() as transaction:
        if transaction.state.version < WITH_SERVICE:
            return ()
        found = read_subject_requests(transaction.session, transaction.keyring, only_open=only_open)
        return tuple(found)


def change_subject_request(
    connection: VaultConnection, before: SubjectRequest, after: SubjectRequest
) -> SubjectRequest:
    """Put a request in the place of the one that was read; refuse if it has changed meanwhile.

    The names that it no longer has leave the database as deleted rows do, and no ledger entry says so: that
    their ciphertext may still be in the files is noted in the request.
    """
    if before.users is not None and after.users is None:
        after = replace(after, names_in_files=True)
    with connection.writing() as transaction:
        found = read_subject_request(transaction.session, before.id, transaction.keyring)
        if found != before or after.id != before.id:
            raise InvalidInputError("the request has changed meanwhile; read it again")
        row = subject_request_row(after, transaction.keyring)
        transaction.session.execute_together([tables.put_subject_request(row)])
    return after


def erase_names(connection: VaultConnection, request: SubjectRequest) -> SubjectRequest:
    """Make the ciphertext of deleted names leave the files, if the database can at once; note if it did."""
    if not request.names_in_files or not connection.database.erase():
        return request
    return change_subject_request(connection, request, replace(request, names_in_files=False))
