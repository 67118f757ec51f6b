"""URLs of logs and databases: taken apart, and shown in messages without a password, wherever it stands.

PostgreSQL reads URLs differently from how Python composes them: a plus sign is not a space, and the URL of a
local database, `postgresql:///logs`, has three slashes. So URLs are not composed by Python.
"""

import re
import urllib.parse
from collections.abc import Iterator
from functools import cache

from armnesia.core.errors import InvalidInputError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NAME_AND_PASSWORD = re.compile(r":.*@", re.DOTALL)
_PARAMETER = re.compile(r"(pass|passwd|password|passphrase|pwd|secret)\s*=", re.IGNORECASE)
_PLAIN = re.compile(r"[^@:=;?&%#\s]*")

DEFAULT_SCHEMA = "armnesia"


def may_hold_password(text: str) -> bool:
    """Tell whether a path, or a part of a URL, looks like it contains a password, percent-encoded or not.

    >>> may_hold_password("logs/2024-01/ann@example.csv"), may_hold_password("logs/year=2024/*.csv")
    (False, False)
    >>> may_hold_password("ann:secret@db/logs"), may_hold_password("host=db sslpassword = secret")
    (True, True)
    """
    texts = (text, urllib.parse.unquote(text))
    return any(_NAME_AND_PASSWORD.search(each) or _PARAMETER.search(each) for each in texts)


def is_remote(place: str) -> bool:
    """Whether a place is the URL of an object store, rather than a path.

    >>> is_remote("s3://logs/clicks"), is_remote("/logs/clicks")
    (True, False)
    """
    return "://" in place


def redacted(url: str) -> str:
    """Show a refused path or URL in a message, without any part that may contain a password.

    A refused URL could not be parsed, so the place of the password in it is unknown: what may contain one is
    left out as a whole.

    >>> redacted("logs/clicks.csv"), redacted("sqlite://vault.db")
    ('logs/clicks.csv', 'sqlite://vault.db')
    >>> redacted("mysql://ann:secret@db/logs"), redacted("jdbc:mysql://db/logs?password=secret")
    ('mysql://…', '…')
    """
    scheme = _SCHEME.match(url)
    if scheme is not None:
        plain = _PLAIN.fullmatch(url, scheme.end()) is not None
        return url if plain else f"{scheme.group()}…"
    # A path may contain any character and is shown, unless another URL begins in the middle of it.
    return "…" if "://" in url or may_hold_password(url) else url


def without_schema(url: str) -> tuple[str, str]:
    """Split the URL of a vault into the URL of its database and the schema that the vault is in.

    >>> without_schema("postgresql://db/logs?schema=vault&options=-c%20work_mem=1GB")
    ('postgresql://db/logs?options=-c%20work_mem=1GB', 'vault')
    """
    parts = _parts(url, "url")
    if not parts.path and ":" in parts.netloc.rpartition("@")[0]:
        raise _misread("url")  # the key file is named after the last part, which may be a password here
    schema, others = DEFAULT_SCHEMA, []
    for name, value, text in _parameters(parts):
        if name == "schema":
            schema = value
        else:
            others.append(text)
    if not re.fullmatch("[a-z_][a-z0-9_]{0,40}", schema):
        raise InvalidInputError(
            f"schema must consist of lower-case letters, digits and underscores; got {redacted(schema)!r}"
        )
    return _joined(url.partition("?")[0], others), schema


def without_password(url: str) -> str:
    """Remove the password from the URL of a source or a vault; refuse a URL that PostgreSQL would misread.

    Parameters are written in one way, whatever way they were given: a vault knows a source by this text.

    >>> without_password("postgresql://ann:secret@db.example:5433/logs?sslmode=require&password=secret")
    'postgresql://ann@db.example:5433/logs?sslmode=require'
    >>> without_password("postgresql://ann:a/b@db.example/logs")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the URL of a PostgreSQL source must be
    postgresql://USER@HOST/DATABASE; in a password, write @ : / ? # as %40 %3A %2F %3F %23, or set
    PGPASSWORD
    """
    parts = _parts(url, "the URL of a PostgreSQL source")
    account, at, host = parts.netloc.rpartition("@")
    public = _public_parameters()
    kept = [
        f"{name}={urllib.parse.quote(value)}"
        for name, value, _ in _parameters(parts)
        if value and name in public
    ]
    return _joined(f"postgresql://{account.partition(':')[0]}{at}{host}{parts.path}", kept)


def _joined(url: str, parameters: list[str]) -> str:
    return f"{url}?{'&'.join(parameters)}" if parameters else url


def _parts(url: str, what: str) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(url)
        sound = parts.port is None or parts.port > 0
    except ValueError:
        sound = False
    if not sound or parts.fragment or _has_misplaced_password(parts):
        raise _misread(what)
    return parts


def _has_misplaced_password(parts: urllib.parse.SplitResult) -> bool:
    """Tell whether the user's name, the host or the name of the database seems to contain a password."""
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
        " %40 %3A %2F %3F %23, or set PGPASSWORD"
    )


def _parameters(parts: urllib.parse.SplitResult) -> Iterator[tuple[str, str, str]]:
    """Give the name and the value of each parameter, and its text as it was given."""
    for text in filter(None, parts.query.split("&")):
        name, _, value = text.partition("=")
        yield urllib.parse.unquote(name), urllib.parse.unquote(value), text


@cache
def _public_parameters() -> frozenset[str]:
    """List the parameters that libpq does not mark as passwords or keys.

    A parameter that libpq does not know is not among them: it may be part of a password.
    """
    from psycopg.pq import Conninfo  # noqa: PLC0415 (an extra)

    return frozenset(option.keyword.decode() for option in Conninfo.get_defaults() if not option.dispchar)
