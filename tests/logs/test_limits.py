"""How long texts may be: refused in every kind of source, in a sentence, and without much memory."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.logs import open_source, read_log
from armnesia.logs.counting import RowRules
from armnesia.logs.values import LONGEST_TEXT, in_chunks
from armnesia.logs.source import Source
from armnesia.logs.tables import sqlite
from armnesia.logs.user_names import UserNames
from tests.logs.conftest import SOME_KINDS, Schema, Stored, Table, write_csv, write_parquet, write_sqlite

Store = Callable[[Table], Stored]
LONG = "ä" * (LONGEST_TEXT // 2)
"""As many bytes as are accepted, in half as many characters."""
LABELS: Table = {
    "action": ["A", "B", "A"],
    "reward": [1, 0, 1],
    "user": ["u", "v", None],
    "key": ["1", "2", "3"],
}


def with_label(name: str, text: str) -> Table:
    return LABELS | {name: [LABELS[name][0], text, LABELS[name][2]]}


def refusal(read: Callable[[], Any]) -> str:
    with pytest.raises(InvalidLogError) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read_rows(source: Source) -> int:
    return sum(map(len, source.rows(["A", "B", LONG], (0, 1))))


COLUMNS: dict[str, Any] = {"action": "action", "reward": "reward", "user": "user", "id": "key"}
EVERY_LABEL = pytest.mark.parametrize(
    ("role", "name"), [("action", "action"), ("user", "user"), ("id", "key")]
)


@SOME_KINDS
@EVERY_LABEL
def test_labels_of_the_longest_length_are_read(role: str, name: str, stored: Store) -> None:
    source = stored(with_label(name, LONG))
    assert read_rows(source.open(**COLUMNS)) == 3
    assert len(source.log(user="user", actions=["A", "B", LONG])) == 3


@SOME_KINDS
@EVERY_LABEL
def test_longer_labels_are_refused(role: str, name: str, stored: Store) -> None:
    source = stored(with_label(name, LONG + "x"))
    expected = f"{role} column '{name}' must hold labels of at most 65,536 bytes; got a longer one at row 1"
    assert refusal(lambda: read_rows(source.open(**COLUMNS))) == expected
    if role != "id":  # of a Parquet file, read_log reads no users
        assert refusal(lambda: source.log(user="user", actions=["A", "B", LONG]).users()) == expected


def test_long_users_of_a_parquet_file_are_refused_by_what_reads_them(tmp_path: Path) -> None:
    """Rows of given users are found without reading those of others."""
    path = write_parquet(tmp_path / "log.parquet", with_label("user", LONG + "x"))
    log = read_log(path, user="user", actions=["A", "B"])
    assert log.statistics().counts.tolist() == [2, 1]
    assert log.request(user="u").counts.tolist() == [1, 0]
    assert log.request(user=LONG + "x").counts.tolist() == [0, 1]
    expected = "user column 'user' must hold labels of at most 65,536 bytes; got a longer one at row 1"

    def rows_of(*users: str) -> list[int]:
        found = open_source(path, **COLUMNS).rows(["A", "B"], (0, 1), users=users)
        return [position for rows in found for position in rows.positions]

    assert log.request(users=["u", LONG + "x"]).counts.tolist() == [1, 1]
    assert rows_of("u", "v") == rows_of("u") == [0]
    assert refusal(log.users) == expected
    assert refusal(lambda: rows_of(LONG + "x")) == expected
    source = open_source(path, **COLUMNS)
    assert source.user_type() is UserType.TEXT  # by its length alone
    row_rules = RowRules(("A", "B"), (0.0, 1.0), UserNames.of(UserType.TEXT))
    assert refusal(lambda: source.count_rows(row_rules)) == expected


def test_of_chosen_rows_no_more_is_read_than_is_refused(tmp_path: Path) -> None:
    """In Parquet files, the rows of one person are found without a look at the texts of all others."""
    long = {"action": "A" * (LONGEST_TEXT + 1), "key": "ä" * LONGEST_TEXT, "page": "x" * (LONGEST_TEXT + 1)}
    table = {name: [LABELS.get(name, ["1"])[0], text] for name, text in long.items()}
    table |= {"reward": [1, 1], "user": ["u", "v"]}
    path = write_parquet(tmp_path / "log.parquet", table)
    by_key: Any = open_source(path, **COLUMNS)
    by_key_alone = open_source(path, **COLUMNS | {"action": "reward"})
    by_content = open_source(path, action="reward", reward="reward", user="user")
    for source in (by_key, by_key_alone, by_content):
        assert [rows.positions for rows in source.rows(["A", 1], (0, 1), users={"u"})] == [[0]]

    def refusal_of_v(source: Source) -> str:
        return refusal(lambda: list(source.rows(["A", 1], (0, 1), users={"v"})))

    assert "action column 'action' must hold labels of at most 65,536 bytes" in refusal_of_v(by_key)
    assert "id column 'key' must hold labels of at most 65,536 bytes" in refusal_of_v(by_key_alone)
    assert "rows without an id are known by all their columns" in refusal_of_v(by_content)
    columns = ", ".join(by_key._streamed(bounded=True))
    ((action, _, _, _, key),) = by_key._files.query(f"SELECT {columns} FROM {by_key._files.table} OFFSET 1")
    assert (len(action), len(key)) == (LONGEST_TEXT + 1, LONGEST_TEXT)


@pytest.mark.parametrize("type_", ["text", "varchar", "bytea", "jsonb"])
def test_labels_on_a_server_have_a_longest_length(type_: str, schema: Schema) -> None:
    value: Any = LONG + "x"
    if type_ == "bytea":
        value = b"x" * (LONGEST_TEXT + 1)
    rows = [("A", 1, None), ("A", 1, f'"{value}"' if type_ == "jsonb" else value)]
    table = schema.create("log", {"action": "TEXT", "reward": "INTEGER", "user": type_}, rows)
    expected = "user column 'user' must hold labels of at most 65,536 bytes; got a longer one at row 1"
    assert refusal(lambda: read_log(schema.url, table=table, user="user", actions=["A"])) == expected
    expected = (
        "rows without an id are known by all their columns, which must have at most 65,536 bytes together;"
        " row 1 has more: name a column of ids with id=... (--id-column)"
    )
    source = open_source(schema.url, table=table, action="action", reward="reward", user=None)
    assert refusal(lambda: list(source.rows(["A"], (0, 1)))) == expected


@SOME_KINDS
def test_rows_without_an_id_have_a_longest_length(stored: Store) -> None:
    half = "x" * (LONGEST_TEXT // 2)
    table: Table = {"action": ["A", "A"], "reward": [1, 0], "a": [None, half], "b": [half, half]}
    source = stored(table)
    assert refusal(lambda: read_rows(source.open(action="action", reward="reward"))) == (
        "rows without an id are known by all their columns, which must have at most 65,536 bytes together;"
        " row 1 has more: name a column of ids with id=... (--id-column)"
    )
    assert len(source.log(actions=["A"])) == 2  # the other columns are not read


def test_a_column_that_is_not_read_may_be_long(tmp_path: Path) -> None:
    table: Table = {"action": ["A"], "reward": [1], "key": ["1"], "page": ["x" * (1 << 21)]}
    names: dict[str, Any] = {"action": "action", "reward": "reward", "id": "key"}
    url = write_sqlite(tmp_path / "log.db", table)
    for source in (
        open_source(table, **names),
        open_source(pd.DataFrame(table), **names),
        open_source(write_parquet(tmp_path / "log.parquet", table), **names),
        open_source(url, table="log", **names),
    ):
        assert read_rows(source) == 1


def test_a_value_in_sqlite_is_not_handed_over_if_it_is_huge(tmp_path: Path) -> None:
    table: Table = {"action": ["A"] * 100, "reward": [1] * 100, "page": [None] * 99 + ["x" * (1 << 21)]}
    source = open_source(
        write_sqlite(tmp_path / "log.db", table), table="log", action="action", reward="reward"
    )
    assert refusal(lambda: read_rows(source)) == (
        f"source {str(tmp_path / 'log.db')!r} cannot be read as SQLite: one of the rows from 64 on has a"
        " value of more than 1,048,576 bytes in a column that is read; shorten it, or name a column of ids"
        " with id=... (--id-column)"
    )
    assert sqlite._PIECE == 64


@pytest.mark.parametrize("files", [1, 2])
def test_the_row_of_a_long_text_counts_on_from_file_to_file(files: int, tmp_path: Path) -> None:
    for number in range(files):
        write_parquet(tmp_path / f"{number}.parquet", LABELS)
    other = dict(reversed(with_label("user", LONG + "x").items()))
    write_parquet(tmp_path / "9.parquet", other)
    log = read_log(tmp_path / "*.parquet", user="user", actions=["A", "B"])
    assert refusal(log.users) == (
        "user column 'user' must hold labels of at most 65,536 bytes; got a longer one at row"
        f" {3 * files + 1}"
    )


def test_a_column_that_expands_to_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    table = pa.table({"action": ["A"] * 50, "reward": [1] * 50, "user": ["x" * 50_000] * 50})
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    assert len(read_log(path, user="user", actions=["A"])) == 50
    monkeypatch.setattr("armnesia.logs.files.formats.LARGEST_EXPANDED", 1_000_000)
    message = refusal(lambda: read_log(path, user="user", actions=["A"]))
    assert message.startswith(f"source {str(path)!r} cannot be read as Parquet: column 'user' of row group 0")
    assert message.endswith("more than 1,000,000 bytes are accepted if they are compressed at most 100-fold")
    assert len(read_log(path, user=None, actions=["A"])) == 50


def dictionary(text: str, n: int) -> Any:
    """One text for all rows, which the file holds once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([text]))


