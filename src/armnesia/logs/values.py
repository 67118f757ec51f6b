"""Labels and whole rows as text: the same text for the same row, whatever kind of source it comes from."""

from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.logs.columns import is_missing

LARGEST_EXACT = 2**53
"""Beyond this, floats skip whole numbers, and a float is no longer the text of one of them."""


_BYTE_TEXTS = [
    chr(byte) if 32 <= byte < 127 and chr(byte) not in "\"'\\" else f"\\x{byte:02X}" for byte in range(256)
]
"""How DuckDB writes each byte of what is not known to be text."""


def label_text(value: Any) -> str | None:
    """Write a label as text, by which people and rows are known to the vault; None if it is missing.

    It is `str(value)`, except that a whole number is written without a decimal point: a column of integers
    that misses one value becomes a column of floats in pandas, and user 7 must not become user 7.0 by that.
    Times are written with as many digits as they need, with a date in UTC if they know their zone; bytes as
    text where they are plain characters, and by their number otherwise: as DuckDB writes what is in a file.

    >>> label_text("007"), label_text(7), label_text(7.0), label_text(7.5), label_text(True)
    ('007', '7', '7', '7.5', 'True')
    >>> label_text(time(23, 59, 59, 500_000)), label_text(b"ann"), label_text(float("nan"))
    ('23:59:59.5', 'ann', None)
    """
    if type(value) is str or type(value) is int:  # nearly always
        return str(value)
    plain = plain_times(value).tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(plain, list | tuple | dict):
        return str(plain)
    if is_missing(plain):
        return None
    match plain:
        case float():
            text = str(int(plain)) if plain.is_integer() and abs(plain) < LARGEST_EXACT else str(plain)
        case Decimal():
            text = format(_without_point(plain), "f")
        case datetime():
            text = _moment_text(plain)
        case time():
            text = _clock_text(plain)
        case timedelta():  # not in the words of a kind of its own, such as pandas'
            text = str(timedelta(plain.days, plain.seconds, plain.microseconds))
        case bytes() | bytearray() | memoryview():
            text = "".join(map(_BYTE_TEXTS.__getitem__, bytes(plain)))
        case _:
            text = str(plain)
    return text


def plain_times(values: Any) -> Any:
    """Times of numpy in microseconds, which are times in Python, too; in nanoseconds they are numbers there.

    >>> plain_times(np.array(["2026-01-02T03:04"], dtype="datetime64[ns]")).tolist()
    [datetime.datetime(2026, 1, 2, 3, 4)]
    """
    return values.astype(f"{values.dtype.kind}8[us]") if values.dtype.kind in "mM" else values


def sized(text: str | None) -> str:
    """Put the length before a text, so that texts can be joined without running into each other.

    >>> sized("ab") + sized(None) + sized("")
    '2:ab-0:'
    """
    return "-" if text is None else f"{len(text)}:{text}"


def heading(reward: str, others: Iterable[str]) -> str:
    """Begin the text of a whole row: the names of its columns, the reward's first, the others sorted.

    >>> heading("clicked", ["user", "arm"])
    '7:clicked3:arm4:user;'
    """
    return "".join(map(sized, [reward, *sorted(others)])) + ";"


def joined_texts(columns: Sequence[Sequence[Any]]) -> list[str]:
    """Write each row's values one after another, each with its length.

    >>> joined_texts([["A", "B"], [7, None]])
    ['1:A1:7', '1:B-']
    """
    sizes = [[sized(label_text(value)) for value in column] for column in columns]
    return list(map("".join, zip(*sizes, strict=True)))


def arm_of_text(actions: Sequence[Hashable]) -> dict[str, int]:
    """Number the declared actions by their text, by which they are found in a source.

    >>> arm_of_text(["A", 2])
    {'A': 0, '2': 1}
    """
    arm_of: dict[str, int] = {}
    for arm, action in enumerate(actions):
        text = str(label_text(action))
        if text in arm_of:
            raise InvalidInputError(
                "actions must differ in their text, by which they are found in a source;"
                f" got {actions[arm_of[text]]!r} and {action!r}"
            )
        arm_of[text] = arm
    return arm_of


def storable_label(value: Any) -> str | int | bool:
    """Turn a label that was found in a source into one that JSON can hold: text, unless it is whole or truth.

    >>> storable_label("A"), storable_label(np.int64(2)), storable_label(3.0), storable_label(0.5)
    ('A', 2, 3, '0.5')
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return plain
    text = str(label_text(plain))
    whole = isinstance(plain, int | float | Decimal) and text.removeprefix("-").isdecimal()
    return int(text) if whole else text


def _without_point(value: Decimal) -> Decimal:
    whole = value.is_finite() and value == value.to_integral_value()
    return Decimal(int(value)) if whole else value


def _moment_text(moment: datetime) -> str:
    zone = "" if moment.tzinfo is None else "+00:00"
    local = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return _without_zeros(str(local)) + zone


def _clock_text(clock: time) -> str:
    local = str(clock.replace(tzinfo=None))
    return _without_zeros(local) + str(clock).removeprefix(local)  # the zone stays: without a date it is none


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text
