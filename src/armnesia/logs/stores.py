"""Object stores: `s3://…` and `https://…`, which DuckDB reads by its extension `httpfs`."""

import os
from urllib.parse import urlsplit

from armnesia.core.errors import InvalidInputError
from armnesia.core.urls import is_remote, may_hold_password, redacted
from armnesia.logs.engine import DuckDBConnection
from armnesia.logs.sql import literal

_SCHEMES = ("s3", "s3a", "s3n", "http", "https")
_OPTIONS = {
    "KEY_ID": "AWS_ACCESS_KEY_ID",
    "SECRET": "AWS_SECRET_ACCESS_KEY",
    "SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "REGION": "AWS_REGION",
}


def check_scheme(place: str) -> None:
    """Refuse a URL that is not of an object store, and say what to give instead."""
    if urlsplit(place).scheme not in _SCHEMES:
        raise InvalidInputError(
            f"a URL must begin with one of {', '.join(f'{each}://' for each in _SCHEMES)} for files, or with"
            " sqlite:/// or postgresql:// for tables; a local file is given by its path, and for other"
            f" databases see docs/warehouses.md; got {redacted(place)!r}"
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
        given = {option: os.environ.get(variable) for option, variable in _OPTIONS.items()}
        options = [f"{option} {literal(value)}" for option, value in given.items() if value]
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if endpoint:
            url = urlsplit(endpoint)
            secure = str(url.scheme == "https").lower()
            options.append(f"ENDPOINT {literal(url.netloc)}, USE_SSL {secure}, URL_STYLE 'path'")
        connection.rows(f"CREATE OR REPLACE SECRET armnesia_s3 ({', '.join(['TYPE s3', *options])})")
