"""Opening a source of any kind, by one call."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.logs.columns import IF_PRESENT, Columns, IfPresent
from armnesia.logs.files import FileSource
from armnesia.logs.frames import FrameSource
from armnesia.logs.source import Source
from armnesia.logs.urls import redacted

DATABASES = {
    "sqlite": ("armnesia.logs.sqlite", "SqliteSource"),
    "postgresql": ("armnesia.logs.postgres", "PostgresSource"),
    "postgres": ("armnesia.logs.postgres", "PostgresSource"),
}
"""The module and class for each scheme of a URL; the module is imported when a URL has the scheme."""


def open_source(
    source: Any,
    *,
    action: str,
    reward: str,
    user: str | IfPresent | None = IF_PRESENT,
    id: str | None = None,  # noqa: A002 (its name on the command line)
    table: str | None = None,
    whole_rows: bool = True,
) -> Source:
    """Open decisions in a file, dataframe or database table, and check that the named columns are there.

    `source` is the path or glob of CSV or Parquet files, a dataframe or mapping of columns, or the URL of a
    database, `sqlite:///file.db` or `postgresql://user@host/name`, with a `table` or `schema.table`.
    `user` is by default the column named `user`, if there is one; None stands for no user column.
    `whole_rows` reads all columns of rows without an id, because they are told apart by their content.

    >>> source = open_source({"arm": ["A", "B"], "won": [1, 0], "who": [7, None]},
    ...     action="arm", reward="won", user="who")
    >>> source.action_labels()
    ['A', 'B']
    >>> (rows,) = source.rows(["A", "B"], (0, 1))
    >>> rows.arms, rows.units, rows.users
    ([0, 1], [1000000000, 0], ['7', None])
    """
    columns = Columns(action, reward, user, id)
    if isinstance(source, str) and "://" in source:
        return _open_table(source, table, columns, whole_rows)
    if table is not None:
        raise InvalidInputError(f"table is for databases, such as sqlite:///file.db; got {table!r}")
    kind = FileSource if isinstance(source, str | os.PathLike) else FrameSource
    return kind(source, columns, whole_rows=whole_rows)


def _open_table(url: str, table: str | None, columns: Columns, whole_rows: bool) -> Source:
    scheme = url.partition("://")[0]
    if scheme not in DATABASES:
        schemes = ", ".join(f"{known}://" for known in DATABASES)
        raise InvalidInputError(
            f"the URL of a source must begin with one of {schemes}; got {redacted(url)!r}"
        )
    if table is None:
        raise InvalidInputError("a database needs the name of a table, such as table='clicks'; got none")
    module, name = DATABASES[scheme]
    opened: Source = getattr(importlib.import_module(module), name)(
        url, table, columns, whole_rows=whole_rows
    )
    return opened


def reopen_source(description: Mapping[str, Any]) -> Source:
    """Open a source again from its description; a password is taken from PGPASSWORD or a service file."""
    if description["kind"] == "frame":
        raise InvalidInputError("a dataframe cannot be opened again; give a file or a table instead")
    try:
        return open_source(description["location"], table=description["table"], **description["columns"])
    except ArmnesiaError as error:
        raise VaultError(
            f"{error}; the vault has rows from this source: restore it or, if it no longer exists, run"
            f" armnesia rebuild --without {source_name(description)}"
        ) from None


def source_name(description: Mapping[str, Any]) -> str:
    """Name a source by its location and table.

    >>> source_name({"kind": "table", "location": "sqlite:///logs.db", "table": "clicks", "columns": {}})
    'sqlite:///logs.db#clicks'
    """
    table = description.get("table")
    return str(description["location"]) + ("" if table is None else f"#{table}")
