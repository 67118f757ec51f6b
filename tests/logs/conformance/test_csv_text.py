"""Any CSV file is read with the values of Python's csv module, or refused."""

import csv
import io
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

import armnesia as am
from armnesia.core.errors import InvalidLogError
from tests.quick import examples

HEADER = "action,reward,user"
FIELDS = ["A", "", "1", '"x"', '"x,y"', '"x\ny"', '"x\r\ny"', '"x""y"', '5"', '5"x"', " x ", ' "x"', '"x" ']
TOKENS = ["A", " ", ",", '"', '""', ',"', '",', "\n", "\r\n", "\r", "\0", "\t", "#", ";", "\\"]
ENDS = st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]])
REGULAR = st.tuples(st.lists(st.sampled_from(FIELDS), max_size=8), ENDS)
ANYTHING = st.lists(st.sampled_from(TOKENS), max_size=12).map("".join)


def users_by_csv_module(text: str) -> Counter[str]:
    """Of each row that has a user."""
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row][1:]
    assert not any(any(row[3:]) for row in rows), "further fields are empty"
    return Counter(row[2] for row in rows if row[2])


def assert_reads_as_csv_module_or_refuses(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_bytes(text.encode())
        try:
            log = am.read_log(path, actions=["A"])
        except InvalidLogError:
            return
        assert log.users() == users_by_csv_module(text)


@examples(120)
@given(rows=REGULAR, data=st.data())
def test_regular_rows(rows: tuple[list[str], list[str]], data: st.DataObject) -> None:
    fields, ends = rows
    lines = [f"A,1,{field}{data.draw(st.sampled_from(ends))}" for field in fields]
    assert_reads_as_csv_module_or_refuses("".join([HEADER, ends[0], *lines]))


@examples(120)
@given(middle=ANYTHING)
@example(middle='"\r"')
@example(middle="x\r\n\r\nA,1,y")
@example(middle="x\n#A,1,y")
def test_anything_in_the_middle(middle: str) -> None:
    assert_reads_as_csv_module_or_refuses(f"{HEADER}\nA,1,ann\nA,1,{middle}\nA,1,bob\n")
