"""Decisions in a dataframe: pandas, polars, Arrow, or a mapping of columns, read by DuckDB where they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.messages import listed
from armnesia.logs import refusals
from armnesia.logs.arrays import mapped_columns
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, DuckDBConnection
from armnesia.logs.source import IN_MEMORY, Scan, Source
from armnesia.logs.sql import Column, by_name, qualified
from armnesia.logs.values import label_text, python_values


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
    objects: frozenset[str] = frozenset()
    """Columns with lists or other objects, which are no labels."""

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "FrameSource":
        """A dataframe, as a caller has it."""
        frame = location
        if hasattr(frame, "collect"):  # a lazy one of polars
            frame = frame.collect()
        if hasattr(frame, "read_all"):  # an Arrow stream, which can be read once
            frame = frame.read_all()
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
            # DuckDB would read the addresses of polars' objects.
            types = zip(names, getattr(frame, "dtypes", ()), strict=False)
            objects = frozenset(name for name, type_ in types if str(type_) == "Object")
            return cls(IN_MEMORY, columns, frame=_Stream(frame), names=names, objects=objects)
        else:
            raise InvalidInputError(
                "source must be a dataframe, a mapping of columns, the path of CSV or Parquet files, or the"
                f" URL of a database; got {type(location).__name__}"
            )
        held = [_column(values, name) for name, values in pairs]
        lengths = {len(values) for values, _ in held}
        if len(lengths) > 1:
            raise InvalidLogError(f"columns must have the same number of rows; got {listed(sorted(lengths))}")
        by_place = {f"c{at}": values for at, (values, _) in enumerate(held)}
        names = tuple(name for name, _ in pairs)
        objects = frozenset(name for name, (_, is_plain) in zip(names, held, strict=True) if not is_plain)
        return cls(IN_MEMORY, columns, frame=by_place, names=names, objects=objects)

    def scan(self, connection: Connection) -> Scan:
        """The columns as they are in memory."""
        assert isinstance(connection, DuckDBConnection)
        view = f"log_frame_{id(self.frame)}"  # a connection may read several
        connection.register(view, self.frame)
        described = connection.rows(f"DESCRIBE {view}")
        names = self.names or [name for name, *_ in described]
        columns = [
            Column(qualified(name), "lists or other objects" if own in self.objects else type_)
            for own, (name, type_, *_) in zip(names, described, strict=True)
        ]
        return Scan(view, by_name(names, columns))


def _names_in(frame: Any) -> tuple[str, ...]:
    """The names of the columns of a frame: DuckDB gives new ones to those that are there twice.

    polars has them as `columns`, Arrow in its schema.
    """
    for names in (getattr(frame, "columns", None), getattr(getattr(frame, "schema", None), "names", None)):
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return tuple(names)
    return ()


def _column(values: Any, name: str) -> tuple[Any, bool]:
    """A column that DuckDB reads as it is: numbers and times of numpy; of anything else the texts.

    Also, whether every value is a single one.
    """
    # Not what other libraries would make of it: integers with a missing value would be floats.
    is_numpy = isinstance(getattr(values, "dtype", None), np.dtype)
    array = values.to_numpy() if is_numpy and hasattr(values, "to_numpy") else values
    if type(array) is np.ndarray and array.ndim == 1 and array.dtype.kind in "biufM":
        whole_seconds = array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in "YMWDhm"
        # DuckDB has no longer units, and no strides below 0.
        return np.ascontiguousarray(array.astype("datetime64[s]") if whole_seconds else array), True
    given = python_values(values, name)
    if set(map(type, given)) in ({bool}, {int}):
        whole = np.array(given)
        if whole.dtype.kind in "bi":
            return whole, True
    if {float} <= set(map(type, given)) <= {float, type(None)}:
        return np.array(given, dtype=np.float64), True
    is_plain = all(type(each).__hash__ is not None for each in given)
    return np.array(list(map(label_text, given)), dtype=object), is_plain
