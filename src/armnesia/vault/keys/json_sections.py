"""A large JSON object in a file, read in constant memory: one value at a time, lists item by item.

Any layout is read, on one line or indented. Every value is decoded by Python's own decoder; only the braces,
commas and colons between the values of the object, and between the items of its lists, are handled here.
"""

import codecs
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from armnesia.core.errors import InvalidInputError, VaultError

_CHUNK = 1 << 18
_LARGEST_VALUE = 1 << 28
"""Characters of one value, or of one item of a list; a request of 10⁶ people has a row of 6.4·10⁷."""
_SPACES = " \t\n\r"
_BEGINNINGS = {*'{["-0123456789tfnNI'}
"""The first characters of values."""
_DELIMITERS = {*_SPACES, *",:]}"}
_DECODER = json.JSONDecoder()


@dataclass
class _Section:
    """Where the value of a key begins, and the digest of its text when it was first read."""

    offset: int
    digest: bytes | None = None


class JsonSections:
    """The keys of a JSON object in a file, and their values; anything but an object has no keys.

    >>> import io
    >>> file = io.BytesIO(b'{"name": "v-1", "rows": [[1, "a"], [2, "b"]]}')
    >>> sections = JsonSections(file, "the file")
    >>> list(sections), sections.value("name"), list(sections.items("rows"))
    (['name', 'rows'], 'v-1', [[1, 'a'], [2, 'b']])
    """

    def __init__(self, file: BinaryIO, what: str) -> None:
        self._file, self._what = file, what
        self._sections = self._find()

    def __iter__(self) -> Iterator[str]:
        """The keys, in the order of the file."""
        return iter(self._sections)

    def __contains__(self, name: object) -> bool:
        return name in self._sections

    def is_list(self, name: str) -> bool:
        """Whether the value of a key is a list, for `items`; any other is for `value`."""
        return _Reader(self._file, self._what, self._sections[name].offset).peek() == "["

    def value(self, name: str) -> Any:
        """The value of a key, as a whole."""
        return _Reader(self._file, self._what, self._sections[name].offset).value()[0]

    def items(self, name: str) -> Iterator[Any]:
        """The items of a list, one by one; refused at its end if it is not what it was when first read."""
        section = self._sections[name]
        digest = hashlib.blake2b()
        for item, text in _Reader(self._file, self._what, section.offset).items():
            digest.update(text.encode("utf-8"))
            yield item
        if section.digest is None:
            section.digest = digest.digest()
        elif section.digest != digest.digest():
            raise VaultError(f"{self._what} was changed while it was read")

    def _find(self) -> dict[str, _Section]:
        """Read the whole object, for its keys and for its form."""
        reader = _Reader(self._file, self._what, 0)
        found: dict[str, _Section] = {}
        if reader.peek() != "{":
            return found
        for name in reader.names():
            if name in found:
                raise InvalidInputError(f"{self._what} must name every key once; {name!r} is there twice")
            found[name] = _Section(reader.offset)
            reader.skip()
        return found


class _Reader:
    """Reads forward from a position in the file."""

    def __init__(self, file: BinaryIO, what: str, offset: int) -> None:
        self._file, self._what = file, what
        self._text, self._at = "", 0
        """What was read and decoded, and how far it is used up."""
        self._text_offset = self._read_to = offset
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._ended = False

    @property
    def offset(self) -> int:
        """The position in the file, in bytes."""
        return self._text_offset + len(self._text[: self._at].encode("utf-8"))

    def names(self) -> Iterator[str]:
        """The keys of an object; the caller reads each value before it asks for the next key."""
        self._expect("{")
        if self.peek() == "}":
            self._at += 1
        else:
            yield self._key()
            while self._expect(",", "}") == ",":
                yield self._key()
        if self.peek():
            raise self._invalid()

    def items(self) -> Iterator[tuple[Any, str]]:
        """The items of a list, each with its text."""
        self._expect("[")
        if self.peek() == "]":
            self._at += 1
            return
        yield self.value()
        while self._expect(",", "]") == ",":
            yield self.value()

    def skip(self) -> None:
        """Read a value and drop it."""
        if self.peek() != "[":
            self.value()
            return
        for _ in self.items():
            pass

    def value(self) -> tuple[Any, str]:
        """The next value, and its text."""
        if self.peek() not in _BEGINNINGS:
            raise self._invalid()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._invalid() from None
            except ValueError:  # the rest of it may not have been read yet
                end = None
            # A number may go on: what was read may end in the middle of it.
            if end is not None and (self._ended or self._text[end : end + 1] in _DELIMITERS):
                text, self._at = self._text[self._at : end], end
                return value, text
            if not self._read_more(max(_CHUNK, len(self._text) - self._at)):
                raise self._invalid()

    def peek(self) -> str:
        """The next character that is no space; empty at the end of the file."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACES:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more(_CHUNK):
                return ""

    def _key(self) -> str:
        name, _ = self.value()
        if not isinstance(name, str):
            raise self._invalid()
        self._expect(":")
        self.peek()  # so that the offset is that of the value
        return name

    def _expect(self, *characters: str) -> str:
        found = self.peek()
        if not found or found not in characters:
            raise self._invalid()
        self._at += 1
        return found

    def _read_more(self, size: int) -> bool:
        """Drop what is used up and read more; False if there is no more, or a value is too long."""
        if self._ended or len(self._text) - self._at > _LARGEST_VALUE:
            return False
        self._text_offset = self.offset
        self._file.seek(self._read_to)  # other readers may use the same file
        data = self._file.read(size)
        self._read_to += len(data)
        self._ended = not data
        try:
            self._text = self._text[self._at :] + self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise self._invalid() from None
        self._at = 0
        return True

    def _invalid(self) -> InvalidInputError:
        return InvalidInputError(f"{self._what} must be valid JSON; it is invalid or truncated")
