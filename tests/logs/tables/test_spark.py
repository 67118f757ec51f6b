"""Tables of Spark: the same log as from any other source, added up by Spark."""

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import (
    InvalidInputError,
    InvalidLogError,
    MissingExtraError,
    UnsupportedError,
    VaultError,
)
from armnesia.logs import open_source, read_log, reopen_source
from armnesia.vault import Configuration
from tests.conftest import Outcome
from tests.databases import fresh_place
from tests.logs.spark import OF_SPARK, spark, spark_type, view
from tests.logs.test_every_source import ACTIONS, COLUMNS, COLUMNS_OF_ROWS, NAMES, ROWS, together

pytestmark = OF_SPARK

Run = Callable[..., Outcome]


def stored(table: dict[str, list[Any]], **types: str) -> str:
    """A view of these rows; its name as a source."""
    return view(table, {name: types.get(name, spark_type(values)) for name, values in table.items()})


def test_spark_gives_the_same_log() -> None:
    log, other = (read_log(each, **NAMES, actions=ACTIONS) for each in (stored(COLUMNS), COLUMNS))
    assert (log.actions, log.reward_range, len(log)) == (other.actions, other.reward_range, len(other))
    assert log.statistics() == other.statistics()
    assert list(log.users().items()) == list(other.users().items())
    assert log.users("B") == other.users("B")
    for users in (["ann"], ["bob"], ["cy", "ann"], list(other.users())):
        assert log.request(users=users) == other.request(users=users)


@pytest.mark.parametrize("chunk", [2, 50_000])
def test_spark_gives_the_same_rows(chunk: int) -> None:
    source, expected = open_source(stored(ROWS), **COLUMNS_OF_ROWS), open_source(ROWS, **COLUMNS_OF_ROWS)
    assert together(source, chunk) == together(expected, chunk)
    assert source.action_labels() == ["A", "B", "C"]
    assert source.n_rows() == 5
    assert {user for users in source.user_texts() for user in users} == {"7", "8", None}
    of_seven = together(source, chunk, users={"7", "nobody"})
    assert (of_seven.users, of_seven.arms) == (["7"] * 3, [0, 2, 0])
    with_ids = open_source(stored(ROWS), action="arm", reward="won", id="hour")
    assert together(with_ids, ids={"9", "13"}).ids == ["9", "9"]


