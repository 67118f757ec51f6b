"""Rows that are handed over by columns come out as they went in, on both databases."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.vault import Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.digest_arrays import (
    NO_DIGEST,
    Columns,
    order_of,
    packed,
)
from armnesia.vault.db.schema import RecordRow
from tests.databases import fresh_place

LARGEST, LARGEST_ARM = 2**63 - 1, 2**31 - 1
ROWS = [
    (b"a" * 16, b"o" * 16, 0, 0, 1),
    (b"\0" * 15 + b"b", None, 7, 1_000_000_000, 2),
    (b"c" + b"\0" * 15, b"\0" * 15 + b"o", LARGEST_ARM, LARGEST, LARGEST_ARM),
    (b"'\"\\,\n\t\r;" * 2, b"\xff" * 16, -LARGEST_ARM - 1, -LARGEST - 1, 3),
]
DIGESTS = st.lists(st.binary(min_size=16, max_size=16) | st.sampled_from([b"a" * 16, b"a" * 8 + b"b" * 8]))


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[1:2], []], ids=["several", "one", "no owner", "none"])
@pytest.mark.parametrize("is_first_load", [True, False], ids=["first", "appended"])
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_columns_are_stored_as_rows(
    database: str, is_first_load: bool, rows: list[tuple[bytes, bytes | None, int, int, int]], tmp_path: Path
) -> None:
    columns = {
        "identity": packed([row[0] for row in rows]),
        "owner": packed([row[1] or NO_DIGEST for row in rows]),
        "arm": np.array([row[2] for row in rows], np.int32),
        "units": np.array([row[3] for row in rows], np.int64),
        "decision": np.array([row[4] for row in rows], np.int32),
    }
    with (
        fresh_place(database, tmp_path).create(Configuration(actions=("A", "B"))) as vault,
        vault.database.writing() as session,
    ):
        statements.insert_records(session, columns, is_first_load=is_first_load)
        found = statements.read(session, RecordRow, identity=[b"z" * 16, *(row[0] for row in rows)])
        assert statements.exists(session, RecordRow, after=b"") is bool(rows)
        assert sorted(map(tuple, found)) == sorted(rows)
        session.execute("DELETE FROM record")


@given(digests=DIGESTS)
def test_arrays_of_digests_are_sorted_as_integers_are(digests: list[bytes]) -> None:
    array = packed(digests)
    ordered = array[order_of(array)]
    assert ordered.tolist() == sorted(digests)


INDEXES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'record'",
    "postgresql": "SELECT indexname FROM pg_indexes"
    " WHERE tablename = 'record' AND schemaname = current_schema()",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_first_load_leaves_the_indexes(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are built after the rows; the schema is then as armnesia created it."""
    missing: list[set[Any]] = []
    insert = statements.insert_records

    def observed(session: Session, columns: Columns, *, is_first_load: bool) -> None:
        missing.append(created - set(session.query(INDEXES[database])))
        insert(session, columns, is_first_load=is_first_load)

    monkeypatch.setattr(statements, "insert_records", observed)
    rows = 25_000
    log = {
        "action": ["AB"[row % 2] for row in range(rows)],
        "reward": [row % 3 / 2 for row in range(rows)],
        "user": [f"user-{row // 10}" for row in range(rows)],
        "id": [f"row-{row}" for row in range(rows)],
    }
    with fresh_place(database, tmp_path).create(Configuration(actions=("A", "B"))) as vault:
        with vault.database.reading() as session:
            created = set(session.query(INDEXES[database]))
        assert vault.ingest(log, user="user", id="id").added == rows
        with vault.database.reading() as session:
            assert set(session.query(INDEXES[database])) == created
        assert all(("record_owner",) in each for each in missing)
        assert missing
        assert vault.ingest(log, user="user", id="id").already_there == rows
        assert vault.forget(users=["user-7"]).records == 10
        assert vault.verify().holds
