"""Tables in a real SQLite file and on a real PostgreSQL server."""

import datetime as dt
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source, open_source, read_log
from armnesia.logs.values import label_text
from armnesia.vault import Configuration
from tests.databases import fresh_place
from tests.logs.conftest import TABLES, Schema, Stored, Table, write_sqlite

ACTIONS = ["A", "B"]
ROWS: Table = {
    "arm": ["A", "B", "A", "A", "B"],
    "won": [1.0, 0.0, 0.25, 1.0, 1.0],
    "who": [7, None, 8, 7, 77],
    "page": ["x", "ü", None, "x", ""],
}
NAMES: dict[str, Any] = {"action": "arm", "reward": "won", "user": "who"}
IN_A_TABLE = pytest.mark.parametrize("kind", TABLES, indirect=True)
Store = Callable[[Table], Stored]


def users_of(source: Source, **options: Any) -> list[str | None]:
    return [user for rows in source.rows(ACTIONS, (0, 1), **options) for user in rows.users]


@IN_A_TABLE
def test_rows_of_a_log_stay_those_that_were_read(kind: str, stored: Store, request: Any) -> None:
    """A table may be written to all the time; a log is a snapshot."""
    source = stored(ROWS)
    log = source.log(**NAMES, actions=ACTIONS)
    if kind == "sqlite":
        with closing(sqlite3.connect(source.source.removeprefix("sqlite:///"))) as file, file:
            file.execute("DELETE FROM log WHERE who = 7")
    else:
        request.getfixturevalue("schema").connection.execute(
            f"DELETE FROM {source.options['table']} WHERE who = 7"
        )
    assert log.users() == {"7": 2, "77": 1, "8": 1}
    for user in (7, 7.0, "7"):
        assert log.request(user=user).counts.tolist() == [2, 0]
    assert log.request(rows=[0, 4]).counts.tolist() == [1, 1]
    assert source.log(**NAMES, actions=ACTIONS).users() == {"77": 1, "8": 1}


@IN_A_TABLE
def test_wrong_tables_are_refused(stored: Store) -> None:
    source = stored(ROWS)
    name = source.options["table"]
    for table, message in (
        (f"{name}_x", f"has no table '{name}_x'; it has '{name}'"),
        ("nowhere.clicks", "has no table 'nowhere.clicks'"),
        (".x", "table must be a name or schema.table; got '.x'"),
        (None, "a database needs the name of a table"),
    ):
        for read in (read_log, open_source):
            with pytest.raises(InvalidInputError, match=message):
                read(source.source, table=table, **NAMES)


@IN_A_TABLE
def test_the_position_of_a_wrong_row_is_the_order_of_reading(stored: Store) -> None:
    with pytest.raises(InvalidLogError, match=r"got 0\.0 at row 1: "):
        list(stored(ROWS).open(**NAMES).rows(ACTIONS, (0.5, 1), chunk=1))


ODD = 'ta"ble; DROP %s $1 ü'


def test_names_of_every_kind_are_quoted(schema: Schema, tmp_path: Path) -> None:
    column, table = 'a"r%m ?', '"ta""ble; DROP %s $1 ü"'
    create = f'CREATE TABLE {{}}{table} ("a""r%m ?" TEXT, "select" INT, "Who" TEXT)'
    insert = f"INSERT INTO {{}}{table} VALUES ('A', 1, 'ann'), ('B', 0, 'bob')"
    with closing(sqlite3.connect(tmp_path / "l %?#.db")) as file, file:
        for sql in (create, insert):
            file.execute(sql.format(""))
            schema.connection.execute(sql.format(f"{schema.name}."))
    for url, named in ((f"sqlite:///{tmp_path}/l %?#.db", ODD), (schema.url, f"{schema.name}.{ODD}")):
        source = open_source(url, table=named, action=column, reward="select", user="Who")
        assert users_of(source) == ["ann", "bob"]
        (rows,) = source.rows(ACTIONS, (0, 1), users={"bob"})
        assert (rows.positions, rows.arms, rows.units, rows.users) == ([0], [1], [0], ["bob"])
        log = read_log(url, table=named, action=column, reward="select", user="Who", actions=ACTIONS)
        assert log.users() == {"ann": 1, "bob": 1}


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("text", "ann", "ann"),
        ("varchar(9)", "7", "7"),
        ("char(5)", "ab", "ab"),
        ("bytea", b"ann", "ann"),
        ("time", dt.time(12, 30, 0, 500_000), "12:30:00.5"),
        ("real", 0.5, "0.5"),
        ("smallint", -3, "-3"),
        ("bigint", 2**62, str(2**62)),
        ("numeric(20, 2)", Decimal("7.00"), "7"),
        ("numeric", Decimal("7.50"), "7.5"),
        ("double precision", 7.0, "7"),
        ("boolean", True, "True"),
        ("uuid", uuid.UUID(int=17), "00000000-0000-0000-0000-000000000011"),
        ("date", dt.date(2024, 2, 29), "2024-02-29"),
        ("timestamp", dt.datetime(2024, 2, 29, 12, 30, 0, 500_000), "2024-02-29 12:30:00.5"),
        (
            "timestamptz",
            dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "2024-02-29 10:00:00+00:00",
        ),
        ("jsonb", Jsonb("ann"), "ann"),
    ],
)
def test_users_of_every_type_are_found_by_their_text(
    type_: str, value: Any, text: str, schema: Schema
) -> None:
    columns = {"arm": "TEXT", "won": "NUMERIC", "who": type_}
    table = schema.create("log", columns, [("A", Decimal("0.5"), value), ("A", 1, None)])
    source = open_source(schema.url, table=table, **NAMES)
    (rows,) = source.rows(ACTIONS, (0, 1))
    assert (rows.units, rows.users) == ([500_000_000, 1_000_000_000], [text, None])
    assert users_of(source, users={text}) == users_of(source, users={text, "nobody", "12", "\0"}) == [text]
    for other in ("nobody", "12", "\0", text + "0"):
        assert users_of(source, users={other}) == []


