"""The ways to keep records, by the mode in the vault's configuration."""

from armnesia.vault.configuration import EXTERNAL, MANAGED
from armnesia.vault.state.external_records import ExternalRecords
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.records import Records

RECORDS: dict[str, Records] = {MANAGED: ManagedRecords(), EXTERNAL: ExternalRecords()}
