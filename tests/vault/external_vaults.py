"""External vaults over logs of the promise tests: what is counted, and what certificates say of it."""

from collections.abc import Iterable
from typing import Any

from armnesia.vault import Certificate, Configuration, Ingested, LedgerCopy, UserType, Vault
from tests.databases import Place
from tests.promises.driver import Row
from tests.promises.lakes import Lake
from tests.vault.raw_vaults import arms

READING = Configuration(actions=("A", "B"), mode="external", user_type=UserType.TEXT)
PERMITTED = Configuration(
    actions=("A", "B"), mode="external", user_type=UserType.TEXT, may_erase_at_source=True
)
NAMED: dict[str, Any] = {"action": "arm", "reward": "reward", "user": "person", "id": "event"}


def ingest(vault: Vault, lake: Lake, **options: Any) -> Ingested:
    """Count a log."""
    table = lake.options[1] if lake.options else None
    return vault.ingest(lake.source, table=table, **{**NAMED, **options})


def counted(place: Place, lake: Lake, rows: Iterable[Row], configuration: Configuration = PERMITTED) -> Vault:
    """A vault that has counted a log with these rows."""
    lake.append(list(rows))
    vault = place.create(configuration)
    ingest(vault, lake)
    return vault


def sums(vault: Vault) -> list[tuple[int, int]]:
    """Of each arm, how many rows the vault has counted, and the sum of their rewards in quarters."""
    return [(count, units * 4 // 10**9) for count, units, _ in arms(vault)]


def sums_of(rows: Iterable[Row]) -> list[tuple[int, int]]:
    """The same in plain Python."""
    listed = list(rows)
    own = ([row.quarters for row in listed if row.arm == arm] for arm in "AB")
    return [(len(each), sum(each)) for each in own]


def without(rows: Iterable[Row], *people: str) -> list[Row]:
    return [row for row in rows if row.person not in people]


def state_of(vault: Vault, person: str) -> list[tuple[int, str]]:
    """What the certificate of a person says of each source; it holds by the ledger."""
    certificate: Certificate = vault.certificate(users=[person])
    ledger = LedgerCopy.of((entry.sequence, entry.text, entry.hash) for entry in vault.ledger())
    assert certificate.check(vault.public_keys(), ledger=ledger).problems == ()
    assert certificate.source is not None
    return [(each["source"], each["state"]) for each in certificate.source["versions"]]
