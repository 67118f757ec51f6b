"""When the snapshots of an Iceberg table expire, as it declares, and letting them do so."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.logs.erasing.lake_eraser import retention_in

_FIVE_DAYS = 432_000_000
"""In milliseconds."""
_NUMBER = re.compile("[0-9]{1,20}")


def oldest_age(table: Any) -> timedelta | None:
    """How old a snapshot becomes before it expires, as declared or by default; None if it never does."""
    age = str(table.properties.get("history.expire.max-snapshot-age-ms", _FIVE_DAYS)).strip()
    return retention_in(int(age) / 1000) if _NUMBER.fullmatch(age) else None


def expiry_of(table: Any) -> dict[int, datetime | None]:
    """When each snapshot expires that no branch ends with and no tag names; None if it does not by itself.

    Each branch keeps its last snapshots, as many and as long as it declares itself, or else the table. Those
    of no branch stay as long as the table declares.
    """
    age, fewest = oldest_age(table), _fewest_snapshots(table)
    found: dict[int, datetime | None] = {}
    references = table.metadata.refs.values()
    for each in references:
        if each.snapshot_ref_type == "branch":
            own = each.max_snapshot_age_ms
            branch_age = age if own is None else retention_in(own / 1000)
            kept = fewest if each.min_snapshots_to_keep is None else each.min_snapshots_to_keep
            for place, snapshot in enumerate(_ancestors(table, each.snapshot_id)):
                is_counted = kept is None or place < kept
                end = None if is_counted else _end_of(snapshot, branch_age)
                found[snapshot.snapshot_id] = _later(found.get(snapshot.snapshot_id, end), end)
    without_branch = {each.snapshot_id: _end_of(each, age) for each in table.snapshots()}
    named = {each.snapshot_id for each in references}
    return {number: end for number, end in {**without_branch, **found}.items() if number not in named}


def expire(table: Any, *, at_once: bool) -> None:
    """Let all snapshots expire whose time has come, or all that are no head of a branch and have no tag."""
    now = datetime.now(UTC)
    old = [number for number, end in expiry_of(table).items() if at_once or (end is not None and end <= now)]
    if old:
        table.maintenance.expire_snapshots().by_ids(old).commit()
    stale = stale_statistics(table)
    if stale:  # pyiceberg leaves those of partitions
        table.catalog.commit_table(table, (), tuple(stale))


def stale_statistics(table: Any) -> list[Any]:
    """The updates that drop statistics of snapshots that the table does not have any more."""
    from pyiceberg.table.update import (  # noqa: PLC0415 (an extra)
        RemovePartitionStatisticsUpdate,
        RemoveStatisticsUpdate,
    )

    metadata = table.metadata
    there = {each.snapshot_id for each in metadata.snapshots}
    kinds = (
        (RemoveStatisticsUpdate, metadata.statistics),
        (RemovePartitionStatisticsUpdate, metadata.partition_statistics),
    )
    return [
        make(**{"snapshot-id": number})
        for make, files in kinds
        for number in sorted({each.snapshot_id for each in files} - there)
    ]


def _fewest_snapshots(table: Any) -> int | None:
    """How many snapshots of a branch stay whatever their age; None if that is not understood: all do."""
    number = str(table.properties.get("history.expire.min-snapshots-to-keep", 1)).strip()
    return int(number) if _NUMBER.fullmatch(number) else None


def _ancestors(table: Any, number: int | None) -> list[Any]:
    """A snapshot and those before it, as far as the table has them."""
    found = []
    while number is not None and (snapshot := table.snapshot_by_id(number)) is not None:
        found.append(snapshot)
        number = snapshot.parent_snapshot_id
    return found


def _end_of(snapshot: Any, age: timedelta | None) -> datetime | None:
    """When a snapshot reaches an age; None if it never does."""
    if age is None:
        return None
    return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC) + age


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)
