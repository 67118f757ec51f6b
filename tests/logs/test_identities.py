"""Identities: the same row has the same identity, and rows that occur several times stay distinct."""

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidLogError
from armnesia.logs import Source, open_source
from armnesia.logs.identities import identities
from armnesia.vault.keys.keyring import Keyring

KEYRING = Keyring.create("a vault of the tests")
ACTIONS = ["A", "B"]
NAMES: dict[str, Any] = {"action": "arm", "reward": "won", "user": "who"}
TABLE: dict[str, list[Any]] = {
    "arm": ["A", "B", "A", "A", "B", "A"],
    "won": [1, 0, 1, 0, 0, 1],
    "who": ["ann", "böb 🦆", "ann", None, "böb 🦆", "ann"],
}  # ann three times the same, böb twice


def identities_of(
    source: Any, *, chunk: int = 50_000, users: set[str] | None = None, **names: Any
) -> list[bytes]:
    opened = source if isinstance(source, Source) else open_source(source, **(NAMES | names))
    return [
        identity
        for rows in opened.rows(ACTIONS, (0, 1), chunk=chunk, users=users)
        for identity in identities(KEYRING.record_identities, rows)
    ]


def written(folder: Path, name: str, table: dict[str, Any]) -> Path:
    frame = pl.DataFrame(table)
    if name.endswith("csv"):
        frame.write_csv(folder / name)
    else:
        frame.write_parquet(folder / name)
    return folder / name


def part(first: int, last: int) -> dict[str, list[Any]]:
    return {name: column[first:last] for name, column in TABLE.items()}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_same_file_twice_brings_nothing_new(suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"log.{suffix}", TABLE)
    first = identities_of(path)
    assert identities_of(path) == first
    assert len(set(first)) == 6  # repeated rows stay apart
    assert all(len(identity) == 16 for identity in first)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_that_overlap_share_the_rows_they_share(suffix: str, tmp_path: Path) -> None:
    first = identities_of(written(tmp_path, f"1.{suffix}", part(0, 4)))
    second = identities_of(written(tmp_path, f"2.{suffix}", part(1, 6)))
    # ann: 2 in the first, 2 in the second; böb: 1 and 2; nobody: 1 and 1.
    assert len(set(first) & set(second)) == 2 + 1 + 1
    assert len(set(first) | set(second)) == 2 + 2 + 1


def test_what_overlaps_only_in_part_of_its_repetitions_is_counted_once() -> None:
    """The limit of identity by content: equal rows of two sources cannot be told apart without an id."""
    day_1, day_2 = part(0, 1), part(2, 3)  # two genuine rows that are equal, in two files that do not overlap
    assert identities_of(day_1) == identities_of(day_2)
    with_ids = [day | {"id": [id_]} for day, id_ in ((day_1, "17"), (day_2, "18"))]
    assert identities_of(with_ids[0], id="id") != identities_of(with_ids[1], id="id")


def test_every_kind_of_source_gives_the_same_identities(tmp_path: Path) -> None:
    table = TABLE | {"n": [1, 2, 1, 4, 2, 1], "price": [0.5, 0.25, 0.5, None, 0.25, 0.5]}
    expected = identities_of(table)
    backwards = dict(reversed(table.items()))
    for source in (
        written(tmp_path, "log.csv", table),
        written(tmp_path, "log.parquet", table),
        written(tmp_path, "backwards.csv", backwards),
        written(tmp_path, "backwards.parquet", backwards),
        pl.DataFrame(backwards),
        pl.DataFrame(table).to_pandas(),
        pl.DataFrame(table).to_arrow(),
    ):
        assert identities_of(source) == expected


def test_a_csv_file_knows_only_text(tmp_path: Path) -> None:
    """CSV and Parquet files of the same data agree if the CSV file writes values as `label_text` does."""
    table = TABLE | {"flag": [True, False, True, True, False, True]}  # so too 7.0 for 7, or 1e-7 for 1e-07
    in_csv, in_parquet = written(tmp_path, "log.csv", table), written(tmp_path, "log.parquet", table)
    assert "true" in in_csv.read_text("utf-8")
    assert set(identities_of(in_csv)).isdisjoint(identities_of(in_parquet))
    in_csv.write_text(in_csv.read_text("utf-8").replace("true", "True").replace("false", "False"), "utf-8")
    assert identities_of(in_csv) == identities_of(in_parquet)


@pytest.mark.parametrize(
    "change",
    [
        {"won": [0.999999999, 0, 1, 0, 0, 1]},
        {"arm": ["B", "B", "A", "A", "B", "A"]},
        {"who": ["anna", *TABLE["who"][1:]]},
        {"who": ["", *TABLE["who"][1:]]},
        {"who": [None, *TABLE["who"][1:]]},
    ],
)
def test_another_content_is_another_identity(change: dict[str, list[Any]]) -> None:
    old, new = Counter(identities_of(TABLE)), Counter(identities_of(TABLE | change))
    assert sum((old & new).values()) == 5


def test_a_column_more_or_another_name_is_another_content() -> None:
    renamed = {("WHO" if name == "who" else name): column for name, column in TABLE.items()}
    source = open_source(renamed, action="arm", reward="won", user="WHO")
    assert set(identities_of(TABLE)).isdisjoint(identities_of(source))
    assert set(identities_of(TABLE)).isdisjoint(identities_of(TABLE | {"more": [None] * 6}))


def test_texts_do_not_run_into_each_other() -> None:
    fixed: dict[str, Any] = {"arm": ["A"], "won": [1]}
    tables: list[dict[str, Any]] = [
        {"who": ["1:a"], "x": ["b"]},
        {"who": ["1:a1:b"], "x": [None]},
        {"who": ["a"], "x": ["1:b"]},
    ]
    seen = [identity for table in tables for identity in identities_of(fixed | table)]
    assert len(set(seen)) == 3


