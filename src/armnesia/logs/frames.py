"""Decisions in a dataframe: pandas, polars, Arrow, or a mapping of columns, read by DuckDB where they are."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.core.messages import listed
from armnesia.logs import refusals
from armnesia.logs.arrays import as_mapping, mapped_columns
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, DuckDBConnection
from armnesia.logs.source import IN_MEMORY, Scan, Source
from armnesia.logs.sql import NUMERIC, Column, by_name, qualified
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
    """An Arrow stream, or the columns by their places."""
    names: tuple[str, ...] = ()
    """Those of the columns, if they are not the stream's own as DuckDB takes them."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Of columns whose values are written as text, which they are not."""

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "FrameSource":
        """A dataframe, as a caller has it."""
        frame = as_mapping(location)
        if hasattr(frame, "collect"):  # a lazy one of polars
            frame = frame.collect()
        is_pandas = type(frame).__module__.partition(".")[0] == "pandas"
        if isinstance(frame, Mapping):
            pairs = list(mapped_columns(frame).items())
        elif is_pandas and hasattr(frame, "iloc") and hasattr(frame, "columns"):
            pairs = [(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
        elif hasattr(frame, "__arrow_c_stream__") and not is_pandas:
            names = _names_in(frame)
            repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if repeated:  # nothing of such a stream can be read
                raise refusals.repeated_column(repeated[0])
            return cls(IN_MEMORY, columns, frame=_Stream(frame), names=names)
        else:
            raise InvalidInputError(
                "source must be a dataframe, a mapping of columns, the path of CSV or Parquet files, or the"
                f" URL of a database; got {type(location).__name__}"
            )
        held = {f"c{at}": _column(values, name) for at, (name, values) in enumerate(pairs)}
        lengths = {len(values) for values, _ in held.values()}
        if len(lengths) > 1:
            raise InvalidLogError(f"columns must have the same number of rows; got {listed(sorted(lengths))}")
        by_place = {name: values for name, (values, _) in held.items()}
        types = {name: type_ for name, (_, type_) in held.items() if type_}
        return cls(IN_MEMORY, columns, frame=by_place, names=tuple(name for name, _ in pairs), types=types)

    def scan(self, connection: Connection) -> Scan:
        """The columns as they are in memory."""
        assert isinstance(connection, DuckDBConnection)
        view = f"log_frame_{id(self.frame)}"  # a connection may read several
        connection.register(view, self.frame)
        described = connection.rows(f"DESCRIBE {view}")
        columns = [self._typed(qualified(name), self.types.get(name), type_) for name, type_, *_ in described]
        return Scan(view, by_name(self.names or [name for name, *_ in described], columns))

    @staticmethod
    def _typed(sql: str, meant: str | None, held: str) -> Column:
        return Column(f"CAST({sql} AS BOOLEAN)" if meant == "BOOLEAN" else sql, meant or held)


def _names_in(frame: Any) -> tuple[str, ...]:
    """The names of the columns of a frame: DuckDB gives new ones to those that are there twice.

    polars has them as `columns`, Arrow in its schema.
    """
    for names in (getattr(frame, "columns", None), getattr(getattr(frame, "schema", None), "names", None)):
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return tuple(names)
    return ()


def _column(values: Any, name: str) -> tuple[Any, str]:
    """A column that DuckDB reads as it is: numbers and times of numpy; anything else becomes text.

    Its type is given too, where text stands for another.
    """
    # Not what other libraries would make of it: integers with a missing value would be floats.
    is_numpy = isinstance(getattr(values, "dtype", None), np.dtype)
    array = values.to_numpy() if is_numpy and hasattr(values, "to_numpy") else values
    if type(array) is np.ndarray and array.ndim == 1 and array.dtype.kind in "biufM":
        whole_seconds = array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in "YMWDhm"
        return array.astype("datetime64[s]") if whole_seconds else array, ""  # DuckDB has no longer units
    given = [
        each.item() if isinstance(each, np.generic) and each.dtype.kind in "biuf" else each
        for each in python_values(values, name)
    ]
    types = {type(each) for each in given if not is_missing(each)}
    if types in ({bool}, {int}) and not any(map(is_missing, given)):
        whole = np.array(given)
        if whole.dtype.kind in "bi":
            return whole, ""
    if (
        types
        and types <= {int, float}
        and all(isinstance(v, float) or is_missing(v) or abs(v) < LARGEST_EXACT for v in given)
    ):
        return np.array([math.nan if is_missing(each) else each for each in given], dtype=np.float64), ""
    type_ = "BOOLEAN" if types == {bool} else NUMERIC if types and types <= {int, Decimal} else ""
    if any(each.__hash__ is None for each in types):
        type_ = "lists or other collections"
    return np.array(list(map(label_text, given)), dtype=object), type_
