"""Nested columns of an Iceberg table whose types have changed: files keep the type that they were written in.

Fields are known by their ids, whatever their names, and DuckDB knows the names only. A file has one of the
types that the table had, and by that its fields are found.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from armnesia.logs.files.duckdb_engine import query
from armnesia.logs.lakes.file_groups import FileGroup, GroupedFiles, StoredColumn
from armnesia.logs.lakes.files import places_in
from armnesia.logs.lakes.iceberg_types import sql_type
from armnesia.logs.lakes.types import converted

_VALUE = "\0"


class NestedType(NamedTuple):
    """A type that a nested column had, or has."""

    stored: str
    """As DuckDB spells it."""
    present: str
    """The type that the column has now."""
    expression: str | None
    """A value in the present type in SQL, with `_VALUE` for the stored one; None if it cannot be told."""
    ids: tuple[int, ...]
    """Of all its fields, depth first."""
    has_dropped_fields: bool
    """Whether it has fields that the present type does not have."""

    def is_type_of(self, column: StoredColumn) -> bool:
        """Whether files have the column in this type, as far as they say."""
        return self.stored == column.type and column.nested_ids in ((), self.ids)


def changed_types(table: Any, shown: str) -> dict[str, list[NestedType]]:
    """All types that nested columns had, by their names, of those columns that had more than one."""
    found: dict[str, list[NestedType]] = {}
    for column in table.schema().fields:
        versions = {
            str(each.field_type): each.field_type
            for schema in table.schemas().values()
            for each in schema.fields
            if each.field_id == column.field_id and not each.field_type.is_primitive
        }
        if len(versions) > 1:
            types = list(versions.values())
            spelled = _spelled([sql_type(each) for each in (column.field_type, *types)], shown)
            found[column.name] = [
                NestedType(
                    stored,
                    spelled[0],
                    _conversion(_VALUE, each, column.field_type),
                    tuple(_ids(each)),
                    has_dropped_fields=bool(set(_ids(each)) - set(_ids(column.field_type))),
                )
                for each, stored in zip(types, spelled[1:], strict=True)
                if spelled[0] and stored
            ]
    return found


def in_present_types(layout: GroupedFiles, changed: Mapping[str, list[NestedType]]) -> GroupedFiles:
    """The files with those changed columns too that all of them give, in their present types."""
    columns, groups, types = list(layout.snapshot.columns), layout.groups, dict(layout.types)
    for place, column in enumerate(columns):
        versions = changed.get(column.name)
        if not versions:
            continue
        read = [
            _read(group, places_in(group, layout.snapshot).get(column.name), versions) for group in groups
        ]
        if None not in read:
            groups = tuple(each for each in read if each is not None)
            types[column.name] = versions[0].present
            columns[place] = replace(column, type=versions[0].present)
    snapshot = replace(layout.snapshot, columns=tuple(columns))
    return replace(layout, snapshot=snapshot, groups=groups, types=types)


@dataclass(frozen=True)
class _ConvertedGroup(FileGroup):
    """Files of which some columns are read in other types."""

    expressions: Mapping[int, str] = field(default_factory=dict)
    """By the place of a column, in SQL."""

    @property
    def rows(self) -> str:
        """The rows, with the same names of columns."""
        names = (f"f{place}" for place in range(len(self.columns)))
        chosen = ", ".join(f"{self.expressions.get(at, name)} AS {name}" for at, name in enumerate(names))
        return f"(SELECT {chosen}, file_index FROM {super().rows}) AS t"


def _read(group: FileGroup, place: int | None, versions: list[NestedType]) -> FileGroup | None:
    """A group that gives a column in its present type; None if it cannot be told how it has it."""
    if place is None:
        return group
    stored = group.columns[place]
    expressions = {each.expression for each in versions if each.is_type_of(stored)}
    if len(expressions) != 1 or None in expressions:
        return None  # another type, or several with the same names
    expression = str(expressions.pop()).replace(_VALUE, f"f{place}")
    columns = list(group.columns)
    columns[place] = replace(stored, type=versions[0].present)
    known = group.expressions if isinstance(group, _ConvertedGroup) else {}
    return _ConvertedGroup(group.number, tuple(columns), group.files, {**known, place: expression})


def _spelled(types: list[str | None], shown: str) -> list[str | None]:
    """Types as DuckDB spells them; None where one is not supported."""
    known = [each for each in types if each is not None]
    if not known:
        return types
    nothing = ", ".join(f"CAST(NULL AS {each}) AS c{at}" for at, each in enumerate(known))
    described = query(f"DESCRIBE SELECT {nothing}", {}, shown=shown, format_name="Parquet")
    spelled = iter([type_ for _, type_, *_ in described])
    return [None if each is None else next(spelled) for each in types]


def _conversion(value: str, old: Any, new: Any, depth: int = 0) -> str | None:
    """A value of one type in another, field by field; None if a field has another kind of type."""
    names = {type(old).__name__, type(new).__name__}
    if names == {"StructType"}:
        return _structure(value, old, new, depth)
    each = f"x{depth}"
    if names == {"ListType"}:
        inner = _conversion(each, old.element_type, new.element_type, depth + 1)
        return None if inner is None else f"[{inner} for {each} in {value}]"
    if names == {"MapType"}:
        inner = _conversion(each, old.value_type, new.value_type, depth + 1)
        if inner is None or str(old.key_type) != str(new.key_type):
            return None
        values = f"[{inner} for {each} in map_values({value})]"
        return f"CASE WHEN {value} IS NOT NULL THEN map(map_keys({value}), {values}) END"
    if not (old.is_primitive and new.is_primitive):
        return None
    before, after = (str(sql_type(type_)).replace(" ", "") for type_ in (old, new))
    return value if str(old) == str(new) else converted(value, before, None, after)


def _structure(value: str, old: Any, new: Any, depth: int) -> str | None:
    known, parts = {each.field_id: each for each in old.fields}, []
    for each in new.fields:
        before = known.get(each.field_id)
        if before is None:
            inner = None if each.initial_default is not None else f"CAST(NULL AS {sql_type(each.field_type)})"
        else:
            name = before.name.replace("'", "''")
            inner = _conversion(
                f"struct_extract({value}, '{name}')", before.field_type, each.field_type, depth
            )
        if inner is None:
            return None
        parts.append("'{}': {}".format(each.name.replace("'", "''"), inner))
    return f"CASE WHEN {value} IS NOT NULL THEN {{{', '.join(parts)}}} END"


def _ids(type_: Any) -> Iterator[int]:
    """The ids of all fields of a type."""
    name = type(type_).__name__
    if name == "StructType":
        inner = [(each.field_id, each.field_type) for each in type_.fields]
    elif name == "ListType":
        inner = [(type_.element_id, type_.element_type)]
    elif name == "MapType":
        inner = [(type_.key_id, type_.key_type), (type_.value_id, type_.value_type)]
    else:
        inner = []
    for number, each in inner:
        yield number
        yield from _ids(each)
