"""The rows of a source with key columns: the same keys from every kind of source."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs import KeyColumn, Source, open_source
from armnesia.logs.keys import KeyCodes

ROWS = [("A", 1, "ann", "r1", "DE", 17), ("B", 0, "bob", "r2", "FR", 30.5), ("A", 1, "ann", "r3", "DE", 18)]
NAMES = ("action", "reward", "user", "id", "country", "age")
KEYS = (KeyColumn("country"), KeyColumn("age", (18, 30)))
EXPECTED = [("DE", "<18"), ("FR", ">=30"), ("DE", "18..30")]


def source(kind: str, folder: Path, rows: list[tuple[Any, ...]] = ROWS, *, ids: bool = True) -> Source:
    columns: dict[str, Any] = {
        "action": "action",
        "reward": "reward",
        "user": "user",
        "id": "id" if ids else None,
    }
    if kind == "frame":
        log = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
        return open_source(log, **columns)
    if kind == "table":
        with closing(sqlite3.connect(folder / "log.db")) as connection, connection:
            connection.execute(f"CREATE TABLE log ({', '.join(NAMES)})")
            connection.executemany(f"INSERT INTO log VALUES ({', '.join('?' * len(NAMES))})", rows)
        return open_source(f"sqlite:///{folder}/log.db", table="log", **columns)
    lines = [",".join(map(str, row)) for row in rows]
    (folder / "log.csv").write_text("\n".join([",".join(NAMES), *lines]) + "\n", encoding="utf-8")
    if kind == "parquet":
        duckdb.sql(f"COPY (FROM '{folder}/log.csv') TO '{folder}/log.parquet' (FORMAT parquet)")
    return open_source(f"{folder}/log.{kind}", **columns)


def keys_of(keyed: Source, **chosen: Any) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    codes = [KeyCodes(key) for key in KEYS]
    for rows in keyed.rows(("A", "B"), (0.0, 1.0), chunk=2, **chosen):
        texts = []
        for code, values in zip(codes, rows.keys, strict=True):
            texts.append([code.texts[each] for each in code.encode(values, rows.positions)])
        found += zip(*texts, strict=True)
    return found


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "table"])
def test_rows_have_the_keys_of_their_source(kind: str, ids: bool, tmp_path: Path) -> None:
    keyed = source(kind, tmp_path, ids=ids).keyed_by(KEYS)
    assert keys_of(keyed) == EXPECTED
    assert keys_of(keyed, users=["bob"]) == EXPECTED[1:2]


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "table"])
def test_without_keys_it_is_the_same_source(kind: str, tmp_path: Path) -> None:
    plain = source(kind, tmp_path)
    assert plain.keyed_by(()) is plain


@pytest.mark.parametrize("kind", ["csv", "frame", "table"])
def test_an_id_with_two_keys_is_refused(kind: str, tmp_path: Path) -> None:
    twice = [("A", 1, "ann", "r1", "DE", 17), ("A", 1, "ann", "r1", "FR", 17)]
    plain = source(kind, tmp_path, twice)
    assert len(list(plain.rows(("A", "B"), (0.0, 1.0)))) == 1  # the same decision twice
    with pytest.raises(InvalidLogError, match="id"):
        list(plain.keyed_by(KEYS).rows(("A", "B"), (0.0, 1.0)))


@pytest.mark.parametrize("kind", ["csv", "frame", "table"])
def test_a_key_with_edges_that_is_no_number_is_refused_and_quoted(kind: str, tmp_path: Path) -> None:
    keyed = source(kind, tmp_path, [*ROWS, ("A", 1, "cem", "r4", "DE", "old")]).keyed_by(KEYS)
    with pytest.raises(InvalidLogError, match=r"age.*'old'"):
        keys_of(keyed)
