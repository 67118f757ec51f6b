"""Ed25519 signatures (RFC 8032), by the package `cryptography`, which is imported on first use."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from armnesia.core.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PUBLIC = re.compile(r"[0-9a-f]{64}")


def public_key(seed: bytes) -> str:
    """The public key of a secret seed of 32 bytes, as 64 hexadecimal digits.

    >>> public_key(bytes(32))
    '3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29'
    """
    return _private_key(seed)[1]


def sign(data: bytes, seed: bytes) -> bytes:
    """The signature of 64 bytes.

    >>> len(sign(b"text", bytes(32)))
    64
    """
    return _private_key(seed)[0].sign(data)


@lru_cache(maxsize=16)
def _private_key(seed: bytes) -> "tuple[Ed25519PrivateKey, str]":
    # Deriving the key from its seed costs as much as a signature, and a vault signs with few keys.
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError.naming("The vault", "vault") from None
    key = Ed25519PrivateKey.from_private_bytes(seed)
    return key, key.public_key().public_bytes_raw().hex()


def is_signed(data: bytes, signature: bytes, public: str) -> bool:
    """Whether the signature is valid for these data and this public key.

    >>> is_signed(b"text", sign(b"text", bytes(32)), public_key(bytes(32)))
    True
    >>> is_signed(b"Text", sign(b"text", bytes(32)), public_key(bytes(32)))
    False
    """
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError.naming("The vault", "vault") from None
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(checked_public_key(public)))
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def checked_public_key(public: str) -> str:
    """The public key, if it has the form of one.

    >>> checked_public_key("abc")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: a public key must be 64 hexadecimal digits in lower case;
    got 'abc'
    """
    if not _PUBLIC.fullmatch(public):
        raise InvalidInputError(f"a public key must be 64 hexadecimal digits in lower case; got {public!r}")
    return public
