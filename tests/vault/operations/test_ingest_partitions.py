"""Vaults over partitioned files: columns in the names of folders are keys, and never people's names."""

from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
from armnesia.logs import read_log
from armnesia.vault import Configuration
from tests.databases import Place
from tests.logs.files.test_hive_partitions import ACTIONS, ROWS, written
from tests.vault.operations.test_decisions import held, sums_in


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_vaults_take_partitions_as_keys(tmp_path: Path, place: Place, mode: str, format_: str) -> None:
    rows = {name: values[:5] for name, values in ROWS.items()}
    first = {name: values[:2] for name, values in rows.items()}
    folder = written(tmp_path / "lake", first, ["day"], format_)
    configuration = Configuration(actions=("A", "B"), mode=mode, by=("day",))
    with place.create(configuration) as vault:
        assert vault.ingest(folder).added == 2
        written(folder, {name: values[2:] for name, values in rows.items()}, ["day"], format_)
        assert vault.ingest(folder).added == 3
        assert vault.ingest(folder).added == 0
        assert held(vault) == sums_in(read_log(rows, actions=ACTIONS).by("day"))
        assert vault.verify().problems == ()
        assert vault.forget(users=["ann"]).records == 2
        left = [at for at, user in enumerate(rows["user"]) if user != "ann"]
        remaining = {name: [values[at] for at in left] for name, values in rows.items()}
        expected = sums_in(read_log(remaining, actions=ACTIONS).by("day"))
        assert {key: held(vault)[key] for key in expected} == expected
        assert vault.verify().problems == ()


def test_external_vaults_refuse_people_in_paths(tmp_path: Path, place: Place) -> None:
    folder = written(tmp_path / "lake", ROWS, ["user"])
    with (
        place.create(Configuration(actions=("A", "B"), mode="external")) as vault,
        pytest.raises(VaultError, match="stores the paths of its files, which must not name people"),
    ):
        vault.ingest(folder)