@pytest.mark.parametrize(("type_", "by_index"), [("bigint", True), ("uuid", True), ("text", False)])
def test_a_server_looks_people_up_by_an_index_where_names_are_no_text(
    schema: Schema, type_: str, by_index: bool
) -> None:
    made = "md5(i::text)::uuid" if type_ == "uuid" else f"i::text::{type_}"
    schema.connection.execute(
        f"CREATE TABLE {schema.name}.log AS SELECT 'A' AS arm, 1 AS won, {made} AS who"
        " FROM generate_series(1, 5000) AS t(i)"
    )
    schema.connection.execute(f"CREATE INDEX ON {schema.name}.log (who); ANALYZE {schema.name}.log")
    read = (
        f"SELECT coalesce(sum(idx_scan), 0)::int FROM pg_stat_user_indexes WHERE schemaname = '{schema.name}'"
    )

    def reads_of_indexes() -> int:
        schema.connection.execute("SELECT pg_stat_clear_snapshot()")
        return int(schema.connection.execute(read).fetchall()[0][0])

    source = open_source(schema.url, table=f"{schema.name}.log", **NAMES)
    user = "d3d94468-02a4-4259-755d-38e6d163e820" if type_ == "uuid" else "10"
    assert source.labels_like("user", {user}, UserType.EXACT) == {user}  # what confirms that nobody is missed
    assert reads_of_indexes() == 0
    assert users_of(source, users={user}) == [user]
    deadline = time.monotonic() + 120
    while by_index and not reads_of_indexes() and time.monotonic() < deadline:
        time.sleep(0.05)  # a server counts when a connection has ended
    assert reads_of_indexes() == by_index


@pytest.mark.parametrize("number", [-(2**63), -(2**63) + 1, 2**63 - 1])
def test_the_outermost_integers_are_looked_up(schema: Schema, number: int) -> None:
    table = schema.create(
        "log", {"arm": "text", "won": "int", "who": "int8"}, [("A", 1, number), ("A", 0, 5)]
    )
    source = open_source(schema.url, table=table, **NAMES)
    assert users_of(source, users={str(number)}) == [str(number)]
    assert users_of(source, users={str(2**63), str(-(2**63) - 1)}) == []


def test_equal_values_with_two_texts_are_two_actions(schema: Schema) -> None:
    rows = [(Decimal("1.5"), 1, "ann"), (Decimal("1.50"), 0, "bob")]
    table = schema.create("log", {"arm": "numeric", "won": "int", "who": "text"}, rows)
    source = open_source(schema.url, table=table, **NAMES).with_decimals_as_written()
    assert set(map(label_text, source.distinct_actions())) == {"1.5", "1.50"}
    assert source.has_several_values("arm")
    assert not open_source(schema.url, table=table, **NAMES).has_several_values("arm")


def test_an_integer_and_a_float_of_sqlite_with_two_texts_are_two_actions(tmp_path: Path) -> None:
    url = write_sqlite(tmp_path / "log.db", {"arm": [2**53, 2.0**53], "won": [1, 0], "who": ["ann", "bob"]})
    source = open_source(url, table="log", **NAMES)
    assert set(map(label_text, source.distinct_actions())) == {"9007199254740992", "9007199254740992.0"}
    assert source.has_several_values("arm")


