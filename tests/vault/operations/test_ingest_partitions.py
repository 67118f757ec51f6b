"""Vaults over partitioned files: columns in the names of folders are keys, and never people's names."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform

from armnesia.core.errors import InvalidLogError, VaultError
from armnesia.logs import read_log
from armnesia.vault import Configuration
from tests.databases import Place
from tests.logs.files.test_hive_partitions import ACTIONS, ROWS, as_arrow_reads, written
from tests.logs.lakes.tables import arrow_table, iceberg_catalog, static_name, write_delta
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


@pytest.mark.parametrize(
    ("partition", "is_refused"),
    [
        ("delta", True),
        (IdentityTransform(), True),
        (TruncateTransform(2), True),
        (BucketTransform(4), False),
    ],
    ids=str,
)
def test_external_vaults_refuse_tables_with_people_in_paths(
    tmp_path: Path, place: Place, partition: Any, is_refused: bool
) -> None:
    table = arrow_table(ROWS)
    if partition == "delta":
        name = write_delta(tmp_path / "log", table, partition_by=["user"])
    else:
        written_to = iceberg_catalog(tmp_path / "log").create_table("logs.clicks", schema=table.schema)
        with written_to.update_spec() as spec:
            spec.add_field("user", partition, "part")
        written_to.append(table)
        name = static_name(written_to)
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        if is_refused:
            with pytest.raises(VaultError, match="stores the paths of its files, which must not name people"):
                vault.ingest(name)
        else:
            assert vault.ingest(name).added == 6


@pytest.mark.parametrize("mode", ["managed", "external"])
def test_a_folder_by_a_link_counts_once(tmp_path: Path, place: Place, mode: str) -> None:
    folder = written(tmp_path / "lake", ROWS, ["age"])
    (tmp_path / "link").symlink_to(folder)
    with place.create(Configuration(actions=("A", "B"), mode=mode, by=("age",))) as vault:
        assert vault.ingest(folder).added == 6
        before = held(vault)
        if mode == "external":
            for again in (tmp_path / "link", folder / "**" / "*.parquet", folder / "age=44"):
                with pytest.raises(VaultError, match="its rows would count twice"):
                    vault.ingest(again)
        else:
            assert vault.ingest(tmp_path / "link").added == 0
        assert held(vault) == before


def test_what_was_counted_is_found_whatever_appears_beside_it(tmp_path: Path, place: Place) -> None:
    """A new folder that is partitioned otherwise, or a table made of the folder, stops no request."""
    folder = written(tmp_path / "lake", ROWS, ["age"])
    with place.create(Configuration(actions=("A", "B"), mode="external", by=("age",))) as vault:
        vault.ingest(folder)
        written(folder, ROWS, ["day"])
        with pytest.raises(InvalidLogError, match=r"'age=30/part-0.parquet' has .*'day=2013-03-05/part"):
            vault.ingest(folder)
        written(folder, {name: values for name, values in ROWS.items() if name != "age"}, ["day"])
        with pytest.raises(InvalidLogError, match="column 'age' is a partition of some files only"):
            vault.ingest(folder)
        assert vault.forget(users=["ann"]).records == 3
        (folder / "_delta_log").mkdir()
        with pytest.raises(InvalidLogError, match="belong to a Delta table"):
            vault.ingest(folder, user="user")
        assert vault.forget(users=["bob"]).records == 1
        left = {"age": ["44", "44"], "action": ["A", "B"], "reward": [1.0, 0.25]}
        expected = sums_in(read_log(left, actions=ACTIONS).by("age"))
        assert {key: held(vault)[key] for key in expected} == expected


@pytest.mark.parametrize("by", [(), ("age",)])
def test_people_in_names_of_folders_are_forgotten(tmp_path: Path, place: Place, by: tuple[str, ...]) -> None:
    folder = written(tmp_path / "lake", ROWS, ["user", "age"])
    with place.create(Configuration(actions=("A", "B"), by=by)) as vault:
        assert vault.ingest(folder).added == 6
        assert vault.forget(users=["ann"]).records == 3
        assert vault.ingest(folder, user="user").added == 0
        left = [at for at, user in enumerate(ROWS["user"]) if user != "ann"]
        remaining = {name: [values[at] for at in left] for name, values in ROWS.items()}
        if by:
            expected = sums_in(read_log(remaining, actions=ACTIONS).by(*by))
            assert {key: held(vault)[key] for key in expected} == expected
        assert vault.verify().problems == ()


def test_erasing_at_the_source_keeps_the_partitions(tmp_path: Path, place: Place) -> None:
    folder = written(tmp_path / "lake", ROWS, ["day", "age"])
    external = Configuration(actions=("A", "B"), mode="external", by=("age",), may_erase_at_source=True)
    with place.create(external) as vault:
        vault.ingest(folder)
        vault.forget(users=["ann"])
        before = held(vault)
        assert vault.erase_at_sources().pending == 0
        assert "ann" not in as_arrow_reads(folder, ["day", "age"])["user"]
        assert held(vault) == before
        assert vault.ingest(folder, user="user").added == 0
        assert vault.verify().problems == ()
