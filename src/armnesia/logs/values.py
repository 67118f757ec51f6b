"""What a value of a source means: which values are missing, and the text by which labels and rows are known.

The text is the same for the same value in a CSV or Parquet file, a dataframe or a table.
`files/duckdb_values.py` has the same rules in SQL; the tests compare the two, type by type.
"""

from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.identifiers import LARGEST_EXACT

_BYTE_TEXTS = [
    chr(byte) if 32 <= byte < 127 and chr(byte) not in "\"'\\" else f"\\x{byte:02X}" for byte in range(256)
]
"""The text of each byte of binary data, as DuckDB writes it."""


class DecimalAsWritten(Decimal):
    """A decimal whose text keeps the zeros at its end, as in vaults made before `plain_decimals`."""


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for no value: None, NaN, NaT or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(0)
    (True, True, False, False)
    """
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 (true for NaN and NaT)
    except TypeError:  # NA == NA is NA, which is neither true nor false
        return True
    except ValueError:  # an array: it has a truth value for each element
        return False


def label_text(value: Any) -> str | None:
    """Write a label as text; None if it is missing.

    It is `str(value)`, with five exceptions. A whole number has no decimal point: a column of integers with
    a missing value becomes a column of floats in pandas, and user 7 must not become user 7.0. Decimals have
    no zeros at the end, which depend on the column's type, and no exponent. Times have as many digits as they
    need, and times with a date and a zone are in UTC. Bytes are text where they are printable ASCII, and
    hexadecimal otherwise, as in DuckDB.

    >>> label_text("007"), label_text(7), label_text(7.0), label_text(7.5), label_text(True)
    ('007', '7', '7', '7.5', 'True')
    >>> label_text(Decimal("1.50")), label_text(Decimal("-0.0")), label_text(DecimalAsWritten("1.50"))
    ('1.5', '0', '1.50')
    >>> label_text(time(23, 59, 59, 500_000)), label_text(b"ann"), label_text(float("nan"))
    ('23:59:59.5', 'ann', None)
    """
    if type(value) is str or type(value) is int:  # nearly always
        try:
            return str(value)
        except ValueError:  # Python does not write integers of very many digits
            raise InvalidInputError(
                "an integer that is a name, an id or an action must have at most 4,300 digits; got more"
            ) from None
    plain = plain_times(value).tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(plain, list | tuple | dict):
        return str(plain)
    if is_missing(plain):
        return None
    match plain:
        case float():
            text = str(int(plain)) if plain.is_integer() and abs(plain) < LARGEST_EXACT else str(plain)
        case DecimalAsWritten():
            text = format(_without_point(plain), "f")
        case Decimal():
            text = _without_zeros(format(_without_point(plain), "f"))
        case datetime():
            text = _moment_text(plain)
        case time():
            text = _clock_text(plain)
        case timedelta():  # the text of a subclass, such as pandas', differs
            text = str(timedelta(plain.days, plain.seconds, plain.microseconds))
        case bytes() | bytearray() | memoryview():
            text = "".join(map(_BYTE_TEXTS.__getitem__, bytes(plain)))
        case _:
            text = str(plain)
    return text


def plain_times(values: Any) -> Any:
    """Bring times of numpy to microseconds: `tolist` makes integers of those in nanoseconds.

    >>> plain_times(np.array(["2026-01-02T03:04"], dtype="datetime64[ns]")).tolist()
    [datetime.datetime(2026, 1, 2, 3, 4)]
    """
    return values.astype(f"{values.dtype.kind}8[us]") if values.dtype.kind in "mM" else values


def python_values(column: Any, what: str) -> list[Any]:
    """List the values of an array, series or other iterable as Python objects.

    Not through numpy: it would turn the labels of [1, "B"] into text.

    >>> python_values(np.array([1, 2]), "rows"), python_values([1, "B"], "action")
    ([1, 2], [1, 'B'])
    """
    plain = plain_times(column) if isinstance(column, np.ndarray) else column
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; polars and pandas; numpy
        if hasattr(plain, method):
            values = getattr(plain, method)()
            break
    else:
        values = list(plain) if isinstance(plain, Iterable) else plain
    if not isinstance(values, list):
        raise InvalidInputError(f"{what} must be an array or a list, with one value per row; got {column!r}")
    return values


def with_decimals_as_written(values: list[Any]) -> list[Any]:
    """Mark the decimals among the values of a column; everything else stays.

    >>> [label_text(value) for value in with_decimals_as_written([Decimal("2.50"), 2.5, None])]
    ['2.50', '2.5', None]
    """
    return [DecimalAsWritten(value) if isinstance(value, Decimal) else value for value in values]


def sorted_if_comparable(labels: Iterable[Any]) -> list[Any]:
    """Sort labels, or leave them in order of appearance if they cannot be compared.

    >>> sorted_if_comparable([3, 1]), sorted_if_comparable([3, "A"])
    ([1, 3], [3, 'A'])
    """
    found = list(labels)
    try:
        return sorted(found)
    except TypeError:
        return found


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


def storable_labels(labels: Iterable[Any]) -> list[str | int | bool]:
    """Turn labels of a source into labels that JSON can hold, distinct and sorted if they can be compared.

    Whole numbers and booleans stay what they are; everything else becomes its text.

    >>> storable_labels(["B", "A"]), storable_labels([np.int64(2), 3.0]), storable_labels([0.5, True])
    (['A', 'B'], [2, 3], ['0.5', True])
    """
    return sorted_if_comparable(dict.fromkeys(map(_storable_label, labels)))


def _storable_label(value: Any) -> str | int | bool:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return plain
    text = str(label_text(plain))
    whole = isinstance(plain, int | float | Decimal) and text.removeprefix("-").isdecimal()
    return int(text) if whole else text


def sized(text: str | None) -> str:
    """Put the length before a text, so that texts can be joined without ambiguity.

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


def _without_point(value: Decimal) -> Decimal:
    whole = value.is_finite() and value == value.to_integral_value()
    return Decimal(int(value)) if whole else value


def _moment_text(moment: datetime) -> str:
    zone = "" if moment.tzinfo is None else "+00:00"
    local = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return _without_zeros(str(local)) + zone


def _clock_text(clock: time) -> str:
    local = str(clock.replace(tzinfo=None))
    return _without_zeros(local) + str(clock).removeprefix(local)  # without a date it cannot go to UTC


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text
