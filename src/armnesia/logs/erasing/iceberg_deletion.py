"""Deleting rows of an Iceberg table by pyiceberg, without leaving files behind where that fails.

A commit that loses a race, or a full disk, leaves data files that no metadata name. Nobody could tell later
whose they are, and they hold rows of people who may be forgotten then.
"""

from contextlib import suppress
from typing import Any


def delete_rows(table: Any, condition: Any, properties: dict[str, str]) -> None:
    """Delete rows in one commit; what was written for one that was not made is removed."""
    from pyiceberg.exceptions import CommitFailedException, ValidationException  # noqa: PLC0415 (an extra)

    written = table.io = _NotedOutputs(table.io)
    transaction = table.transaction()
    try:
        transaction.delete(condition, snapshot_properties=properties)
    except BaseException:
        written.remove()
        raise
    try:
        transaction.commit_transaction()
    except (CommitFailedException, ValidationException):  # after others, it may have been made
        written.remove()
        raise


class _NotedOutputs:
    """A storage of pyiceberg that notes which files are written to it."""

    def __init__(self, io: Any) -> None:
        self._io = io
        self._locations: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._io, name)

    def new_output(self, location: str) -> Any:
        """A new file of the storage."""
        self._locations.append(location)
        return self._io.new_output(location)

    def remove(self) -> None:
        """Remove all files that were written, as far as they are there and the storage lets them go."""
        for location in self._locations:
            with suppress(Exception):  # storages raise anything; what counts is why the deletion failed
                self._io.delete(location)
