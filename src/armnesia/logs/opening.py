"""Where the vault's rows come from: files, dataframes and tables, opened by one call."""

import os
from collections.abc import Mapping
from typing import Any

from armnesia.core.errors import ArmnesiaError, InvalidInputError, VaultError
from armnesia.logs.file_source import FileSource
from armnesia.logs.frame_source import FrameSource
from armnesia.logs.postgres_source import PostgresSource
from armnesia.logs.source import Columns, Rows, Source
from armnesia.logs.table_source import SqliteSource
from armnesia.logs.urls import shown

__all__ = ["Columns", "Rows", "Source", "open_source", "reopen_source", "source_name"]


def open_source(
    source: Any,
    *,
    action: str,
    reward: str,
    user: str | None = None,
    id: str | None = None,  # noqa: A002 (its name on the command line)
    table: str | None = None,
) -> Source:
    """Open decisions in a file, dataframe or database table, and check that the named columns are there.

    `source` is the path or glob of CSV or Parquet files, a dataframe or mapping of columns, or the address
    of a database, `sqlite:///file.db` or `postgresql://user@host/name`, with a `table` or `schema.table`.
    Rows are read, and checked, by `rows`.

    >>> source = open_source({"arm": ["A", "B"], "won": [1, 0], "who": [7, None]},
    ...     action="arm", reward="won", user="who")
    >>> source.labels()
    ['A', 'B']
    >>> (rows,) = source.rows(["A", "B"], (0, 1))
    >>> rows.arms, rows.units, rows.users
    ([0, 1], [1000000000, 0], ['7', None])
    """
    columns = Columns(action, reward, user, id)
    scheme = source.partition("://")[0] if isinstance(source, str) and "://" in source else None
    if scheme is None:
        if table is not None:
            raise InvalidInputError(f"table is for databases, such as sqlite:///file.db; got {table!r}")
        return (
            FileSource(source, columns)
            if isinstance(source, str | os.PathLike)
            else FrameSource(source, columns)
        )
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise InvalidInputError(
            f"the address of a source must begin with sqlite:/// or postgresql://; got {shown(source)!r}"
        )
    if table is None:
        raise InvalidInputError("a database needs the name of a table, such as table='clicks'; got none")
    return (SqliteSource if scheme == "sqlite" else PostgresSource)(source, table, columns)


def reopen_source(description: Mapping[str, Any]) -> Source:
    """Open a source again from its description; a password is taken from PGPASSWORD or a service file."""
    if description["kind"] == "frame":
        raise InvalidInputError(
            "rows that came from a dataframe cannot be looked up again; give a file or a table instead"
        )
    try:
        return open_source(description["location"], table=description["table"], **description["columns"])
    except ArmnesiaError as error:
        raise VaultError(
            f"{error}; the vault has rows from there: put it back, or if it is gone for good, run armnesia"
            f" rebuild --without {source_name(description)}"
        ) from None


def source_name(description: Mapping[str, Any]) -> str:
    """What people call a source: where it is, and which table.

    >>> source_name({"kind": "table", "location": "sqlite:///logs.db", "table": "clicks", "columns": {}})
    'sqlite:///logs.db#clicks'
    """
    table = description.get("table")
    return str(description["location"]) + ("" if table is None else f"#{table}")
