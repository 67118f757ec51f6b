"""Tokens of the service: stored as digests, and believed only under a seal of the vault's keys."""

from collections.abc import Iterator
from hmac import compare_digest

from armnesia.vault.keys.canonical_json import read_json, text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import TokenRow
from armnesia.vault.tokens import Role, Token


def token_row(token: Token, digest: bytes, keyring: Keyring) -> TokenRow:
    """A token as it is stored."""
    days = {"created": token.created, "expires": token.expires, "revoked": token.revoked}
    facts = text_of_plain({"role": str(token.role), "name": token.name, **days})
    seal = _seal(keyring, token.number, digest, facts)
    return TokenRow(token.number, digest, facts, seal, token.last_used, token.uses)


def read_tokens(session: Session, keyring: Keyring) -> list[tuple[Token, bytes]]:
    """The tokens with their digests, without rows that something other than armnesia has put there."""
    return [
        (_token(row), row.digest)
        for row in tables.read_tokens(session)
        if compare_digest(row.seal, _seal(keyring, row.number, row.digest, row.facts))
    ]


def token_problems(session: Session, keyring: Keyring) -> Iterator[str]:
    """The rows that are not believed, a sentence each."""
    for row in tables.read_tokens(session):
        if not compare_digest(row.seal, _seal(keyring, row.number, row.digest, row.facts)):
            yield f"tokens: token {row.number} was added or changed by something other than armnesia"


def reseal_tokens(session: Session, old: Keyring, new: Keyring) -> None:
    """Seal the tokens with a new key; those that are not believed stay as they are."""
    believed = read_tokens(session, old)
    session.execute_together([tables.put_token(token_row(token, digest, new)) for token, digest in believed])


def _token(row: TokenRow) -> Token:
    facts = read_json(row.facts, "the facts of a token")
    return Token(
        row.number,
        Role(facts["role"]),
        facts["name"],
        facts["created"],
        facts["expires"],
        facts["revoked"],
        row.last_used,
        row.uses,
    )


def _seal(keyring: Keyring, number: int, digest: bytes, facts: str) -> bytes:
    hasher = keyring.hasher(b"token")
    hasher.update(f"{keyring.vault}:{number}:{digest.hex()}:{facts}".encode())
    return hasher.digest()
