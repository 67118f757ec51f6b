"""What may be shown of the address of a log or a database: never a password, wherever it stands in it.

A refused address is one that nobody could make sense of, so nobody knows where in it the password is: before
an "@", as a parameter, or in a place where it does not belong. Whatever may hold one is left out as a whole.
"""

import re
import urllib.parse

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NAME_AND_PASSWORD = re.compile(r":.*@", re.DOTALL)
_PARAMETER = re.compile(r"(pass|passwd|password|passphrase|pwd|secret)\s*=", re.IGNORECASE)
_PLAIN = re.compile(r"[^@:=;?&%#\s]*")


def may_hold_password(text: str) -> bool:
    """Whether a path, or a part of an address, looks as if it had a password in it; also behind %-signs.

    >>> may_hold_password("logs/2024-01/ann@example.csv"), may_hold_password("logs/year=2024/*.csv")
    (False, False)
    >>> may_hold_password("ann:secret@db/logs"), may_hold_password("host=db sslpassword = secret")
    (True, True)
    """
    texts = (text, urllib.parse.unquote(text))
    return any(_NAME_AND_PASSWORD.search(each) or _PARAMETER.search(each) for each in texts)


def shown(address: str) -> str:
    """An address, for a message that refuses it: as it is, or what is sure to be no secret.

    >>> shown("logs/clicks.csv"), shown("sqlite://vault.db")
    ('logs/clicks.csv', 'sqlite://vault.db')
    >>> shown("mysql://ann:secret@db/logs"), shown("jdbc:mysql://db/logs?password=secret")
    ('mysql://…', '…')
    """
    scheme = _SCHEME.match(address)
    if scheme is not None:
        plain = _PLAIN.fullmatch(address, scheme.end()) is not None
        return address if plain else f"{scheme.group()}…"
    # A path may have any sign in it, and is shown; but not if another kind of address begins in its middle.
    return "…" if "://" in address or may_hold_password(address) else address
