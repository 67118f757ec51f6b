"""Thrift's compact protocol, in which Parquet files describe themselves: the part of it that is needed here.

A structure is a dictionary of fields by their number, each with its type; what is read is written unchanged.
"""

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12
_INTEGERS = (I16, I32, I64)
_LONG_LIST, _LONG_STEP = 15, 15
_LONGEST_NUMBER = 70
"""In bits: ten bytes, of which each has seven."""

Struct = dict[int, tuple[int, Any]]
"""By number: type and value. The value of a list is the type of its items, and the items."""


class CompactReader:
    """Reads values one after the other; raises a ValueError where the bytes are none.

    >>> inner = {2: (TRUE, True)}
    >>> written = written_struct({1: (I32, -3), 4: (BINARY, b"user"), 20: (LIST, (STRUCT, [inner]))})
    >>> CompactReader(written).struct()
    {1: (5, -3), 4: (8, b'user'), 20: (9, (12, [{2: (1, True)}]))}
    >>> CompactReader(written[:5]).struct()
    Traceback (most recent call last):
    ValueError: a structure ends too early
    >>> CompactReader(bytes([0x19, 0xF1, *[0xFF] * 8, 0x0F])).struct()  # a list of 2**60 - 1 booleans
    Traceback (most recent call last):
    ValueError: a list of booleans is not known here
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def struct(self, *, through: int | None = None) -> Struct:
        """Read a structure, or its fields up to one of them."""
        found: Struct = {}
        number = 0
        while head := self._byte():
            step, type_ = head >> 4, head & 15
            number = number + step if step else self._integer()
            found[number] = (type_, self._value(type_))
            if number == through:
                break
        return found

    def _value(self, type_: int) -> Any:
        if type_ in (TRUE, FALSE):
            return type_ == TRUE
        if type_ == BYTE:
            return self._byte()
        if type_ in _INTEGERS:
            return self._integer()
        if type_ == BINARY:
            return self._bytes(self._unsigned())
        if type_ == STRUCT:
            return self.struct()
        if type_ == LIST:
            head = self._byte()
            size, inner = head >> 4, head & 15
            size = self._unsigned() if size == _LONG_LIST else size
            if inner in (TRUE, FALSE):  # of one byte each, other than as fields
                raise ValueError("a list of booleans is not known here")
            if size > len(self._data) - self.position:  # an item has a byte at least
                raise ValueError("a structure ends too early")
            return inner, [self._value(inner) for _ in range(size)]
        raise ValueError(f"a structure has a field of type {type_}, which is not known")

    def _bytes(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self._data):
            raise ValueError("a structure ends too early")
        found, self.position = self._data[self.position : end], end
        return found

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            if shift >= _LONGEST_NUMBER:
                raise ValueError("a structure has a number of more than 64 bits")
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    def _integer(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)


def written_struct(fields: Struct) -> bytes:
    """A structure as bytes.

    >>> written_struct({1: (I32, 1), 2: (BINARY, b"a")}).hex()
    '150218016100'
    """
    parts, last = [], 0
    for number, (type_, value) in sorted(fields.items()):
        step = number - last
        is_long = not 0 < step <= _LONG_STEP
        parts.append(bytes([type_]) + _integer(number) if is_long else bytes([step << 4 | type_]))
        parts.append(b"" if type_ in (TRUE, FALSE) else _written(type_, value))
        last = number
    return b"".join(parts) + b"\0"


def _written(type_: int, value: Any) -> bytes:
    if type_ == BYTE:
        return bytes([value])
    if type_ in _INTEGERS:
        return _integer(value)
    if type_ == BINARY:
        return _unsigned(len(value)) + bytes(value)
    if type_ == STRUCT:
        return written_struct(value)
    inner, items = value
    size = len(items)
    head = bytes([size << 4 | inner]) if size < _LONG_LIST else bytes([0xF0 | inner]) + _unsigned(size)
    return head + b"".join(_written(inner, item) for item in items)


def _unsigned(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _integer(number: int) -> bytes:
    return _unsigned(number << 1 if number >= 0 else (-number << 1) - 1)
