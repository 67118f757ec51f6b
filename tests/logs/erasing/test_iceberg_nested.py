"""Nested columns of an Iceberg table whose types have changed: they are compared; dropped fields are told."""

from typing import Any

import pyarrow as pa
import pyiceberg.io.pyarrow as iceberg_arrow
import pytest
from pyiceberg.types import LongType, StringType

from armnesia.core.errors import InvalidLogError
from armnesia.logs.erasing import Erasure, People, SourceState
from armnesia.logs.lakes.iceberg import IcebergSource
from tests.logs.erasing.stores import IcebergStore, arrow_rows, found_in, name_of

PERSON = name_of(1)
PEOPLE = People.named([PERSON])
NAMES = [PERSON, name_of(7), name_of(8), None]
KINDS: dict[str, tuple[Any, Any]] = {
    "struct": (lambda inner: inner, lambda value: value),
    "list": (pa.list_, lambda value: [value, None, value]),
    "map": (lambda inner: pa.map_(pa.string(), inner), lambda value: [("k", value), ("n", None)]),
    "deep": (
        lambda inner: pa.struct([pa.field("in", pa.list_(inner))]),
        lambda value: {"in": [value]},
    ),
}
PATHS = {
    "struct": ("who",),
    "list": ("who", "element"),
    "map": ("who", "value"),
    "deep": ("who", "in", "element"),
}


def rows_with(who: pa.Array) -> pa.Table:
    rows = arrow_rows([(name, "A", 0.5 + at, "x") for at, name in enumerate(NAMES)])
    return rows.append_column("who", who)


def created(store: IcebergStore, kind: str = "struct") -> tuple[str, ...]:
    """A table with a nested column `who`; the path of the structure in it."""
    wrap, value = KINDS[kind]
    inner = pa.struct([("name", pa.string()), ("age", pa.int32())])
    values = [value({"name": f"friend-{at}", "age": at}) for at in range(3)]
    catalog = store.catalog()
    catalog.create_namespace_if_not_exists("logs")
    rows = rows_with(pa.array([*values, None], wrap(inner)))
    catalog.create_table("logs.clicks", schema=rows.schema).append(rows)
    return PATHS[kind]


def change(store: IcebergStore, path: tuple[str, ...]) -> None:
    """Add a field, rename one, and widen one."""
    with store.table().update_schema() as update:
        update.add_column((*path, "city"), StringType())
        update.rename_column((*path, "name"), "called")
        update.update_column((*path, "age"), LongType())


def left(store: IcebergStore) -> list[str]:
    rows = store.table().scan().to_arrow().to_pylist()
    return sorted(repr(row) for row in rows if row["user"] != PERSON)


def damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pyiceberg lose the column, as a fault of it might."""
    write = iceberg_arrow._dataframe_to_data_files

    def damaging(*options: Any, **further: Any) -> Any:
        rows = further["df"]
        at = rows.schema.get_field_index("who")
        field = rows.schema.field(at)
        further["df"] = rows.set_column(at, field, pa.nulls(len(rows), field.type))
        return write(*options, **further)

    monkeypatch.setattr(iceberg_arrow, "_dataframe_to_data_files", damaging)


@pytest.mark.parametrize("kind", KINDS)
def test_changed_columns_are_compared(lake: IcebergStore, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    change(lake, created(lake, kind))
    before = left(lake)
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    with monkeypatch.context() as patched:
        damage(patched)
        with pytest.raises(InvalidLogError, match="the other rows would not stay the same"):
            lake.eraser().apply(plan, PEOPLE)
    assert left(lake) == before, "it was rolled back"
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    lake.eraser().apply(plan, PEOPLE)
    assert left(lake) == before
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


def test_a_changed_column_reads_as_pyiceberg_reads_it(lake: IcebergStore) -> None:
    change(lake, created(lake, "deep"))
    lake.table().append(lake.table().scan().to_arrow())
    source = lake.open()
    assert isinstance(source, IcebergSource)
    files = source.compared_files
    place = [name for name, _ in files.columns].index("who")
    found = [value for (value,) in files.query(f"SELECT c{place} FROM {files.table}")]
    assert sorted(map(repr, found)) == sorted(map(repr, lake.table().scan().to_arrow()["who"].to_pylist()))


def erased(store: IcebergStore) -> Erasure:
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    store.eraser().apply(plan, PEOPLE)
    return store.eraser().purge(plan, PEOPLE, ignore_retention=True)


@pytest.mark.parametrize("is_added_again", [False, True])
def test_a_field_that_was_dropped_from_a_structure(lake: IcebergStore, is_added_again: bool) -> None:
    """A file without rows of the person keeps it; a later field of the same name is another one."""
    created(lake)
    type_ = pa.struct([("name", pa.string()), ("age", pa.int32())])
    other = arrow_rows([(name_of(9), "A", 0.5, "x")])
    lake.table().append(other.append_column("who", pa.array([{"name": PERSON, "age": 7}], type_)))
    with lake.table().update_schema(allow_incompatible_changes=True) as update:
        update.delete_column(("who", "name"))
    if is_added_again:
        with lake.table().update_schema() as update:
            update.add_column(("who", "name"), StringType())
            update.move_first(("who", "name"))
    erasure = erased(lake)
    assert found_in(lake.contents(), {PERSON.encode()})
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("in a column that was dropped" in each for each in erasure.remains)
    lake.table().overwrite(lake.table().scan().to_arrow())
    plan = lake.eraser().empty_plan()
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(lake.contents(), {PERSON.encode()}) == set()