# Not ru_maxrss, which begins with the peak of the parent process.
MEASURED = """
import re, sys
from pathlib import Path
from armnesia.cli.main import main
try:
    main(sys.argv[1:])
finally:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print(int(peak) // 1024, file=sys.stderr)
"""


def run(code: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=dict(os.environ), check=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process's memory so")
def test_a_small_file_with_a_long_text_in_every_row_takes_no_memory(tmp_path: Path) -> None:
    """13 KB, a million rows, one text of 200 KB: it took 10.9 GB."""
    n, text = 1_000_000, "x" * 200_000
    plain = {"action": dictionary("A", n), "reward": pa.array(np.ones(n, np.int8))}
    pq.write_table(pa.table(plain | {"id": dictionary(text, n)}), tmp_path / "id.parquet")
    pq.write_table(pa.table(plain | {"action": dictionary(text, n)}), tmp_path / "action.parquet")
    pq.write_table(pa.table(plain | {"user": dictionary(text, n)}), tmp_path / "user.parquet")
    many = {f"c{number}": dictionary(text[:60_000], n) for number in range(20)}
    pq.write_table(pa.table(plain | many), tmp_path / "many.parquet")
    assert run(MEASURED, "init", "--actions", "A", cwd=tmp_path).returncode == 0
    for arguments in (
        ["ingest", "id.parquet", "--id-column", "id", "--no-user"],
        ["ingest", "id.parquet", "--no-user"],
        ["ingest", "many.parquet", "--no-user"],
        ["decide", "action.parquet", "--actions", "A"],
    ):
        done = run(MEASURED, *arguments, cwd=tmp_path)
        *message, peak = done.stderr.splitlines()
        assert done.returncode == 2
        assert len(message) == 1
        assert "at most 65,536 bytes" in message[0]
        assert int(peak) < 300
    some = ["--user", "u", "--user", "v", "--actions", "A", "--unlearner", "rollback"]
    done = run(MEASURED, "unlearn", "user.parquet", *some, cwd=tmp_path)
    *message, peak = done.stderr.splitlines()
    assert done.returncode == 2
    assert "user 'u', 'v'" in message[-1] or "at most 65,536 bytes" in message[-1]
    assert int(peak) < 300


WITHOUT_MEMORY = """
import duckdb, sys
from armnesia.cli.main import main
from armnesia.logs.files import duckdb_engine
duckdb_engine._SETTINGS["memory_limit"] = "5MB"
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["decide", "ingest"])
def test_an_engine_without_memory_says_so_in_a_sentence(command: str, tmp_path: Path) -> None:
    users = [f"user-{number}-{'x' * 500}" for number in range(20_000)]
    table: Table = {"action": ["A"] * 20_000, "reward": [1] * 20_000, "user": users}
    write_csv(tmp_path / "log.csv", table)
    run(MEASURED, "init", "--actions", "A", cwd=tmp_path)
    done = run(WITHOUT_MEMORY, command, "log.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"armnesia: source {str(tmp_path / 'log.csv')!r} cannot be read as CSV: there is not enough memory;"
        " split the file, or write it with smaller row groups and shorter texts"
    )


@pytest.mark.slow
def test_python_without_memory_says_so_in_a_sentence(tmp_path: Path) -> None:
    code = """
import sys
from armnesia.cli.main import main
from armnesia.logs import source
def fail(*_): raise MemoryError
source.Occurrences.number = fail
main(sys.argv[1:])
"""
    write_csv(tmp_path / "log.csv", LABELS)
    run(MEASURED, "init", "--actions", "A,B", cwd=tmp_path)
    done = run(code, "ingest", "log.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "armnesia: there is not enough memory for this command\n"


def test_chunks_end_where_their_texts_become_long() -> None:
    pieces = [[("x" * 10, n, None, b"yy")] * 4 for n in range(6)]
    rows = [row for piece in pieces for row in piece]
    for size, most_text in ((5, 10**9), (24, 48), (7, 90), (1, 1), (100, 10**9)):
        chunks = list(in_chunks(pieces, size, most_text))
        assert [row for chunk in chunks for row in chunk] == rows
        assert all(0 < len(chunk) <= size for chunk in chunks)
        assert all(len(chunk) <= most_text // 12 + 4 for chunk in chunks)
    assert [len(chunk) for chunk in in_chunks(pieces, 10, 10**9)] == [10, 10, 4]
    assert [len(chunk) for chunk in in_chunks(pieces, 24, 48)] == [4] * 6


@SOME_KINDS
def test_few_long_rows_are_read_at_a_time(stored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("files.duckdb_engine", "tables.sqlite", "frames.source"):
        monkeypatch.setattr(f"armnesia.logs.{module}._PIECE", 3)
    monkeypatch.setattr("armnesia.logs.tables.postgres._FEWEST", 3)
    monkeypatch.setattr("armnesia.logs.tables.postgres._PIECE_TEXT", 1_000)
    monkeypatch.setattr("armnesia.logs.limits.in_chunks.__defaults__", (10_000,))
    users = [f"{number}-{'x' * 2_000}" for number in range(20)]
    source = stored({"action": ["A"] * 20, "reward": [1] * 20, "user": users})
    chunks = list(source.open(action="action", reward="reward").rows(["A"], (0, 1)))
    assert [user for rows in chunks for user in rows.users] == users
    assert [row for rows in chunks for row in rows.positions] == list(range(20))
    assert max(map(len, chunks)) < 9
