"""Types of Iceberg schemas in DuckDB's SQL."""

from typing import Any

from armnesia.logs.lakes.types import list_type, map_type, struct_type

_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "timestamp_ns": "TIMESTAMP_NS",
    "string": "VARCHAR",
    "uuid": "UUID",
    "binary": "BLOB",
}


def sql_type(type_: Any) -> str | None:
    """A type of an Iceberg schema in DuckDB's SQL; None if it is not supported."""
    name = type(type_).__name__
    if name == "StructType":
        return struct_type((each.name, sql_type(each.field_type)) for each in type_.fields)
    if name == "ListType":
        return list_type(sql_type(type_.element_type))
    if name == "MapType":
        return map_type(sql_type(type_.key_type), sql_type(type_.value_type))
    if name == "DecimalType":
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return "BLOB" if name == "FixedType" else _TYPES.get(str(type_))
