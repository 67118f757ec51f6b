"""Connecting to the database that an address names."""

import importlib
from typing import Any, NamedTuple

from armnesia.core.errors import InvalidInputError
from armnesia.vault.storage.database import Database, invalid_address

_LONGEST_WAIT = 1_000_000
"""Seconds: both databases count milliseconds in 32 bits."""


class DatabaseKind(NamedTuple):
    """What is known of a kind of database before its module is imported."""

    module: str
    """With `connect(url, *, create, timeout)` and `default_keys_path(url)`."""
    address: str
    """The form of its addresses, for messages and help."""
    keys: str
    """Where the keys are by default, in words."""


_POSTGRES = DatabaseKind(
    "armnesia.vault.storage.postgres",
    "postgresql://USER@HOST/DATABASE",
    "in the working folder, named after the database",
)
DATABASES = {
    "sqlite://": DatabaseKind("armnesia.vault.storage.sqlite", "sqlite:///FILE", "beside the file"),
    "postgresql://": _POSTGRES,
    "postgres://": _POSTGRES,
}
"""The kind of each database, by the scheme of its address.

A new database is one module and one entry here. The module is imported when an address names it: an SQLite
vault needs nothing of PostgreSQL.
"""


def open_database(url: str, *, create: bool = False, timeout: float = 30.0) -> Database:
    """Connect to `sqlite:///file.db` or `postgresql://…`; `create` makes the file of a new SQLite vault.

    A relative file has three slashes and an absolute one four, as in other tools with such addresses.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= _LONGEST_WAIT:
        raise InvalidInputError(
            f"timeout must be a number of seconds from 0 to {_LONGEST_WAIT:,}; got {timeout!r}"
        )
    database: Database = database_module(url).connect(url, create=create, timeout=timeout)
    return database


def database_module(url: str) -> Any:
    """The module of the database that an address names, with `connect` and `default_keys_path`."""
    scheme = "".join(url.partition("://")[:2])
    if scheme not in DATABASES:
        raise invalid_address(url, *known_addresses())
    return importlib.import_module(DATABASES[scheme].module)


def known_addresses() -> dict[str, str]:
    """The form of each database's addresses, and where its keys are by default, in words.

    >>> list(known_addresses())
    ['sqlite:///FILE', 'postgresql://USER@HOST/DATABASE']
    """
    return {kind.address: kind.keys for kind in DATABASES.values()}
