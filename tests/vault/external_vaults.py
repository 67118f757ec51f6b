"""External vaults over logs of the promise tests: what is counted, erased, and due."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from armnesia.vault import Configuration, Forgotten, Ingested, SourceErasures, UserType, Vault
from armnesia.vault.state.check_sums import CheckSums
from tests.databases import Place
from tests.promises.driver import Row
from tests.promises.lakes import Lake
from tests.vault.raw_vaults import arms, values

NAMED: dict[str, Any] = {"action": "arm", "reward": "reward", "user": "person", "id": "event"}
READING = Configuration(actions=("A", "B"), mode="external", user_type=UserType.TEXT, columns=NAMED)
PERMITTED = replace(READING, may_erase_at_source=True)


def ingest(vault: Vault, lake: Lake, **options: Any) -> Ingested:
    """Count a log."""
    return vault.ingest(lake.source, table=lake.table, **{**NAMED, **options})


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


def erased_for(vault: Vault, person: str) -> list[str]:
    """The sources, by their names, of which the certificate of a person says that nothing was left there."""
    name_of = {each.id: each.name for each in vault.status().sources}
    later = [each.entry for each in vault.certificate(users=[person]).later]
    return [name_of.get(each.facts["source"], "dropped") for each in later if each.kind == "erased"]


def stored(vault: Vault) -> dict[str, list[Any]]:
    """All that a vault has in its tables."""
    return {table: sorted(values(vault, f"SELECT * FROM {table}"), key=repr) for table in CheckSums._fields}


def forget_and_erase(
    vault: Vault, *, purge: bool = False, ignore_retention: bool = False, **named: Any
) -> tuple[Forgotten, SourceErasures]:
    """As the command `forget --erase-at-source`."""
    options = {"purge": purge, "ignore_retention": ignore_retention}
    vault.check_erasable(**options)
    return vault.forget(**named), vault.erase_at_sources(**options)


def due(vault: Vault) -> list[str]:
    """What is left to do at each source."""
    found = vault.source_erasures().sources
    return ["erase" if each.to_erase else "purge" if each.to_purge else "" for each in found]
