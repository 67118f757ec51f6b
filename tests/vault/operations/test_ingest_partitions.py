"""Vaults over partitioned files: columns in the names of folders are keys, or people of a managed vault."""

from pathlib import Path

import duckdb
import pytest

from armnesia.logs import read_log
from armnesia.vault import Configuration
from tests.databases import Place
from tests.vault.operations.test_decisions import held, sums_in

ROWS = [
    ("A", 0.5, "ann", "mon"),
    ("B", 0.25, "bob", "mon"),
    ("A", 1.0, "cem", "tue"),
    ("B", 0.75, "ann", "tue"),
]


def written(folder: Path, rows: list[tuple[str, float, str, str]], *by: str) -> Path:
    """Add files with these rows, partitioned by columns."""
    values = f"(VALUES {', '.join(map(str, rows))}) AS t(action, reward, user, day)"
    options = f"FORMAT parquet, PARTITION_BY ({', '.join(by)}), APPEND"
    duckdb.execute(f"COPY (SELECT * FROM {values}) TO '{folder}' ({options})")
    return folder


def sums_without(*people: str, by: str = "day") -> dict[tuple[str, ...], object]:
    left = [row for row in ROWS if row[2] not in people]
    columns = dict(zip(("action", "reward", "user", "day"), zip(*left, strict=True), strict=True))
    listed = {name: list(values) for name, values in columns.items()}
    return dict(sums_in(read_log(listed, actions=("A", "B")).by(by)))


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_vaults_take_partitions_as_keys(tmp_path: Path, place: Place, mode: str) -> None:
    folder = written(tmp_path / "lake", ROWS[:2], "day")
    with place.create(Configuration(actions=("A", "B"), mode=mode, by=("day",))) as vault:
        assert vault.ingest(folder).added == 2
        written(folder, ROWS[2:], "day")
        assert vault.ingest(folder).added == 2
        assert vault.ingest(folder).added == 0
        assert held(vault) == sums_without()
        assert vault.forget(users=["ann"]).records == 2
        assert held(vault) == sums_without("ann")
        assert vault.verify().problems == ()


def test_people_in_names_of_folders_are_forgotten(tmp_path: Path, place: Place) -> None:
    folder = written(tmp_path / "lake", ROWS, "user", "day")
    with place.create(Configuration(actions=("A", "B"), by=("day",))) as vault:
        assert vault.ingest(folder).added == 4
        assert vault.forget(users=["ann"]).records == 2
        assert vault.ingest(folder, user="user").added == 0
        assert held(vault) == sums_without("ann")
        assert vault.verify().problems == ()
