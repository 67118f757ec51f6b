"""Who may call the service: tokens, what each of their roles may do, and noting that they were used."""

import base64
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from enum import StrEnum
from hmac import compare_digest
from typing import Any, ClassVar

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import any_of, shown
from armnesia.core.randomness import secret_bytes
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import TokenRow
from armnesia.vault.keys.canonical_json import canonical, read_object, utc_now
from armnesia.vault.result import Result
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction

_BYTES = 32
_LONGEST_LIFE = 3650
_LONGEST_NAME = 100
_PREFIX = "armnesia_"
"""By which programs that search for lost secrets recognise a token."""


class Role(StrEnum):
    """What the holder of a token may do with the service; each role may do what those before it may.

    >>> Role.ADMIN.includes(Role.OPERATOR), Role.READER.includes(Role.OPERATOR)
    (True, False)
    """

    READER = "reader"
    """See served arms, the ledger and certificates, which name nobody."""
    OPERATOR = "operator"
    """Forget people, add records, and see statistics."""
    ADMIN = "admin"
    """Everything."""

    def includes(self, other: "Role") -> bool:
        """Whether this role may do what the other may."""
        roles = list(Role)
        return roles.index(self) >= roles.index(other)


@dataclass(frozen=True)
class Token(Result):
    """Somebody who may call the service; days are those of UTC, as 2026-11-15."""

    number: int
    role: Role
    name: str
    created: str
    expires: str
    """The last day on which it is accepted."""
    revoked: str | None = None
    last_used: str | None = None
    uses: int = 0
    digest: bytes = field(default=b"", repr=False)
    """Of its text, by which it is stored."""

    HIDDEN: ClassVar[tuple[str, ...]] = ("digest",)

    def is_accepted(self, day: str) -> bool:
        """Whether it is neither revoked nor expired on this day.

        >>> Token(1, Role.READER, "", "2026-11-15", "2026-11-16").is_accepted("2026-11-17")
        False
        """
        return self.revoked is None and self.created <= day <= self.expires

    @property
    def row(self) -> TokenRow:
        """The token as the table holds it."""
        facts = {name: getattr(self, name) for name in ("role", "name", "created", "expires", "revoked")}
        return TokenRow(self.number, self.digest, canonical(facts), self.last_used, self.uses)

    @classmethod
    def of_row(cls, row: TokenRow) -> "Token":
        """Read a row."""
        facts = read_object(row.facts, "the facts of a token")
        role = Role(facts.pop("role"))
        return cls(
            row.number, role, **facts, last_used=row.last_used, uses=row.uses, digest=bytes(row.digest)
        )


@dataclass(frozen=True)
class Tokens(Result):
    """The tokens of a vault."""

    tokens: tuple[Token, ...]

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def find(self, digest: bytes) -> Token | None:
        """The token whose text has this digest and that is accepted today; compared in constant time."""
        day, found = utc_now()[:10], None
        for token in self:
            if compare_digest(token.digest, digest) and token.is_accepted(day):
                found = token
        return found


@dataclass(frozen=True)
class IssuedToken:
    """A new token, and its text: it is shown once, and stored nowhere."""

    token: Token
    text: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the token, and `text`."""
        return {**self.token.to_dict(), "text": self.text}


def token_digest(text: str) -> bytes:
    """The digest by which a token is stored; a token has 256 random bits, so that it needs no salt.

    >>> token_digest("armnesia_AAAA").hex()[:8]
    'e66d885a'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def create_token(connection: VaultConnection, role: str, *, name: str = "", days: int = 90) -> IssuedToken:
    """Make a token for the service; only its digest is stored: this result is the one place where it is."""
    if role not in list(Role):
        raise InvalidInputError(f"role must be {any_of(list(Role))}; got {shown(role)}")
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= _LONGEST_LIFE:
        raise InvalidInputError(f"days must be a whole number from 1 to {_LONGEST_LIFE}; got {shown(days)}")
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(
            f"name must be at most {_LONGEST_NAME} printable characters; got {shown(name)}"
        )
    if re.fullmatch(r"token-\d+", name.strip().casefold()):
        raise InvalidInputError(
            f"name must not be as token-7, which stands for a token without a name; got {shown(name)}"
        )
    text = _PREFIX + base64.urlsafe_b64encode(secret_bytes(_BYTES)).decode().rstrip("=")
    created = date.fromisoformat(utc_now()[:10])
    expires = (created + timedelta(days=days)).isoformat()
    with connection.writing() as transaction:
        number = max((token.number for token in _read(transaction)), default=0) + 1
        day, digest = created.isoformat(), token_digest(text)
        token = Token(number, Role(role), name, day, expires, digest=digest)
        _put(transaction, token)
    return IssuedToken(token, text)


def list_tokens(connection: VaultConnection) -> Tokens:
    """All tokens, with their digests."""
    with connection.reading() as transaction:
        return Tokens(tuple(_read(transaction)))


def revoke_token(connection: VaultConnection, number: int) -> Token:
    """Refuse a token from now on; its row stays, so that its number is not given again."""
    with connection.writing() as transaction:
        found = {token.number: token for token in _read(transaction)}
        if number not in found:
            raise InvalidInputError(f"there is no token {number!r}; see armnesia token list")
        before = found[number]
        if before.revoked is not None:
            return before
        token = replace(before, revoked=utc_now()[:10])
        transaction.append("token_revoked", token=number)
        _put(transaction, token, before)
    return token


def note_token_uses(connection: VaultConnection, uses: Mapping[int, int]) -> None:
    """Add to the number of uses of each token, and set the day of its last use to today."""
    if not uses:
        return
    day = utc_now()[:10]
    with connection.writing() as transaction:
        transaction.session.execute_together(
            [statements.add_token_uses(number, day, times) for number, times in uses.items()]
        )


def revoke_tokens(session: Session, numbers: Collection[int]) -> None:
    """Refuse these tokens, which were revoked after the backup of a vault was made."""
    for token in map(Token.of_row, statements.read(session, TokenRow)):
        if token.number in numbers and token.revoked is None:
            session.execute_together([statements.put(replace(token, revoked=utc_now()[:10]).row)])


def _read(transaction: Transaction) -> list[Token]:
    """All tokens; refuse them if something other than armnesia has changed one."""
    rows = statements.read(transaction.session, TokenRow)
    if not transaction.state.check_sums.has(transaction.keyring, "token", rows):
        raise VaultError(
            "the tokens of the service were changed by something other than armnesia: run armnesia restore"
            " --as-it-is, and make new ones"
        )
    return list(map(Token.of_row, rows))


def _put(transaction: Transaction, token: Token, before: Token | None = None) -> None:
    """Store a token, or put it in the place of what it was before."""
    transaction.put([token.row], [] if before is None else [before.row])
