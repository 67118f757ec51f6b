"""Committing to an Iceberg table by pyiceberg, without what it leaves behind or undoes by the way.

A commit that loses a race, or a full disk, leaves data files that no metadata name. Nobody could tell later
whose they are, and they hold rows of people who may be forgotten then. And a commit that is made drops how
long, and how many, snapshots the branch itself declares to keep.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from armnesia.core.memory import giving_back_memory

_MAIN = "main"


def delete_rows(table: Any, condition: Any, properties: dict[str, str]) -> None:
    """Delete rows in one commit; what was written for one that was not made is removed."""
    from pyiceberg.exceptions import CommitFailedException, ValidationException  # noqa: PLC0415 (an extra)

    written = table.io = _NotedOutputs(table.io)
    transaction = table.transaction()
    try:
        with giving_back_memory():
            transaction.delete(condition, snapshot_properties=properties)
    except BaseException:
        written.remove()
        raise
    with same_retention(table):  # outside of what follows: if only this fails, the files are in use
        try:
            transaction.commit_transaction()
        except (CommitFailedException, ValidationException):  # after others, it may have been made
            written.remove()
            raise


@contextmanager
def same_retention(table: Any) -> Iterator[None]:
    """Declare for the main branch, after a commit, what it declared before."""
    before = _retention(table)
    yield
    now = _retention(table.refresh())
    if any(value is not None for value in before.values()) and now != before:
        head = table.metadata.refs[_MAIN].snapshot_id
        table.manage_snapshots().create_branch(head, _MAIN, **before).commit()


def _retention(table: Any) -> dict[str, int | None]:
    branch = table.metadata.refs.get(_MAIN)
    names = ("max_ref_age_ms", "max_snapshot_age_ms", "min_snapshots_to_keep")
    return {name: getattr(branch, name, None) for name in names}


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
