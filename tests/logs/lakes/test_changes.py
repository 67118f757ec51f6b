"""What has changed in a table since it was counted: files were added, nothing is new, or count again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import StringType

from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import open_source, read_log
from armnesia.logs.lakes.delta import DeltaLog
from armnesia.logs.lakes.manifest import CountedFile, Effect, LakeManifest
from armnesia.logs.lakes.source import LakeSource
from armnesia.logs.manifests import Changes
from tests.logs.lakes.reference import ACTIONS, statistics
from tests.logs.lakes.tables import (
    add_actions,
    add_file,
    arrow_table,
    compact_iceberg,
    delete_positions,
    edit_commit,
    edit_metadata,
    iceberg_catalog,
    iceberg_files,
    inline_vector,
    set_features,
    set_operation,
    static_name,
    write_commit,
    write_delta,
)
from tests.logs.lakes.test_iceberg import CLICKS, MORE
from tests.quick import quick_only

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly


def opened(name: str, **options: Any) -> LakeSource:
    source = open_source(name, action="action", reward="reward", whole_rows=False, **options)
    assert isinstance(source, LakeSource)
    return source


def counted(source: LakeSource, changes: Changes | None = None) -> ArmStatistics:
    """What a count of all files gives, or of those that were added."""
    part = source if changes is None else source.reading_only(changes.added)
    return part.read(ACTIONS, (0.0, 1.0)).statistics()


def assert_adds_up(before: LakeSource, after: LakeSource) -> Changes:
    """What was counted and what was added are the rows of the table."""
    changes = after.changes_since(before.manifest())
    assert (changes.recount, changes.kind) == (None, "added")
    assert counted(before).merge(counted(after, changes)) == counted(after)
    return changes


def effects(before: LakeSource, after: LakeSource) -> list[Effect]:
    commits = after.history.commits_since(before.manifest().version)
    assert commits is not None
    return [commit.effect for commit in commits]


class Delta:
    """A Delta table that is changed by deltalake."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clicks"
        self.name = write_delta(self.path, CLICKS)

    def append(self, rows: Any) -> None:
        write_delta(self.path, rows, mode="append")

    def overwrite(self, rows: Any) -> None:
        write_delta(self.path, rows, mode="overwrite")

    def delete(self) -> None:
        self.table.delete('"user" = 1')

    def compact(self) -> None:
        self.table.optimize.compact()

    def add_column(self) -> None:
        write_delta(self.path, {**MORE, "page": ["x", "y"]}, mode="append", schema_mode="merge")

    def set_property(self) -> None:
        self.table.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})

    def create_again(self) -> None:
        shutil.rmtree(self.path)
        write_delta(self.path, CLICKS)

    def go_back(self) -> None:
        self.table.restore(0)

    @property
    def table(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(str(self.path))


class Iceberg:
    """An Iceberg table that is changed by pyiceberg; compaction is crafted."""

    def __init__(self, folder: Path) -> None:
        self.catalog: SqlCatalog = iceberg_catalog(folder / "lake")
        self._create()

    def _create(self) -> None:
        self.catalog.create_table("logs.clicks", schema=arrow_table(CLICKS).schema)
        self.append(CLICKS)

    def append(self, rows: Any) -> None:
        self.table.append(arrow_table(rows))

    def overwrite(self, rows: Any) -> None:
        self.table.overwrite(arrow_table(rows))

    def delete(self) -> None:
        self.table.delete("user = 1")

    def compact(self) -> None:
        compact_iceberg(self.table)

    def add_column(self) -> None:
        with self.table.update_schema() as update:
            update.add_column("page", StringType())

    def set_property(self) -> None:
        with self.table.transaction() as transaction:
            transaction.set_properties({"owner": "ann"})

    def create_again(self) -> None:
        self.catalog.drop_table("logs.clicks")
        self._create()

    def go_back(self) -> None:
        first = self.table.snapshots()[0].snapshot_id
        self.table.manage_snapshots().rollback_to_snapshot(first).commit()

    @property
    def table(self) -> Table:
        return self.catalog.load_table("logs.clicks")

    @property
    def name(self) -> str:
        return static_name(self.table)


Lake = Delta | Iceberg


@pytest.fixture(params=[Delta, Iceberg])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made: Lake = request.param(tmp_path)
    return made


def test_a_manifest_names_the_table_its_version_and_its_files(lake: Lake) -> None:
    lake.append(MORE)
    source = opened(lake.name)
    manifest = source.manifest()
    assert manifest.kind == source.description["kind"]
    if isinstance(lake, Delta):
        assert (manifest.table_id, manifest.version) == (str(lake.table.metadata().id), 1)
        expected = [(path.name, path.stat().st_size, "") for path in lake.path.glob("*.parquet")]
    else:
        snapshot = lake.table.current_snapshot()
        assert snapshot is not None
        assert (manifest.table_id, manifest.version) == (
            str(lake.table.metadata.table_uuid),
            snapshot.snapshot_id,
        )
        expected = [(file.file_path, file.file_size_in_bytes, "") for file in iceberg_files(lake.table)]
    assert list(manifest.files) == sorted(expected)
    assert LakeManifest.from_dict(json.loads(json.dumps(manifest.to_dict()))) == manifest


def test_nothing_has_changed(lake: Lake) -> None:
    source = opened(lake.name)
    assert source.changes_since(source.manifest()) == Changes()
    assert opened(lake.name).changes_since(source.manifest()).kind == "nothing"


def test_appended_files_are_added(lake: Lake) -> None:
    before = opened(lake.name)
    lake.append(MORE)
    lake.append(CLICKS)
    changes = assert_adds_up(before, opened(lake.name))
    assert effects(before, opened(lake.name)) == [Effect.APPENDED] * 2
    assert len(changes.added) == 2
    assert counted(opened(lake.name), changes) == statistics(pd.concat(map(pd.DataFrame, (MORE, CLICKS))))


def test_compaction_adds_nothing(lake: Lake) -> None:
    for _ in range(3):
        lake.append(MORE)
    before = opened(lake.name)
    lake.compact()
    after = opened(lake.name)
    changes = after.changes_since(before.manifest())
    assert (changes.kind, effects(before, opened(lake.name))) == ("nothing", [Effect.REARRANGED])
    assert not set(before.manifest().files) & set(after.manifest().files)
    assert counted(after) == counted(before)


def test_files_that_are_appended_after_a_compaction_are_added(lake: Lake) -> None:
    lake.append(MORE)
    before = opened(lake.name)
    lake.compact()
    lake.append(CLICKS)
    assert_adds_up(before, opened(lake.name))
    assert effects(before, opened(lake.name)) == [Effect.REARRANGED, Effect.APPENDED]


def test_appended_files_that_were_rearranged_are_no_longer_apart(lake: Lake) -> None:
    before = opened(lake.name)
    lake.append(MORE)
    lake.compact()
    changes = opened(lake.name).changes_since(before.manifest())
    assert changes.recount == "files that were appended since have been rearranged"
    assert effects(before, opened(lake.name)) == [Effect.APPENDED, Effect.REARRANGED]


@pytest.mark.parametrize(
    "change", [lambda lake: lake.delete(), lambda lake: lake.overwrite(MORE)], ids=["delete", "overwrite"]
)
def test_after_deletes_and_overwrites_all_is_counted_again(
    lake: Lake, change: Callable[[Lake], None]
) -> None:
    before = opened(lake.name)
    lake.append(MORE)
    change(lake)
    lake.append(MORE)
    changes = opened(lake.name).changes_since(before.manifest())
    assert changes.recount is not None
    assert changes.recount.endswith("changed or removed rows")
    assert changes.kind == "recount"
    assert changes.added == ()
    assert Effect.CHANGED in effects(before, opened(lake.name))


def test_after_a_change_of_columns_all_is_counted_again(lake: Lake) -> None:
    before = opened(lake.name)
    lake.add_column()
    assert opened(lake.name).changes_since(before.manifest()).recount == "its columns have changed"


def test_a_property_of_the_table_changes_nothing(lake: Lake) -> None:
    before = opened(lake.name)
    lake.set_property()
    lake.append(MORE)
    assert_adds_up(before, opened(lake.name))


def test_a_table_that_was_created_again_is_another_table(lake: Lake) -> None:
    before = opened(lake.name).manifest()
    lake.create_again()
    after = opened(lake.name)
    expected = f"it is another table: its id was {before.table_id}, and is {after.manifest().table_id}"
    assert after.changes_since(before).recount == expected


def test_a_table_that_went_back_to_an_earlier_version_is_counted_again(lake: Lake) -> None:
    lake.append(MORE)
    before = opened(lake.name)
    lake.go_back()
    assert opened(lake.name).changes_since(before.manifest()).kind == "recount"


def test_a_source_stays_at_its_version(lake: Lake) -> None:
    before = opened(lake.name)
    lake.append(MORE)
    middle = opened(lake.name)
    lake.delete()
    assert middle.changes_since(before.manifest()).kind == "added"
    assert before.changes_since(middle.manifest()).kind == "recount"


def test_rows_of_added_files_are_chosen_by_the_same_conditions_and_keys(lake: Lake) -> None:
    before = opened(lake.name, where="user >= 2")
    lake.append(MORE)
    after = opened(lake.name, where="user >= 2")
    changes = assert_adds_up(before, after)
    assert counted(after, changes).counts.tolist() == [0, 0, 1]
    with pytest.raises(InvalidInputError, match=r"paths must be files of .*; got 'other\.parquet'"):
        after.reading_only(["other.parquet"])


@pytest.mark.parametrize("seed", quick_only([0], range(4)))
def test_counting_only_what_is_new_gives_the_statistics_of_the_table(lake: Lake, seed: int) -> None:
    """Random histories, looked at after some of their steps."""
    random = np.random.default_rng(seed)
    steps: list[Callable[[], None]] = [
        lambda: lake.append(MORE),
        lambda: lake.append(CLICKS),
        lake.compact,
        lake.set_property,
        lake.delete,
        lambda: lake.overwrite(CLICKS),
    ]
    source = opened(lake.name)
    manifest, known, kinds = source.manifest(), counted(source), set()
    for _ in range(12):
        for step in random.choice(len(steps), random.integers(1, 4), p=[0.35, 0.2, 0.2, 0.15, 0.05, 0.05]):
            steps[step]()
        source = opened(lake.name)
        changes = source.changes_since(manifest)
        kinds.add(changes.kind)
        if changes.kind == "recount":
            known = counted(source)
        elif changes.kind == "added":
            known = known.merge(counted(source, changes))
        manifest = source.manifest()
        assert known == counted(source)
    assert {"added", "recount"} <= kinds


def test_a_manifest_with_other_files_than_its_version_is_counted_again(lake: Lake) -> None:
    source = opened(lake.name)
    manifest = source.manifest()
    for files in ((), (*manifest.files, CountedFile("other", 1)), (manifest.files[0]._replace(size=1),)):
        wrong = LakeManifest(manifest.kind, manifest.table_id, manifest.version, manifest.schema, files)
        assert (
            source.changes_since(wrong).recount
            == "the files are not those that the commits since then tell of"
        )


@pytest.mark.parametrize("values", [{}, {"kind": "delta", "files": [1]}, {"files": []}])
def test_what_is_no_manifest_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="a manifest of a table must have kind"):
        LakeManifest.from_dict(values)


