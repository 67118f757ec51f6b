"""What a value of a log means: which values are missing, and the text by which labels are known.

The same value has the same text in every kind of source. `sql.py` has these rules in SQL; the conformance
tests compare the two, type by type.
"""

from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.identifiers import LARGEST_EXACT

LONGEST_TEXT = 1 << 16
"""The most bytes of a name that a vault takes."""
TRUE_OR_FALSE = {"true": 1.0, "false": 0.0}
_BYTE_TEXTS = [
    chr(byte) if 32 <= byte < 127 and chr(byte) not in "\"'\\" else f"\\x{byte:02X}" for byte in range(256)
]
"""The text of each byte of binary data, as DuckDB writes it."""


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
    need, and those with a zone are in UTC. Bytes are text where they are printable ASCII, and
    hexadecimal otherwise, as in DuckDB.

    >>> label_text("007"), label_text(7), label_text(7.0), label_text(7.5), label_text(True)
    ('007', '7', '7', '7.5', 'True')
    >>> label_text(Decimal("1.50")), label_text(Decimal("-0.0"))
    ('1.5', '0')
    >>> label_text(datetime(2026, 3, 1, 23, 59, 59, 500_000)), label_text(b"ann"), label_text(float("nan"))
    ('2026-03-01 23:59:59.5', 'ann', None)
    """
    if type(value) is str or type(value) is int:  # nearly always
        try:
            return str(value)
        except ValueError:  # Python does not write integers of very many digits
            raise InvalidInputError(
                "an integer that is a name, an id or an action must have at most 4,300 digits; got more"
            ) from None
    plain = plain_times(value).tolist() if isinstance(value, np.generic | np.ndarray) else value
    if is_missing(plain):
        return None
    match plain:
        case float():
            text = str(int(plain)) if plain.is_integer() and abs(plain) < LARGEST_EXACT else str(plain)
        case Decimal():
            whole = plain.is_finite() and plain == plain.to_integral_value()
            text = str(int(plain)) if whole else _without_zeros(format(plain, "f"))
        case datetime():
            zone = "" if plain.tzinfo is None else "+00:00"
            local = plain if plain.tzinfo is None else plain.astimezone(UTC).replace(tzinfo=None)
            text = _without_zeros(str(local)) + zone
        case bytes() | bytearray() | memoryview():
            text = "".join(map(_BYTE_TEXTS.__getitem__, bytes(plain)))
        case _:
            text = str(plain)
    return text


def number_of(value: Any) -> float | None:
    """The number that a value reads as, whatever its type; NaN where it is missing, None where it is none.

    >>> number_of(" 1e3 "), number_of(True), number_of("ann")
    (1000.0, 1.0, None)
    """
    plain = value.item() if isinstance(value, np.bool_ | np.number) else value
    if isinstance(plain, int | float | Decimal):  # booleans too
        try:
            return float(plain)
        except OverflowError:  # an integer beyond every float
            return float("inf") if plain > 0 else float("-inf")
    text = label_text(plain)
    if text is None:
        return float("nan")
    if text.lower() in TRUE_OR_FALSE:
        return TRUE_OR_FALSE[text.lower()]
    try:
        return float(text.encode("ascii"))
    except ValueError:  # which that of text beyond ASCII is, too
        return None


def plain_times(values: Any) -> Any:
    """Bring times of numpy to microseconds: `tolist` makes integers of those in nanoseconds.

    >>> plain_times(np.array(["2026-01-02T03:04"], dtype="datetime64[ns]")).tolist()
    [datetime.datetime(2026, 1, 2, 3, 4)]
    """
    if values.dtype.kind not in "mM":
        return values
    plain = values.astype(f"{values.dtype.kind}8[us]")
    if np.any((plain.astype(values.dtype) != values) & ~np.isnat(values)):
        raise InvalidInputError(
            "times of numpy must be whole microseconds; got finer ones: give them as text, or in a dataframe"
        )
    return plain


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
        values = list(plain) if isinstance(plain, Iterable) and not isinstance(plain, str) else plain
    if not isinstance(values, list):
        raise InvalidInputError(f"{what} must be an array or a list, with one value per row; got {column!r}")
    return values


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


def is_unicode(text: str) -> bool:
    """Whether a text can be stored at all: half of a surrogate pair cannot, so no row has it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text
