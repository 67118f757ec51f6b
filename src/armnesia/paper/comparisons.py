"""Rows chosen by their values, ratios between methods with their standard errors, and tables of both."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from armnesia.paper.section import Table
from armnesia.simulation import Row

Point = dict[str, Row]
"""The rows of one point of a figure, by method."""


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error, which is 0 if the number is exact."""

    value: float
    error: float = 0.0


def pick(rows: Iterable[Row], **values: object) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def only(rows: Iterable[Row], **values: object) -> Row:
    """The row that has these values; there must be one."""
    (row,) = pick(rows, **values)
    return row


def points(rows: Iterable[Row], **values: object) -> list[Point]:
    """Group the rows that have these values, by panel, varied parameter and x."""
    grouped: dict[tuple[object, ...], Point] = defaultdict(dict)
    for row in pick(rows, **values):
        grouped[row["panel"], row["varied"], row["x"]][row["method"]] = row
    return list(grouped.values())


def ratio(numerator: Row, denominator: Row) -> Estimate:
    """The ratio of two rows' sub-optimality: both exact, both sampled on the same data, or sampled/exact.

    If both are sampled, the error is the jackknife's, because they share their data blocks.

    >>> sampled = {"suboptimality": 3.0, "standard_error": 0.1, "blocks": [2.0, 4.0]}
    >>> exact = {"suboptimality": 2.0, "standard_error": 0.0, "blocks": [2.0]}
    >>> ratio(sampled, exact)
    Estimate(value=1.5, error=0.05)
    """
    a, b = np.array(numerator["blocks"]), np.array(denominator["blocks"])
    n, error = len(a), 0.0
    if n > 1 and len(b) > 1:
        left_out = (a.sum() - a) / (b.sum() - b)
        error = float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))
    elif n > 1:
        error = float(numerator["standard_error"] / denominator["suboptimality"])
    return Estimate(numerator["suboptimality"] / denominator["suboptimality"], error)


def with_error(value: float, error: float, digits: int = 5) -> str:
    """A number as text, with its standard error if it was sampled; what is too small is not shown as 0.

    >>> with_error(0.0123456, 0.0000789), with_error(1.5, 0.0, digits=2), with_error(3e-7, 1e-7)
    ('0.01235 ± 0.00008', '1.50', '< 0.00001')
    """
    if 0 <= value + 2 * error < 0.5 * 10**-digits:
        return f"< {10**-digits:.{digits}f}"
    return f"{value:.{digits}f} ± {error:.{digits}f}" if error else f"{value:.{digits}f}"


def loss(row: Row, scale: float = 1.0, digits: int = 5) -> str:
    """The sub-optimality of a row as text, times a scale; if it is too small, the limit that it is below.

    >>> loss({"suboptimality": 0.0, "standard_error": 4e-7, "high": 1.2e-6})
    '< 1.2e-06'
    """
    if scale * row["suboptimality"] < 10**-digits:
        return f"< {scale * row['high']:.1e}"
    return with_error(scale * row["suboptimality"], scale * row["standard_error"], digits)


def setting_of(row: Row) -> tuple[object, ...]:
    """The panel and the request of a row, whatever the budget and the method."""
    return row["panel"], row["n"], row["arms"], row["k"]


def with_distances(rows: Iterable[Row]) -> list[Row]:
    """Each method of each setting once at each ε, with its `distance`: its ratio to no deletion.

    The ratio is to no deletion by the same protocol: if both are sampled, they share their data sets.
    """
    none: dict[object, Row] = {}
    first: dict[object, Row] = {}
    for row in rows:
        if row["method"] == "oracle":
            none.setdefault((setting_of(row), row["protocol"]), row)
        first.setdefault((setting_of(row), row["method"], row["epsilon"]), row)
    return [{**row, "distance": ratio(row, none[setting_of(row), row["protocol"]])} for row in first.values()]


def distance_as_text(row: Row) -> str:
    """The distance to no deletion; of no deletion itself its sub-optimality.

    >>> distance_as_text({"method": "tilt", "distance": Estimate(1.234, 0.0126)})
    '1.2340 ± 0.0126'
    """
    if row["method"] == "oracle":
        return loss(row)
    return with_error(row["distance"].value, row["distance"].error, 4 if row["distance"].error else 2)


def table_of_rows(
    rows: Iterable[Row],
    lines: Mapping[str, str],
    columns: Mapping[str, Mapping[str, object]],
    show: Callable[..., object],
    caption: str = "",
) -> Table:
    """A line for each value of the keys `lines`, by header, then a column for each choice of rows.

    >>> rows = [{"n": 5, "method": "tilt", "loss": 0.1}, {"n": 9, "method": "rollback", "loss": 0.2}]
    >>> columns = {name: {"method": name} for name in ("tilt", "rollback")}
    >>> table_of_rows(rows, {"N": "n"}, columns, lambda row: row["loss"]).rows
    [[5, 0.1, ''], [9, '', 0.2]]
    """
    grouped: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[tuple(row[key] for key in lines.values())].append(row)
    cells = []
    for values, group in grouped.items():
        chosen = [pick(group, **choice) for choice in columns.values()]
        named = [f"{value:g}" if isinstance(value, float) else value for value in values]
        cells.append([*named, *(show(*found) if found else "" for found in chosen)])
    return Table([*lines, *columns], cells, caption)
