"""Requests of controllers that the service was sent, kept until they are answered, with names encrypted.

The names are encrypted (AES-256-GCM) with a key that is derived from a digest key of the vault, and their
ciphertext is deleted with the answer. The row is under a seal, like that of a token.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hmac import compare_digest
from typing import Any

from armnesia.core.errors import MissingExtraError, VaultError
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys.canonical_json import read_json, text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import SubjectRequestRow
from armnesia.vault.subject_requests import SubjectRequest

_VERSION_BYTES, _NONCE_BYTES = 2, 12


def subject_request_row(request: SubjectRequest, keyring: Keyring) -> SubjectRequestRow:
    """A request as it is stored."""
    facts = text_of_plain(request.facts())
    names = None if request.users is None else _encrypted(request.id, request.users, keyring)
    row = SubjectRequestRow(request.id, request.status, facts, names, request.sequence, b"")
    return row._replace(seal=_seal(row, keyring))


def read_subject_request(session: Session, id_: str, keyring: Keyring) -> SubjectRequest | None:
    """The request with this id; refuse one that something else has changed."""
    row = tables.read_subject_request(session, id_)
    return None if row is None else _request(row, keyring)


def read_subject_requests(session: Session, keyring: Keyring, *, only_open: bool) -> list[SubjectRequest]:
    """All requests, or those with something left to do, the oldest first."""
    found = [_request(row, keyring) for row in tables.read_subject_requests(session, only_open=only_open)]
    return sorted(found, key=lambda request: (request.received, request.id))


def digest_of_body(body: bytes, keyring: Keyring) -> str:
    """A keyed digest of the body of a request, with the first key, so that it never changes."""
    return keyring.record_identity("subject request", body.hex()).hex()


def subject_request_problems(session: Session, keyring: Keyring) -> Iterator[str]:
    """The rows that something other than armnesia has added or changed, a sentence each."""
    for row in tables.read_subject_requests(session):
        if not compare_digest(row.seal, _seal(row, keyring)):
            yield "subject requests: one was added or changed by something other than armnesia"


def requests_with_names_in_files(session: Session, keyring: Keyring) -> list[str]:
    """The ids of requests whose names were deleted, and whose ciphertext may still be in the files.

    Those that are not believed are left out.
    """
    rows = [row for row in tables.read_subject_requests(session) if row.identity is None]
    believed = [row for row in rows if compare_digest(row.seal, _seal(row, keyring))]
    return [row.id for row in believed if _request(row, keyring).names_in_files]


def note_names_erased(session: Session, keyring: Keyring, ids: Iterable[str]) -> None:
    """Note that the files have no ciphertext any more of names that these requests had before."""
    for id_ in ids:
        request = read_subject_request(session, id_, keyring)
        if request is not None and request.users is None:
            row = subject_request_row(replace(request, names_in_files=False), keyring)
            session.execute_together([tables.put_subject_request(row)])


def reseal_subject_requests(session: Session, old: Keyring, new: Keyring) -> None:
    """Seal and encrypt the requests with a new key; those that are not believed stay as they are."""
    session.execute_together(
        [
            tables.put_subject_request(subject_request_row(_request(row, old), new))
            for row in tables.read_subject_requests(session)
            if compare_digest(row.seal, _seal(row, old))
        ]
    )


def _request(row: SubjectRequestRow, keyring: Keyring) -> SubjectRequest:
    if not compare_digest(row.seal, _seal(row, keyring)):
        raise VaultError(
            "a request of a controller was changed by something other than armnesia: run armnesia verify"
        )
    facts = read_json(row.facts, "the facts of a request")
    users = None if row.identity is None else _decrypted(row.id, row.identity, keyring)
    return SubjectRequest.of_facts(row.id, row.status, facts, users, row.sequence)


def _encrypted(id_: str, users: tuple[str, ...], keyring: Keyring) -> bytes:
    version, nonce = keyring.digest_version, secret_bytes(_NONCE_BYTES)
    sealed: bytes = _cipher(keyring, version).encrypt(
        nonce, text_of_plain(list(users)).encode(), id_.encode()
    )
    return version.to_bytes(_VERSION_BYTES) + nonce + sealed


def _decrypted(id_: str, data: bytes, keyring: Keyring) -> tuple[str, ...]:
    version = int.from_bytes(data[:_VERSION_BYTES])
    nonce, sealed = data[_VERSION_BYTES:][:_NONCE_BYTES], data[_VERSION_BYTES + _NONCE_BYTES :]
    text: bytes = _cipher(keyring, version).decrypt(nonce, sealed, id_.encode())
    return tuple(read_json(text.decode(), "the names of a request"))


def _cipher(keyring: Keyring, version: int) -> Any:
    """The cipher with the key of a version: a digest of nothing but its purpose, of 32 bytes."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError.naming("The vault", "vault") from None
    return AESGCM(keyring.encryption_key(version))


def _seal(row: SubjectRequestRow, keyring: Keyring) -> bytes:
    hasher = keyring.hasher(b"subject request")
    identity = "" if row.identity is None else row.identity.hex()
    hasher.update(f"{keyring.vault}:{row.id}:{row.status}:{row.sequence}:{identity}:{row.facts}".encode())
    return hasher.digest()
