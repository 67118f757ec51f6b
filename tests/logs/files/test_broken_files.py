"""Files that cannot be read are refused in one sentence, without a traceback of the engine."""

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs import open_source, read_log
from armnesia.logs.files import duckdb_engine, formats
from tests.unprivileged import unprivileged

# Faults that only the scan of a CSV file tells apart are in test_csv_records.py.
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "cannot be read as CSV: it has no header line"),
    "short.csv": (
        b"action,reward\nA,1\nA\n",
        "cannot be read as CSV: line 3 has 1 columns where the header has 2",
    ),
    "long.csv": (
        b"action,reward\nA,1,2\n",
        "cannot be read as CSV: line 2 has 3 columns where the header has 2",
    ),
    "quote.csv": (
        b'action,reward\nA,1\n"A,1\n',
        "cannot be read as CSV: line 3 opens a quote that is never closed",
    ),
    "latin.csv": (
        "action,reward\né,1\n".encode("latin-1"),
        "cannot be read as CSV: line 2 is not UTF-8 text",
    ),
    "stray.csv": (
        b'action,reward\nA,1\n"A"x,1\n',
        "cannot be read as CSV: line 3 has text between a closing quote and the end of its field",
    ),
    "line.csv": (
        b"action,reward\n" + b"A" * 3_000_000 + b",1\n",
        "CSV: the record that begins in line 2 has more than 1,048,576 bytes; is a quote",
    ),
    "header.csv": (
        "é,reward\nA,1\n".encode("latin-1"),
        "cannot be read as CSV: its header is not UTF-8 text",
    ),
    "header2.csv": (b'"a"b,reward\nA,1\n', "CSV: line 1 has text between a closing quote and the end of"),
    "space.csv": (b'action,reward\n "A",1\n', "CSV: line 2 has a space before an opening quote"),
    "mixed_quotes.csv": (b'action,reward\nA"B,1\r\nA,1\n', "CSV: lines end in LF and in CR LF, and it has"),
    "cut.csv.gz": (gzip.compress(b"action,reward\nA,1\n")[:-3], "cannot be read as CSV: .*ended before"),
    "bits.csv.gz": (
        gzip.compress(b"action,reward\nA,1\n")[:-8] + b"12345678",
        "cannot be read as CSV: CRC check failed",
    ),
    "plain.csv.gz": (b"action,reward\nA,1\n", "cannot be read as CSV: Not a gzipped file"),
    "text.parquet": (b"action,reward\nA,1\n" * 9, "cannot be read as Parquet: No magic bytes"),
    "empty.parquet": (b"", "cannot be read as Parquet: .* too small"),
    "log.xlsx": (b"PK", r"source must end in one of '.csv', .*'.pq', .*; got 'log.xlsx'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    content, message = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidLogError, match=message) as caught:
        read_log(tmp_path / name, actions=["A"])
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_an_error_never_quotes_a_line_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("action,reward,user\nA,1,secret-name,x\n")
    with pytest.raises(InvalidLogError) as of_log:
        read_log(tmp_path / "log.csv", user="user", actions=["A"])
    with pytest.raises(InvalidLogError, match="line 2 has 4 columns where the header has 3") as of_rows:
        list(open_source(tmp_path / "log.csv", action="action", reward="reward").rows(["A"], (0, 1)))
    for caught in (of_log, of_rows):
        assert "secret-name" not in str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"1.csv": "action,reward\nA,1\n", "2.csv": "reward,action\n1,A\n"},
            "files with the same columns; '1.csv'",
        ),
        (
            {"1.csv": "action,reward\nA,1\n", "2.tsv": "action\treward\nA\t1\n"},
            "files of one format; got '1.csv'",
        ),
        (
            {"1.csv": "action,reward,reward\nA,1,1\n"},
            "reward column 'reward' is in the source more than once",
        ),
    ],
)
def test_files_that_do_not_fit_together(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidLogError, match=message):
        read_log(tmp_path / "*", actions=["A"])


