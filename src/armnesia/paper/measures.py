"""Comparisons between methods at a point, with the error that sampling gives them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from armnesia.paper.cells import Row

Point = dict[str, Row]
"""The rows of one setting, by method."""


@dataclass(frozen=True)
class Measured:
    """A number with its standard error (0 if exact), and where it was found."""

    value: float
    error: float
    x: float = float("nan")


def points(rows: Iterable[Row], **wanted: object) -> list[Point]:
    """Group rows into points, of those rows that have the wanted values.

    >>> rows = [{"panel": "M_f", "varied": "N", "x": 1.0, "method": name} for name in ("rollback", "oracle")]
    >>> [sorted(point) for point in points(rows, panel="M_f")]
    [['oracle', 'rollback']]
    """
    grouped: dict[tuple[object, ...], Point] = defaultdict(dict)
    for row in rows:
        if all(row[key] == value for key, value in wanted.items()):
            grouped[row["panel"], row["varied"], row["x"]][row["method"]] = row
    return list(grouped.values())


def reduction(point: Mapping[str, Row], method: str, other: str) -> Measured:
    """By which part `method` gives up less than `other`: 1 − a/b, in per cent.

    >>> a = {"suboptimality": 1.0, "blocks": [1.0], "x": 5.0}
    >>> b = {"suboptimality": 4.0, "blocks": [4.0], "x": 5.0}
    >>> reduction({"a": a, "b": b}, "a", "b")
    Measured(value=75.0, error=0.0, x=5.0)
    """
    ratio, error = _ratio(point[method], point[other])
    return Measured(100 * (1 - ratio), 100 * error, point[method]["x"])


def distance_to_best(point: Mapping[str, Row], method: str, others: Iterable[str]) -> Measured:
    """By how much `method` gives up more than the best of `others` and itself, in per cent."""
    best = min((*others, method), key=lambda name: point[name]["suboptimality"])
    ratio, error = _ratio(point[method], point[best])
    return Measured(100 * (ratio - 1), 100 * error, point[method]["x"])


def ratio_of(numerator: Row, denominator: Row) -> Measured:
    """How many times as much one row gives up as the other: both exact, both of the same data, or a/exact.

    >>> sampled = {"suboptimality": 3.0, "standard_error": 0.1, "blocks": [2.0, 4.0], "x": 5.0}
    >>> exact = {"suboptimality": 2.0, "standard_error": 0.0, "blocks": [2.0], "x": 5.0}
    >>> ratio_of(sampled, exact)
    Measured(value=1.5, error=0.05, x=5.0)
    """
    return Measured(*_ratio(numerator, denominator), numerator["x"])


def _ratio(numerator: Row, denominator: Row) -> tuple[float, float]:
    """The ratio of two means that share their blocks of data, with its jackknife error."""
    ratio = numerator["suboptimality"] / denominator["suboptimality"]
    a, b = np.array(numerator["blocks"]), np.array(denominator["blocks"])
    n = len(a)
    if n < 2:
        return ratio, 0.0
    if len(b) < 2:
        return ratio, numerator["standard_error"] / denominator["suboptimality"]
    left_out = (a.sum() - a) / (b.sum() - b)
    return ratio, float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))