def test_refusals_of_the_server_are_reported(schema: Schema) -> None:
    create = f"CREATE VIEW {schema.name}.{{}} AS SELECT 'A' AS arm, {{}} AS won, {{}} AS who"
    schema.connection.execute(create.format("broken", "1 / 0", "'secret'"))
    with pytest.raises(InvalidLogError, match=r"cannot be read \(SQLSTATE 22012\)"):
        users_of(open_source(schema.url, table=f"{schema.name}.broken", **NAMES))
    schema.connection.execute(create.format("strange", "1", "date 'infinity'"))
    with pytest.raises(
        InvalidLogError, match=r"cannot be read: it holds a value that Python has no type for"
    ):
        users_of(open_source(schema.url, table=f"{schema.name}.strange", **NAMES))
    wrong = schema.url.replace(f"/{schema.connection.info.dbname}", "/no_such_database")
    with pytest.raises(InvalidLogError, match=r"cannot be opened: is the server running"):
        open_source(wrong, table="clicks", **NAMES)


def test_what_is_no_sqlite_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,won\nA,1\n" * 99)
    with pytest.raises(InvalidLogError, match=r"cannot be read as SQLite: file is not a database"):
        open_source(f"sqlite:///{tmp_path}/log.csv", table="log", **NAMES)
    with pytest.raises(InvalidLogError, match=r"is not a file; give the path of an SQLite database"):
        open_source(f"sqlite:///{tmp_path}/none.db", table="log", **NAMES)
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(InvalidInputError, match=r"must be sqlite:///FILE; got 'sqlite://log.db'"):
        open_source("sqlite://log.db", table="log", **NAMES)
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute(
            "CREATE TABLE log AS SELECT 'A' AS arm, 1 AS won, CAST(x'736563726574ff' AS TEXT) AS who"
        )
    with pytest.raises(InvalidLogError, match=r"it holds text that is not UTF-8$"):
        users_of(open_source(f"sqlite:///{tmp_path}/log.db", table="log", **NAMES))


PADDED = {
    "arm": "CHAR(3)",
    "won": "INTEGER",
    "who": "CHAR(10)",
    "id": "CHAR(5)",
    "page": "CHAR(4)",
    "at": "INTEGER",
}


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("ids", [False, True])
def test_text_of_a_fixed_length_is_read_without_its_padding(
    mode: str, ids: bool, schema: Schema, tmp_path: Path
) -> None:
    """To the server 'ann' and 'ann       ' are equal in such a column; so they must be to a request."""
    rows = [("A", 1, "ann", "1", "x", 1), ("B", 0, "bob", "2", "y", 2), ("A", 0, "cem", "3", None, 3)]
    table = schema.create("log", PADDED, rows)
    names: dict[str, Any] = NAMES | ({"id": "id"} if ids else {})
    order: dict[str, Any] = {"ordered_by": "at"} if mode == "external" else {}
    with fresh_place("sqlite", tmp_path).create(Configuration(actions=None, mode=mode)) as vault:
        vault.ingest(schema.url, table=table, **names, **order)
        assert vault.configuration.actions == ("A", "B")
        done = vault.forget(users=["ann"])
        assert (done.records, done.certificate.body["entry"]["kind"]) == (1, "forget")
        assert vault.forget(users=["ann       "]).records == 0
        assert vault.forget(users=["bob", "nobody"]).records == 1
        if ids:
            assert vault.forget(records=["3"]).records == 1
        again = vault.ingest(schema.url, table=table, **names)
        assert (again.added, again.suppressed) == (0, 2 + ids if mode == "managed" else 0)
        assert vault.verify().holds
        if mode == "managed":
            log = dict(zip(PADDED, map(list, zip(*rows, strict=True)), strict=True))
            assert vault.ingest(log, **names).added == 0


def test_a_table_on_postgresql_needs_psycopg_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r'A table on PostgreSQL needs .* "armnesia\[vault\]"'):
        read_log("postgresql://db/logs", table="clicks")


WITHOUT_EXTRAS = """
import sys
import time
from armnesia.logs import read_log
log = read_log(sys.argv[1], table="log", action="arm", reward="won", user="who", actions=["A", "B"])
assert log.statistics().counts.tolist() == [3, 2]
print(sorted({"duckdb", "psycopg", "narwhals"} & sys.modules.keys()))
"""


def test_a_table_in_sqlite_needs_no_extra(tmp_path: Path) -> None:
    url = write_sqlite(tmp_path / "log.db", ROWS)
    command = [sys.executable, "-c", WITHOUT_EXTRAS, url]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_table_with_a_point_in_its_name_and_a_broken_view_are_told(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE "a.b" (action, reward)')
        database.execute("CREATE TABLE gone (action, reward)")
        database.execute("CREATE VIEW broken AS SELECT * FROM gone")
        database.execute("DROP TABLE gone")
    source = f"sqlite:///{path}"
    columns: dict[str, Any] = {"action": "action", "reward": "reward"}
    with pytest.raises(InvalidLogError, match=r"has a table 'a\.b', whose name has a point: .* main"):
        open_source(source, table="a.b", **columns)
    assert open_source(source, table="main.a.b", **columns).n_rows() == 0
    with pytest.raises(InvalidLogError, match="what a view is made of may be gone"):
        open_source(source, table="broken", **columns)
