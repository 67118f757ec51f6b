"""People are found in the column's own type: the same rows as by comparing texts, whatever the spelling."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.core.identifiers import UserType
from armnesia.logs import label_text, open_source, read_log
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.label_lookup import Lookup, finds_by_value, look_up
from armnesia.logs.files.source import FileSource
from armnesia.logs.user_names import UserNames
from tests.quick import quick_only

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly

UUIDS = [UUID(int=0), UUID(int=2**127), UUID("00000000-0000-0000-0000-00000000abcd")]
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "int8": (pa.int8(), [0, 7, -7, 127, -128, None]),
    "uint8": (pa.uint8(), [0, 7, 200, 255, None]),
    "int32": (pa.int32(), [0, 7, -7, 2**31 - 1, -(2**31), None]),
    "uint32": (pa.uint32(), [0, 7, 2**31, 2**32 - 1, None]),
    "int64": (pa.int64(), [0, 7, 10**16, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None]),
    "uint64": (pa.uint64(), [0, 7, 2**63, 2**64 - 1, None]),
    "float": (
        pa.float32(),
        [0.0, -0.0, 7.0, 0.5, float(np.float32(0.1)), 2.0**24, 2.0**60, float("inf"), float("nan"), None],
    ),
    "double": (
        pa.float64(),
        [
            *(0.0, -0.0, 7.0, -7.0, 7.5, 0.1, 0.1 + 0.2, 1e16, 2.0**53, 2.0**53 - 1, 1e300, 5e-324),
            *(float("inf"), float("-inf"), float("nan"), None),
        ],
    ),
    "decimal": (
        pa.decimal128(9, 2),
        [Decimal("0.00"), Decimal("7.00"), Decimal("7.50"), Decimal("-7.00"), Decimal("9999999.99"), None],
    ),
    "wide decimal": (pa.decimal128(38, 0), [Decimal(0), Decimal(7), Decimal(10**37), -Decimal(10**37), None]),
    "uuid": (pa.uuid(), [*UUIDS, None]),
    "text": (
        pa.string(),
        [
            *("7", "7.0", "07", "+7", " 7", "7 ", "７", "", "0", "-0", "1e1", "inf", "nan", "True"),
            *(
                "é",
                "e\N{COMBINING ACUTE ACCENT}",
                "ann",
                "Ann",
                "ann\n",
                "a\0b",
                "a",
                "'",
                "\\x41",
                "x" * 300,
                None,
            ),
        ],
    ),
    "bytes": (pa.binary(), [b"7", b"ann", b"\xff\x00", b"", b"'", None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [date(2026, 1, 31), date(1, 1, 1), None]),
}
"""By name: the type of a column, and values that are easily mistaken for each other."""
SPELLINGS: list[Any] = [
    *("7", "7.0", "7.00", "07", "+7", " 7", "7 ", "７", "7_0", "7e0", "0x7", "", "0", "-0", "0.0", "-0.0"),
    *("1e1", "1e16", "1e+16", "10000000000000000", "1e+16.0", "9007199254740992", "9007199254740993"),
    *("9007199254740992.0", "9223372036854775808", "18446744073709551615", "18446744073709551616"),
    *("inf", "-inf", "Infinity", "nan", "NaN", "NULL", "True", "true", "1", "0.1", "0.30000000000000004"),
    *("0.10000000149011612", "0.3", "7.5", "7.50", "7.500", "-7", "-7.00", "9999999.99", "10" + "0" * 36),
    *(
        "é",
        "e\N{COMBINING ACUTE ACCENT}",
        "ann",
        "Ann",
        "ann\n",
        "a\0b",
        "a",
        "b",
        "'",
        "\\x41",
        "\\xFF\\x00",
    ),
    *("\ud800", "x" * 300, "x" * 299, "2026-01-31", "2026-1-31", str(UUIDS[0]), str(UUIDS[2]).upper()),
    *(str(UUIDS[2]).replace("-", ""), "{" + str(UUIDS[2]) + "}"),
    *(7, 7.0, -0.0, 0, True, False, 2**53, 2**53 + 1, 2.0**53, 10**16, 1e16, 2**63, 2**64, 10**37),
    *(np.int64(7), np.float32(0.1), 0.1, 0.1 + 0.2, Decimal("7.00"), Decimal("7.50"), float("inf"), *UUIDS),
    *(b"7", b"\xff\x00", b"'", date(2026, 1, 31)),
]
"""Names in requests: of every person, and of many who are nobody."""


def write(path: Path, kind: str, labels: list[Any], writer: str) -> None:
    """Write a log in small row groups; its rewards tell all rows apart."""
    type_, _ = VALUES[kind]
    rewards = [2.0**-row for row in range(len(labels))]
    actions = ["A" if row % 3 else "B" for row in range(len(labels))]
    keys = [f"k{row % 2}" for row in range(len(labels))]
    table = pa.table({"action": actions, "reward": rewards, "user": pa.array(labels, type_), "key": keys})
    pq.write_table(table, path, row_group_size=2, use_dictionary=writer == "dictionaries")
    if writer == "bloom filters":
        options = "FORMAT parquet, ROW_GROUP_SIZE 2048, DICTIONARY_SIZE_LIMIT 10000"
        other = path.with_suffix(".pq")
        duckdb.execute(f"COPY (SELECT * FROM read_parquet('{path}')) TO '{other}' ({options})")
        other.replace(path)


def rows_of(texts: set[str | None], labels: list[Any]) -> list[int]:
    """The plain model: labels are known by their text."""
    return [row for row, label in enumerate(labels) if label_text(label) in texts - {None}]


def check_against_model(path: Path, labels: list[Any], requests: list[list[Any]]) -> None:
    """Compare requests and rows with what the model finds."""
    log = read_log(path, user="user", actions=["A", "B"])
    by_key = log.by("key")
    source = open_source(path, action="action", reward="reward", user="user", id=None)
    for users in requests:
        texts = {label_text(user) for user in users}
        expected = rows_of(texts, labels)
        known = {label_text(labels[row]) for row in expected}
        if known == texts:
            assert log.request(users=users) == log.request(rows=expected), users
            assert by_key.request(users=users) == by_key.request(rows=expected), users
        else:
            for chosen in (log, by_key):
                with pytest.raises(InvalidInputError, match="the log has no rows of user"):
                    chosen.request(users=users)
        storable = {text for text in texts if text is not None and text != "\ud800"}
        found = source.rows(["A", "B"], (0, 1), users=storable)
        assert [position for rows in found for position in rows.positions] == expected, users


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "log.parquet"


WRITERS = ("dictionaries", "plain values", "bloom filters")
# A few types in the quick tests; the slow ones have them all.
FAMILIES = ("int64", "double", "text")
EVERY = [(kind, writer) for kind in VALUES for writer in WRITERS]
QUICK = [(kind, "dictionaries") for kind in FAMILIES]


@pytest.mark.parametrize(("kind", "writer"), quick_only(QUICK, EVERY))
def test_every_spelling_finds_what_its_text_finds(kind: str, writer: str, tmp_path: Path) -> None:
    _, values = VALUES[kind]
    labels = values * 2
    write(tmp_path / "log.parquet", kind, labels, writer)
    known = [label for label in values if label_text(label) is not None]
    requests = [[user] for user in SPELLINGS + known] + [known, [*known[:2], "nobody"], SPELLINGS]
    check_against_model(tmp_path / "log.parquet", labels, requests)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from(list(VALUES)), writer=st.sampled_from(WRITERS))
def test_random_rows_and_requests(data: st.DataObject, kind: str, writer: str) -> None:
    labels = data.draw(st.lists(st.sampled_from(VALUES[kind][1]), min_size=1, max_size=12))
    names = (
        st.sampled_from([*SPELLINGS, *VALUES[kind][1]]) | st.integers() | st.floats() | st.text(max_size=3)
    )
    requests = data.draw(st.lists(st.lists(names, min_size=1, max_size=4), min_size=1, max_size=5))
    with scratch() as path:
        write(path, kind, labels, writer)
        check_against_model(path, labels, requests)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@pytest.mark.slow
@given(
    labels=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8),
    near=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
)
def test_neighbouring_large_integers_are_different_people(labels: list[int], near: list[int]) -> None:
    requests = [[user] for user in {*labels, *near, *(label + 1 for label in labels)}]
    with scratch() as path:
        write(path, "int64", labels, "dictionaries")
        check_against_model(path, labels, requests)


@pytest.mark.parametrize(
    ("kind", "user_type"),
    [(kind, type_) for kind in ("int64", "uint8", "double", "decimal", "text") for type_ in UserType]
    + [("uuid", UserType.TEXT), ("uuid", UserType.EXACT)],
)
def test_a_vault_finds_every_spelling_of_its_people(kind: str, user_type: UserType, tmp_path: Path) -> None:
    """The rows of a person are those whose text is a spelling of the name that the vault uses."""
    labels = VALUES[kind][1] * 2
    if user_type is UserType.INTEGER:  # others are refused by a vault of integers
        labels = [label for label in labels if user_type.normalised(label_text(label) or "")]
    write(tmp_path / "log.parquet", kind, labels, "dictionaries")
    source = open_source(tmp_path / "log.parquet", action="action", reward="reward", user="user")
    names = {label: user_type.normalised(label_text(label) or "") for label in labels}
    for name in {*names.values(), "8"} - {None, ""}:
        found = source.rows(["A", "B"], (0, 1), users={str(name)}, user_names=UserNames(user_type))
        expected = [row for row, label in enumerate(labels) if names[label] == name]
        assert [position for rows in found for position in rows.positions] == expected, name


def test_values_are_compared_where_they_have_one_text(tmp_path: Path) -> None:
    by_value = {
        "int8",
        "uint8",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float",
        "double",
        "decimal",
        "uuid",
        "text",
    }
    for kind, (_, values) in VALUES.items():
        write(tmp_path / "log.parquet", kind, values, "dictionaries")
        source: Any = open_source(tmp_path / "log.parquet", action="action", reward="reward", user="user")
        expected = kind in {*by_value, "wide decimal"}
        assert finds_by_value(source._column_of["user"], ["7"]) == expected
        condition = source.of_labels("user", ["7"]).condition
        assert condition.startswith("c2 = ") == expected
    floats = FileColumn("c0", "DOUBLE", is_text=False)
    assert look_up(floats, ["0"]).condition == f"{floats.text()} = $label"


def test_a_lookup_reads_only_the_row_groups_that_may_hold_the_person(tmp_path: Path) -> None:
    """Where the values of other row groups cannot be read, the person is still found."""
    n = 40_000
    users = np.arange(n) // 10
    table = pa.table({"action": ["A"] * n, "reward": np.ones(n), "user": users, "text": users.astype(str)})
    path = tmp_path / "log.parquet"
    pq.write_table(table.sort_by("text"), path, row_group_size=2_000, compression="none")
    log: Any = read_log(path, user="text", actions=["A"])
    _break_row_group(path, 0, "text")
    log = replace(log, source=_reopened(log.source))
    assert log.request(user="999").counts.tolist() == [10]
    assert log.request(users=["998", "999"]).counts.tolist() == [20]
    (rows,) = log.source.rows(["A"], (0, 1), users={"999"})
    assert rows.positions == list(range(n - 10, n))


def _reopened(source: Any) -> Any:
    return FileSource(source._location, source.columns, table=None, whole_rows=False)


def _break_row_group(path: Path, row_group: int, column: str) -> None:
    """Overwrite the values of a column in a row group, so that whoever reads them fails."""
    metadata = pq.read_metadata(path)
    place = metadata.schema.names.index(column)
    chunk = metadata.row_group(row_group).column(place)
    start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    content = bytearray(path.read_bytes())
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(duckdb.Error):
        duckdb.execute(f"SELECT count(DISTINCT {column}) FROM read_parquet('{path}')").fetchall()


def _as_doubles(column: FileColumn, texts: Any) -> Lookup:
    return Lookup(f"CAST({column.name} AS DOUBLE) = TRY_CAST($label AS DOUBLE)", {"label": next(iter(texts))})


def _not_at_all(column: FileColumn, texts: Any) -> Lookup:
    return Lookup(f"{column.name} < TRY_CAST($label AS {column.full_type})", {"label": next(iter(texts))})


def _without_the_text(column: FileColumn, texts: Any) -> Lookup:
    (text,) = texts
    return Lookup(f"{column.name} = TRY_CAST($label AS {column.full_type})", {"label": text})


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(_not_at_all, "int64"), (_as_doubles, "int64"), (_as_doubles, "text"), (_without_the_text, "int64")],
)
def test_a_planted_fault_is_noticed(
    fault: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = VALUES[kind][1]
    write(tmp_path / "log.parquet", kind, labels, "dictionaries")
    requests: list[list[Any]] = [["7"], ["7.0"], [2**53], ["ann"]]
    check_against_model(tmp_path / "log.parquet", labels, requests)
    monkeypatch.setattr("armnesia.logs.files.source.look_up", fault)
    with pytest.raises((AssertionError, InvalidInputError, pytest.fail.Exception)):
        check_against_model(tmp_path / "log.parquet", labels, requests)


def test_many_people_are_one_lookup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = list(range(3_000))
    write(tmp_path / "log.parquet", "int64", [7, 8, 9], "dictionaries")
    table = pa.table({"action": ["A"] * 3_000, "reward": [1] * 3_000, "user": labels})
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=100)
    log: Any = read_log(tmp_path / "log.parquet", user="user", actions=["A"])
    asked: list[str] = []
    query = FileSource.query

    def noted(self: FileSource, sql: str, *arguments: Any, **parameters: Any) -> Any:
        asked.append(sql)
        return query(self, sql, *arguments, **parameters)

    monkeypatch.setattr(FileSource, "query", noted)
    for number in (1, 2, 500, 2_500):
        assert log.request(users=labels[:number]).counts.tolist() == [number]
    assert len(asked) == 4
