"""The records of a CSV file, counted without DuckDB: as Python's csv module counts them, block by block."""

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidLogError
from armnesia.logs import open_source
from armnesia.logs.files import csv_records as module
from armnesia.logs.files.csv_records import CsvFault, CsvRecords, scan_blocks, scan_csv, scan_lines

HEADER = b"h,i\n"
TOKENS = [b"A", b"x", b" ", b",", b'"', b'""', b',"', b'",', b"\n", b"\r\n", b"\r", b"\0", b"\t"]
FIELDS = [b"A", b"", b"1", b'"x"', b'"x,y"', b'"x\ny"', b'"x\r\ny"', b'"x""y"', b'5"', b' "x"', b'"x" ']
ANYTHING = st.lists(st.sampled_from(TOKENS), max_size=40).map(b"".join)
NEARLY_REGULAR = st.lists(
    st.tuples(
        st.sampled_from(FIELDS), st.just(b","), st.sampled_from(FIELDS), st.sampled_from([b"\n", b"\r\n"])
    ).map(b"".join),
    max_size=20,
).map(b"".join)
BODIES = st.one_of(ANYTHING, NEARLY_REGULAR, st.tuples(NEARLY_REGULAR, ANYTHING).map(b"".join))


def scanned(scan: Any, content: bytes) -> CsvRecords | None:
    """What a scan finds; None if it refuses the file, or leaves it to the scan line by line."""
    try:
        found: CsvRecords = scan(io.BytesIO(content), ",")
    except (CsvFault, module._NeedsLineScan):
        return None
    return found


