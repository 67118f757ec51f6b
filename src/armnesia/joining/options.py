"""The options of a join as values: the window, the aggregate, the bounds of the reward."""

import math
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import any_of, listed

AGGREGATES = ("sum", "any", "count")
TIME_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0}
"""Microseconds in a unit; a nanosecond is less than one."""
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_WINDOW = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|min|h|d|w)")
_LONGEST_WINDOW = timedelta(days=36_525)


def window_in_microseconds(window: str | timedelta) -> int:
    """The length of a window.

    >>> window_in_microseconds("14d") == window_in_microseconds("2w") == window_in_microseconds("336h")
    True
    >>> window_in_microseconds("-3d")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: window must be a time of more than 0 and at most 100 years, such
    as 14d, 36h, 90min or 30s; got '-3d'
    """
    length = window
    if isinstance(window, str):
        found = _WINDOW.fullmatch(window.strip())
        seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
        length = timedelta(seconds=min(seconds, 1e11))
    if not isinstance(length, timedelta) or not timedelta(0) < length <= _LONGEST_WINDOW:
        raise InvalidInputError(
            "window must be a time of more than 0 and at most 100 years, such as 14d, 36h, 90min or 30s;"
            f" got {window!r}"
        )
    return length // timedelta(microseconds=1)


def checked_aggregate(aggregate: str) -> str:
    """Refuse anything else than sum, any and count."""
    if aggregate not in AGGREGATES:
        raise InvalidInputError(f"aggregate must be {any_of(AGGREGATES)}; got {aggregate!r}")
    return aggregate


def checked_clip(clip: Iterable[float] | None) -> tuple[float, float] | None:
    """The lowest and the highest reward.

    >>> checked_clip([0, 100]), checked_clip(None)
    ((0.0, 100.0), None)
    """
    if clip is None:
        return None
    try:
        low, high = map(float, clip)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInputError(
            f"clip must be two finite numbers, the lower one first, such as (0, 100); got {clip!r}"
        )
    return low, high


def checked_time_unit(unit: str | None, name: str) -> str | None:
    """Refuse anything else than the units of numbers."""
    if unit is not None and unit not in TIME_UNITS:
        raise InvalidInputError(f"{name} must be {any_of(list(TIME_UNITS))}; got {unit!r}")
    return unit


def checked_time_zone(name: str) -> str:
    """Refuse a name that the database of time zones does not have.

    >>> checked_time_zone("Europe/Berlin")
    'Europe/Berlin'
    """
    try:
        return ZoneInfo(name).key
    except (OSError, ValueError, TypeError):  # ZoneInfoNotFoundError is a KeyError
        pass
    except KeyError:
        pass
    raise InvalidInputError(f"time_zone must be a name such as UTC or Europe/Berlin; got {name!r}")


def checked_keep(keep: str | Iterable[str], taken: Sequence[str]) -> tuple[str, ...]:
    """The columns to keep of the exposures; `taken` are those that the log has anyway.

    >>> checked_keep("country", ["user"]), checked_keep(["country", "device"], ["user"])
    (('country',), ('country', 'device'))
    """
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    used = {name.lower() for name in taken}
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"keep must be names of columns of the exposures; got {name!r}")
        if name.lower() in used:
            raise InvalidInputError(
                f"keep must be different columns, and others than {listed(taken)}, which the log has; got"
                f" {name!r}"
            )
        used.add(name.lower())
    return names
