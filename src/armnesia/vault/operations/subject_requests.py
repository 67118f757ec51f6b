"""Requests of controllers to erase people, by OpenDSR: kept until they are answered, with names encrypted.

The names are encrypted with a key of the vault, and their ciphertext is deleted with the answer.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.vault.db import statements
from armnesia.vault.db.schema import SubjectRequestRow
from armnesia.vault.keys.canonical_json import canonical, read_object
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.result import plain
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.sealed_state import changed_values
from armnesia.vault.state.transaction import Transaction


@dataclass(frozen=True)
class Callback:
    """A status that a controller is still to be told, at one of the addresses of a request."""

    url: str
    status: str
    attempts: int = 0
    after: str = ""
    """The time of the next attempt."""


@dataclass(frozen=True)
class SubjectRequest:
    """A request of a controller to erase people, by OpenDSR; times are as `utc_now` writes them."""

    id: str
    """The UUID that the controller gave it."""
    status: str
    """"pending", "in_progress", "completed" or "cancelled"."""
    controller: str
    received: str
    submitted: str
    due: str
    """When it has to be completed."""
    begin: str
    """When it will be begun; until then it can be cancelled."""
    regulation: str
    body_digest: str = ""
    """A keyed digest of the body of the request, by which the same one is recognised."""
    urls: tuple[str, ...] = ()
    """Where the controller wants to be told of changes."""
    callbacks: tuple[Callback, ...] = ()
    obstacle: str = ""
    """Why it could not be answered, as a kind of problem; empty if nothing is in the way."""
    users: tuple[str, ...] | None = field(default=None, repr=False)
    """The names of the people; None once they are forgotten, or the request is cancelled."""
    sequence: int | None = None
    """The ledger entry that answered it."""

    def row(self, keyring: Keyring) -> SubjectRequestRow:
        """The request as the table holds it: nothing in the clear names a person."""
        facts = self._but("id", "status", "users", "sequence")
        names = None if self.users is None else keyring.encrypted(list(self.users), self.id)
        return SubjectRequestRow(self.id, self.status, canonical(facts), names, self.sequence)

    @classmethod
    def of_row(cls, row: SubjectRequestRow, keyring: Keyring) -> "SubjectRequest":
        """Read a row; refuse one that something else has changed."""
        try:
            facts = read_object(row.facts, "the facts of a request")
            callbacks = tuple(Callback(**each) for each in facts.pop("callbacks"))
            urls = tuple(facts.pop("urls"))
            users = None if row.identity is None else tuple(keyring.decrypted(row.identity, row.id))
            apart: dict[str, Any] = {"users": users, "sequence": row.sequence}
            return cls(row.id, row.status, **facts, urls=urls, callbacks=callbacks, **apart)
        except (InvalidInputError, ValueError, TypeError, LookupError, AttributeError):
            raise changed_values() from None

    def to_dict(self) -> dict[str, Any]:
        """What may be shown to an operator: all but the names and the digest of the body."""
        return {**self._but("users", "body_digest", "callbacks"), "untold": len(self.callbacks)}

    def _but(self, *names: str) -> dict[str, Any]:
        return {name: plain(value) for name, value in vars(self).items() if name not in names}


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
        rows = (
            statements.open_subject_requests(session)
            if only_open
            else statements.read(session, SubjectRequestRow)
        )
        found = [SubjectRequest.of_row(row, transaction.keyring) for row in rows]
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
    found = statements.read(transaction.session, SubjectRequestRow, id=id_)
    return SubjectRequest.of_row(found[0], transaction.keyring) if found else None


def _put(transaction: Transaction, request: SubjectRequest) -> None:
    """Store a request, a new one or in the place of that with the same id."""
    before = statements.read(transaction.session, SubjectRequestRow, id=request.id)
    transaction.put([request.row(transaction.keyring)], before)
