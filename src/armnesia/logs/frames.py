"""Columns out of dataframes and mappings: pandas, polars, pyarrow and whatever else narwhals knows."""

import importlib
from collections.abc import Mapping
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.logs import rules

_ARROW_BACKENDS = ("pyarrow", "polars", "pandas")


def is_bandit_feedback(source: Any) -> bool:
    """Tell whether a source is the `bandit_feedback` dictionary of the Open Bandit Pipeline.

    >>> is_bandit_feedback({"n_rounds": 1, "n_actions": 2, "action": [0], "reward": [1]})
    True
    """
    return isinstance(source, Mapping) and {"n_actions", "n_rounds", "action", "reward"} <= set(source)


def columns_of_mapping(source: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Take the named columns out of a mapping from column names to arrays."""
    for role, name in names.items():
        if name not in source:
            raise rules.missing_column(role, name, list(source))
    if is_bandit_feedback(source) and len(source[names["action"]]) != source["n_rounds"]:
        raise InvalidLogError(
            f"n_rounds must be the number of rows, {len(source[names['action']])}; got {source['n_rounds']!r}"
        )
    return {role: source[name] for role, name in names.items()}


def columns_of_frame(source: Any, names: dict[str, str]) -> dict[str, Any]:
    """Take the named columns out of a dataframe; a lazy one is asked for these columns only."""
    chosen = eager_columns(source, names)
    return {
        role: chosen[name].to_numpy() if role == "reward" else chosen[name].to_list()
        for role, name in names.items()
    }


def eager_columns(source: Any, names: dict[str, str], *, whole: bool = False) -> dict[str, Any]:
    """Take the named columns, or all if `whole`, out of a dataframe, as series of narwhals by their name."""
    nw = _narwhals()
    frame = _narwhals_frame(nw, source)
    available = frame.collect_schema().names()
    for role, name in names.items():
        if name not in available:
            raise rules.missing_column(role, name, available)
    chosen = frame if whole else frame.select(list(dict.fromkeys(names.values())))
    if isinstance(chosen, nw.LazyFrame):
        chosen = chosen.collect()
    return {name: chosen[name] for name in chosen.columns}


def _narwhals() -> Any:
    try:
        import narwhals  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Reading dataframes", "engines") from error
    return narwhals


def _narwhals_frame(nw: Any, source: Any) -> Any:
    """Wrap a dataframe; only what narwhals does not know itself is asked for an Arrow stream."""
    try:
        return nw.from_native(source)
    except TypeError:
        if hasattr(source, "__arrow_c_stream__"):
            return nw.from_arrow(source, backend=_arrow_backend())
        raise InvalidInputError(
            "source must be a dataframe, a mapping of columns, or the path of a CSV or Parquet file;"
            f" got {type(source).__name__}"
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