def test_the_users_column_may_be_named_later() -> None:
    """A content is the whole row by name, whatever the columns mean: only the reward is read as a number."""
    without = open_source(TABLE, action="arm", reward="won")
    assert identities_of(without) == identities_of(TABLE)


def test_the_rows_of_selected_users_have_the_identities_that_they_have_among_all(tmp_path: Path) -> None:
    path = written(tmp_path, "log.parquet", TABLE)
    everyone = identities_of(path)
    assert identities_of(path, users={"ann"}) == [everyone[row] for row in (0, 2, 5)]
    assert identities_of(path, users={"böb 🦆"}, chunk=1) == [everyone[row] for row in (1, 4)]
    assert identities_of(path, users={"böb 🦆", "ann"}, chunk=1) == [everyone[row] for row in (0, 1, 2, 4, 5)]


LABELS = st.sampled_from(["a", "b", "1:a", "é"])
SMALL_ROWS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from([0, 0.5, 1]), LABELS), max_size=12)


def as_table(rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(NAMES.values())}


@settings(max_examples=60, deadline=None)
@given(rows=SMALL_ROWS, chunk=st.integers(1, 13), order=st.randoms(use_true_random=False))
def test_identities_depend_on_the_rows_alone(rows: list[tuple[Any, ...]], chunk: int, order: Any) -> None:
    """Not on the size of chunks; and as a set not on the order of rows. Equal rows are numbered from 0."""
    whole = identities_of(as_table(rows))
    assert identities_of(as_table(rows), chunk=chunk) == whole
    assert len(set(whole)) == len(rows)
    shuffled = order.sample(rows, len(rows))
    assert set(identities_of(as_table(shuffled))) == set(whole)


@settings(max_examples=60, deadline=None)
@given(one=SMALL_ROWS, two=SMALL_ROWS)
def test_two_sources_share_as_many_identities_as_rows(
    one: list[tuple[Any, ...]], two: list[tuple[Any, ...]]
) -> None:
    """The intersection of multisets, computed independently by counting tuples."""
    shared = set(identities_of(as_table(one))) & set(identities_of(as_table(two)))
    assert len(shared) == sum((Counter(one) & Counter(two)).values())


def test_rows_without_ids_need_their_contents() -> None:
    source = open_source(TABLE, **NAMES, whole_rows=False)
    (rows,) = source.rows(ACTIONS, (0, 1))
    with pytest.raises(ValueError, match="rows have neither ids nor contents"):
        identities(KEYRING.record_identities, rows)


def test_an_id_twice_in_two_chunks_of_a_large_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    ids = "CASE WHEN i = 60000 THEN 7 ELSE i END"
    duckdb.execute(
        f"COPY (SELECT 'A' AS arm, i % 2 AS won, {ids} AS n FROM range(70000) AS t(i)) TO '{path}'"
    )
    source = open_source(path, action="arm", reward="won", id="n")
    with pytest.raises(InvalidLogError, match=r"id column 'n' must .*; rows 7 and 60000 share one"):
        list(source.rows(ACTIONS, (0, 1)))


MEASURE = """
import json, re, sys
from pathlib import Path
from armnesia.logs import open_source
from armnesia.logs.identities import identities
from armnesia.vault.keys.keyring import Keyring

keyring, peaks = Keyring.create("v"), []
for path in sys.argv[1:]:
    kept = []  # what a leak looks like: with `leak`, everything that was read is kept
    source = open_source(path.removeprefix("leak:"), action="arm", reward="won", user="who")
    for rows in source.rows(["A", "B"], (0, 1), chunk=2_000):
        found = identities(keyring.record_identities, rows)
        kept += found + rows.contents if path.startswith("leak:") else []
    peaks.append(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024)
print(json.dumps(peaks))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells the peak of a process's memory this way"
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_source(suffix: str, tmp_path: Path) -> None:
    """180 MB more to read, less than 90 MB more at the peak; a leak shows."""
    paths = []
    for rows in (100_000, 170_000):  # below, the buffers of the reader are not full yet
        path = tmp_path / f"{rows}.{suffix}"
        columns = "'A' AS arm, i % 7 / 6 AS won, i AS who, repeat(md5(i::VARCHAR), 80) AS note"
        groups = "(ROW_GROUP_SIZE 10000)" if suffix == "parquet" else ""
        duckdb.execute(f"COPY (SELECT {columns} FROM range({rows}) AS t(i)) TO '{path}' {groups}")
        paths.append(str(path))
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, *paths, f"leak:{paths[1]}"],
        capture_output=True,
        text=True,
        check=True,
    )
    small, large, leaking = json.loads(ran.stdout)
    assert large - small < 90
    assert leaking - small > 180


def test_an_identity_is_a_keyed_digest_of_the_content() -> None:
    """Computed by hand, from the published form of a content."""
    seen: list[tuple[str, ...]] = []

    def record_identities(kind: str, *columns: list[str]) -> list[bytes]:
        rows = [(kind, *parts) for parts in zip(*columns, strict=True)]
        seen.extend(rows)
        return [hashlib.blake2b("|".join(parts).encode(), digest_size=16).digest() for parts in rows]

    (rows,) = open_source(part(0, 1), **NAMES).rows(ACTIONS, (0, 1))
    (identity,) = identities(record_identities, rows)
    content = "3:won3:arm3:who;1000000000;1:A3:ann"
    assert seen == [("content", content, "0")]
    assert identity == hashlib.blake2b(f"content|{content}|0".encode(), digest_size=16).digest()
