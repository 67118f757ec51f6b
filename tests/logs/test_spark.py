"""Tables of Spark beyond the table of conformance: plans, sessions, changes, collations."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.logs import open_source, read_log
from armnesia.logs import spark as of_package
from tests.logs.spark import OF_SPARK, spark, spark_type, view

pytestmark = OF_SPARK
ROWS: dict[str, list[Any]] = {
    "action": ["A", "B", "A", "A"],
    "reward": [1.0, 0.25, 0.0, 0.5],
    "user": ["Zebulon", "bob", "Zebulon", None],
    "hour": [9, 10, 9, 12],
}


def stored(table: dict[str, list[Any]], **types: str) -> str:
    """A view of these rows; its name as a source."""
    return view(table, {name: types.get(name, spark_type(values)) for name, values in table.items()})


def test_names_of_people_are_in_no_statement_and_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    name, plans = stored(ROWS), list[str]()

    class Watched:
        def __getattr__(self, attribute: str) -> Any:
            return getattr(spark(), attribute)

        def sql(self, statement: str, args: Any, **frames: Any) -> Any:
            found = spark().sql(statement, args=args, **frames)
            plans.extend((statement, str(args), found._jdf.queryExecution().toString()))
            return found

    monkeypatch.setattr(of_package, "spark_session", Watched)
    log = read_log(name, actions=["A", "B"])
    assert log.request(user="Zebulon").counts.tolist() == [2, 0]
    assert any("Join" in plan for plan in plans)
    assert not any("Zebulon" in plan for plan in plans)


def test_texts_are_equal_only_if_they_are_the_same() -> None:
    """Neither a collation nor padding makes two people one."""
    for statement in (
        "CREATE DATABASE IF NOT EXISTS logs",
        "DROP TABLE IF EXISTS logs.events",
        "CREATE TABLE logs.events (action STRING COLLATE UTF8_LCASE, reward INT,"
        " user STRING COLLATE UTF8_LCASE, team CHAR(6)) USING parquet",
        "INSERT INTO logs.events VALUES ('A', 1, 'Ann', 'x'), ('a', 0, 'ann', 'x'), ('A', 0, 'ANN', 'y')",
    ):
        spark().sql(statement)
    log = read_log("spark:spark_catalog.logs.events", actions=["A", "a"])
    assert log.statistics().counts.tolist() == [2, 1]
    assert log.users() == {"ANN": 1, "Ann": 1, "ann": 1}
    assert log.request(user="ann").counts.tolist() == [0, 1]
    by_team = read_log("spark:logs.events", actions=["A", "a"], user="team", where="action = A")
    assert by_team.users() == {"x": 1, "y": 1}


def test_columns_whose_names_differ_in_case_are_different_columns(tmp_path: Path) -> None:
    table = {"action": ["A", "B"], "Action": ["C", "C"], "re`ward.x": [1, 0], "user": ["u", "v"]}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    before = spark().conf.get("spark.sql.caseSensitive")
    spark().conf.set("spark.sql.caseSensitive", "true")  # otherwise Spark itself refuses such a file
    try:
        log = read_log(f"spark:parquet.`{tmp_path}/log.parquet`", reward="re`ward.x", actions=["A", "B"])
        assert log.statistics().sums.tolist() == [10**9, 0]
    finally:
        spark().conf.set("spark.sql.caseSensitive", before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "spark:nowhere"}, "table 'nowhere' is not in Spark; its current database has .*'log'"),
        ({"source": "spark:a b"}, r"source 'spark:a b' cannot be read by Spark \(PARSE_SYNTAX_ERROR\)"),
        ({"source": "spark:"}, "a table of Spark must be named, such as spark:catalog.database.table; got"),
        ({"table": "log"}, "table is for databases"),
        ({"user": "whom"}, "user column 'whom' is not in the source; it has 'action', 'reward'"),
        ({"reward": "user"}, "reward column 'user' must hold numbers; it holds VARCHAR"),
        ({"where": "hour > 99"}, "no row of the source satisfies hour > 99"),
        ({"reward_range": (0, 0.5)}, r"must lie in reward_range \[0.0, 0.5\]; got 1.0"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_log(**{"source": stored(ROWS), "actions": ["A", "B"], **given})


def test_rows_have_no_order_and_lists_are_no_names() -> None:
    log = read_log(stored(ROWS), actions=["A", "B"])
    with pytest.raises(InvalidInputError, match="rows of this source have no fixed order"):
        log.request(rows=[1])
    lists = stored({"action": ["A"], "reward": [1.0], "tags": [["x"]]}, tags="array<string>")
    assert read_log(lists, actions=["A"]).statistics().counts.tolist() == [1]
    with pytest.raises(InvalidLogError, match=r"user column 'tags' must hold single values.*array<string>"):
        read_log(lists, user="tags", actions=["A"])


def test_a_request_is_refused_once_the_table_has_changed() -> None:
    log = read_log(stored(ROWS), actions=["A", "B"])
    stored({name: values[:3] for name, values in ROWS.items()})
    for ask in (lambda: log.request(user="bob"), log.users, lambda: log.by("hour")):
        with pytest.raises(InvalidLogError, match="the source has changed since the log was read"):
            ask()


def test_experiments_and_propensities_are_noticed() -> None:
    table: dict[str, list[Any]] = {
        "action": ["A", "A"],
        "reward": [1.0, 0.0],
        "experiment": ["x", "y"],
        "pscore": [0.1, 0.9],
    }
    source = open_source(stored(table))
    assert source.mixes_experiments()
    assert source.varying_propensity() == "pscore"


COMMAND = "from armnesia.cli.main import main; main()"


def decided(folder: Path, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, "decide", name, "--actions", "A,B", "--json"],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_session_is_started_in_silence(tmp_path: Path) -> None:
    pq.write_table(pa.table({"action": ["A", "B"], "reward": [1.0, 0.0]}), tmp_path / "log.parquet")
    found = decided(tmp_path, f"spark:parquet.`{tmp_path}/log.parquet`", SPARK_MASTER="local[1]")
    assert (found.returncode, found.stderr) == (0, "")
    assert '"action": "A"' in found.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_what_is_missing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = decided(tmp_path, "spark:log", JAVA_HOME=str(tmp_path))
    assert (found.returncode, found.stdout) == (2, "")
    assert "A table of Spark needs Java 17 or newer, which did not start" in " ".join(found.stderr.split())
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r'A table of Spark needs .* "armnesia\[spark\]"'):
        read_log("spark:log")
