"""Delta and Iceberg tables as sources of a vault: each version's rows come in once."""

from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
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
        managed = vault.configuration.mode == "managed"
        assert (done.added, done.already_there) == (2, 6 if managed else 0)
        lake.compact()
        done = vault.ingest(lake.name, user="user")
        assert (done.added, done.already_there, done.recounted) == (0, 8 if managed else 0, False)
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
        assert len(dumped(vault)["source"]) == 1
        lake.delete()
        problems = vault.verify().problems
        assert any("has changed since it was counted" in each for each in problems)
        with pytest.raises(VaultError, match=r"changed or removed rows.*run armnesia ingest"):
            vault.forget(users=["1"])
        done = vault.ingest(lake.name, user="user")
        assert done.recounted
        assert vault.verify().holds


@pytest.mark.parametrize("kind", [Delta, Iceberg])
def test_appended_and_compacted_tables_are_looked_up_as_they_were_counted(
    kind: type[Lake], tmp_path: Path, place: Place
) -> None:
    """Between an ingest and a request a table may grow, or its rows move to other files."""
    lake = kind(tmp_path)
    with place.create(Configuration(actions=("A", "B", "C"), mode="external")) as vault:
        vault.ingest(lake.name, user="user")
        lake.compact()
        held = vault.preview(users=["1"]).records
        lake.append(MORE)
        assert vault.verify().holds
        assert vault.forget(users=["1"]).records == held == 2
        if kind is Delta:  # a file of Iceberg's metadata knows nothing of later ones
            assert any("not counted yet" in note for note in vault.verify().notes)
        done = vault.ingest(lake.name, user="user")
        assert (done.rows, done.added, done.suppressed, done.recounted) == (2, 1, 1, False)
        assert vault.verify().holds
