"""Sources of an external vault that are elsewhere than before, or no longer exist."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from armnesia.vault.configuration import Configuration
from armnesia.vault.state.records import unknown_source
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import SourceRow

if TYPE_CHECKING:
    from armnesia.vault.state.connection import VaultConnection


def move_sources(
    connection: "VaultConnection",
    session: Session,
    configuration: Configuration,
    moved: Sequence[tuple[str, str]],
    without: Sequence[str],
    dropped: Collection[str],
) -> dict[str, Any]:
    """Change the places of sources, and drop others; what the ledger says of it.

    `dropped` are the ids of those that were dropped after the backup of a vault was made.
    """
    if connection.records.holds_rows:
        for name in [*(old for old, _ in moved), *without]:
            raise unknown_source(name, {})
        return {}
    from armnesia.vault.state.sources import read_sources  # noqa: PLC0415 (few vaults need it)

    for each in read_sources(session):
        if each.id in dropped:
            tables.delete(session, SourceRow, number=each.number)
    now_dropped = connection.records.drop_sources(session, without)
    known, ids = {each.name: each for each in read_sources(session)}, []
    for old, new in moved:
        if old not in known:
            raise unknown_source(old, known)
        now = known[old].relocated(new, configuration)
        session.execute_together([tables.put(now.row)])
        ids.append(now.id)
    return {**({"moved": ids} if ids else {}), **({"dropped": now_dropped} if now_dropped else {})}
