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
from armnesia.logs import read_log
from armnesia.logs import spark as of_package
from tests.logs.spark import OF_SPARK, spark

pytestmark = OF_SPARK
ROWS: dict[str, list[Any]] = {
    "action": ["A", "B", "A", "A"],
    "reward": [1.0, 0.25, 0.0, 0.5],
    "user": ["Zebulon", "bob", "Zebulon", None],
    "hour": [9, 10, 9, 12],
}


def stored(table: dict[str, list[Any]]) -> str:
    """A view of these rows, in their order; its name as a source."""
    rows = list(zip(*table.values(), strict=True))
    spark().createDataFrame(rows, list(table)).coalesce(1).createOrReplaceTempView("log")
    return "spark:log"


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"source": "spark:nowhere"},
            "source 'spark:nowhere' cannot be read by Spark: it has no such",
        ),
        ({"source": "spark:a b"}, "source 'spark:a b' cannot be read by Spark: PARSE_SYNTAX_ERROR"),
        ({"source": "spark:"}, "a table of Spark must be named, such as spark:catalog.database.table; got"),
        ({"table": "log"}, "table is for databases"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_log(**{"source": stored(ROWS), "actions": ["A", "B"], **given})


def test_a_request_is_refused_once_the_table_has_changed() -> None:
    log = read_log(stored(ROWS), actions=["A", "B"])
    stored({name: values[:3] for name, values in ROWS.items()})
    for ask in (lambda: log.request(user="bob"), log.users, lambda: log.by("hour")):
        with pytest.raises(InvalidLogError, match="the source has changed since the log was read"):
            ask()


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


def test_a_session_is_started(tmp_path: Path) -> None:
    pq.write_table(pa.table({"action": ["A", "B"], "reward": [1.0, 0.0]}), tmp_path / "log.parquet")
    found = decided(tmp_path, f"spark:parquet.`{tmp_path}/log.parquet`")
    assert found.returncode == 0
    assert '"action": "A"' in found.stdout


def test_what_is_missing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = decided(tmp_path, "spark:log", JAVA_HOME=str(tmp_path))
    assert (found.returncode, found.stdout) == (2, "")
    assert "it needs Java 17 or newer" in " ".join(found.stderr.split())
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r'A table of Spark needs .* "armnesia\[spark\]"'):
        read_log("spark:log")
