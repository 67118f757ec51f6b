"""The types of columns that Parquet files state, which are more than DuckDB tells apart.

DuckDB reads times in milliseconds as such in microseconds, and decimals of many digits as floats: a file that
it writes again can have other types, and other values, though DuckDB sees no difference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from armnesia.core.memory import import_sparing
from armnesia.logs.files.formats import top_fields

_UNITS = ("MILLIS", "MICROS", "NANOS")
_ALIKE = {
    "INT_32": "INT32",  # what the physical type says already
    "INT_64": "INT64",
    "StringType()": "UTF8",
    "ENUM": "UTF8",
    "EnumType()": "UTF8",
}
"""Annotations that mean the same to readers."""
_WIDER = {
    "TIME_MILLIS": "TIME_MICROS",
    "TIME_MILLIS UTC": "TIME_MICROS UTC",
    "TIMESTAMP_MILLIS": "TIMESTAMP_MICROS",
    "TIMESTAMP_MILLIS UTC": "TIMESTAMP_MICROS UTC",
    "INT96": "TIMESTAMP_MICROS",  # if it has no nanoseconds; as Spark writes it, it has none
    "Float16Type()": "FLOAT",
}
"""Types that DuckDB writes in the place of others, which hold the same values."""


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


def is_widened(types: Sequence[str], others: Sequence[str]) -> bool:
    """Whether types of `stored_types` are kept, or have become such that hold all of their values.

    >>> is_widened(["TIMESTAMP_MILLIS"], ["TIMESTAMP_MICROS"]), is_widened(["DECIMAL(50,2)"], ["DOUBLE"])
    (True, False)
    """
    return len(types) == len(others) and all(
        type_ == other
        or _WIDER.get(type_) == other
        or (type_.startswith("FIXED_LEN_BYTE_ARRAY") and other == "BYTE_ARRAY")
        for type_, other in zip(types, others, strict=True)
    )


def has_nanoseconds(path: str, column: str) -> bool:
    """Whether timestamps of INT96 have parts of a microsecond, which DuckDB does not read.

    Only pyarrow tells; without it they may have.
    """
    import_sparing("pyarrow")
    try:
        import pyarrow.compute  # noqa: PLC0415 (an extra)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        return True
    with pyarrow.parquet.ParquetFile(path) as file:
        if column not in file.schema_arrow.names:
            return False
        if not pyarrow.types.is_timestamp(file.schema_arrow.field(column).type):
            return True  # within another value
        for batch in file.iter_batches(columns=[column]):
            whole = pyarrow.compute.cast(batch[0], pyarrow.timestamp("us"), safe=False)
            if not batch[0].cast(pyarrow.timestamp("ns")).equals(whole.cast(pyarrow.timestamp("ns"))):
                return True
    return False


def durations(path: str) -> dict[str, str]:
    """The types of columns with durations, which are integers to Parquet; {} without pyarrow, which tells."""
    import_sparing("pyarrow")
    try:
        import pyarrow.parquet  # noqa: PLC0415 (an extra)
    except ImportError:
        return {}
    types = {field.name: str(field.type) for field in pyarrow.parquet.read_schema(path)}
    return {name: type_ for name, type_ in types.items() if "duration[" in type_}
