"""Files that cannot be read are refused in one sentence, without a traceback of the engine."""

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs.files import duckdb_engine, formats
from tests.unprivileged import unprivileged


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
