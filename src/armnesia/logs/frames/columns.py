"""The columns of what is in memory: mappings, Open Bandit Pipeline feedback, and dataframes.

Dataframes are read through narwhals: pandas, polars, pyarrow and whatever else it supports.
"""

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.core.identifiers import SHORT_FLOATS_EXACT_BELOW
from armnesia.logs.values import python_values

_ARROW_BACKENDS = ("pyarrow", "polars", "pandas")
_FEEDBACK = {"n_actions", "n_rounds", "action", "reward"}
"""What the feedback of the Open Bandit Pipeline always has."""


def is_bandit_feedback(source: Any) -> bool:
    """Tell whether a source is the `bandit_feedback` dictionary of the Open Bandit Pipeline.

    >>> is_bandit_feedback({"n_rounds": 1, "n_actions": 2, "action": [0], "reward": [1]})
    True
    """
    return isinstance(source, Mapping) and set(source) >= _FEEDBACK


def as_mapping(source: Any) -> Any:
    """Turn a data set of the Open Bandit Pipeline, which has its feedback as attributes, into a mapping."""
    is_feedback = not isinstance(source, Mapping) and all(hasattr(source, name) for name in _FEEDBACK)
    # Asked last: a lazy frame warns when its columns are asked for.
    if not is_feedback or hasattr(source, "columns"):
        return source
    return {**vars(source), **{name: getattr(source, name) for name in _FEEDBACK}}


class MappingColumns:
    """A mapping from names to columns."""

    def __init__(self, source: Mapping[Any, Any]) -> None:
        self._source = source

    def names(self) -> list[Any]:
        """The columns; feedback of the Open Bandit Pipeline also holds numbers and tables of actions."""
        if not is_bandit_feedback(self._source):
            return list(self._source)
        rounds = self._source["n_rounds"]
        named = ("action", "reward")
        return [name for name in self._source if name in named or _length(self._source[name]) == rounds]

    def columns(self, names: Iterable[Any]) -> dict[str, Any]:
        """The columns with these names."""
        return {str(name): self._source[name] for name in names}


class FrameColumns:
    """A dataframe; a lazy one is asked for the columns that are read, once."""

    def __init__(self, source: Any) -> None:
        self._narwhals = _narwhals()
        self._frame = _narwhals_frame(self._narwhals, source)

    def names(self) -> list[str]:
        """All columns."""
        return list(self._frame.collect_schema().names())

    def columns(self, names: Iterable[str]) -> dict[str, Any]:
        """The columns with these names."""
        chosen = self._frame.select(list(names))
        if isinstance(chosen, self._narwhals.LazyFrame):
            chosen = chosen.collect()
        return {name: chosen[name] for name in chosen.columns}


def sliceable(column: Any, what: str) -> Any:
    """Keep series of narwhals and arrays of numbers, which are fast; make a list of anything else."""
    numeric = type(column) is np.ndarray and column.ndim == 1 and column.dtype.kind in "biuf"
    is_narwhals = type(column).__module__.partition(".")[0] == "narwhals"
    return column if numeric or is_narwhals else python_values(column, what)


def rows_of_column(column: Any, places: list[int]) -> Any:
    """Some rows of a column that can be sliced."""
    return [column[place] for place in places] if isinstance(column, list) else column[places]


def exact_below(column: Any) -> int | None:
    """Where the whole numbers of a column of short floats begin to stand for several; None for any other.

    >>> exact_below(np.array([1.0], dtype=np.float32)), exact_below(np.array([1.0])), exact_below([1.0])
    (16777216, None, None)
    """
    kind = str(getattr(column, "dtype", "")).lower()
    return {"float16": 2**11, "float32": SHORT_FLOATS_EXACT_BELOW}.get(kind)


def _length(column: Any) -> int | None:
    return len(column) if hasattr(column, "__len__") and not isinstance(column, str) else None


def _narwhals() -> Any:
    try:
        import narwhals  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Reading dataframes", "engines") from error
    return narwhals


def _narwhals_frame(nw: Any, source: Any) -> Any:
    """Wrap a dataframe; one that narwhals does not know is read as an Arrow stream."""
    try:
        return nw.from_native(source)
    except TypeError:
        if hasattr(source, "__arrow_c_stream__"):
            return nw.from_arrow(source, backend=_arrow_backend())
        raise InvalidInputError(
            "source must be a dataframe, a mapping of columns, the path of a CSV or Parquet file, or the URL"
            f" of a database; got {type(source).__name__}"
        ) from None
    except nw.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split())
        raise InvalidLogError(f"source must have distinct column names: {reason}") from None


def _arrow_backend() -> Any:
    for name in _ARROW_BACKENDS:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise MissingExtraError(
        f"Reading an Arrow stream needs one of {', '.join(_ARROW_BACKENDS)}: pip install pyarrow"
    )
