"""Names of the host that requests are addressed to.

A page of another site can have its own name point at this machine (DNS rebinding); the browser then sends
its requests here, under that name. A request to a name that was not declared is therefore not answered.
"""

import re
from collections.abc import Collection, Iterable

from armnesia.core.errors import InvalidInputError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?")
_NAME = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")


def checked_name(name: str) -> str:
    """A name of a host, in lower case and without brackets.

    >>> checked_name("Vault.example.org"), checked_name("[::1]")
    ('vault.example.org', '::1')
    >>> checked_name("https://vault.example.org")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: a host name must be a name or an address, without scheme and port;
    got 'https://vault.example.org'
    """
    plain = name.lower().removeprefix("[").removesuffix("]")
    if not _NAME.fullmatch(plain):
        raise InvalidInputError(
            f"a host name must be a name or an address, without scheme and port; got {name!r}"
        )
    return plain


def is_addressed_to(hosts: Collection[str], headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request has one Host header, with one of these names and any port.

    >>> is_addressed_to({"localhost"}, [(b"host", b"LocalHost:8080")])
    True
    >>> is_addressed_to({"localhost"}, [(b"host", b"attacker.example")])
    False
    """
    found = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    match = _HOST.fullmatch(found[0]) if len(found) == 1 else None
    return match is not None and (match[1] or match[2]) in hosts
