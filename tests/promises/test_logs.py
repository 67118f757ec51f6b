"""A log of each kind is read with the same statistics, and decided on without a vault."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import armnesia as am
from tests.promises.driver import COLUMNS, Refused, Row, decide_log, driven, statistics_of, write_csv
from tests.promises.lakes import KINDS, Delta, arrow, make_lake
from tests.promises.test_histories import rows_of

ROWS = rows_of(5, 50)
NAMED: dict[str, Any] = {"action": "arm", "reward": "reward", "user": "person"}


def _columns() -> dict[str, list[Any]]:
    return dict(zip(COLUMNS, map(list, zip(*(row.values for row in ROWS), strict=True)), strict=True))


def _parquet(folder: Path) -> Path:
    pq.write_table(arrow(ROWS), folder / "log.parquet")
    return folder / "log.parquet"


def _partitions(folder: Path) -> Path:
    for country in ("DE", "FR"):
        (folder / "parts" / f"country={country}").mkdir(parents=True)
        own = arrow([row for row in ROWS if row.country == country]).drop_columns(["country"])
        pq.write_table(own, folder / "parts" / f"country={country}" / "1.parquet")
    return folder / "parts"


READERS: dict[str, Callable[[Path], Any]] = {
    "csv": lambda folder: write_csv(folder / "log.csv", ROWS),
    "parquet": _parquet,
    "partitions": _partitions,
    "glob": lambda folder: str(_parquet(folder).parent / "*.parquet"),
    "pandas": lambda folder: pd.DataFrame(_columns()),
    "polars": lambda folder: pl.DataFrame(_columns()),
    "arrow": lambda folder: arrow(ROWS),
    "columns": lambda folder: _columns(),
}


def _of(log: am.Log) -> dict[str, tuple[int, float]]:
    statistics = am.ArmStatistics.from_log(log)
    counts, means = statistics.counts, statistics.means
    labels = [str(each) for each in log.actions]
    return {label: (int(n), float(mean)) for label, n, mean in zip(labels, counts, means, strict=True)}


@pytest.mark.parametrize("kind", READERS)
def test_every_kind_of_log_has_the_same_statistics(kind: str, tmp_path: Path) -> None:
    log = am.read_log(READERS[kind](tmp_path), **NAMED, actions=["A", "B"])
    assert _of(log) == statistics_of(ROWS)
    person = ROWS[0].person
    without = am.ArmStatistics.from_log(log).without(log.request(user=person))
    assert without.counts.tolist() == [
        statistics_of(row for row in ROWS if row.person != person)[arm][0] for arm in "AB"
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_every_kind_of_table_has_the_same_statistics(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = make_lake(kind, tmp_path, monkeypatch)
    lake.append(ROWS)
    table: dict[str, Any] = {"table": lake.table} if lake.table else {}
    log = am.read_log(lake.source, **NAMED, actions=["A", "B"], **table)
    assert _of(log) == statistics_of(ROWS)


def test_plain_arrays_need_no_engine() -> None:
    log = am.read_log(
        action=[row.arm for row in ROWS],
        reward=[row.quarters / 4 for row in ROWS],
        user=[row.person for row in ROWS],
        actions=["A", "B"],
    )
    assert _of(log) == statistics_of(ROWS)


def test_conditions_take_some_of_the_rows(tmp_path: Path) -> None:
    log = am.read_log(
        write_csv(tmp_path / "log.csv", ROWS), **NAMED, actions=["A", "B"], where="country = DE"
    )
    assert _of(log) == statistics_of(row for row in ROWS if row.country == "DE")


def test_a_vault_takes_every_kind_of_log(tmp_path: Path) -> None:
    vault = driven("sqlite", tmp_path)
    assert vault.ingest(write_csv(tmp_path / "log.csv", ROWS[:20]))["added"] == 20
    pq.write_table(arrow(ROWS[:30]), tmp_path / "log.parquet")
    assert vault.ingest(tmp_path / "log.parquet")["added"] == 10
    (tmp_path / "delta").mkdir()
    lake = Delta(tmp_path / "delta")
    lake.append(ROWS[:40])
    assert vault.ingest(lake.source)["added"] == 10
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
        database.execute(f"CREATE TABLE clicks ({', '.join(COLUMNS)})")
        database.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?, ?)", [row.values for row in ROWS])
    assert vault.ingest(f"sqlite:///{tmp_path}/rows.db", "--table", "clicks")["added"] == 10
    assert vault.statistics() == statistics_of(ROWS)


def test_a_decision_on_a_file_is_the_best_arm(tmp_path: Path) -> None:
    rows = [Row(f"{n}", f"p{n}", "AB"[n % 2], 4 * (n % 2)) for n in range(200)]
    assert decide_log(write_csv(tmp_path / "log.csv", rows))["action"] == "B"


def test_a_log_without_the_reward_column_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", ROWS, ("event", "person", "arm", "won", "country"))
    with pytest.raises(Refused, match="'reward'"):
        decide_log(path)


def test_a_vault_is_made_like_a_log(tmp_path: Path) -> None:
    from tests.databases import fresh_place
    from tests.promises.driver import Driven

    vault = Driven(fresh_place("sqlite", tmp_path), tmp_path)
    columns = ("--action-column", "arm", "--user-column", "person")
    proposed = vault.run("init", "--like", write_csv(tmp_path / "log.csv", ROWS), *columns)
    assert proposed["configuration"]["actions"] == ["A", "B"]
    low, high = proposed["configuration"]["reward_range"]
    assert low <= min(row.values[3] for row in ROWS) < max(row.values[3] for row in ROWS) <= high


def test_the_next_file_needs_no_column_options(tmp_path: Path) -> None:
    vault = driven("sqlite", tmp_path)
    vault.add(ROWS[:25])
    assert vault.run("ingest", vault.log(ROWS))["added"] == 25


def test_a_file_with_semicolons_is_read_or_the_sentence_says_how(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", ROWS)
    path.write_text(path.read_text().replace(",", ";"))
    try:
        decide_log(path)
    except Refused as refused:
        assert "--delimiter" in refused.sentence  # noqa: PT017
