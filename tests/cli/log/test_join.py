"""The command `join`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.examples import write_exposures

TABLES = ("--exposures", "shown.csv", "--metric", "bought.csv")
JOIN = ("join", *TABLES, "--window", "14d", "--out", "log.csv")


@pytest.fixture
def tables(folder: Path) -> Path:
    write_exposures(folder)
    return folder


def test_the_log_is_written_and_decided_from(run: Any, tables: Path) -> None:
    done = run(*JOIN, "--clip", "0,100", "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["rows"], done.json["left_out_several_variants"], done.json["rows_clipped"]) == (2, 1, 1)
    assert done.json["variants"][0] == {
        "experiment": "checkout",
        "action": "A",
        "people": 1,
        "with_metric": 1,
    }
    rows = sorted((tables / "log.csv").read_text().splitlines()[1:])
    assert rows == [
        "checkout,A,100.0,ann,8:checkout:ann,2026-01-01 10:00:00+00,1,1",
        "checkout,B,0.0,cleo,8:checkout:cleo,2026-01-03 10:00:00+00,1,0",
    ]
    decided = run("decide", "log.csv", "--actions", "A,B", "--reward-range", "0,100", "--json")
    assert [arm["mean"] for arm in decided.json["arms"]] == [100.0, 0.0]
    assert run("init", "--actions", "A,B", "--reward-range", "0,100").code == 0
    assert run("ingest", "log.csv", "--id-column", "id", "--json").json["added"] == 2


def test_people_read_what_is_not_in_the_log(run: Any, tables: Path) -> None:
    shown = run(*JOIN)
    assert (shown.code, shown.err) == (0, "")
    assert "log.csv: 2 rows" in shown.out
    assert "Left out for several variants: 1 person" in shown.out
    assert "Exposures: 4 used, 0 filtered, 0 missing user, 0 missing experiment" in shown.out
    assert "metric that are not used: 0 filtered" in shown.out
    assert "or rewards are mixed" not in shown.out


def test_several_experiments_are_to_be_parted(run: Any, tables: Path) -> None:
    with (tables / "shown.csv").open("a") as file:
        file.write("ann,B,2026-01-01T10:00:00Z,banner\n")
    assert "2 experiments: read the log with --by experiment, or rewards are mixed" in run(*JOIN).out


def test_rows_are_selected_by_conditions(run: Any, tables: Path) -> None:
    done = run(*JOIN, "--exposure-where", "user=ann", "--metric-where", "value <= 7", "--json")
    assert (done.json["rows"], done.json["exposures"]["filtered"], done.json["metric"]["filtered"]) == (
        1,
        3,
        1,
    )


def test_columns_are_named_and_the_log_is_replaced(run: Any, tables: Path) -> None:
    shown = tables / "shown.csv"
    shown.write_text(shown.read_text().replace("user,action", "person,variant"))
    names = ("--column", "user=person", "--column", "metric_user=user", "--column", "action=variant")
    assert run(*JOIN, *names, "--json").json["rows"] == 2
    assert run(*JOIN, *names, "--experiment", "one", "--replace", "--json").json["rows"] == 2
    assert {row.split(",")[0] for row in (tables / "log.csv").read_text().splitlines()[1:]} == {"one"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--window", "-1d"), "window must be a time of more than 0"),
        (("--clip", "0"), "clip must be two finite numbers"),
        (("--clip", "a,b"), "--clip must be two numbers such as 0,100; got 'a,b'"),
        (
            ("--exposure-where", "user"),
            "where must be a condition such as country = DE, age >= 18, page in (home, cart) or",
        ),
        (("--aggregate", "mean"), "aggregate must be sum, any or count; got 'mean'"),
        (("--column", "user"), "--column must be ROLE=NAME such as user=anonymous_id, once for each role"),
        (("--column", "user=a", "--column", "user=b"), "once for each role; got 'user=a', 'user=b'"),
        (("--column", "arm=variant"), "columns must name 'experiment', 'action', 'user', 'time',"),
        (("--column", "user=person"), "name it with columns (--column user=NAME)"),
        (("--out", "log.txt"), "out must end in one of"),
        (("--out", "bought.csv"), "'bought.csv' exists already"),
        (("--metric", "nothing.csv"), "'nothing.csv' is not a file and matches none"),
        (("--metric", "sqlite:///x.db"), "write the table of a database to Parquet first"),
    ],
)
def test_bad_options_are_refused(run: Any, tables: Path, options: tuple[str, ...], message: str) -> None:
    refused = run(*JOIN, *options)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert sorted(path.name for path in tables.iterdir()) == ["bought.csv", "shown.csv"]
