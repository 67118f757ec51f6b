"""Who may call the service: tokens, and what each of their roles may do."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from hmac import compare_digest
from typing import Any

from armnesia.vault.keys.canonical_json import utc_now


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
class Token:
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

    def is_accepted(self, day: str) -> bool:
        """Whether it is neither revoked nor expired on this day.

        >>> Token(1, Role.READER, "", "2026-11-15", "2026-11-16").is_accepted("2026-11-17")
        False
        """
        return self.revoked is None and self.created <= day <= self.expires

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return dict(vars(self))


def is_numbered_name(name: str) -> bool:
    """Whether a name is one that stands for a token without a name, such as token-7.

    >>> is_numbered_name("token-7"), is_numbered_name("Token-07 "), is_numbered_name("token-desk")
    (True, True, False)
    """
    return re.fullmatch(r"token-\d+", name.strip().casefold()) is not None


def token_digest(text: str) -> bytes:
    """The digest by which a token is stored; a token has 256 random bits, so that it needs no salt.

    >>> token_digest("armnesia_AAAA").hex()[:8]
    'e66d885a'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True)
class Tokens:
    """The tokens of a vault, each with the digest of its text."""

    with_digests: tuple[tuple[Token, bytes], ...]

    def __iter__(self) -> Iterator[Token]:
        return (token for token, _ in self.with_digests)

    def __len__(self) -> int:
        return len(self.with_digests)

    def find(self, text: str) -> Token | None:
        """The token with this text that is accepted today; each is compared, in constant time."""
        return self.find_digest(token_digest(text))

    def find_digest(self, digest: bytes) -> Token | None:
        """The token whose text has this digest, as `find` finds it."""
        day, found = utc_now()[:10], None
        for token, own in self.with_digests:
            if compare_digest(own, digest) and token.is_accepted(day):
                found = token
        return found

    def to_dict(self) -> dict[str, Any]:
        """The key `tokens`, without digests."""
        return {"tokens": [token.to_dict() for token in self]}


@dataclass(frozen=True)
class IssuedToken:
    """A new token, and its text: it is shown once, and stored nowhere."""

    token: Token
    text: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the token, and `text`."""
        return {**self.token.to_dict(), "text": self.text}
