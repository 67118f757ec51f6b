"""Object stores: `s3://…` and `https://…`, which DuckDB reads by its extension `httpfs`."""

import os
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.core.urls import may_hold_password, redacted
from armnesia.logs.engine import DuckDBConnection
from armnesia.logs.sql import literal

_SCHEMES = ("s3", "s3a", "s3n", "http", "https")
_OPTIONS = {
    "KEY_ID": "AWS_ACCESS_KEY_ID",
    "SECRET": "AWS_SECRET_ACCESS_KEY",
    "SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "REGION": "AWS_REGION",
}


def is_remote(place: str) -> bool:
    """Whether a place is the URL of an object store, rather than a path.

    >>> is_remote("s3://logs/clicks"), is_remote("/logs/clicks")
    (True, False)
    """
    return "://" in place


def check_scheme(place: str) -> None:
    """Refuse a URL that is not of an object store, and say what to give instead."""
    scheme = urlsplit(place).scheme
    if scheme in _SCHEMES:
        return
    if scheme == "file":
        raise InvalidInputError(
            f"a local file is given by its path, without file://; got {redacted(place)!r}"
        )
    raise InvalidInputError(
        f"a URL must begin with one of {', '.join(f'{each}://' for each in _SCHEMES)} for files, or with"
        " sqlite:/// or postgresql:// for tables; for other databases see docs/warehouses.md; got"
        f" {redacted(place)!r}"
    )


def reach(connection: DuckDBConnection, place: str) -> None:
    """Let a connection read what is at a URL; a path needs nothing."""
    if not is_remote(place):
        return
    check_scheme(place)
    parts = urlsplit(place)
    if may_hold_password(f"{parts.netloc}{parts.path}"):
        raise InvalidInputError(
            f"a URL must have no credentials, which belong into the environment; got {redacted(place)!r}"
        )
    connection.load("httpfs")
    if parts.scheme.startswith("s3"):
        chain = False
        with suppress(MissingExtraError):
            connection.load("aws")
            chain = True
        options = ", ".join(_options(chain=chain))
        connection.rows(f"CREATE OR REPLACE SECRET armnesia_s3 ({options})")


def _options(*, chain: bool) -> Iterator[str]:
    """Those of a secret, from the variables that the tools of AWS read."""
    yield "TYPE s3"
    if chain:
        yield "PROVIDER credential_chain"
    for option, variable in _OPTIONS.items():
        if os.environ.get(variable) and not (chain and option != "REGION"):
            yield f"{option} {literal(os.environ[variable])}"
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        parts = urlsplit(endpoint)
        yield f"ENDPOINT {literal(parts.netloc)}"
        yield f"USE_SSL {str(parts.scheme == 'https').lower()}"
        yield "URL_STYLE 'path'"
