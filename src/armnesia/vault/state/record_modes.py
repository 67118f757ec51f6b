"""The ways to keep records, by the mode in the vault's configuration."""

from armnesia.vault.configuration import EXTERNAL, MANAGED
from armnesia.vault.state.external_records import ExternalRecords
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.records import Records
from armnesia.vault.storage.schema import KEYED_EXTERNAL_LAYOUT, KEYED_MANAGED_LAYOUT

RECORDS: dict[tuple[str, bool], Records] = {
    (MANAGED, False): ManagedRecords(),
    (EXTERNAL, False): ExternalRecords(),
    (MANAGED, True): ManagedRecords(KEYED_MANAGED_LAYOUT),
    (EXTERNAL, True): ExternalRecords(KEYED_EXTERNAL_LAYOUT),
}
"""By the mode in the configuration, and whether there are key columns."""
