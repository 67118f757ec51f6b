"""The ways to keep records, by the mode in the vault's configuration."""

from armnesia.vault.configuration import EXTERNAL, MANAGED
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.records import Records
from armnesia.vault.storage.schema import (
    EXTERNAL_LAYOUT,
    KEYED_EXTERNAL_LAYOUT,
    KEYED_MANAGED_LAYOUT,
    MANAGED_LAYOUT,
)


def records_of(mode: str, *, keyed: bool) -> Records:
    """How a vault of a mode keeps its records, with or without key columns."""
    if mode == MANAGED:
        return ManagedRecords(KEYED_MANAGED_LAYOUT if keyed else MANAGED_LAYOUT)
    if mode != EXTERNAL:
        raise KeyError(mode)
    from armnesia.vault.state.external_records import ExternalRecords  # noqa: PLC0415 (few vaults need it)

    return ExternalRecords(KEYED_EXTERNAL_LAYOUT if keyed else EXTERNAL_LAYOUT)
