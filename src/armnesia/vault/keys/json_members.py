"""Reading a large JSON object member by member, so that a list in it is never in memory as a whole."""

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO

from armnesia.core.errors import InvalidInputError

_CHUNK = 1 << 20
_LONGEST = 1 << 26
"""A single value longer than this is refused, and not read on in the hope that it ends."""
_AFTER_VALUE = frozenset(" \t\r\n:,]}")
_SPACES = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def read_members(file: TextIO, what: str) -> Iterator[tuple[str, Any]]:
    """The members of the JSON object in a file, as (name, value); a list is given item by item.

    >>> import io
    >>> list(read_members(io.StringIO('{"head": "1:ab", "ledger": [{"a": 1}, {"a": 2}], "trees": []}'), "it"))
    [('head', '1:ab'), ('ledger', {'a': 1}), ('ledger', {'a': 2})]
    """
    text = _Text(file, what)
    for _ in text.separated("{", "}"):
        name = text.value()
        if not isinstance(name, str) or text.next() != ":":
            raise text.invalid()
        if text.peek() == "[":
            yield from ((name, text.value()) for _ in text.separated("[", "]"))
        else:
            yield name, text.value()
    if text.peek():
        raise text.invalid()


class _Text:
    """The text of a file, of which only the part that is being read is in memory."""

    def __init__(self, file: TextIO, what: str) -> None:
        self._file, self._what = file, what
        self._buffer, self._at, self._ended = "", 0, False

    def invalid(self) -> InvalidInputError:
        return InvalidInputError(f"{self._what} must be valid JSON; it is invalid or truncated")

    def separated(self, opening: str, closing: str) -> Iterator[None]:
        """Stop before each item of a list or an object; the caller reads the item."""
        if self.next() != opening:
            raise self.invalid()
        if self.peek() == closing:
            self.next()
            return
        separator = ","
        while separator == ",":
            yield
            separator = self.next()
        if separator != closing:
            raise self.invalid()

    def peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            spaces = _SPACES.match(self._buffer, self._at)
            assert spaces is not None
            self._at = spaces.end()
            if self._at < len(self._buffer) or not self._read_on():
                return self._buffer[self._at : self._at + 1]

    def next(self) -> str:
        """Read that character."""
        found = self.peek()
        self._at += len(found)
        return found

    def value(self) -> Any:
        """Read the next value."""
        self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._buffer, self._at)
            except (ValueError, RecursionError):
                found, end = None, -1
            # A number that ends with the buffer, or before "e-" at its end, may go on in the file.
            if end >= 0 and (self._ended or self._buffer[end : end + 1] in _AFTER_VALUE):
                self._at = end
                return found
            if not self._read_on() and not (end >= 0 and self._ended):
                raise self.invalid()

    def _read_on(self) -> bool:
        if self._ended or len(self._buffer) - self._at > _LONGEST:
            return False
        try:
            more = self._file.read(_CHUNK)
        except UnicodeDecodeError:
            raise self.invalid() from None
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        self._ended = not more
        return bool(more)
