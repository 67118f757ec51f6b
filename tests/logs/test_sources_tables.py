"""Rows of SQL tables, in a real SQLite file and on a real PostgreSQL server; passwords stay secret."""

import datetime as dt
import json
import sqlite3
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from psycopg.types.json import Jsonb

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs.opening import open_source, reopen_source
from armnesia.logs.postgres_urls import without_password
from armnesia.logs.source import Rows, Source
from tests.databases import postgres_url

ACTIONS = ["A", "B"]
ROWS = [("A", 1, 7, "x"), ("B", 0, None, "ü"), ("A", 0.25, 8, None), ("A", 1, 7, "x"), ("B", 1, 77, "")]
NAMES = {"action": "arm", "reward": "won", "user": "who"}


@pytest.fixture
def server() -> str:
    """The address of a PostgreSQL server."""
    return postgres_url()


@pytest.fixture
def schema(server: str) -> Iterator[tuple[psycopg.Connection[Any], str]]:
    """A connection, and the name of an empty schema that is gone afterwards."""
    name = f"source_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield connection, name
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=["sqlite", "postgresql"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The address and name of a table with `ROWS`, on each database."""
    if request.param == "sqlite":
        with sqlite3.connect(tmp_path / "log.db") as file:
            file.execute("CREATE TABLE clicks (arm TEXT, won REAL, who INTEGER, page TEXT)")
            file.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?)", ROWS)
        file.close()
        return f"sqlite:///{tmp_path}/log.db", "clicks"
    connection, name = request.getfixturevalue("schema")
    connection.execute(f"CREATE TABLE {name}.clicks (arm TEXT, won FLOAT8, who BIGINT, page TEXT)")
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {name}.clicks VALUES (%s, %s, %s, %s)", ROWS)
    return request.getfixturevalue("server"), f"{name}.clicks"


def all_rows(source: Source, actions: list[Any] = ACTIONS, **options: Any) -> list[tuple[Any, ...]]:
    chunks: list[Rows] = list(source.rows(actions, (0, 1), **options))
    return [
        row
        for rows in chunks
        for row in zip(
            rows.positions,
            rows.arms,
            rows.units,
            rows.users,
            cast(list[Any], rows.ids or [None] * len(rows)),
            cast(list[Any], rows.contents or [None] * len(rows)),
            strict=True,
        )
    ]


@pytest.mark.parametrize("chunk", [1, 2, 50_000])
def test_a_table_gives_the_rows_of_a_frame(table: tuple[str, str], chunk: int) -> None:
    url, name = table
    source = open_source(url, table=name, **NAMES)
    frame = open_source(
        dict(zip(("arm", "won", "who", "page"), zip(*ROWS, strict=True), strict=True)), **NAMES
    )
    assert all_rows(source, chunk=chunk) == all_rows(frame)
    assert source.n_rows() == 5
    assert source.labels() == ["A", "B"]


def test_the_rows_of_one_user(table: tuple[str, str]) -> None:
    url, name = table
    source = open_source(url, table=name, **NAMES)
    every = all_rows(source)
    for user, expected in (
        ("7", [0, 3]),
        ("77", [4]),
        ("07", []),
        ("7.0", []),
        ("x", []),
        ("9" * 30, []),
        ("", []),
    ):
        assert [row[1:] for row in all_rows(source, user=user)] == [every[row][1:] for row in expected]


def test_a_description_opens_the_same_source_again(table: tuple[str, str]) -> None:
    url, name = table
    source = open_source(url, table=name, **NAMES)
    description = json.loads(json.dumps(dict(source.description)))
    assert description["kind"] == "table"
    assert description["columns"] == {"action": "arm", "reward": "won", "user": "who", "id": None}
    assert all_rows(reopen_source(description)) == all_rows(source)


def test_bad_rows_and_wrong_names_are_refused(table: tuple[str, str]) -> None:
    url, name = table
    with pytest.raises(
        InvalidLogError, match=r"user column 'WHO' is not in the source; it has 'arm', 'won', 'who'"
    ):
        open_source(url, table=name, action="arm", reward="won", user="WHO")
    with pytest.raises(InvalidLogError, match=r"has no table .*'; give the name of one"):
        open_source(url, table=f"{name}_x", **NAMES)
    with pytest.raises(InvalidLogError, match=r"has no table 'nowhere.clicks'"):
        open_source(url, table="nowhere.clicks", **NAMES)
    with pytest.raises(InvalidInputError, match=r"table must be a name or schema.table; got '.x'"):
        open_source(url, table=".x", **NAMES)
    with pytest.raises(InvalidInputError, match=r"a database needs the name of a table"):
        open_source(url, **NAMES)
    with pytest.raises(InvalidLogError, match=r"declared actions only, 'A'; got 'B' at row 1, 'B' at row 4"):
        all_rows(open_source(url, table=name, **NAMES), ["A"])
    with pytest.raises(InvalidLogError, match=r"got 0\.0 at row 1$"):
        list(open_source(url, table=name, **NAMES).rows(ACTIONS, (0.5, 1), chunk=1))
    with pytest.raises(InvalidLogError, match=r"reward column 'page' must hold numbers; got 'x' at row 0"):
        all_rows(open_source(url, table=name, action="arm", reward="page"))
    with pytest.raises(InvalidLogError, match=r"rows 0 and 2 share one"):
        all_rows(open_source(url, table=name, action="arm", reward="won", id="arm"))


ODD = 'ta"ble; DROP %s $1 ü'


def test_names_of_every_kind_are_quoted(
    schema: tuple[psycopg.Connection[Any], str], tmp_path: Path, server: str
) -> None:
    column, table = 'a"r%m ?', '"ta""ble; DROP %s $1 ü"'
    create = f'CREATE TABLE {{}}{table} ("a""r%m ?" TEXT, "select" INT, "Who" TEXT)'
    insert = f"INSERT INTO {{}}{table} VALUES ('A', 1, 'ann'), ('B', 0, 'bob')"
    connection, name = schema
    with sqlite3.connect(tmp_path / "l %?#.db") as file:
        for sql in (create, insert):
            file.execute(sql.format(""))
            connection.execute(sql.format(f"{name}."))
    file.close()
    for url, named in ((f"sqlite:///{tmp_path}/l %?#.db", ODD), (server, f"{name}.{ODD}")):
        source = open_source(url, table=named, action=column, reward="select", user="Who")
        assert [row[3] for row in all_rows(source)] == ["ann", "bob"]
        assert [row[:4] for row in all_rows(source, user="bob")] == [(0, 1, 0, "bob")]


def test_sqlite_columns_that_mix_types(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "log.db") as file:
        file.execute("CREATE TABLE log (arm, won, who)")
        users = [7, "7", 7.0, "7.0", "007", b"7", None, 7.5, "ann"]
        file.executemany("INSERT INTO log VALUES ('A', 1, ?)", [(user,) for user in users])
    file.close()
    source = open_source(f"sqlite:///{tmp_path}/log.db", table="log", **NAMES)
    assert [row[3] for row in all_rows(source)] == ["7", "7", "7", "7.0", "007", "7", None, "7.5", "ann"]
    found = {
        user: len(all_rows(source, user=user))
        for user in ("7", "7.0", "007", "7.5", "ann", "nan", "inf", "b'7'")
    }
    assert found == {"7": 4, "7.0": 1, "007": 1, "7.5": 1, "ann": 1, "nan": 0, "inf": 0, "b'7'": 0}


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("text", "ann", "ann"),
        ("varchar(9)", "7", "7"),
        ("char(5)", "ab", "ab"),
        ("bytea", b"ann", "ann"),
        ("time", dt.time(12, 30, 0, 500_000), "12:30:00.5"),
        ("real", 0.1, "0.10000000149011612"),
        ("smallint", -3, "-3"),
        ("bigint", 2**62, str(2**62)),
        ("numeric(20, 2)", Decimal("7.00"), "7"),
        ("numeric", Decimal("7.50"), "7.50"),
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
        ("jsonb", Jsonb({"a": [1]}), "{'a': [1]}"),
    ],
)
def test_users_of_every_type_are_found_by_their_text(
    type_: str, value: Any, text: str, schema: tuple[psycopg.Connection[Any], str], server: str
) -> None:
    connection, name = schema
    connection.execute(f"CREATE TABLE {name}.log (arm TEXT, won NUMERIC, who {type_})")
    connection.execute(f"INSERT INTO {name}.log VALUES ('A', 0.5, %s), ('A', 1, NULL)", [value])
    source = open_source(server, table=f"{name}.log", **NAMES)
    assert [row[2:4] for row in all_rows(source)] == [(500_000_000, text), (1_000_000_000, None)]
    assert [row[3] for row in all_rows(source, user=text)] == [text]
    for other in ("nobody", "12", "\0", text + "0"):
        assert all_rows(source, user=other) == []


def test_a_look_up_uses_the_index(schema: tuple[psycopg.Connection[Any], str], server: str) -> None:
    connection, name = schema
    for type_ in ("bigint", "text", "uuid", "bpchar"):
        made = "md5(i::text)::uuid" if type_ == "uuid" else f"i::text::{type_}"
        connection.execute(
            f"CREATE TABLE {name}.{type_}_log AS SELECT 'A' AS arm, 1 AS won, {made} AS who"
            " FROM generate_series(1, 5000) AS t(i)"
        )
        connection.execute(f"CREATE INDEX ON {name}.{type_}_log (who); ANALYZE {name}.{type_}_log")
        source: Any = open_source(server, table=f"{name}.{type_}_log", **NAMES)
        user = "d3d94468-02a4-4259-755d-38e6d163e820" if type_ == "uuid" else "10"
        condition, parameters = source._condition(user)
        with psycopg.RawCursor(connection) as cursor:
            cursor.execute(f"EXPLAIN SELECT * FROM {name}.{type_}_log{condition}", parameters)
            plan = " ".join(line for (line,) in cursor)
        assert "Index" in plan
        assert len(all_rows(source, user=user)) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db/logs", "postgresql://ann@db/logs"),
        ("postgres://ann@db:5433/logs", "postgresql://ann@db:5433/logs"),
        (
            "postgresql://db/logs?user=ann&password=s3cret&sslmode=require",
            "postgresql://db/logs?user=ann&sslmode=require",
        ),
        (
            "postgresql://ann:s3%40cret@/logs?host=/run/pg&sslpassword=s3cret",
            "postgresql://ann@/logs?host=/run/pg",
        ),
    ],
)
def test_a_password_is_left_out(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3@cret@db/logs",
        "postgresql://ann:s3/cret@db/logs",
        "postgresql://ann:s3?cret@db/logs",
        "postgresql://ann:s3#cret@db/logs",
        "postgresql://ann:s3cret@db:port/logs",
        "postgresql://ann:s3cret@localhost:1/logs",
        "postgresql://ann:s3cret@no-such-host.invalid/logs",
        "postgresql://ann:s3cret@localhost:1/logs?nonsense=1",
        "postgresql://ann:s3cret@localhost:1/logs?connect_timeout=s3cret",
        "mysql://ann:s3cret@db/logs",
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises((InvalidLogError, InvalidInputError)) as caught:
        open_source(url, table="clicks", **NAMES)
    for piece in ("s3", "cret"):
        assert piece not in str(caught.value).replace("connect_timeout=s3cret", "")
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_refusals_of_the_server_are_told(schema: tuple[psycopg.Connection[Any], str], server: str) -> None:
    connection, name = schema
    connection.execute(f"CREATE VIEW {name}.broken AS SELECT 'A' AS arm, 1 / 0 AS won, 'secret' AS who")
    with pytest.raises(InvalidLogError, match=r"cannot be read \(SQLSTATE 22012\)"):
        all_rows(open_source(server, table=f"{name}.broken", **NAMES))
    connection.execute(f"CREATE VIEW {name}.strange AS SELECT 'A' AS arm, 1 AS won, date 'infinity' AS who")
    with pytest.raises(
        InvalidLogError, match=r"cannot be read: it holds a value that Python has no type for"
    ):
        all_rows(open_source(server, table=f"{name}.strange", **NAMES))
    with psycopg.connect(server) as other:
        wrong = server.replace(f"/{other.info.dbname}", "/no_such_database")
    with pytest.raises(InvalidLogError, match=r"cannot be reached|no such database"):
        open_source(wrong, table="clicks", **NAMES)


def test_what_is_no_sqlite_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,won\nA,1\n" * 99)
    with pytest.raises(InvalidLogError, match=r"cannot be read as SQLite: file is not a database"):
        open_source(f"sqlite:///{tmp_path}/log.csv", table="log", **NAMES)
    with pytest.raises(InvalidLogError, match=r"is no file; give the path of an SQLite database"):
        open_source(f"sqlite:///{tmp_path}/none.db", table="log", **NAMES)
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(InvalidInputError, match=r"must be sqlite:///FILE; got 'sqlite://log.db'"):
        open_source("sqlite://log.db", table="log", **NAMES)
    with sqlite3.connect(tmp_path / "log.db") as file:
        file.execute(
            "CREATE TABLE log AS SELECT 'A' AS arm, 1 AS won, CAST(x'736563726574ff' AS TEXT) AS who"
        )
    file.close()
    with pytest.raises(InvalidLogError, match=r"it holds text that is not UTF-8$"):
        all_rows(open_source(f"sqlite:///{tmp_path}/log.db", table="log", **NAMES))
