"""Opening a source of any kind, by one call."""

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from armnesia.core.errors import ChangedSourceError, InvalidInputError, InvalidLogError
from armnesia.logs.columns import IF_PRESENT, Columns, IfPresent
from armnesia.logs.conditions import Where, conditions
from armnesia.logs.manifests import Manifest, real_paths
from armnesia.logs.source import IN_MEMORY, Source
from armnesia.logs.urls import redacted

SOURCES = {
    "path": ("armnesia.logs.files.source", "FileSource"),
    "object": ("armnesia.logs.frames.source", "FrameSource"),
    "sqlite://": ("armnesia.logs.tables.sqlite", "SqliteSource"),
    "postgresql://": ("armnesia.logs.tables.postgres", "PostgresSource"),
    "postgres://": ("armnesia.logs.tables.postgres", "PostgresSource"),
    "spark:": ("armnesia.logs.tables.spark", "SparkSource"),
    "delta:": ("armnesia.logs.lakes.delta", "DeltaSource"),
    "iceberg:": ("armnesia.logs.lakes.iceberg", "IcebergSource"),
}
"""The module and class of each kind of source; the module is imported when a source of the kind is opened.

A kind is the scheme of a URL, a word before the name of a table, "path" for any other text, or "object" for
what is in memory. A new kind is one line here, and one file: a class that derives from `Source` and takes
(source, columns, *, table, whole_rows).
"""


def open_source(
    source: Any,
    *,
    action: str,
    reward: str,
    user: str | IfPresent | None = IF_PRESENT,
    id: str | None = None,  # noqa: A002 (its name on the command line)
    table: str | None = None,
    where: Where | None = None,
    whole_rows: bool = True,
    decimals_as_written: bool = False,
    only: Sequence[str] | None = None,
) -> Source:
    """Open decisions in a file, dataframe or database table, and check that the named columns are there.

    `source` is the path or glob of CSV or Parquet files, a dataframe or mapping of columns, the URL of a
    database, `sqlite:///file.db` or `postgresql://user@host/name`, with a `table` or `schema.table`, a table
    of Spark, `spark:CATALOG.DATABASE.TABLE`, or of a lake, `delta:PATH` or `iceberg:CATALOG.NAMESPACE.TABLE`.
    `user` is by default the column named `user`, if there is one; None stands for no user column.
    `where` are conditions that the rows must satisfy to be read, such as "country = DE".
    `whole_rows` reads all columns of rows without an id, because they are told apart by their content.
    With `only`, some of the files that a path or glob stands for are read.
    With `decimals_as_written`, the text of 1.50 is "1.50" and not "1.5", for vaults that hold such texts.

    >>> source = open_source({"arm": ["A", "B"], "won": [1, 0], "who": [7, None]},
    ...     action="arm", reward="won", user="who")
    >>> source.action_labels()
    ['A', 'B']
    >>> (rows,) = source.rows(["A", "B"], (0, 1))
    >>> rows.arms, rows.units, rows.users
    ([0, 1], [1000000000, 0], ['7', None])
    """
    columns = Columns(action, reward, user, id)
    open_kind: Callable[..., Source] = _class_of(source)
    chosen = conditions(where)
    part = {} if only is None else {"only": only}
    opened = open_kind(source, columns, table=table, whole_rows=whole_rows, **part)
    if decimals_as_written:
        opened = opened.with_decimals_as_written()
    return opened.filtered(chosen) if chosen else opened


def _class_of(source: Any) -> type[Source]:
    """The class of a source's kind."""
    module, name = SOURCES[_kind(source)]
    found: type[Source] = getattr(importlib.import_module(module), name)
    return found


def _kind(source: Any) -> str:
    """The key of a source in `SOURCES`."""
    word, colon, _ = source.partition(":") if isinstance(source, str) else ("", "", "")
    if colon and word + colon in SOURCES:
        return word + colon
    if isinstance(source, str) and "://" in source:
        scheme = "".join(source.partition("://")[:2])
        if scheme not in SOURCES:
            schemes = ", ".join(kind for kind in SOURCES if ":" in kind)
            raise InvalidInputError(
                f"the URL of a source must begin with one of {schemes}; got {redacted(source)!r}"
            )
        return scheme
    return "path" if isinstance(source, str | os.PathLike) else "object"


def reopen_source(
    description: Mapping[str, Any],
    *,
    whole_rows: bool = True,
    decimals_as_written: bool = False,
    only: Sequence[str] | None = None,
) -> Source:
    """Open a source again from its description; a password is taken from PGPASSWORD or a service file."""
    if description["kind"] == IN_MEMORY:
        raise InvalidInputError("a dataframe cannot be opened again; give a file or a table instead")
    opened = open_source(
        description["location"],
        table=description["table"],
        where=description.get("where"),
        whole_rows=whole_rows,
        decimals_as_written=decimals_as_written,
        only=only,
        **description["columns"],
    )
    column = description.get("ordered_by")
    return opened if column is None else opened.ordered_by(column)


def manifest_of(description: Mapping[str, Any], values: Mapping[str, Any]) -> Manifest:
    """The manifest of a source, from its JSON.

    >>> manifest_of({"location": "/logs/a.csv"}, {"files": [["/logs/a.csv", 812, 5]]}).parts
    frozenset({'/logs/a.csv'})
    """
    return _class_of(description["location"]).manifest_from(values)


def reopen_counted(
    description: Mapping[str, Any], manifest: Manifest, *, decimals_as_written: bool = False
) -> tuple[Source, bool]:
    """Open what was counted of a source; also, whether there is more, as far as that is known.

    Files that were not counted are not looked at: `has_new_files` tells of them. Refused with
    `ChangedSourceError` if anything that was counted has changed or is gone.
    """
    only = manifest.files_to_reopen()
    source = reopen_source(description, whole_rows=False, decimals_as_written=decimals_as_written, only=only)
    since = source.changes_since(manifest)
    if since.recount:
        raise ChangedSourceError(since.recount)
    return source.counted_part(manifest, since), since.kind == "added"


def file_in_both(description: Mapping[str, Any], manifest: Manifest) -> str | None:
    """A file of a manifest that a path or glob stands for too, now; the first by name, None if none is."""
    if _kind(description["location"]) != "path" or manifest.named_files is None:
        return None
    from armnesia.logs.files.formats import find_paths  # noqa: PLC0415 (with an extra)

    try:
        found = real_paths(find_paths(description["location"]))
    except InvalidLogError:  # nothing is there any more
        return None
    return min(found & manifest.parts, default=None)


def has_new_files(description: Mapping[str, Any], manifest: Manifest) -> bool:
    """Whether a path or glob stands for files that are not in a manifest; False of other kinds."""
    if manifest.named_files is None:
        return False
    from armnesia.logs.files.formats import find_paths  # noqa: PLC0415 (with an extra)

    return not set(manifest.named_files).issuperset(find_paths(description["location"]))