def test_a_log_is_added_up_in_spark_and_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement each: no row comes to this process."""
    from armnesia.logs.tables.spark import SparkSource

    source = stored({"action": ["A", "B"] * 500, "reward": [1.0] * 1000, "user": list(range(1000))})
    received: list[int] = []
    pieces = SparkSource._pieces

    def counted(self: Any, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        received.append(0)
        for piece in pieces(self, sql, parameters):
            received[-1] += len(piece)
            yield piece

    monkeypatch.setattr(SparkSource, "_pieces", counted)
    log = read_log(source, actions=["A", "B"])
    log.request(users=[3, 4, 5])
    assert received == [2, 5]  # per action, then per person of the request and for all others


def test_names_of_people_are_in_no_statement_and_no_plan() -> None:
    source: Any = open_source(
        stored({"action": ["A"], "reward": [1], "user": ["Zebulon"]}), action="action", reward="reward"
    )
    plans: list[str] = []
    sql = source._session.sql

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(spark(), name)

        def sql(self, statement: str, args: Any, **frames: Any) -> Any:
            found = sql(statement, args=args, **frames)
            plans.extend((statement, str(args), found._jdf.queryExecution().toString()))
            return found

    source._session = Watched()
    (found,) = source.rows(["A"], (0, 1), users={"Zebulon"})
    assert found.users == ["Zebulon"]
    assert [each.user for each in source.tallies((0, 1), users={"Zebulon"})] == ["Zebulon"]
    assert len(plans) == 6
    assert "Join" in plans[2]
    assert "Join" in plans[5]
    assert not any("Zebulon" in plan for plan in plans)


MOMENT = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))


USERS = {
    "string": ("ann", "ann"),
    "binary": (b"an\x00", "an\\x00"),
    "float": (0.1, "0.10000000149011612"),
    "double": (1e-5, "1e-05"),
    "smallint": (-3, "-3"),
    "bigint": (2**62, str(2**62)),
    "decimal(20,2)": (Decimal("7.00"), "7"),
    "decimal(20,8)": (Decimal("0.00000010"), "0.0000001"),
    "boolean": (True, "True"),
    "date": (dt.date(2024, 2, 29), "2024-02-29"),
    "timestamp_ntz": (dt.datetime(2024, 2, 29, 12, 30, 0, 500_000), "2024-02-29 12:30:00.5"),
    "timestamp": (MOMENT, "2024-02-29 10:00:00+00:00"),
}


def test_users_of_every_type_are_found_by_their_text() -> None:
    columns: dict[str, list[Any]] = {f"u{at}": [value, None] for at, (value, _) in enumerate(USERS.values())}
    types = {f"u{at}": type_ for at, type_ in enumerate(USERS)}
    name = stored({"action": ["A", "A"], "reward": [0.5, 1.0], **columns}, **types)
    for column, (_, text) in zip(columns, USERS.values(), strict=True):
        source: Any = open_source(name, action="action", reward="reward", user=column, whole_rows=False)
        found = {each.user: each.units for each in source.tallies((0, 1), users={text, text + "0", "x"})}
        assert found == {text: 500_000_000, None: 1_000_000_000}
        if column in ("u0", "u1", "u7"):
            assert together(source, users={text, "x"}).users == [text]
    every = open_source(name, action="action", reward="reward", user="u0")
    (rows,) = every.rows(["A"], (0, 1))
    assert rows.contents is not None
    for _, text in USERS.values():
        assert f"{len(text)}:{text}" in rows.contents[0]


def test_a_negative_zero_is_zero() -> None:
    log = read_log(stored({"action": ["A", "A"], "reward": [0.5, 1.0], "user": [-0.0, 0.0]}), actions=["A"])
    assert log.users() == {"0": 2}
    assert log.request(user=0).counts.tolist() == [2]
    with pytest.raises(InvalidInputError, match=r"the log has no rows of user '0\.0'; it has '0'"):
        log.request(user="0.0")


def test_texts_are_equal_only_if_they_are_the_same() -> None:
    """Neither a collation, nor padding, nor the case of a column's name makes two people one."""
    spark().sql("CREATE DATABASE IF NOT EXISTS logs")
    spark().sql("DROP TABLE IF EXISTS logs.events")
    spark().sql(
        "CREATE TABLE logs.events (action STRING COLLATE UTF8_LCASE, reward INT,"
        " user STRING COLLATE UTF8_LCASE, team CHAR(6)) USING parquet"
    )
    spark().sql(
        "INSERT INTO logs.events VALUES ('A', 1, 'Ann', 'x'), ('a', 0, 'ann', 'x'), ('A', 0, 'ANN', 'y')"
    )
    for name in ("spark:logs.events", "spark:spark_catalog.logs.events"):
        log = read_log(name, actions=["A", "a"])
        assert log.statistics().counts.tolist() == [2, 1]
        assert log.users() == {"ANN": 1, "Ann": 1, "ann": 1}
        assert log.request(user="ann").counts.tolist() == [0, 1]
    by_team = read_log("spark:logs.events", actions=["A", "a"], user="team", where="action = A")
    assert by_team.users() == {"x": 1, "y": 1}
    assert by_team.request(user="x").counts.tolist() == [1, 0]


def test_columns_whose_names_differ_in_case_are_different_columns(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"action": ["A", "B"], "Action": ["C", "C"], "re`ward.x": [1, 0], "user": ["u", "v"]}),
        tmp_path / "log.parquet",
    )
    before = spark().conf.get("spark.sql.caseSensitive")
    spark().conf.set("spark.sql.caseSensitive", "true")  # otherwise Spark itself refuses such a file
    try:
        name = f"spark:parquet.`{tmp_path}/log.parquet`"
        log = read_log(name, reward="re`ward.x", actions=["A", "B"])
        assert log.statistics().sums.tolist() == [10**9, 0]
    finally:
        spark().conf.set("spark.sql.caseSensitive", before)


CONDITIONS = [
    "hour >= 10",
    "hour in (9, 12)",
    "hour = '9'",
    "page = home",
    "page != home",
    "page in (home, 'x\ny')",
    "price > 0.3",
    "price = '0.5'",
    "vip = true",
    "vip = 'True'",
    "day >= 2026-01-02",
    "number < 10",
    "at > '2026-01-01 12'",
]


def test_conditions_and_keys_mean_the_same_in_spark() -> None:
    table = {
        **ROWS,
        "price": [0.5, 0.25, float("nan"), None, 0.75],
        "vip": [True, False, None, True, False],
        "day": [dt.date(2026, 1, day) for day in range(1, 6)],
        "number": ["7", "10", None, " 3e0", "true"],
        "at": [dt.datetime(2026, 1, day, 12) for day in range(1, 6)],
    }
    types = {"price": "double", "vip": "boolean", "day": "date", "at": "timestamp_ntz"}
    name = stored(table, **types)
    for condition in CONDITIONS:
        log, other = (
            read_log(each, **COLUMNS_OF_ROWS, actions=["A", "B", "C"], where=condition)
            for each in (name, table)
        )
        assert log.statistics() == other.statistics(), condition
    both = ["hour > 8", "number < 10"]
    for keys in (["hour"], ["hour:10,12", "day"]):
        of_spark, in_memory = (
            read_log(each, **COLUMNS_OF_ROWS, actions=["A", "B", "C"], where=both).by(*keys)
            for each in (name, table)
        )
        assert of_spark.keys == in_memory.keys
        assert of_spark.statistics == in_memory.statistics
        assert of_spark.request(user="7") == in_memory.request(user=7)
    for condition in ("page > 3", "day = 7"):
        with pytest.raises(InvalidLogError, match="must hold numbers to be compared with"):
            read_log(name, **COLUMNS_OF_ROWS, actions=["A", "B", "C"], where=condition)


