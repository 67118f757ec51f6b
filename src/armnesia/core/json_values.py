"""Results as JSON can hold them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_PLAIN = frozenset({str, int, bool, type(None)})
_MAPPINGS = (dict, Mapping)  # the first is nearly always it; the test of the second takes longer


def json_value(value: Any) -> Any:
    """Turn a result into what JSON can hold: infinity becomes "inf", NaN (no data) becomes null.

    >>> json_value({"epsilon": np.float64("inf"), "means": np.array([0.5, np.nan])})
    {'epsilon': 'inf', 'means': [0.5, None]}
    """
    if type(value) in _PLAIN:  # nearly all values; tests of classes take longer
        return value
    if isinstance(value, _MAPPINGS):
        return {str(key): item if type(item) in _PLAIN else json_value(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)
