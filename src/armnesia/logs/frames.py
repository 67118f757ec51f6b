"""Decisions in a dataframe: pandas, polars, Arrow, or a mapping of columns, read by DuckDB where they are."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.logs.arrays import as_mapping, mapped_columns
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, DuckDBConnection
from armnesia.logs.source import Scan, Source
from armnesia.logs.sql import NUMERIC, Column, quoted
from armnesia.logs.values import is_missing, label_text, python_values


class _Stream:
    """What gives an Arrow stream, and nothing else of it: DuckDB would ask for pyarrow."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """A dataframe, or columns by name."""

    frame: Any = None
    holds_still: ClassVar[bool] = False

    @classmethod
    def at(cls, location: Any, columns: Columns, table: str | None) -> "FrameSource":
        """A dataframe, as a caller has it."""
        frame = as_mapping(location)
        if isinstance(frame, Mapping):
            frame = {name: _column(values, name) for name, values in mapped_columns(frame).items()}
        elif type(frame).__module__.partition(".")[0] == "pandas":
            frame = {str(name): _column(frame.iloc[:, at], name) for at, name in enumerate(frame.columns)}
        elif hasattr(frame, "collect"):  # a lazy one of polars
            frame = frame.collect()
        if not (isinstance(frame, dict) or hasattr(frame, "__arrow_c_stream__")):
            raise InvalidInputError(
                "source must be a dataframe, a mapping of columns, the path of CSV or Parquet files, or the"
                f" URL of a database; got {type(location).__name__}"
            )
        return cls("dataframe", columns, frame=frame)

    def scan(self, connection: Connection) -> Scan:
        """The columns as they are in memory."""
        assert isinstance(connection, DuckDBConnection)
        frame = self.frame if isinstance(self.frame, dict) else _Stream(self.frame)
        view = f"log_frame_{id(self.frame)}"  # a connection may read several
        connection.cursor.register(view, frame)
        described = connection.rows(f"DESCRIBE {view}")
        types = {name: type_ for name, type_, *_ in described}
        types |= {name: NUMERIC for name, values in _numerals(self.frame)}
        return Scan(view, {each: Column(quoted(each), type_) for each, type_ in types.items()})


class _Numerals(np.ndarray[Any, Any]):
    """Texts of numbers that no type of numpy has."""


def _numerals(frame: Any) -> list[tuple[str, Any]]:
    return (
        [(name, each) for name, each in frame.items() if isinstance(each, _Numerals)]
        if isinstance(frame, dict)
        else []
    )


def _column(values: Any, name: str) -> Any:
    """A column that DuckDB reads as it is: numbers and times of numpy; anything else becomes text."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "biufM":
        return array
    listed = python_values(values, name)
    types = {type(each) for each in listed if not is_missing(each)}
    if types == {bool} and not any(map(is_missing, listed)):
        return np.array(listed, dtype=bool)
    if (
        types
        and types <= {int, float}
        and all(isinstance(v, float) or is_missing(v) or abs(v) < LARGEST_EXACT for v in listed)
    ):
        return np.array([math.nan if is_missing(each) else each for each in listed], dtype=np.float64)
    texts = np.array(list(map(label_text, listed)), dtype=object)
    return texts.view(_Numerals) if types and types <= {int, Decimal} else texts
