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
    assert done.json["experiments"][0]["equal_shares_p_value"] == 1.0
    rows = sorted((tables / "log.csv").read_text().splitlines()[1:])
    assert rows == [
        "checkout,A,100.0,ann,8:checkout:ann,2026-01-01 10:00:00+00,1,1",
        "checkout,B,0.0,cleo,8:checkout:cleo,2026-01-03 10:00:00+00,1,0",
    ]
    decided = run("decide", "log.csv", "--actions", "A,B", "--reward-range", "0,100", "--json")
    assert [arm["mean"] for arm in decided.json["arms"]] == [100.0, 0.0]
    assert run("init", "--actions", "A,B", "--reward-range", "0,100").code == 0
    assert run("ingest", "log.csv", "--id-column", "id", "--json").json["added"] == 2


def test_people_read_where_every_row_went(run: Any, tables: Path) -> None:
    shown = run(*JOIN)
    assert (shown.code, shown.err) == (0, "")
    assert "log.csv: 2 rows of 2 people in 1 experiment" in shown.out
    assert (
        "4 exposures: 2 first, 0 repeated, 2 of 1 person left out for several variants, 0 not selected"
        in shown.out
    )
    assert "2 metric rows: 2 of people exposed, 0 of others, 0 not selected" in shown.out
    assert "In their experiments: 1 in the window, 0 before, 1 after, 0 of people left out" in shown.out
    assert "Unequal shares" not in shown.out


def test_a_sample_ratio_mismatch_is_printed(run: Any, folder: Path) -> None:
    lines = [f"u{i},{'A' if i < 100 else 'B'},2026-01-01,checkout" for i in range(300)]
    (folder / "shown.csv").write_text("\n".join(["user,action,time,experiment", *lines]) + "\n")
    (folder / "bought.csv").write_text("user,time\nu1,2026-01-01\n")
    shown = run(*JOIN, "--aggregate", "any")
    assert (
        "Unequal shares in 'checkout': p = 7.8e-09 if all variants were meant to get the same share"
        in shown.out
    )


def test_rows_are_selected_by_conditions(run: Any, tables: Path) -> None:
    done = run(*JOIN, "--exposure-where", "user=ann", "--metric-where", "value <= 7", "--json")
    assert (done.json["rows"], done.json["exposures"]["filtered"], done.json["metric"]["filtered"]) == (
        1,
        3,
        1,
    )
    assert done.json["metric_uses"]["after_window"] == 1


def test_columns_are_named_and_the_log_is_replaced(run: Any, tables: Path) -> None:
    shown = tables / "shown.csv"
    shown.write_text(shown.read_text().replace("user,action", "person,variant"))
    names = ("--column", "user=person", "--column", "metric_user=user", "--column", "action=variant")
    assert run(*JOIN, *names, "--keep", "variant", "--json").json["rows"] == 2
    assert (tables / "log.csv").read_text().splitlines()[0].endswith(",metric_rows,variant")
    assert run(*JOIN, *names, "--experiment", "one", "--replace", "--json").json["people"] == 2
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