def test_refusals() -> None:
    name = stored(ROWS)
    read: Callable[..., Any] = lambda source=name, **given: read_log(  # noqa: E731
        source, **{**COLUMNS_OF_ROWS, "actions": ["A", "B", "C"], **given}
    )
    for given, message in (
        ({"source": "spark:nowhere"}, "source 'spark:nowhere' has no table 'nowhere'; it has .*'log'"),
        ({"source": "spark:a b"}, r"source 'spark:a b' cannot be read by Spark \(PARSE_SYNTAX_ERROR\)"),
        ({"source": "spark:"}, "a table of Spark must be named, such as spark:catalog.database.table; got"),
        ({"table": "log"}, "table is for databases"),
        ({"user": "whom"}, "user column 'whom' is not in the source; it has 'who', 'arm'"),
        ({"reward": "page"}, "reward column 'page' must hold numbers; it holds string"),
        (
            {"actions": ["A", "B"]},
            "action column 'arm' must hold declared actions only, 'A', 'B'; got 'C' at row 3",
        ),
        (
            {"action": "page", "actions": None},
            "action column 'page' must name an action in every row; got a miss",
        ),
        ({"where": "hour > 99"}, "no row of the source satisfies hour > 99"),
        ({"reward_range": (0, 0.5)}, r"must lie in reward_range \[0.0, 0.5\]; got 1.0 at row 1"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            read(**given)
    log = read()
    with pytest.raises(UnsupportedError, match="rows of this source have no order"):
        log.request(rows=[0])
    with pytest.raises(
        InvalidLogError, match="key column 'page' must have a value in every row; got a missing"
    ):
        log.by("page")
    with pytest.raises(InvalidInputError, match="make 4 decisions, and the limit is 3"):
        log.by("hour", at_most=3)
    lists = stored({"action": ["A"], "reward": [1], "tags": [["x"]]}, tags="array<string>")
    assert read_log(lists, actions=["A"]).statistics().counts.tolist() == [1]
    with pytest.raises(
        InvalidLogError, match=r"user column 'tags' must hold single values.*holds array<string>"
    ):
        read_log(lists, user="tags", actions=["A"])
    with pytest.raises(InvalidLogError, match="column 'tags', without an id column, must hold single values"):
        open_source(lists, action="action", reward="reward")


def test_long_texts_are_refused() -> None:
    table: dict[str, list[Any]] = {"action": ["A", "A"], "reward": [1, 1], "user": ["ann", "b" * 70_000]}
    with pytest.raises(InvalidLogError, match="user column 'user' must hold labels of at most 65,536 bytes"):
        read_log(stored(table), actions=["A"])


def test_a_sum_that_is_too_large_is_refused_and_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from armnesia.logs.tables.spark import SparkSource

    large = "9000000000000000000 + 0 *"
    summed = SparkSource._sum
    monkeypatch.setattr(SparkSource, "_sum", lambda self, number: summed(self, f"{large} ({number})"))
    name, before = (
        stored({"action": ["A"] * 3, "reward": [1.0] * 3}),
        spark().conf.get("spark.sql.ansi.enabled"),
    )
    for ansi in ("true", "false"):
        spark().conf.set("spark.sql.ansi.enabled", ansi)
        with pytest.raises(
            UnsupportedError, match="the rewards of 3 rows are more than the database adds up"
        ):
            read_log(name, actions=["A"])
    spark().conf.set("spark.sql.ansi.enabled", before)


def test_a_request_is_refused_once_the_table_has_changed() -> None:
    log = read_log(stored({"action": ["A", "A"], "reward": [1, 0], "user": ["u", "v"]}), actions=["A"])
    spark().sql("CREATE OR REPLACE TEMP VIEW grown AS SELECT 'A' AS action, 1 AS reward, 'u' AS user")
    source: Any = log.source  # type: ignore[attr-defined]
    grown: Any = open_source("spark:grown", action="action", reward="reward", whole_rows=False)
    source._frame = grown._frame  # as if the files of the table had been replaced
    for ask in (lambda: log.request(user="u"), log.users, lambda: log.request(users=["v"])):
        with pytest.raises(
            InvalidLogError, match="the source has changed since the log was read; read it again"
        ):
            ask()


def test_a_vault_takes_a_table_of_spark(tmp_path: Path) -> None:
    table: dict[str, list[Any]] = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "n": [1, 2, 3]}
    table["user"] = ["ann", "bob", "ann"]
    names: dict[str, Any] = {"action": "action", "reward": "reward", "user": "user", "id": "n"}
    with fresh_place("sqlite", tmp_path).create(Configuration(actions=None)) as vault:
        assert vault.ingest(stored(table), **names).added == 3
        assert vault.forget(users=["ann"]).records == 2
        again = vault.ingest(stored(table), **names)
        assert (again.added, again.suppressed) == (0, 2)
        assert vault.verify().holds
    source = open_source("spark:log", action="action", reward="reward")
    assert together(reopen_source(source.description), chunk=2) == together(source)


def test_the_command_line_takes_a_table_of_spark(run: Run, tmp_path: Path) -> None:
    name = stored(
        {"action": ["A", "B"] * 20, "reward": [1, 0] * 20, "user": ["u", "v"] * 20, "c": ["x"] * 40}
    )
    decided = run("decide", name, "--actions", "A,B", "--json")
    assert (decided.code, decided.err) == (0, "")
    assert decided.json["action"] == "A"
    unlearned = run("unlearn", name, "--actions", "A,B", "--user", "u", "--where", "c = x", "--json")
    assert (unlearned.code, unlearned.err) == (0, "")
    assert run("decide", name, "--actions", "A,B", "--by", "c", "--json").code == 0
    refused = run("decide", "spark:nowhere", "--actions", "A,B")
    assert (refused.code, refused.out) == (2, "")
    assert "has no table 'nowhere'" in refused.err


MAIN = "from armnesia.cli.main import main; main()"


def command(folder: Path, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, "decide", name, "--actions", "A,B", "--json"],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_session_is_started_in_silence(tmp_path: Path) -> None:
    pq.write_table(pa.table({"action": ["A", "B"], "reward": [1.0, 0.0]}), tmp_path / "log.parquet")
    name = f"spark:parquet.`{tmp_path}/log.parquet`"
    found = command(tmp_path, name, SPARK_MASTER="local[1]")
    assert (found.returncode, found.stderr) == (0, "")
    assert '"action": "A"' in found.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_a_missing_java_is_one_sentence(tmp_path: Path) -> None:
    found = command(tmp_path, "spark:log", JAVA_HOME=str(tmp_path))
    assert (found.returncode, found.stdout) == (2, "")
    assert "A table of Spark needs Java 17 or newer, which did not start" in " ".join(found.stderr.split())


def test_a_missing_pyspark_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r'A table of Spark needs .* "armnesia\[spark\]"'):
        read_log("spark:log")


