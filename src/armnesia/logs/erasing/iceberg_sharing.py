"""Whether other tables of a catalog need the files of an Iceberg table: files can be added to several."""

from collections.abc import Iterable, Iterator
from typing import Any

from armnesia.core.errors import UnsupportedError
from armnesia.logs.erasing.iceberg_files import TableFiles
from armnesia.logs.erasing.iceberg_folders import key_of


def refuse_shared_files(name: str, table: Any, files: Iterable[str]) -> None:
    """Refuse to remove files of a table that another one has, or outside of its location if one might."""
    keys = {key_of(location) for location in files}
    if not keys:
        return
    try:
        for other in _others(table):
            if keys & TableFiles(other).data_files():
                raise UnsupportedError(
                    f"files of {name!r} cannot be removed: table {'.'.join(other.name())!r} has some of them"
                    " as well; erase the rows there, or write one of the tables again"
                )
    except UnsupportedError:
        raise
    except Exception as error:  # catalogs pass on what databases and servers raise
        root = f"{key_of(str(table.metadata.location).rstrip('/'))}/"
        if all(key.startswith(root) for key in keys):
            return  # files that the table has written itself
        raise UnsupportedError(
            f"files of {name!r} cannot be removed: some are outside of the table's location, and it cannot be"
            f" told whether other tables of the catalog have them ({type(error).__name__})"
        ) from None


def _others(table: Any) -> Iterator[Any]:
    """All other tables of the catalog."""
    catalog: Any = table.catalog
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        namespace = waiting.pop()
        inner = list(catalog.list_namespaces(namespace))
        waiting += [each for each in inner if len(each) > len(namespace)]
        for identifier in catalog.list_tables(namespace) if namespace else ():
            if tuple(identifier) != tuple(table.name()):
                yield catalog.load_table(identifier)
