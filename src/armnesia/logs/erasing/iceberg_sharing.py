"""Whether other tables of a catalog need the files of an Iceberg table.

Files can be added to several tables, and a file of metadata can be registered as a table of another name.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from armnesia.core.errors import UnsupportedError
from armnesia.logs.erasing.iceberg_files import files_of
from armnesia.logs.erasing.iceberg_folders import key_of


def refuse_shared_files(name: str, table: Any, files: Iterable[str]) -> None:
    """Refuse to remove files of a table that another one has, or outside of its location if one might."""
    keys = {key_of(location) for location in files}
    if not keys:
        return
    failures: list[Exception] = []
    for identifier in _other_tables(table, failures):
        is_shared = False
        with _noted(failures):
            needed = files_of(table.catalog.load_table(identifier))
            is_shared = any(key_of(location) in keys for location in needed)
        if is_shared:
            raise UnsupportedError(
                f"files of {name!r} cannot be removed: table {'.'.join(identifier)!r} has some of them as"
                " well; erase the rows there, or write one of the tables again"
            )
    root = f"{key_of(str(table.metadata.location).rstrip('/'))}/"
    if failures and not all(key.startswith(root) for key in keys):  # others the table has written itself
        raise UnsupportedError(
            f"files of {name!r} cannot be removed: some are outside of the table's location, and it cannot be"
            f" told whether other tables of the catalog have them ({type(failures[0]).__name__})"
        )


def _other_tables(table: Any, failures: list[Exception]) -> list[tuple[str, ...]]:
    """All other tables of the catalog, as far as it lists them."""
    catalog: Any = table.catalog
    waiting: list[tuple[str, ...]] = [()]
    found: list[tuple[str, ...]] = []
    while waiting:
        namespace = waiting.pop()
        with _noted(failures):
            inner = list(catalog.list_namespaces(namespace))
            waiting += [each for each in inner if len(each) > len(namespace)]
        with _noted(failures):
            found += map(tuple, catalog.list_tables(namespace) if namespace else ())
    return [each for each in found if each != tuple(table.name())]


@contextmanager
def _noted(failures: list[Exception]) -> Iterator[None]:
    """Go on after a failure; catalogs pass on what databases and servers raise."""
    try:
        yield
    except Exception as error:
        failures.append(error)
