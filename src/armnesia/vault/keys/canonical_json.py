"""Canonical JSON, and the format of times.

Equal values have equal canonical text. Keys are sorted, there are no spaces, characters outside ASCII are not
escaped, and numbers are written as Python writes them: the shortest decimal that reads back the same.
"""

import json
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns
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


def text_of_plain(value: Any) -> str:
    """The canonical text of a value that is plain JSON, without a check.

    >>> text_of_plain({"b": 1, "a": None})
    '{"a":null,"b":1}'
    """
    return _ENCODER.encode(value)


def read_json(text: str, what: str) -> Any:
    """Read JSON from an untrusted source; anything that is wrong with it is reported in one sentence.

    >>> read_json('{"a": 1}', "the file")
    {'a': 1}
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{what} must be valid JSON; it is invalid or truncated") from None


def utc_now() -> str:
    """The current time in UTC, to the microsecond; as text, times sort in their order.

    >>> len(utc_now()), utc_now()[-1]
    (27, 'Z')
    """
    seconds, nanoseconds = divmod(time_ns(), 10**9)
    return f"{_second(seconds)}.{nanoseconds // 1000:06d}Z"


@lru_cache(maxsize=1)  # a deletion writes two times, and takes a fraction of a second
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


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
        if text == time.isoformat(timespec="microseconds").replace("+00:00", "Z"):
            return time
    except ValueError:
        pass
    raise InvalidInputError(f"a time must look like 2026-11-15T10:42:07.123456Z; got {text!r}")
