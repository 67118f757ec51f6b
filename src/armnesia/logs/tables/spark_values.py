"""What a value of a Spark table means, in Spark's SQL: the rules of `values.py`, type by type."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidLogError
from armnesia.logs.limits import LONGEST_TEXT
from armnesia.logs.values import label_text

_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_NUMBERS = {*_INTEGERS, "float", "double", "decimal", "boolean", "void"}
_LABELS = _NUMBERS | {"string", "date", "timestamp", "timestamp_ntz", "binary", "time"}
_TEXTS_IN_SQL = {"string", *_INTEGERS, "boolean", "date", "timestamp", "timestamp_ntz"}
"""Types whose text Spark can write as Python does."""
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


@dataclass(frozen=True)
class SparkColumn:
    """A column, by the name that it has in statements, and expressions over it.

    >>> SparkColumn("c0", "boolean").text()
    "CASE WHEN c0 THEN 'True' WHEN NOT c0 THEN 'False' END"
    """

    name: str
    full_type: str
    """In Spark's SQL, such as decimal(9,2)."""
    padded: bool = False
    """Whether it is a CHAR(n), whose padding is not part of the value."""

    @classmethod
    def of(cls, name: str, field: Any) -> "SparkColumn":
        """The column of a field of a schema."""
        type_ = field.dataType.simpleString()
        padded = type_.startswith("char(") or field.metadata.get(_PADDED, "").startswith("char(")
        return cls(name, type_, padded)

    @property
    def type(self) -> str:
        """The type without length, precision or collation: any text is a string."""
        plain = re.split("[ (<]", self.full_type, maxsplit=1)[0]
        return "string" if plain in ("char", "varchar") else plain

    def check(self, role: str, what: str) -> None:
        """Refuse a type that cannot hold rewards, or labels."""
        if role == "reward" and self.type not in _NUMBERS:
            raise InvalidLogError(f"{what} must hold numbers; it holds {self.full_type}")
        if self.type not in _LABELS:
            raise InvalidLogError(
                f"{what} must hold single values, such as text or numbers; it holds {self.full_type}"
            )

    @property
    def value(self) -> str:
        """The value, without what makes values equal that differ."""
        if self.type == "string":
            # A collation may take texts that differ for equal.
            text = f"collate({self.name}, 'UTF8_BINARY')"
            return f"rtrim({text})" if self.padded else text
        return f"CAST({self.name} AS DOUBLE)" if self.type == "float" else self.name

    def selected(self) -> str:
        """The value as it is read, of a long one just enough to refuse it; times are text."""
        if self.type in ("timestamp", "timestamp_ntz"):
            return self.text()
        if self.type not in ("string", "binary"):
            return self.value
        cut = f"substring({self.value}, 1, {LONGEST_TEXT + 1})"
        return f"CASE WHEN octet_length({self.value}) > {LONGEST_TEXT} THEN {cut} ELSE {self.value} END"

    @property
    def has_text(self) -> bool:
        """Whether `text` is known."""
        return self.type in _TEXTS_IN_SQL

    def text(self) -> str:
        """The text that `label_text` writes."""
        if self.type == "boolean":
            return f"CASE WHEN {self.name} THEN 'True' WHEN NOT {self.name} THEN 'False' END"
        if self.type == "timestamp":  # not Spark's own text, which is in the zone of the session
            return (
                f"CAST(timestampadd(MICROSECOND, unix_micros({self.name}), {_EPOCH}) AS STRING) || '+00:00'"
            )
        return self.value if self.type == "string" else f"CAST({self.name} AS STRING)"

    @property
    def holds_numbers(self) -> bool:
        """Whether every value is a number, or missing."""
        return self.type in _NUMBERS

    def number(self) -> str:
        """The value as a float; NULL where it is missing or no number."""
        if self.type not in _NUMBERS:
            return "CAST(NULL AS DOUBLE)"
        return f"nanvl(CAST({self.name} AS DOUBLE), CAST(NULL AS DOUBLE))"

    def size(self) -> str:
        """The number of bytes of a text; NULL where it is never long."""
        return f"octet_length({self.name})" if self.type in ("string", "binary") else "CAST(NULL AS INT)"

    def compared(self) -> tuple[str, str]:
        """What is compared with `value_of`, and the type of that."""
        if self.type in ("timestamp", "timestamp_ntz"):
            return self.text(), "string"
        if self.type in _INTEGERS:
            return f"CAST({self.name} AS BIGINT)", "bigint"
        type_ = {"string": "string", "float": "double"}.get(self.type, self.full_type)
        return self.value, type_

    def value_of(self, text: str) -> Any:
        """The value of the column's own type that has this text; None if there is none.

        >>> SparkColumn("c0", "int").value_of("7"), SparkColumn("c0", "int").value_of("07")
        (7, None)
        >>> SparkColumn("c0", "decimal(4,2)").value_of("1.5"), SparkColumn("c0", "date").value_of("soon")
        (Decimal('1.5'), None)
        """
        value = None
        with suppress(ValueError, InvalidOperation, OverflowError):
            value = self._read(text)
        return value if value is not None and label_text(value) == text else None

    def _read(self, text: str) -> Any:
        return (
            _fitting(Decimal(text), self.full_type) if self.type == "decimal" else _READERS[self.type](text)
        )


def _bytes(text: str) -> bytes:
    r"""The binary data that has a text.

    >>> _bytes(r"ann\x00")
    b'ann\x00'
    """
    return re.sub(rb"\\x([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text.encode("ascii"))


def _short_float(text: str) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(text))


def _stored_text(text: str) -> str | None:
    """A text, unless it cannot be stored at all: half of a surrogate pair cannot."""
    surrogates = not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
    return None if surrogates else text


def _fitting(number: Decimal, type_: str) -> Decimal | None:
    """A number, if a type of decimals has it.

    >>> _fitting(Decimal("12.5"), "decimal(3,1)"), _fitting(Decimal("12.55"), "decimal(3,1)")
    (Decimal('12.5'), None)
    """
    digits, scale = map(int, re.findall("[0-9]+", type_))
    fits = number.is_finite() and abs(number) < Decimal(10) ** (digits - scale)
    return number if fits and number == round(number, scale) else None


_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("string", "timestamp", "timestamp_ntz"), _stored_text),
    **dict.fromkeys(_INTEGERS, lambda text: int(text) if abs(int(text)) < 2**63 else None),
    "double": float,
    "float": _short_float,
    "boolean": {"True": True, "False": False}.get,
    "date": date.fromisoformat,
    "binary": _bytes,
    "time": time.fromisoformat,
    "void": lambda text: None,
}
"""How a text is read as a value of each type, if it is one."""
