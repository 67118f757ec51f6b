"""Canonical JSON, SHA-256, and the format of times.

Equal values have equal canonical text, so that what was hashed or signed can be written again from what was
read. Keys are sorted, there are no spaces, characters outside ASCII are not escaped, and numbers are written
as Python writes them: the shortest decimal that reads back the same. Text is hashed and signed in UTF-8.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns
from typing import Any

from armnesia.core.errors import InvalidInputError

_ACCEPTED = "null, true or false, text, whole and finite numbers, and lists and mappings of these"
_SCALARS = (str, int, float, type(None))  # a bool is an int
_PLAIN = {str, int, float, bool, type(None)}
_LISTS, _MAPPINGS = (list, tuple), (dict, Mapping)  # dict first: the check for a Mapping is slow
_TEXT = {str}
_DEEPEST = 100
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> str:
    """The canonical JSON text of a value: sorted keys, no spaces, no NaN.

    >>> canonical({"b": [1, 0.5, None], "a": "é"})
    '{"a":"é","b":[1,0.5,null]}'
    """
    return plain_and_text(value)[1]


def plain_and_text(value: Any) -> tuple[Any, str]:
    """A plain copy of a value, and its canonical text.

    >>> plain_and_text({"arms": ("A",)})
    ({'arms': ['A']}, '{"arms":["A"]}')
    """
    copy = plain(value)
    try:
        text = text_of_plain(copy)
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError("text must be encodable as UTF-8; got an unpaired surrogate") from None
    except ValueError:  # NaN, an infinity, or a whole number of thousands of digits
        raise InvalidInputError(f"a number cannot be written in JSON; accepted are {_ACCEPTED}") from None
    return copy, text


def text_of_plain(value: Any) -> str:
    """The canonical text of a value that `plain` returned, without checking it again.

    >>> text_of_plain({"b": 1, "a": None})
    '{"a":null,"b":1}'
    """
    return _ENCODER.encode(value)


def text_of_object(texts: Mapping[str, str]) -> str:
    """The canonical text of an object from those of its values; its names must need no escaping.

    >>> text_of_object({"b": "[1,2]", "a": "null"})
    '{"a":null,"b":[1,2]}'
    """
    return "{" + ",".join([f'"{name}":{text}' for name, text in sorted(texts.items())]) + "}"


def plain(value: Any, depth: int = 0) -> Any:
    """A copy in JSON's own types: mappings become dicts, tuples become lists, other types are refused.

    >>> plain({"arms": ("A", "B")})
    {'arms': ['A', 'B']}
    """
    if type(value) in _PLAIN or isinstance(value, _SCALARS):
        return value
    if depth == _DEEPEST:
        raise InvalidInputError(f"a value must be nested at most {_DEEPEST} levels deep; this one is deeper")
    if isinstance(value, _LISTS):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, _MAPPINGS):
        if not (_TEXT.issuperset(map(type, value)) or all(isinstance(key, str) for key in value)):
            raise InvalidInputError("the keys of a mapping must be text; got another type")
        return {key: item if type(item) in _PLAIN else plain(item, depth + 1) for key, item in value.items()}
    raise InvalidInputError(f"JSON has no type {type(value).__name__}; accepted are {_ACCEPTED}")


def read_json(text: str, what: str) -> Any:
    """Read JSON from an untrusted source; anything that is wrong with it is reported in one sentence.

    >>> read_json('{"a": 1}', "the file")
    {'a': 1}
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{what} must be valid JSON; it is invalid or truncated") from None


def unambiguous_json(text: str, what: str) -> Any:
    """Read JSON as `read_json` does, and refuse what another reader may understand in another way.

    >>> unambiguous_json('{"a": 1, "a": 2}', "the file")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the file must have each name once in an object; got 'a' twice
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise _AmbiguousError(f"must have each name once in an object; got {name!r} twice")
            found[name] = value
        return found

    def as_written(number: str, kind: type[int] | type[float]) -> int | float:
        value = kind(number)
        if repr(value) != number:
            raise _AmbiguousError(f"must have numbers as they are read back; got {number[:40]}")
        return value

    def no_constant(name: str) -> None:
        raise _AmbiguousError(f"must have numbers that JSON has; got {name}")

    try:
        return json.loads(
            text,
            object_pairs_hook=once,
            parse_int=lambda number: as_written(number, int),
            parse_float=lambda number: as_written(number, float),
            parse_constant=no_constant,
        )
    except _AmbiguousError as error:
        raise InvalidInputError(f"{what} {error}") from None
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{what} must be valid JSON; it is invalid or truncated") from None


class _AmbiguousError(Exception):
    """What readers of JSON may understand in two ways."""


def sha256_hex(data: bytes | str) -> str:
    """The SHA-256 of bytes, or of text in UTF-8, as 64 hexadecimal digits.

    >>> sha256_hex("abc")
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    """
    return hashlib.sha256(
        data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    ).hexdigest()


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