def test_a_vault_without_rows_counts_and_looks_up_in_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of clean tables are added up by Spark; none is read."""
    from armnesia.logs.tables.spark import SparkSource

    def put(number: int) -> str:
        rows = range(number)
        table: dict[str, list[Any]] = {
            "at": list(rows),
            "action": ["AB"[row % 2] for row in rows],
            "reward": [row % 4 / 4 for row in rows],
            "user": [f"user-{row % 10}" for row in rows],
        }
        types = {name: spark_type(values) for name, values in table.items()}
        return view(table, types, name="growing")

    source = put(40)
    with fresh_place("sqlite", tmp_path).create(Configuration(actions=("A", "B"), mode="external")) as vault:
        with pytest.raises(InvalidInputError, match="ordered_by"):
            vault.ingest(source)
        with monkeypatch.context() as patched:
            patched.setattr(SparkSource, "raw_rows", lambda *_: pytest.fail("rows were read"))
            assert vault.ingest(source, user="user", ordered_by="at").added == 40
            put(50)
            assert vault.ingest(source, user="user").added == 10
            assert vault.ingest(source, user="user").added == 0
        assert vault.forget(users=["user-3"]).records == 5
        put(60)
        assert (again := vault.ingest(source, user="user")).added == 9
        assert again.suppressed == 1
        assert vault.verify().holds
        assert vault.n_records == 54
        with pytest.raises(VaultError, match="user-4"):
            vault.forget(users=["USER-4"])
        assert vault.forget(users=["nobody"]).records == 0
        for name in (
            source,
            source.upper().replace("SPARK:", "spark:"),
            source.replace("spark:", "spark:`") + "`",
        ):
            twice = "'spark:growing'.* and its rows would count twice"
            with pytest.raises(VaultError, match=twice):
                vault.ingest(name, user="user", ordered_by="at", where="action = A")
