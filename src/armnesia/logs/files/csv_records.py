"""Counts the records of a CSV file independently of the engine that reads it, and finds what it misreads.

DuckDB silently drops a last line that exceeds its buffer, stops at mixed line ends, and trims text around
quotes. So every CSV file is scanned once when it is opened; the rows that DuckDB returns must be as many as
the records counted here.

The fast scan turns a block of bytes into bits, 64 positions per word, and finds quoted text by a few
operations on whole arrays: a position is quoted if the number of quotes up to it is odd. This is right if
every quote opens or closes a field, or is one of two quotes that stand for one. Other files are scanned line
by line.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_LINE = 1 << 20
"""The most bytes of one record. DuckDB's own limit is 2 MiB, and a last line that exceeds it is dropped."""

_BLOCK = 1 << 19
"""How many bytes are scanned at a time. A line inside a block is never longer than `LONGEST_LINE`."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CLOSING_QUOTE = re.compile(rb'[^"]*(?:""[^"]*)*"(?!")')

_Bits = NDArray[np.uint64]
_ZERO, _ONE, _LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(63)
_SHIFTS = [np.uint64(1 << power) for power in range(6)]


class CsvFault(Exception):  # noqa: N818 (its text completes the sentence of an InvalidLogError)
    """What is wrong in a CSV file, as the end of a sentence."""


class _NeedsLineScan(Exception):  # noqa: N818 (a signal, not an error)
    """A quote inside a field, or a fault of which the scan line by line finds the place."""


@dataclass(frozen=True)
class CsvRecords:
    """What a scan has found."""

    count: int
    """Without the header and without empty lines."""
    mixed_line_ends: bool = False
    """Whether some lines end in CR LF and others in LF; DuckDB reads these in its lenient mode only."""


def scan_csv(stream: Any, delimiter: str, *, lenient: bool = False) -> CsvRecords:
    r"""Count the records of an open CSV file; refuse lines that readers of CSV understand differently.

    `lenient` also refuses what the lenient mode of DuckDB, in which mixed line ends are read, misreads.

    >>> import io
    >>> scan_csv(io.BytesIO(b'arm,won\r\nA,1\r\n\r\n"B\n",0'), ",")
    CsvRecords(count=2, mixed_line_ends=False)
    >>> scan_csv(io.BytesIO(b"arm,won\nA\r,1\n"), ",")
    Traceback (most recent call last):
    armnesia.logs.files.csv_records.CsvFault: line 2 has a carriage return without a line feed; ...
    """
    if not lenient:
        try:
            records = scan_blocks(stream, delimiter)
        except _NeedsLineScan:
            records = None
        if records is not None and not records.mixed_line_ends:
            return records
        stream.seek(0)
    return scan_lines(stream, delimiter, lenient=lenient)


def scan_blocks(stream: Any, delimiter: str) -> CsvRecords:
    """The fast scan."""
    scan = _BlockScan(ord(delimiter))
    if stream.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
        stream.seek(0)
    block = bytearray(_BLOCK)
    while size := _fill(stream, block):
        scan.take(block, size)
    return scan.finish()


def scan_lines(stream: Any, delimiter: str, *, lenient: bool = False) -> CsvRecords:
    r"""The scan line by line, for files with quotes inside fields that are not quoted, or mixed line ends.

    >>> import io
    >>> scan_lines(io.BytesIO(b'pipe,won\n5" pipe,1\n'), ",")
    CsvRecords(count=1, mixed_line_ends=False)
    """
    scan = _LineScan(delimiter.encode())
    if stream.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
        stream.seek(0)
    while line := stream.readline(LONGEST_LINE + 1):
        scan.take(line)
    return scan.finish(lenient)


class _BlockScan:
    """The counts so far, and the last bits of the previous block, by which the next one is judged."""

    def __init__(self, delimiter: int) -> None:
        self._delimiter = delimiter
        self._quoted = False
        self._last = dict.fromkeys(("delimiter", "closing", "return", "empty_return"), False) | {"end": True}
        """What the previous byte was. A file begins as after the end of a line."""
        self._position = self._after_end = 0
        self._lines = self._ends = self._ends_with_return = self._empty = 0
        # Used again for every block: fresh memory costs more than the comparisons.
        self._masks = np.empty((2, _BLOCK), np.bool_)

    def take(self, block: bytearray, size: int) -> None:
        """Scan the next block."""
        values = np.frombuffer(block, np.uint8, size)
        feeds = np.equal(values, ord("\n"), out=self._masks[0, :size])
        if self._is_plain(block, size, feeds):
            ends = int(np.count_nonzero(feeds))
            first, last = block.find(b"\n", 0, size), block.rfind(b"\n", 0, size)
            self._last = dict.fromkeys(self._last, False)
            self._last |= {"end": last == size - 1, "delimiter": block[size - 1] == self._delimiter}
            self._lines += ends
        else:
            ends, first, last = self._take_bits(values, _packed(feeds))
        if ends:
            self._check_length(self._position + first)
            self._after_end = self._position + last + 1
        self._ends += ends
        self._position += size
        self._check_length(self._position)

    def finish(self) -> CsvRecords:
        """The counts of the whole file."""
        if self._quoted:
            raise _NeedsLineScan
        if self._last["return"]:
            raise _lone_return(self._lines + 1)
        ends = self._ends + (not self._last["end"])  # the last line may have none
        return CsvRecords(max(ends - self._empty - 1, 0), 0 < self._ends_with_return < self._ends)

    def _is_plain(self, block: bytearray, size: int, feeds: NDArray[np.bool_]) -> bool:
        """Whether a block has neither quoted text nor carriage returns nor empty lines."""
        if self._quoted or self._last["closing"] or self._last["return"] or (self._last["end"] and feeds[0]):
            return False
        if block.find(b'"', 0, size) >= 0 or block.find(b"\r", 0, size) >= 0:
            return False
        return not np.logical_and(feeds[1:], feeds[:-1], out=self._masks[1, 1:size]).any()

    def _take_bits(self, values: NDArray[np.uint8], feeds: _Bits) -> tuple[int, int, int]:
        """Scan a block of any content: how many records end in it, and where the first and the last do."""
        quotes, all_returns, delimiters = (
            _packed(np.equal(values, byte, out=self._masks[0, : values.size]))
            for byte in (ord('"'), ord("\r"), self._delimiter)
        )
        quoted = self._quoted_bits(quotes)
        unquoted = ~quoted
        ends, returns, closing = feeds & unquoted, all_returns & unquoted, quotes & unquoted
        after_end = self._next("end", ends, values.size)
        after_closing = self._next("closing", closing, values.size)
        before_field = after_end | after_closing | self._next("delimiter", delimiters & unquoted, values.size)
        loose = quotes & quoted & ~before_field
        loose |= after_closing & ~(delimiters | feeds | all_returns | quotes)
        if _first(loose) < values.size:
            raise _NeedsLineScan
        empty = ends & after_end
        if returns.any() or self._last["return"]:
            after_return = self._next("return", returns, values.size)
            lone = _first(after_return & ~feeds)
            if lone < values.size:
                raise _lone_return(self._lines + 1 + int(np.count_nonzero(values[:lone] == ord("\n"))))
            self._ends_with_return += _count(ends & after_return)
            empty |= ends & self._next("empty_return", returns & after_end, values.size)
        self._empty += _count(empty)
        self._lines += _count(feeds)
        return _count(ends), _first(ends), _last(ends)

    def _quoted_bits(self, quotes: _Bits) -> _Bits:
        """Whether an odd number of quotes precede each position or are at it: opening quotes are quoted."""
        odd = quotes.copy()
        for shift in _SHIFTS:
            odd ^= odd << shift
        parity = np.bitwise_xor.accumulate(odd >> _LAST_BIT)
        before = np.zeros_like(parity)
        before[1:] = parity[:-1]
        if self._quoted:
            before ^= _ONE
        self._quoted ^= bool(parity[-1])
        return odd ^ (_ZERO - before)

    def _next(self, name: str, bits: _Bits, size: int) -> _Bits:
        """Move bits to the next position: what is known of the previous byte, at each position."""
        moved = bits << _ONE
        moved[1:] |= bits[:-1] >> _LAST_BIT
        if self._last[name]:
            moved[0] |= _ONE
        word, bit = divmod(size - 1, 64)
        self._last[name] = bool(int(bits[word]) >> bit & 1)
        return moved

    def _check_length(self, end: int) -> None:
        if end - self._after_end > LONGEST_LINE:
            raise _NeedsLineScan


class _LineScan:
    """The counts so far, and whether the next line begins in a quoted field."""

    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter
        self._opened_at: int | None = None
        """The line of a quote that is not closed yet."""
        self._has_loose_quotes = False
        self._first_line = self._fields = self._length = 0
        """Of the present record."""
        self._fields_of_header = 0
        self._uneven: CsvFault | None = None
        """The first record that does not have as many fields as the header."""
        self._lines = self._ends = self._ends_with_return = self._records = 0

    def take(self, line: bytes) -> None:
        """Scan the next line, with its line end."""
        self._lines += 1
        self._first_line = self._first_line or self._lines
        self._length += len(line)
        if self._length > LONGEST_LINE:
            raise CsvFault(
                f"the record that begins in line {self._first_line} has more than {LONGEST_LINE:,} bytes; is"
                " a quote or a line end missing?"
            )
        text = line.removesuffix(b"\n")
        is_ended = len(text) < len(line)
        text = text.removesuffix(b"\r") if is_ended else text
        is_empty = not text and self._opened_at is None
        if self._opened_at is not None or b'"' in text:
            self._walk(text)
        elif b"\r" in text:
            raise _lone_return(self._lines)
        else:
            self._fields += text.count(self._delimiter) + 1
        if self._opened_at is not None:
            return
        self._ends += is_ended
        self._ends_with_return += line.endswith(b"\r\n")
        if not is_empty:
            self._take_record()
        self._first_line = self._fields = self._length = 0

    def finish(self, lenient: bool) -> CsvRecords:
        """The counts of the whole file."""
        if self._opened_at is not None:
            raise CsvFault(f"line {self._opened_at} opens a quote that is never closed")
        mixed = 0 < self._ends_with_return < self._ends
        if (mixed or lenient) and self._has_loose_quotes:
            raise CsvFault(
                "lines end in LF and in CR LF, and it has quotes inside fields that are not quoted; write it"
                " with one kind of line ends"
            )
        if (mixed or lenient) and self._uneven is not None:  # further fields would be ignored
            raise self._uneven
        return CsvRecords(max(self._records - 1, 0), mixed)

    def _take_record(self) -> None:
        self._records += 1
        if self._records == 1:
            self._fields_of_header = self._fields
        elif self._fields != self._fields_of_header and self._uneven is None:
            self._uneven = CsvFault(
                f"line {self._first_line} has {self._fields} columns where the header has"
                f" {self._fields_of_header}"
            )

    def _walk(self, text: bytes) -> None:
        """Go from field to field, and remember whether the line ends in a quoted one."""
        at = 0
        while at <= len(text):
            if self._opened_at is None and text[at : at + 1] == b'"':
                self._opened_at, at = self._lines, at + 1
            end = (
                self._end_of_quoted(text, at) if self._opened_at is not None else self._end_of_plain(text, at)
            )
            if end is None:
                return
            self._fields += 1
            at = end + 1

    def _end_of_quoted(self, text: bytes, at: int) -> int | None:
        """Find the delimiter after a closing quote; None if the field goes on in the next line."""
        closing = _CLOSING_QUOTE.match(text, at)
        if closing is None:
            return None
        if closing.end() < len(text) and text[closing.end() : closing.end() + 1] != self._delimiter:
            raise CsvFault(f"line {self._lines} has text between a closing quote and the end of its field")
        self._opened_at = None
        return closing.end()

    def _end_of_plain(self, text: bytes, at: int) -> int:
        """Find the delimiter after a field that is not quoted."""
        found = text.find(self._delimiter, at)
        end = len(text) if found < 0 else found
        field = text[at:end]
        if b"\r" in field:
            raise _lone_return(self._lines)
        if field.lstrip(b" ").startswith(b'"'):
            raise CsvFault(f"line {self._lines} has a space before an opening quote")
        self._has_loose_quotes |= b'"' in field
        return end


def _fill(stream: Any, block: bytearray) -> int:
    """Read until the block is full or the file ends: a compressed file returns less at a time."""
    size = 0
    with memoryview(block) as view:
        while size < len(block) and (read := stream.readinto(view[size:])):
            size += read
    return size


def _packed(mask: NDArray[np.bool_]) -> _Bits:
    """Pack 64 positions into each word, the first in the lowest bit."""
    packed = np.packbits(mask, bitorder="little")
    if packed.size % 8:
        packed = np.concatenate([packed, np.zeros(-packed.size % 8, np.uint8)])
    return packed.view("<u8").astype(np.uint64, copy=False)


def _count(bits: _Bits) -> int:
    """Count the set bits."""
    if hasattr(np, "bitwise_count"):  # since numpy 2, and faster
        return int(np.bitwise_count(bits).sum())
    return int.from_bytes(bits.tobytes(), "little").bit_count()


def _first(bits: _Bits) -> int:
    """The first position with a set bit; a position after the end if there is none."""
    words = np.flatnonzero(bits)
    if not words.size:
        return 64 * len(bits)
    word = int(bits[words[0]])
    return 64 * int(words[0]) + (word & -word).bit_length() - 1


def _last(bits: _Bits) -> int:
    """The last position with a set bit; −1 if there is none."""
    words = np.flatnonzero(bits)
    return 64 * int(words[-1]) + int(bits[words[-1]]).bit_length() - 1 if words.size else -1


def _lone_return(line: int) -> CsvFault:
    return CsvFault(
        f"line {line} has a carriage return without a line feed; lines must end in a line feed, with or"
        " without a carriage return before it"
    )
