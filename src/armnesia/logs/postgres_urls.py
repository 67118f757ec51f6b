"""Addresses of PostgreSQL: taken apart, and shown without a password.

PostgreSQL reads them otherwise than Python puts them together: to it a plus sign is no space, and a database
on this machine, `postgresql:///logs`, has three slashes. So they are not put together by Python.
"""

import re
import urllib.parse
from collections.abc import Iterator
from functools import cache

from armnesia.core.errors import InvalidInputError
from armnesia.logs.urls import may_hold_password, shown

DEFAULT_SCHEMA = "armnesia"


def without_schema(url: str) -> tuple[str, str]:
    """The address of a vault's database, and the schema that the vault is in.

    >>> without_schema("postgresql://db/logs?schema=vault&options=-c%20work_mem=1GB")
    ('postgresql://db/logs?options=-c%20work_mem=1GB', 'vault')
    """
    parts = _parts(url, "url")
    if not parts.path and ":" in parts.netloc.rpartition("@")[0]:
        raise _misread("url")  # the keys' file is named after what stands last: that must not be a password
    schema, others = DEFAULT_SCHEMA, []
    for name, value, text in _parameters(parts):
        if name == "schema":
            schema = value
        else:
            others.append(text)
    if not re.fullmatch("[a-z_][a-z0-9_]{0,40}", schema):
        raise InvalidInputError(
            f"schema must be made of small letters, digits and underscores; got {shown(schema)!r}"
        )
    return _joined(url.partition("?")[0], others), schema


def place_of(url: str) -> str:
    """Where a database is, for messages about a vault.

    >>> place_of("postgresql://ann:secret@db.example:5433/logs?sslpassword=secret")
    'postgresql://db.example:5433/logs'
    """
    parts = _parts(url, "url")
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


def without_password(url: str) -> str:
    """Leave the password out of the address of a source; refuse one that would be misread, unshown.

    Parameters are written in one way, however they were written: it is by this text that a source is known.

    >>> without_password("postgresql://ann:secret@db.example:5433/logs?sslmode=require&password=secret")
    'postgresql://ann@db.example:5433/logs?sslmode=require'
    >>> without_password("postgresql://ann:a/b@db.example/logs")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the address of a PostgreSQL source must be
    postgresql://USER@HOST/DATABASE; in a password, write @ : / ? # as %40 %3A %2F %3F %23, or leave it to
    PGPASSWORD
    """
    parts = _parts(url, "the address of a PostgreSQL source")
    account, at, host = parts.netloc.rpartition("@")
    public = _public_parameters()
    kept = [
        f"{name}={urllib.parse.quote(value)}"
        for name, value, _ in _parameters(parts)
        if value and name in public
    ]
    return _joined(f"postgresql://{account.partition(':')[0]}{at}{host}{parts.path}", kept)


def _joined(address: str, parameters: list[str]) -> str:
    return f"{address}?{'&'.join(parameters)}" if parameters else address


def _parts(url: str, what: str) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(url)
        sound = parts.port is None or parts.port > 0
    except ValueError:
        sound = False
    if not sound or parts.fragment or _has_password_astray(parts):
        raise _misread(what)
    return parts


def _has_password_astray(parts: urllib.parse.SplitResult) -> bool:
    """Whether one seems to stand where none belongs: in the name, the host, or the name of the database."""
    account, _, host = parts.netloc.rpartition("@")
    name = account.partition(":")[0]
    return (
        "@" in account + parts.path + parts.query
        or ":" in urllib.parse.unquote(name)
        or any(map(may_hold_password, (name, host, parts.path)))
    )


def _misread(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what} must be postgresql://USER@HOST/DATABASE; in a password, write @ : / ? # as"
        " %40 %3A %2F %3F %23, or leave it to PGPASSWORD"
    )


def _parameters(parts: urllib.parse.SplitResult) -> Iterator[tuple[str, str, str]]:
    """The name and the value of each parameter, and both as they stand there."""
    for text in filter(None, parts.query.split("&")):
        name, _, value = text.partition("=")
        yield urllib.parse.unquote(name), urllib.parse.unquote(value), text


@cache
def _public_parameters() -> frozenset[str]:
    """The parameters that PostgreSQL's own library would show: it marks passwords and keys.

    An unknown one, which the library refuses, is not among them: it may be a piece of a password.
    """
    from psycopg.pq import Conninfo  # noqa: PLC0415 (an extra)

    return frozenset(option.keyword.decode() for option in Conninfo.get_defaults() if not option.dispchar)
