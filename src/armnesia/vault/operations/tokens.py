"""Tokens of the service: making, listing, revoking, and noting that they were used."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import any_of, shown
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.tokens import read_tokens, token_row
from armnesia.vault.storage import tables
from armnesia.vault.storage.schema import WITH_SERVICE
from armnesia.vault.tokens import IssuedToken, Role, Token, Tokens, is_numbered_name, token_digest

_BYTES = 32
_LONGEST_LIFE = 3650
_LONGEST_NAME = 100
_PREFIX = "armnesia_"
"""By which programs that search for lost secrets recognise a token."""


def create_token(connection: VaultConnection, role: str, name: str, days: int) -> IssuedToken:
    """Make a token; only its digest is stored, so that this result is the one place where it is."""
    checked = _checked_role(role)
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= _LONGEST_LIFE:
        raise InvalidInputError(f"days must be a whole number from 1 to {_LONGEST_LIFE}; got {shown(days)}")
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(
            f"name must be at most {_LONGEST_NAME} printable characters; got {shown(name)}"
        )
    if is_numbered_name(name):
        raise InvalidInputError(
            f"name must not be as token-7, which stands for a token without a name; got {shown(name)}"
        )
    text = _PREFIX + base64.urlsafe_b64encode(secret_bytes(_BYTES)).decode().rstrip("=")
    created = date.fromisoformat(utc_now()[:10])
    with connection.writing() as transaction:
        number = max((row.number for row in tables.read_tokens(transaction.session)), default=0) + 1
        expires = (created + timedelta(days=days)).isoformat()
        token = Token(number, checked, name, created.isoformat(), expires)
        row = token_row(token, token_digest(text), transaction.keyring)
        transaction.session.execute_together([tables.put_token(row)])
    return IssuedToken(token, text)


def _checked_role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInputError(f"role must be {any_of(list(Role))}; got {shown(role)}") from None


def list_tokens(connection: VaultConnection) -> Tokens:
    """All tokens, with their digests; in a vault of an older version there are none."""
    with connection.reading() as transaction:
        if transaction.state.version < WITH_SERVICE:
            return Tokens(())
        return Tokens(tuple(read_tokens(transaction.session, transaction.keyring)))


def revoke_token(connection: VaultConnection, number: int) -> Token:
    """Refuse a token from now on; its row stays, so that its number is not given again."""
    with connection.writing() as transaction:
        believed = read_tokens(transaction.session, transaction.keyring)
        found = {token.number: (token, digest) for token, digest in believed}
        if number not in found:
            raise InvalidInputError(f"there is no token {number!r}; see armnesia token list")
        token, digest = found[number]
        if token.revoked is None:
            token = replace(token, revoked=utc_now()[:10])
            row = token_row(token, digest, transaction.keyring)
            transaction.session.execute_together([tables.put_token(row)])
    return token


def note_token_uses(connection: VaultConnection, uses: Mapping[int, int]) -> None:
    """Add to the number of uses of each token, and set the day of its last use to today."""
    if not uses:
        return
    day = utc_now()[:10]
    with connection.writing() as transaction:
        transaction.session.execute_together(
            [tables.add_token_uses(number, day, times) for number, times in uses.items()]
        )
