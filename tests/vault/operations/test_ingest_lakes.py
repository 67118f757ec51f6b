"""Delta and Iceberg tables as sources of a vault: each version's rows come in once."""

from pathlib import Path

import pytest

from armnesia.vault import Configuration, Vault
from tests.databases import Place
from tests.logs.lakes.test_changes import Delta, Iceberg, Lake
from tests.logs.lakes.test_iceberg import MORE
from tests.vault.raw_vaults import arms, dumped


@pytest.fixture(params=[Delta, Iceberg])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made: Lake = request.param(tmp_path)
    return made


@pytest.fixture(params=["managed", "external"])
def vault(request: pytest.FixtureRequest, place: Place) -> Vault:
    return place.create(Configuration(actions=("A", "B", "C"), mode=request.param))


def counts(vault: Vault) -> list[int]:
    return [count for count, _, _ in arms(vault)]


def test_a_table_is_ingested_appended_to_compacted_and_forgotten(lake: Lake, vault: Vault) -> None:
    with vault:
        assert vault.ingest(lake.name, user="user").added == 6
        lake.append(MORE)
        done = vault.ingest(lake.name, user="user")
        assert (done.added, done.already_there) == (2, 6)
        lake.compact()
        done = vault.ingest(lake.name, user="user")
        assert (done.added, done.already_there) == (0, 8)
        assert counts(vault) == [4, 2, 2]
        assert vault.verify().holds
        assert vault.forget(users=["1"]).records == 3
        assert counts(vault) == [2, 2, 1]
        assert vault.verify().holds
        assert vault.ingest(lake.name, user="user").added == 0


def test_a_delta_table_is_one_source_at_all_versions(tmp_path: Path, place: Place) -> None:
    lake = Delta(tmp_path)
    with place.create(Configuration(actions=("A", "B", "C"), mode="external")) as vault:
        for _ in range(3):
            vault.ingest(lake.name, user="user")
            lake.append(MORE)
        assert [source.name for source in vault.status().sources] == [lake.name]
        ((_, description),) = dumped(vault)["source"]
        assert "version" not in description
        lake.delete()
        problems = vault.verify().problems
        assert any("rows that the vault has counted are no longer there" in each for each in problems)
