"""The types of columns that Parquet files state, which are more than DuckDB tells apart.

DuckDB reads times in milliseconds as such in microseconds, and decimals of many digits as floats: a file that
it writes again can have other types, and other values, though DuckDB sees no difference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from armnesia.logs.files.formats import top_fields

MILLISECONDS = ("TIMESTAMP_MILLIS",)
"""The type of a column of timestamps in milliseconds, without a time zone."""
_UNITS = ("MILLIS", "MICROS", "NANOS")
_ALIKE = {
    "INT_32": "INT32",  # what the physical type says already
    "INT_64": "INT64",
    "StringType()": "UTF8",
    "ENUM": "UTF8",
    "EnumType()": "UTF8",
}
"""Annotations that mean the same to readers."""


def stored_types(fields: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """By column: the types of the values in it, of which a nested one has several.

    `fields` are those of `PARQUET_SCHEMAS`.
    """
    top, found = top_fields(fields), dict[str, tuple[str, ...]]()
    starts = [at for at, field in enumerate(fields) if any(field is each for each in top)]
    for start, end in zip(starts, [*starts[1:], len(fields)], strict=True):
        leaves = (field for field in fields[start:end] if not field["num_children"])
        found[fields[start]["name"]] = tuple(map(_type_of, leaves))
    return found


def _type_of(field: Mapping[str, Any]) -> str:
    """The type of a field that has no others within, as far as a reader of its values sees it.

    >>> nothing = dict.fromkeys(("type_length", "converted_type", "logical_type", "precision", "scale"))
    >>> _type_of({**nothing, "type": "INT32", "converted_type": "DECIMAL", "precision": 9, "scale": 2})
    'DECIMAL(9,2)'
    >>> _type_of({**nothing, "type": "FIXED_LEN_BYTE_ARRAY", "type_length": "8"})
    'FIXED_LEN_BYTE_ARRAY(8)'
    """
    physical, logical = str(field["type"]), str(field["logical_type"] or "")
    annotated = str(field["converted_type"] or logical)
    if annotated == "DECIMAL" or logical.startswith("DecimalType"):
        return f"DECIMAL({field['precision']},{field['scale']})"
    for kind in ("Timestamp", "Time"):
        if logical.startswith(f"{kind}Type"):
            (unit,) = (unit for unit in _UNITS if f"{unit}=<null>" not in logical)
            return f"{kind.upper()}_{unit}{' UTC' if 'isAdjustedToUTC=1' in logical else ''}"
    if not annotated:
        return f"{physical}({field['type_length']})" if physical == "FIXED_LEN_BYTE_ARRAY" else physical
    return _ALIKE.get(annotated, annotated)


def arrow_types(path: str) -> dict[str, str]:
    """By column: the type that pyarrow reads, which a file of pyarrow states besides; {} without pyarrow.

    A duration is an integer to Parquet. Types that differ in how a reader holds the values are the same.
    """
    try:
        import pyarrow.parquet  # noqa: PLC0415 (an extra)
    except ImportError:
        return {}
    return {field.name: _arrow_type(field.type) for field in pyarrow.parquet.read_schema(path)}


def _arrow_type(type_: Any) -> str:
    import pyarrow  # noqa: PLC0415 (an extra, which was there just now)

    is_a = pyarrow.types
    if is_a.is_dictionary(type_):
        return _arrow_type(type_.value_type)
    if is_a.is_map(type_):
        return f"map<{_arrow_type(type_.key_type)}, {_arrow_type(type_.item_type)}>"
    if is_a.is_struct(type_):
        return f"struct<{', '.join(f'{each.name}: {_arrow_type(each.type)}' for each in type_)}>"
    if hasattr(type_, "value_type"):  # a list of any kind
        return f"list<{_arrow_type(type_.value_type)}>"
    if is_a.is_timestamp(type_):
        return f"timestamp[{type_.unit}{'' if type_.tz is None else ', UTC'}]"
    return str(type_).removeprefix("large_").removesuffix("_view")