def test_parquet_files_whose_types_differ_are_refused(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"action": ["A"], "reward": pa.array([0.1], pa.float32())}), tmp_path / "1.parquet"
    )
    pq.write_table(pa.table({"action": ["A"], "reward": [0.1]}), tmp_path / "2.parquet")
    with pytest.raises(
        InvalidLogError, match=r"same columns; '1.parquet' has .*reward \(FLOAT\).*reward \(DOUBLE\)"
    ):
        read_log(tmp_path / "*.parquet", actions=["A"])


@pytest.mark.parametrize("name", ["nothing.csv", "nothing-*.parquet"])
def test_a_path_without_a_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidLogError, match=r"is not a file and matches none; give the path of a CSV or Parquet"
    ):
        read_log(tmp_path / name, actions=["A"])


def test_a_file_without_permission_is_refused() -> None:
    """Run as an unprivileged user, because permissions do not bind root, who may run the tests."""
    with unprivileged() as somebody:
        for name, format_ in (("log.csv", "CSV"), ("log.csv.gz", "CSV"), ("log.parquet", "Parquet")):
            path = somebody.folder / name
            path.write_bytes(_small_log(name))
            somebody.give(somebody.folder)
            refusals = []
            for mode in (0o400, 0):
                path.chmod(mode)
                refusals.append(somebody.run("decide", name, "--actions", "A", within=somebody.folder))
            readable, closed = refusals
            assert (readable.code, readable.err) == (0, "")
            assert (closed.code, closed.out) == (2, "")
            assert closed.err.startswith(f"armnesia: source {str(path)!r} cannot be read as {format_}: ")
            assert "Permission denied" in closed.err
            assert closed.err.count("\n") == 1


def _small_log(name: str) -> bytes:
    if name.endswith(".parquet"):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"action": ["A"], "reward": [1]}), sink)
        return bytes(sink.getvalue())
    text = b"action,reward\nA,1\n"
    return gzip.compress(text) if name.endswith(".gz") else text


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("reward", ["1", "0"], "reward column 'reward' must hold numbers; it holds VARCHAR"),
        ("reward", [[1], [2]], r"reward column 'reward' must hold numbers; it holds BIGINT\[\]"),
        ("action", [[1], [2]], r"action column 'action' must hold single values, .*; it holds BIGINT\[\]"),
        ("user", [{"a": 1}] * 2, r"user column 'user' must hold single values, .*; it holds STRUCT"),
        ("user", pa.array([[Decimal(1)]] * 2), r"user column 'user' must hold single .*; it holds DECIMAL"),
    ],
)
def test_parquet_columns_of_unusable_types(column: str, values: Any, message: str, tmp_path: Path) -> None:
    columns = {"action": ["A", "A"], "reward": [0, 1], "user": ["x", "y"]} | {column: values}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    for read in (read_log, open_source):
        with pytest.raises(InvalidLogError, match=message):
            read(tmp_path / "log.parquet", action="action", reward="reward", user="user")


def test_many_parquet_files_are_opened_by_few_queries_and_a_broken_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        rows = f"SELECT 'A' AS action, {number % 2} AS reward, range AS user_id FROM range(3)"
        duckdb.execute(f"COPY ({rows}) TO '{tmp_path}/part-{number:02d}.parquet' (FORMAT parquet)")
    asked: list[str] = []
    query = duckdb_engine.query

    def counted(sql: str, *more: Any, **named: Any) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return query(sql, *more, **named)

    monkeypatch.setattr(formats, "query", counted)
    files = formats.open_files(tmp_path / "*.parquet", None)
    assert (files.n_rows, len(files.parts)) == (90, 30)
    assert len(asked) == 4
    (tmp_path / "part-17.parquet").write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(InvalidLogError, match=r"^source '.*part-17\.parquet' cannot be read as Parquet: "):
        formats.open_files(tmp_path / "*.parquet", None)
