"""What comes in or goes is looked up row by row: no statement of an ingest or a forget reads all rows.

Only a request for single records does, to confirm without an index that none of them is left.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Vault
from armnesia.vault.db.postgres import PostgresSession
from armnesia.vault.db.sqlite import SqliteDatabase, SqliteSession
from tests.databases import Place, fresh_place
from tests.vault.raw_vaults import change

pytestmark = pytest.mark.slow

ROWS = 20_000
EXPLAIN: dict[Any, str] = {SqliteSession: "EXPLAIN QUERY PLAN", PostgresSession: "EXPLAIN"}
ANALYSED = pytest.mark.parametrize(
    ("database", "analysed"),
    [("sqlite", False), ("postgresql", False), ("postgresql", True)],
    indirect=["database"],
)
"""A vault in an SQLite file that was analysed is refused: the table of statistics is not armnesia's."""
PLANNED = ("SELECT", "DELETE", "INSERT", "UPDATE", "WITH")
WHOLE_TABLE = re.compile(
    r"SCAN (record|r)\b"  # SQLite, from one end to the other
    r"|record\w* FOR IN-OPERATOR"  # SQLite, likewise: each of its rows is looked up elsewhere
    r"|Seq Scan on record|Index (Only )?Scan using record\w* on record( r)?  \(.*\)$(?!\n +Index Cond)",
    re.MULTILINE,
)


def log(first: int, last: int) -> dict[str, list[Any]]:
    rows = range(first, last)
    return {
        "action": ["AB"[row % 2] for row in rows],
        "reward": [row % 3 / 2 for row in rows],
        "user": [f"user-{row // 10}" for row in rows],
        "id": [f"row-{row}" for row in rows],
    }


def csv_file(path: Path, first: int, last: int) -> Path:
    columns = log(first, last)
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


@contextmanager
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The plan of each statement that is run meanwhile, made in the same moment with the same values."""
    plans: dict[str, str] = {}

    def explaining(session: Any, sql: str, parameters: tuple[Any, ...]) -> None:
        if sql.startswith(PLANNED):
            explained = f"{EXPLAIN[type(session)]} {sql}"
            if isinstance(session, SqliteSession):
                lines = session._connection.execute(explained, parameters).fetchall()
            else:
                lines = session._connection.execute(explained.replace("?", "%s"), parameters).fetchall()
            text = "\n".join(str(line[-1]) for line in lines)
            plans[f"{sql} [{len(plans)}]"] = text

    with monkeypatch.context() as patched:
        for kind in EXPLAIN:
            for name in ("query", "execute", "stream"):
                original = getattr(kind, name)

                def one(self: Any, sql: str, *parameters: Any, run: Any = original) -> Any:
                    explaining(self, sql, parameters)
                    return run(self, sql, *parameters)

                patched.setattr(kind, name, one)
            together = kind.execute_together

            def several(self: Any, statements: Any, run: Any = together) -> None:
                kept = list(statements)
                for sql, parameters in kept:
                    explaining(self, sql, parameters)
                run(self, kept)

            patched.setattr(kind, "execute_together", several)
        yield plans


def whole_tables(plans: dict[str, str]) -> dict[str, str]:
    return {sql: plan for sql, plan in plans.items() if WHOLE_TABLE.search(plan)}


def work(vault: Vault, source: Callable[[int, int], Any]) -> None:
    """New rows and old ones, a look, one person and many people forgotten, and rows again."""
    names: dict[str, Any] = {"user": "user", "id": "id"}
    assert vault.ingest(source(ROWS, ROWS + 1), **names).added == 1
    assert vault.ingest(source(ROWS - 10, ROWS + 10), **names).already_there == 11
    vault.preview(users=["user-1"])
    assert vault.forget(users=["user-1"]).records == 10
    assert vault.forget(users=[f"user-{number}" for number in range(2, 400)]).records == 3980
    assert vault.ingest(source(ROWS - 10, ROWS + 20), **names).added == 10


@ANALYSED
def test_no_statement_reads_all_rows(place: Place, analysed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log(0, ROWS), user="user", id="id")
        if analysed:
            change(vault, "ANALYZE")
        with planned(monkeypatch) as plans:
            work(vault, log)
            contradiction = log(0, 1) | {"reward": [1.0]}
            with pytest.raises(VaultError, match="an id that the vault holds with another action"):
                vault.ingest(contradiction, user="user", id="id")
        assert sum("record" in sql for sql in plans) > 10
        assert whole_tables(plans) == {}
        assert vault.verify().holds


@pytest.mark.parametrize("analysed", [False, True])
def test_the_plans_of_worse_statements_are_recognised(analysed: bool, sqlite_place: Place) -> None:
    """How it was done before, which took a second for a row that came to ten million."""
    walking = [
        "DELETE FROM incoming WHERE identity IN (SELECT identity FROM record)",
        "SELECT arm, count(*) FROM record GROUP BY arm",
    ]
    turned_round = (
        "SELECT i.arm FROM incoming i JOIN record r ON r.identity = i.identity WHERE r.arm <> i.arm"
    )
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log(0, 1000), user="user", id="id")
        if analysed:
            change(vault, "ANALYZE")
            walking.append(turned_round)
        with vault.database.writing() as session:
            session.execute("CREATE TEMPORARY TABLE incoming (identity BLOB PRIMARY KEY, arm INTEGER)")
            plans = {sql: str(session.query(f"EXPLAIN QUERY PLAN {sql}")) for sql in [*walking, turned_round]}
            session.execute("DROP TABLE incoming")
        assert list(whole_tables(plans)) == walking


def instructions(vault: Vault, work_: Callable[[], object]) -> int:
    """How many instructions SQLite's own machine runs for it, in tens."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    database = vault.database
    assert isinstance(database, SqliteDatabase)
    database._connection.set_progress_handler(count, 10)
    work_()
    database._connection.set_progress_handler(None, 10)
    return counted


def test_a_row_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    """Measured, not read off a plan: the instructions that SQLite runs, which no machine makes faster."""
    costs: dict[int, tuple[int, int]] = {}
    for rows in (500, ROWS):
        with fresh_place("sqlite", tmp_path).create(Configuration(actions=("A", "B"))) as vault:
            vault.ingest(log(0, rows), user="user", id="id")
            one = log(rows, rows + 1)
            coming = instructions(vault, lambda one=one: vault.ingest(one, user="user", id="id"))  # type: ignore[misc]
            going = instructions(vault, lambda: vault.forget(users=["user-1"]))
            costs[rows] = (coming, going)
    assert costs[ROWS] == pytest.approx(costs[500], rel=0.2)
