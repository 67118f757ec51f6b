"""One Parquet file without some of its rows: same columns, metadata, compression, row groups and order."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidLogError, MissingExtraError
from armnesia.core.memory import import_sparing

_FALSE_POSITIVES = 0.01
"""Of bloom filters: a file does not say how it was chosen."""
_PLAIN_INTEGERS = {
    "INT32": "Int(bitWidth=32, isSigned=true)",
    "INT64": "Int(bitWidth=64, isSigned=true)",
}
"""Types of integers, and what some writers say of them although it goes without saying."""


def write_without(path: str, target: str, positions: IntArray) -> None:
    """Write the rows of a Parquet file to another one, without those at some positions.

    Row group by row group, so that memory does not grow with the file. A group of which no row stays is left
    out, and a file of which none stays has its columns and no rows. Refused is a file whose columns would
    become others, as with types that pyarrow does not write.
    """
    _write(path, target, lambda file, schema: _kept_rows(file, schema, positions))


def write_without_rows(path: str, target: str) -> None:
    """Write a file with the same columns and no rows, none of which is read; refuse as `write_without`."""
    _write(path, target, lambda _file, _schema: ())


def _write(path: str, target: str, kept_rows: Callable[[Any, Any], Iterable[Any]]) -> None:
    parquet = _parquet()
    try:
        with parquet.ParquetFile(path) as file:
            layout = _Layout(file)
            schema = with_plain_types(file.schema_arrow)
            with parquet.ParquetWriter(target, schema, **layout.options(parquet)) as writer:
                for rows in kept_rows(file, schema):
                    writer.write_table(rows, row_group_size=len(rows))
                if layout.metadata:
                    writer.add_key_value_metadata(layout.metadata)
        with parquet.ParquetFile(target) as written:
            layout.check(_Layout(written))
    except _ChangedLayoutError as change:
        raise _refused(path, str(change)) from None
    except (OSError, ValueError, TypeError, NotImplementedError, ArithmeticError) as error:
        # Not the library's own words, which may quote a value.
        number = error.errno if isinstance(error, OSError) else None
        cause = type(error).__name__ if number is None else os.strerror(number)
        raise _refused(path, f"pyarrow cannot write it again ({cause})") from None


def _parquet() -> Any:
    import_sparing("pyarrow")
    try:
        import pyarrow.parquet  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Erasing rows of Parquet files", "erase") from error
    return pyarrow.parquet


def _refused(path: str, reason: str) -> InvalidLogError:
    return InvalidLogError(f"rows of {path!r} cannot be erased: {reason}")


def _kept_rows(file: Any, schema: Any, positions: IntArray) -> Iterator[Any]:
    """The rows of each group that stay, in a schema of plain types: not all others can be taken apart."""
    first = 0
    for number in range(file.metadata.num_row_groups):
        n_rows = file.metadata.row_group(number).num_rows
        start, end = np.searchsorted(positions, [first, first + n_rows])
        if end - start < n_rows:
            rows = file.read_row_group(number).cast(schema)
            if end > start:
                kept = np.delete(np.arange(n_rows), positions[start:end] - first)
                rows = rows.take(kept)
            yield rows
        first += n_rows


def with_plain_types(schema: Any) -> Any:
    """A schema with texts where it has codes of a dictionary, or views of texts, in nested columns too.

    A dictionary keeps a name when the last row that has it is left out; texts do not. Views are stored as
    texts, and pyarrow cannot leave rows out of them.

    >>> import pyarrow
    >>> names = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    >>> with_plain_types(pyarrow.schema({"user": names, "seen": pyarrow.list_(pyarrow.string_view())})).types
    [DataType(string), ListType(list<item: string>)]
    """
    import pyarrow  # noqa: PLC0415 (an extra)

    is_a = pyarrow.types
    views = {pyarrow.string_view(): pyarrow.string(), pyarrow.binary_view(): pyarrow.binary()}

    def plain(type_: Any) -> Any:
        if is_a.is_dictionary(type_):
            return plain(type_.value_type)
        if type_ in views:
            return views[type_]
        if is_a.is_struct(type_):
            return pyarrow.struct([plain_field(each) for each in type_.fields])
        if is_a.is_map(type_):
            return pyarrow.map_(plain_field(type_.key_field), plain_field(type_.item_field))
        if is_a.is_list(type_) or is_a.is_large_list(type_) or is_a.is_fixed_size_list(type_):
            return plain_list(type_)
        return type_

    def plain_list(type_: Any) -> Any:
        values = plain_field(type_.value_field)
        if is_a.is_fixed_size_list(type_):
            return pyarrow.list_(values, type_.list_size)
        return pyarrow.list_(values) if is_a.is_list(type_) else pyarrow.large_list(values)

    def plain_field(field: Any) -> Any:
        return field.with_type(plain(field.type))

    return pyarrow.schema([plain_field(each) for each in schema], metadata=schema.metadata)


class _ChangedLayoutError(Exception):
    """What would be another in the new file."""


class _Layout:
    """How a file is written, as far as it says so itself."""

    def __init__(self, file: Any) -> None:
        self._schema = file.schema
        self.metadata = dict(file.metadata.metadata or {})
        groups = range(file.metadata.num_row_groups)
        self._groups = [file.metadata.row_group(number) for number in groups]
        self._paths = [file.schema.column(place).path for place in range(len(file.schema))]

    def options(self, parquet: Any) -> dict[str, Any]:
        """The options of `ParquetWriter` for a file like this one."""
        types = [self._schema.column(place).physical_type for place in range(len(self._paths))]
        decimals = self._places_of_type("DECIMAL")
        options = {
            "store_schema": False,  # the old file's is copied with its other metadata
            "use_deprecated_int96_timestamps": "INT96" in types,
            "store_decimal_as_integer": any(types[place] in _PLAIN_INTEGERS for place in decimals),
            "use_compliant_nested_type": not any(".list.item" in path for path in self._paths),
            "write_time_adjusted_to_utc": any(
                self._logical_type(place)["isAdjustedToUTC"] for place in self._places_of_type("TIME")
            ),
        }
        if not self._groups:
            return options
        first = self._groups[0]
        chunks = {path: first.column(place) for place, path in enumerate(self._paths)}
        return options | {
            "compression": {path: _codec(chunk.compression) for path, chunk in chunks.items()},
            "use_dictionary": [path for path, chunk in chunks.items() if _has_dictionary(chunk)],
            "write_statistics": [path for path, chunk in chunks.items() if chunk.is_stats_set],
            "write_page_index": any(chunk.has_offset_index for chunk in chunks.values()),
            "sorting_columns": [parquet.SortingColumn(*each) for each in _sorting(first)] or None,
            "bloom_filter_options": {
                path: {"ndv": max(first.num_rows, 1), "fpp": _FALSE_POSITIVES}
                for path, chunk in chunks.items()
                if chunk.bloom_filter_offset is not None
            }
            or None,
        }

    def check(self, written: "_Layout") -> None:
        """Refuse a file that differs in what readers see besides the rows."""
        if self._paths != written._paths:
            raise _ChangedLayoutError("its nested columns would get other names")
        for place, path in enumerate(self._paths):
            before, after = self._described(place), written._described(place)
            if before != after:
                raise _ChangedLayoutError(f"column {path!r} would become {after[0]} where it is {before[0]}")
        if self.metadata != written.metadata:
            raise _ChangedLayoutError("its key-value metadata would change")

    def _described(self, place: int) -> tuple[Any, ...]:
        """What a reader sees of a column."""
        column = self._schema.column(place)
        physical, logical = column.physical_type, str(column.logical_type)
        if logical == _PLAIN_INTEGERS.get(physical):
            logical = "None"
        # The bytes of a decimal may be more than its digits need.
        sized = physical == "FIXED_LEN_BYTE_ARRAY" and not logical.startswith("Decimal")
        levels = column.max_definition_level, column.max_repetition_level
        return f"{physical} {logical}", column.name, levels, column.length if sized else None

    def _logical_type(self, place: int) -> dict[str, Any]:
        """The parameters of a type: pyarrow gives them as JSON alone."""
        return dict(json.loads(self._schema.column(place).logical_type.to_json()))

    def _places_of_type(self, name: str) -> list[int]:
        return [
            place for place in range(len(self._paths)) if self._schema.column(place).logical_type.type == name
        ]


def _codec(name: str) -> str:
    """A compression as `ParquetWriter` takes it.

    >>> _codec("ZSTD"), _codec("UNCOMPRESSED")
    ('zstd', 'none')
    """
    return "none" if name == "UNCOMPRESSED" else name.lower()


def _has_dictionary(chunk: Any) -> bool:
    return any("DICTIONARY" in encoding for encoding in chunk.encodings)


def _sorting(group: Any) -> list[tuple[int, bool, bool]]:
    """By which columns the rows of a group are sorted: place, is it descending, does NULL come first."""
    return [(each.column_index, each.descending, each.nulls_first) for each in group.sorting_columns or ()]