def by_csv_module(content: bytes) -> list[list[str]]:
    text = io.StringIO(content.removeprefix(b"\xef\xbb\xbf").decode(), newline="")
    return [row for row in csv.reader(text, strict=True) if row]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Any:
    """Blocks of two words, so that every token falls on their borders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 128)
        yield


@settings(max_examples=400, deadline=None)
@given(body=BODIES)
@example(body=b"A" * 123 + b"\r" + b"\n" + b"A,1")
@example(body=b"A" * 123 + b'"')
@example(body=b'"' + b"A" * 122 + b'"' + b"x\n")
@example(body=b"A," + b"B" * 121 + b'\n"\n"')
def test_what_is_accepted_has_the_records_of_the_csv_module(body: bytes) -> None:
    content = HEADER + body
    fast, slow = scanned(scan_blocks, content), scanned(scan_lines, content)
    if fast is not None and slow is not None:
        assert fast == slow
    found = scanned(scan_csv, content)
    if found is not None:
        assert found.count == len(by_csv_module(content)) - 1


VALUES = st.sampled_from(FIELDS[:8] * 3 + [b'5"', b'5"x"', b" x ", b'"\r"', b",", b"x,", b' "x"', b'"x" '])
ENDS = st.sampled_from([[b"\n"], [b"\r\n"], [b"\n", b"\r\n"]])


@settings(max_examples=120, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=8), ends=ENDS, data=st.data())
def test_what_is_accepted_is_read_with_the_values_of_the_csv_module(
    values: list[bytes], ends: list[bytes], data: st.DataObject
) -> None:
    """Every field of every row; fields after the last column must be empty, and are left out."""
    lines = [b"A,1," + value + data.draw(st.sampled_from(ends)) for value in values]
    content = b"action,reward,text" + ends[0] + b"".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_bytes(content)
        try:
            (rows,) = open_source(path, action="action", reward="reward").rows(["A"], (0, 1))
        except InvalidLogError:
            return
    expected = by_csv_module(content)[1:]
    assert not any("".join(row[3:]) for row in expected)
    texts = [row[2] for row in expected]
    heading = "6:reward6:action4:text;1000000000;1:A"
    assert rows.contents == [heading + (f"{len(text)}:{text}" if text else "-") for text in texts]


def test_mixed_line_ends_are_read(tmp_path: Path) -> None:
    for content in (
        b'action,reward,text\nA,1,x\r\nA,1,"x\r\ny"\nA,1,\r\n',
        b'action,reward,text\r\nA,1,x\nA,1,"x\r\ny"\r\nA,1,',
    ):
        (tmp_path / "log.csv").write_bytes(content)
        (rows,) = open_source(tmp_path / "log.csv", action="action", reward="reward").rows(["A"], (0, 1))
        heading = "6:reward6:action4:text;1000000000;1:A"
        assert rows.contents == [f"{heading}1:x", f"{heading}4:x\r\ny", f"{heading}-"]


CASES: dict[str, tuple[bytes, CsvRecords | str]] = {
    "no line end at the end": (b"h,i\nA,1", CsvRecords(1)),
    "empty lines": (b"h,i\n\nA,1\n\n\nA,1\n\n", CsvRecords(2)),
    "empty lines, CR LF": (b"h,i\r\n\r\nA,1\r\n\r\n\r\nA,1\r\n\r\n", CsvRecords(2)),
    "header only": (b"h,i\n", CsvRecords(0)),
    "header only, no line end": (b"h,i", CsvRecords(0)),
    "nothing": (b"", CsvRecords(0)),
    "byte order mark before a quote": (b'\xef\xbb\xbf"h",i\nA,1\n', CsvRecords(1)),
    "byte order mark and a loose quote": (b'\xef\xbb\xbf"h",i\nA"B,1\n', CsvRecords(1)),
    "mixed line ends": (b"h,i\nA,1\r\nA,1\n", CsvRecords(2, mixed_line_ends=True)),
    "the header has the other line end": (b"h,i\r\nA,1\nA,1\n", CsvRecords(2, mixed_line_ends=True)),
    "quoted line ends of the other kind": (b'h,i\nA,"1\r\n2"\n', CsvRecords(1)),
    "NUL bytes": (b"h,i\nA\0,1\n\0,1\n", CsvRecords(2)),
    "a quote in a field": (b'h,i\n5" pipe,1\nA,1\n', CsvRecords(2)),
    "quotes around a word": (b'h,i\n5 "x" y,1\nA,1\n', CsvRecords(2)),
    "a quote in a field, then quoted": (b'h,i\n5" pipe,1\n"A\nB",1\n', CsvRecords(2)),
    "open quote": (b'h,i\nA,1\n"A,1\nA,1\n', "line 3 opens a quote that is never closed"),
    "text after a quote": (b'h,i\n"A"B,1\n', "line 2 has text between a closing quote and the end of its"),
    "CR alone": (b"h,i\rA,1\r", "line 1 has a carriage return without a line feed"),
    "CR in a field": (b"h,i\nA,1\nA\rB,1\n", "line 3 has a carriage return without a line feed"),
    "CR in a field beside a loose quote": (b'h,i\nA,1\n5"\rB,1\n', "line 3 has a carriage return without"),
    "CR at the end": (b"h,i\nA,1\r", "line 2 has a carriage return without a line feed"),
    "mixed line ends and a short line": (b"h,i\nA,1\r\nA\n", "line 3 has 1 columns where the header has 2"),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    content, expected = CASES[name]
    if isinstance(expected, CsvRecords):
        assert scan_csv(io.BytesIO(content), ",") == expected
    else:
        with pytest.raises(CsvFault, match=expected):
            scan_csv(io.BytesIO(content), ",")


def test_a_tab_is_a_delimiter_and_a_comma_is_not() -> None:
    assert scan_csv(io.BytesIO(b'h\ti\n"A,\n"\t1\n'), "\t") == CsvRecords(1)
    with pytest.raises(CsvFault, match="line 2 has text between"):
        scan_csv(io.BytesIO(b'h\ti\n"A",1\n'), "\t")


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_a_record_must_not_be_longer_than_what_duckdb_reads(
    quoted: bool, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 1 << 19)
    longest = module.LONGEST_LINE - 4
    for length, accepted in ((longest, True), (longest + 8, False)):
        field = b'"' + b"x\n" * (length // 2) + b'"' if quoted else b"x" * length
        content = b"h,i\nA,1\n" + field + b",1" + (b"" if last else b"\nA,1\n")
        if accepted:
            assert scan_csv(io.BytesIO(content), ",").count == (2 if last else 3)
        else:
            with pytest.raises(CsvFault, match=r"record that begins in line 3 has more than 1,048,576 bytes"):
                scan_csv(io.BytesIO(content), ",")


def test_a_stream_that_returns_a_few_bytes_at_a_time() -> None:
    class Slow(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            return super().readinto(memoryview(buffer)[:7])

    content = b'h,i\r\n"A\r\n",1\r\n' * 50
    assert scan_csv(Slow(content), ",") == scan_csv(io.BytesIO(content), ",") == CsvRecords(99)


def test_without_numpy_2_bits_are_counted_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    content = HEADER + b'"A\n",1\r\n' * 1000
    expected = scan_csv(io.BytesIO(content), ",")
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert scan_csv(io.BytesIO(content), ",") == expected == CsvRecords(1000, mixed_line_ends=True)
