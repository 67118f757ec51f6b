"""The databases a vault can be kept in, by the scheme of their address.

A new database is one module with a function `connect`, and one line here. Its module is imported when an
address names it: an SQLite vault needs nothing of PostgreSQL.
"""

import importlib

from armnesia.core.errors import InvalidInputError
from armnesia.logs.urls import shown
from armnesia.vault.storage.database import Database

DATABASES = {
    "sqlite": "armnesia.vault.storage.sqlite",
    "postgresql": "armnesia.vault.storage.postgres",
    "postgres": "armnesia.vault.storage.postgres",
}


def open_database(url: str, *, create: bool = False, timeout: float = 30.0) -> Database:
    """Connect to `sqlite:///file.db` or `postgresql://…`; `create` makes the file of a new SQLite vault.

    A relative file has three slashes and an absolute one four, as in other tools with such addresses.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in DATABASES:
        raise unknown_address(url)
    database: Database = importlib.import_module(DATABASES[scheme]).connect(
        url, create=create, timeout=timeout
    )
    return database


def unknown_address(url: str) -> InvalidInputError:
    """Refuse an address that names no database."""
    return InvalidInputError(
        f"url must be sqlite:///FILE or postgresql://USER@HOST/DATABASE; got {shown(url)!r}"
    )