# Delta.


def test_vacuum_changes_nothing(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    lake.append(MORE)
    lake.compact()
    before = opened(lake.name)
    gone = lake.table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert len(gone) == 2
    changes = opened(lake.name).changes_since(before.manifest())
    assert (changes.kind, set(effects(before, opened(lake.name)))) == ("nothing", {Effect.NOTHING})
    lake.append(MORE)
    assert_adds_up(before, opened(lake.name))


def test_a_log_that_was_cleaned_up_is_counted_again(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    before = opened(lake.name)
    lake.append(MORE)
    lake.table.create_checkpoint()
    (lake.path / "_delta_log" / f"{1:020}.json").unlink()
    changes = opened(lake.name).changes_since(before.manifest())
    assert changes.recount == "its log does not lead from the version that was counted to the present one"


def test_an_earlier_version_than_the_counted_one_is_counted_again(tmp_path: Path) -> None:
    """As after a backup of the folder was restored."""
    lake = Delta(tmp_path)
    shutil.copytree(lake.path, tmp_path / "backup")
    lake.append(MORE)
    before = opened(lake.name)
    shutil.rmtree(lake.path)
    (tmp_path / "backup").rename(lake.path)
    assert opened(lake.name).changes_since(before.manifest()).kind == "recount"


def test_a_deletion_vector_is_a_change_of_rows(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    edit_commit(lake.path, 0, set_features("deletionVectors"))
    before = opened(lake.name)
    actions = [
        json.loads(line) for line in (lake.path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    ]
    (add,) = add_actions(actions)
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    write_commit(lake.path, 1, [{"remove": remove}, {"add": {**add, "deletionVector": inline_vector([0])}}])
    after = opened(lake.name)
    assert after.changes_since(before.manifest()).recount == "version 1 changed or removed rows"
    assert after.manifest().files[0].removed != before.manifest().files[0].removed == ""
    # A commit that claims to have only rearranged such a file is not believed.
    write_commit(
        lake.path,
        1,
        [
            {"remove": {**remove, "dataChange": False}},
            {"add": {**add, "dataChange": False, "deletionVector": inline_vector([0])}},
        ],
    )
    expected = "version 1 changed or removed rows"
    assert opened(lake.name).changes_since(before.manifest()).recount == expected


def test_a_rearrangement_that_loses_rows_is_a_change_of_rows(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    lake.append(MORE)
    before = opened(lake.name)
    lake.compact()
    assert opened(lake.name).changes_since(before.manifest()).kind == "nothing"

    def forge(actions: list[dict[str, Any]]) -> None:
        for action in actions:
            if "remove" in action:
                action["remove"]["stats"] = '{"numRecords": 3}'

    edit_commit(lake.path, 2, forge)
    assert opened(lake.name).changes_since(before.manifest()).recount == "version 2 changed or removed rows"


def without_numbers(actions: list[dict[str, Any]]) -> None:
    """As writers leave them out, to whom the statistics of removed files are optional."""
    for action in actions:
        action.get("remove", {}).pop("stats", None)


def test_a_rearrangement_without_numbers_is_compared_with_what_files_had(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    lake.append(MORE)
    before = opened(lake.name)
    lake.compact()
    edit_commit(lake.path, 2, without_numbers)
    assert opened(lake.name).changes_since(before.manifest()).kind == "nothing"

    def lose_a_row(actions: list[dict[str, Any]]) -> None:
        (add,) = add_actions(actions)
        add["stats"] = json.dumps({"numRecords": len(CLICKS["action"]) + len(MORE["action"]) - 1})

    edit_commit(lake.path, 2, lose_a_row)
    commits = DeltaLog(lake.name).commits_since(1)
    assert [commit.effect for commit in commits or ()] == [Effect.CHANGED]


def test_a_second_rearrangement_without_numbers_is_compared_with_the_first(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    lake.append(MORE)
    before = opened(lake.name)
    lake.compact()
    lake.append(MORE)
    lake.compact()
    for version in (2, 4):
        edit_commit(lake.path, version, without_numbers)
    expected = [Effect.REARRANGED, Effect.APPENDED, Effect.REARRANGED]
    assert effects(before, opened(lake.name)) == expected


@pytest.mark.parametrize("kind", ["add", "remove"])
def test_a_rearrangement_of_unknown_numbers_is_counted_again(tmp_path: Path, kind: str) -> None:
    lake = Delta(tmp_path)
    lake.append(MORE)
    before = opened(lake.name)
    lake.compact()

    def without_statistics(actions: list[dict[str, Any]]) -> None:
        for add in add_actions(actions):
            del add["stats"]

    for version in range(3):
        edit_commit(lake.path, version, without_numbers)
        if (kind == "add") == (version == 2):
            edit_commit(lake.path, version, without_statistics)
    assert effects(before, opened(lake.name)) == [Effect.CHANGED]


@pytest.mark.parametrize(
    "others",
    [
        [{"somethingNew": {}}],
        [{"remove": {"path": "other", "dataChange": True}}],
        [{"remove": {"path": "other", "dataChange": False}}],
        [{"remove": {"path": "other"}}],
    ],
    ids=["unknown action", "removal", "rearrangement", "unclear removal"],
)
def test_an_append_with_anything_else_is_counted_again(tmp_path: Path, others: list[dict[str, Any]]) -> None:
    lake = Delta(tmp_path)
    before = opened(lake.name)
    add_file(lake.path, 1, pa.table(MORE))
    after = opened(lake.name)
    assert after.changes_since(before.manifest()).kind == "added"

    def add(actions: list[dict[str, Any]]) -> None:
        actions += others

    edit_commit(lake.path, 1, add)
    assert after.changes_since(before.manifest()).recount == "version 1 changed or removed rows"


# Iceberg.


def test_expired_snapshots_are_counted_again(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    before = opened(lake.name).manifest()
    lake.append(MORE)
    middle = opened(lake.name).manifest()
    lake.append(MORE)
    first, second, _ = lake.table.snapshots()
    lake.table.maintenance.expire_snapshots().by_ids([first.snapshot_id, second.snapshot_id]).commit()
    expected = "its log does not lead from the snapshot that was counted to the present one"
    for manifest in (before, middle):
        assert opened(lake.name).changes_since(manifest).recount == expected
    empty = LakeManifest(before.kind, before.table_id, None, before.schema, ())
    expected = "the files are not those that the commits since then tell of"
    assert opened(lake.name).changes_since(empty).recount == expected


def test_the_first_rows_of_an_empty_table_are_added(tmp_path: Path) -> None:
    catalog = iceberg_catalog(tmp_path / "lake")
    table = catalog.create_table("logs.clicks", schema=arrow_table(CLICKS).schema)
    before = opened(static_name(table)).manifest()
    assert (before.version, before.files) == (None, ())
    table.append(arrow_table(CLICKS))
    after = opened(static_name(table))
    changes = after.changes_since(before)
    assert changes.kind == "added"
    assert counted(after, changes) == read_log(static_name(table), actions=ACTIONS).statistics()


def test_position_deletes_are_a_change_of_rows_and_their_compaction_is_counted_again(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    before = opened(lake.name)
    (file,) = iceberg_files(lake.table)
    delete_positions(lake.table, {file.file_path: [0]}, tmp_path / "deletes.parquet")
    middle = opened(lake.name)
    changes = middle.changes_since(before.manifest())
    assert changes.recount is not None
    assert changes.recount.endswith("changed or removed rows")
    lake.compact()  # six rows are replaced by five
    assert opened(lake.name).changes_since(middle.manifest()).kind == "recount"
    assert counted(opened(lake.name)) == counted(middle)


def test_a_replacement_is_known_by_the_rows_of_its_files(tmp_path: Path) -> None:
    """Numbers in the summary of a snapshot are optional."""

    def say_nothing(metadata: dict[str, Any]) -> None:
        metadata["snapshots"][-1]["summary"] = {"operation": "replace"}

    lake = Iceberg(tmp_path)
    lake.append(MORE)
    before = opened(lake.name)
    lake.compact()
    edit_metadata(lake.table, say_nothing)
    middle = opened(lake.name)
    assert middle.changes_since(before.manifest()).kind == "nothing"
    lake.delete()
    edit_metadata(lake.table, say_nothing)
    assert effects(middle, opened(lake.name)) == [Effect.CHANGED]


def test_a_replacement_that_adds_deletes_is_counted_again(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    before = opened(lake.name)
    (file,) = iceberg_files(lake.table)
    delete_positions(lake.table, {file.file_path: [0]}, tmp_path / "deletes.parquet")
    edit_metadata(lake.table, lambda metadata: set_operation(metadata, "replace"))
    assert effects(before, opened(lake.name)) == [Effect.CHANGED]


def test_an_append_that_adds_deletes_is_counted_again(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    before = opened(lake.name)
    (file,) = iceberg_files(lake.table)
    delete_positions(lake.table, {file.file_path: [0]}, tmp_path / "deletes.parquet")
    edit_metadata(lake.table, lambda metadata: set_operation(metadata, "append"))
    assert effects(before, opened(lake.name)) == [Effect.CHANGED]
