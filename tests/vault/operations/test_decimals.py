"""A decimal has one text however many zeros are at its end."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.logs import read_log
from armnesia.vault import EXTERNAL, MANAGED, Configuration
from tests.databases import Place, fresh_place, postgres_url
from tests.logs.lake_tables import write_delta

ACTIONS = ("A", "B")
NUMBERS = ["1.5", "1.50", "2.25", "2.250", "1.5000"]
DISTINCT = {"1.5", "2.25"}
ERASING: dict[str, Any] = {"mode": EXTERNAL, "may_erase_at_source": True}
KINDS = ["memory", "parquet", "float", "postgresql"]

modes = pytest.mark.parametrize("mode", [MANAGED, EXTERNAL])


def stored(kind: str, folder: Path, numbers: list[str]) -> dict[str, Any]:
    """A row per number, which is its user and its segment."""
    rows = len(numbers)
    decimals: Any = [Decimal(number) for number in numbers]
    columns = {"action": ["AB"[row % 2] for row in range(rows)], "reward": [row % 2 for row in range(rows)]}
    if kind == "memory":
        return {"source": {**columns, "segment": decimals, "user": decimals}}
    if kind == "postgresql":
        return {"source": postgres_url(), "table": in_postgres(folder, columns, decimals)}
    typed = (
        [float(each) for each in decimals] if kind == "float" else pa.array(decimals, pa.decimal128(12, 4))
    )
    table = pa.table({**columns, "segment": typed, "user": typed})
    if kind == "delta":
        return {"source": write_delta(folder / "lake", table)}
    pq.write_table(table, folder / f"{kind}.parquet")
    return {"source": str(folder / f"{kind}.parquet")}


def in_postgres(folder: Path, columns: dict[str, Any], decimals: list[Decimal]) -> str:
    schema = fresh_place("postgresql", folder).url.rpartition("=")[2]
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        table = f"{schema}.numbers"
        connection.execute(f'CREATE TABLE {table} (action text, reward int, segment numeric, "user" numeric)')
        for row in zip(columns["action"], columns["reward"], decimals, decimals, strict=True):
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", row)
    return table


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_has_the_same_decisions_and_people(kind: str, tmp_path: Path) -> None:
    log = read_log(**stored(kind, tmp_path, NUMBERS), actions=ACTIONS)
    assert {key for (key,) in log.by("segment").keys} == DISTINCT
    assert {float(str(each)): count for each, count in log.users().items()} == {1.5: 3, 2.25: 2}


@modes
@pytest.mark.parametrize("kind", ["parquet", "float", "postgresql"])
def test_a_person_is_forgotten_with_every_number_of_zeros(
    kind: str, mode: str, sqlite_place: Place, tmp_path: Path
) -> None:
    log = stored(kind, tmp_path, NUMBERS)
    with sqlite_place.create(Configuration(actions=ACTIONS, mode=mode, by=("segment",))) as vault:
        assert vault.ingest(user="user", **log).added == 5
        assert {key["segment"] for key in vault.decisions().keys} == DISTINCT
        assert vault.forget(users=["1.5"]).records == 3
        again = vault.ingest(user="user", **log)
        assert (again.added, again.rows - again.suppressed) == (
            0,
            0 if mode == EXTERNAL and not log.get("table") else 2,
        )
        assert vault.forget(users=[Decimal("2.2500")]).records == 2
        assert vault.verify().holds


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["parquet", "delta", "postgresql"])
def test_rows_are_erased_with_every_number_of_zeros(kind: str, sqlite_place: Place, tmp_path: Path) -> None:
    """They are found at the source by the names that were counted and forgotten."""
    log = stored(kind, tmp_path, NUMBERS)
    with sqlite_place.create(Configuration(actions=ACTIONS, **ERASING)) as vault:
        vault.ingest(user="user", **log)
        assert vault.forget(users=["1.5"]).records == 3
        vault.erase_at_sources()
        assert vault.verify().holds
        assert vault.n_records == 2
    left = read_log(**log, actions=ACTIONS)
    assert {float(str(user)): count for user, count in left.users().items()} == {2.25: 2}
