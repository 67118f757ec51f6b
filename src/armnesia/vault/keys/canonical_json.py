"""Canonical JSON, JSON of untrusted sources, and the format of times.

Equal values have equal canonical text. Keys are sorted, there are no spaces, characters outside ASCII are not
escaped, and numbers are written as Python writes them: the shortest decimal that reads back the same.
"""

import json
from datetime import UTC, datetime
from typing import Any

from armnesia.core.errors import InvalidInputError

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> str:
    """The canonical JSON text of a value.

    >>> canonical({"b": [1, 0.5, None], "a": "é"})
    '{"a":"é","b":[1,0.5,null]}'
    """
    try:
        text = _ENCODER.encode(value)
        text.encode()
    except (TypeError, ValueError, RecursionError):  # NaN, another type, a surrogate, or too deep
        raise InvalidInputError(
            "a value must be plain JSON: null, true or false, text in UTF-8, finite numbers, and lists and"
            " mappings of these"
        ) from None
    return text


def read_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Read a JSON object, in any layout, from an untrusted source; a name that stands twice is refused.

    >>> read_object('{"a": 1, "a": 2}', "the file")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the file must be valid JSON, with each name once in an object
    """
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{what} must be valid JSON, with each name once in an object") from None
    if not isinstance(found, dict):
        raise InvalidInputError(f"{what} must be a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def utc_now() -> str:
    """The current time in UTC, to the microsecond; as text, times sort in their order.

    >>> len(utc_now()), utc_now()[-1]
    (27, 'Z')
    """
    return time_text(datetime.now(UTC))


def time_text(time: datetime) -> str:
    """A time as `utc_now` writes it.

    >>> time_text(datetime(2026, 11, 15, 10, 42, tzinfo=UTC))
    '2026-11-15T10:42:00.000000Z'
    """
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: object) -> datetime:
    """Read a time that `utc_now` wrote.

    >>> parse_time("2026-11-15T10:42:07.123456Z").year
    2026
    >>> parse_time("yesterday")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: a time must look like 2026-11-15T10:42:07.123456Z; got 'yesterday'
    """
    try:
        time = datetime.fromisoformat(str(text))
        if time.tzinfo is not None and text == time_text(time):
            return time
    except ValueError:
        pass
    raise InvalidInputError(f"a time must look like 2026-11-15T10:42:07.123456Z; got {text!r}")
