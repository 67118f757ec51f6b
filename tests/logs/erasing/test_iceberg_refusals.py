"""Iceberg tables of which rows cannot be erased: this is said before anybody is forgotten."""

import os
import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, TruncateTransform
from pyiceberg.types import DoubleType, NestedField, StringType

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.logs import open_source
from armnesia.logs.erasing import People, open_eraser
from tests.logs.erasing.stores import COLUMNS, IcebergStore, arrow_rows, in_order, made_rows, name_of
from tests.logs.lakes.tables import edit_metadata

PEOPLE = People.named([name_of(1)])


def created(store: IcebergStore, rows: pa.Table, **options: Any) -> None:
    catalog = store.catalog()
    catalog.create_namespace_if_not_exists("logs")
    catalog.create_table("logs.clicks", **{"schema": rows.schema, **options}).append(rows)


def test_a_format_that_pyiceberg_does_not_write(lake: IcebergStore) -> None:
    rows = lake.with_parts(1)
    edit_metadata(lake.table(), lambda metadata: metadata.update({"format-version": 3, "next-row-id": 0}))
    with pytest.raises(UnsupportedError, match="of the format versions 1 and 2; this one has 3"):
        lake.eraser().check_rewritable()
    with pytest.raises(UnsupportedError, match="of the format versions 1 and 2; this one has 3"):
        lake.eraser().plan(PEOPLE)
    assert in_order(lake.rows()) == in_order(rows)


def test_users_that_are_uuids(lake: IcebergStore) -> None:
    """Pyiceberg cannot compare them."""
    users = pa.array([uuid.UUID(int=10**30 + row % 7).bytes for row in range(20)], pa.uuid())
    created(lake, arrow_rows(made_rows(0, 20)).set_column(0, "user", users))
    with pytest.raises(
        InvalidLogError, match="must hold dates, decimals, integers, text for rows to be erased"
    ):
        lake.eraser().check_named_by("user")


def test_a_user_column_with_a_point_in_its_name(lake: IcebergStore) -> None:
    created(lake, arrow_rows(made_rows(0)).rename_columns(["user.name", *COLUMNS[1:]]))
    name = "iceberg:lake.logs.clicks"
    source = open_source(name, action="action", reward="reward", user="user.name", whole_rows=False)
    with pytest.raises(UnsupportedError, match=r"a column with a point in its name, 'user\.name'"):
        open_eraser(source).check_named_by("user")
    with pytest.raises(UnsupportedError, match=r"a column with a point in its name, 'user\.name'"):
        open_eraser(source).plan(PEOPLE)


@pytest.mark.parametrize("transform", [IdentityTransform(), TruncateTransform(4)])
def test_a_table_that_is_partitioned_by_users(lake: IcebergStore, transform: Any) -> None:
    types = (StringType(), StringType(), DoubleType(), StringType())
    fields = [NestedField(at + 1, name, types[at], required=False) for at, name in enumerate(COLUMNS)]
    partitions = PartitionSpec(PartitionField(1, 1000, transform, "part"))
    created(lake, arrow_rows(made_rows(0, 9)), schema=Schema(*fields), partition_spec=partitions)
    with pytest.raises(UnsupportedError, match="is or was partitioned by 'user'"):
        lake.eraser().check_named_by("user")


@pytest.mark.parametrize("folder", ["data", "metadata"])
def test_folders_that_may_not_be_written_to(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    lake.with_parts(1)
    access = os.access

    def without_right(path: Any, *options: Any, **further: Any) -> bool:
        return not str(path).endswith(folder) and access(path, *options, **further)

    monkeypatch.setattr(os, "access", without_right)
    monkeypatch.setattr(os, "supports_effective_ids", {without_right})
    with pytest.raises(UnsupportedError, match="may not be written to by this user"):
        lake.eraser().check_rewritable()
