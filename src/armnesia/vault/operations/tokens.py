"""Tokens of the service: making, listing, revoking, and noting that they were used."""

import base64
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, timedelta

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import any_of, shown
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys.canonical_json import canonical, read_object, utc_now
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import TokenRow
from armnesia.vault.tokens import IssuedToken, Role, Token, Tokens, is_numbered_name, token_digest

_BYTES = 32
_LONGEST_LIFE = 3650
_LONGEST_NAME = 100
_PREFIX = "armnesia_"
"""By which programs that search for lost secrets recognise a token."""


def create_token(connection: VaultConnection, role: str, *, name: str = "", days: int = 90) -> IssuedToken:
    """Make a token for the service; only its digest is stored: this result is the one place where it is."""
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
        number = max((token.number for token, _ in read_tokens(transaction)), default=0) + 1
        expires = (created + timedelta(days=days)).isoformat()
        token = Token(number, checked, name, created.isoformat(), expires)
        put_token(transaction, token, token_digest(text))
    return IssuedToken(token, text)


def _checked_role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInputError(f"role must be {any_of(list(Role))}; got {shown(role)}") from None


def list_tokens(connection: VaultConnection) -> Tokens:
    """All tokens, with their digests."""
    with connection.reading() as transaction:
        return Tokens(tuple(read_tokens(transaction)))


def revoke_token(connection: VaultConnection, number: int) -> Token:
    """Refuse a token from now on; its row stays, so that its number is not given again."""
    with connection.writing() as transaction:
        found = {token.number: (token, digest) for token, digest in read_tokens(transaction)}
        if number not in found:
            raise InvalidInputError(f"there is no token {number!r}; see armnesia token list")
        before, digest = found[number]
        if before.revoked is not None:
            return before
        token = replace(before, revoked=utc_now()[:10])
        transaction.append("token_revoked", token=number)
        put_token(transaction, token, digest, before)
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


def read_tokens(transaction: Transaction) -> list[tuple[Token, bytes]]:
    """The tokens with their digests; refuse them if something other than armnesia has changed one."""
    rows = tables.read(transaction.session, TokenRow)
    if not transaction.state.check_sums.has(transaction.keyring, "token", rows):
        raise VaultError(
            "the tokens of the service were changed by something other than armnesia: run armnesia restore"
            " --as-it-is, and make new ones"
        )
    return [(_token(row), row.digest) for row in rows]


def put_token(transaction: Transaction, token: Token, digest: bytes, before: Token | None = None) -> None:
    """Store a token, or put it in the place of what it was before."""
    rows = [_row(each, digest) for each in (before, token) if each is not None]
    check_sums = transaction.state.check_sums.update(transaction.keyring, "token", rows)
    transaction.add(tables.put(rows[-1]))
    transaction.store(transaction.state, check_sums=check_sums)


def revoke_tokens(session: Session, numbers: Collection[int]) -> None:
    """Refuse these tokens, which were revoked after the backup of a vault was made."""
    for row in tables.read(session, TokenRow):
        token = _token(row)
        if token.number in numbers and token.revoked is None:
            revoked = replace(token, revoked=utc_now()[:10])
            session.execute_together([tables.put(_row(revoked, row.digest))])


def _row(token: Token, digest: bytes) -> TokenRow:
    days = {"created": token.created, "expires": token.expires, "revoked": token.revoked}
    facts = canonical({"role": str(token.role), "name": token.name, **days})
    return TokenRow(token.number, digest, facts, token.last_used, token.uses)


def _token(row: TokenRow) -> Token:
    facts = read_object(row.facts, "the facts of a token")
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
