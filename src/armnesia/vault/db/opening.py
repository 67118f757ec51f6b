"""Connecting to the database that an address names."""

from armnesia.core.errors import InvalidInputError
from armnesia.vault.db.database import Database, invalid_address
from armnesia.vault.db.postgres import PostgresDatabase
from armnesia.vault.db.sqlite import SqliteDatabase

_LONGEST_WAIT = 1_000_000
"""Seconds: both databases count milliseconds in 32 bits."""

DATABASES: dict[str, type[Database]] = {
    "sqlite://": SqliteDatabase,
    "postgresql://": PostgresDatabase,
    "postgres://": PostgresDatabase,
}
"""The class of each database, by the scheme of its address."""


def open_database(url: str, *, create: bool = False, timeout: float = 30.0) -> Database:
    """Connect to `sqlite:///file.db` or `postgresql://…`; `create` makes the file of a new SQLite vault.

    A relative file has three slashes and an absolute one four, as in other tools with such addresses.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= _LONGEST_WAIT:
        raise InvalidInputError(
            f"timeout must be a number of seconds from 0 to {_LONGEST_WAIT:,}; got {timeout!r}"
        )
    return database_class(url)(url, create=create, timeout=timeout)


def database_class(url: str) -> type[Database]:
    """The class of the database that an address names."""
    scheme = "".join(url.partition("://")[:2])
    if scheme not in DATABASES:
        raise invalid_address(url, *known_addresses())
    return DATABASES[scheme]


def known_addresses() -> dict[str, str]:
    """The form of each database's addresses, and where its keys are by default, in words.

    >>> list(known_addresses())
    ['sqlite:///FILE', 'postgresql://USER@HOST/DATABASE']
    """
    return {kind.address: kind.keys for kind in DATABASES.values()}
