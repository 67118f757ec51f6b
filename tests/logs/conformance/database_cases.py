"""What only tables of SQLite and PostgreSQL can hold: types of their own, views, collations."""

import sqlite3
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.databases import postgres_url
from tests.logs.conformance.cases import RIGHT, Case, Outcome, refused
from tests.logs.conformance.expected import Key, Where
from tests.logs.conformance.sources import Held, Place, Stored

Row = tuple[Any, ...]
BIG = 2**53 + 1


def by_columns(names: Sequence[str], rows: Sequence[Row]) -> Held:
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def in_sqlite(
    name: str,
    statements: str,
    rows: Sequence[Row],
    outcome: Outcome = RIGHT,
    *,
    read: str = "log",
    **options: Any,
) -> Case:
    """Statements that make a table `log` of these rows; of the file `read` is read, as sqlite3 does."""

    def write(place: Place) -> Stored:
        path = place.path(".db")
        with closing(sqlite3.connect(path)) as file, file:
            first, *others = statements.split(";")
            file.execute(first)
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                columns = ", ".join(name.split()[0] for name in COLUMNS[: len(rows[0])])
                file.executemany(f"INSERT INTO log ({columns}) VALUES ({marks})", rows)
            for other in others:
                file.execute(other)
            try:
                found = file.execute(f"SELECT * FROM {read}")
                held = by_columns([each[0] for each in found.description], found.fetchall())
            except sqlite3.Error:
                held = {}
        return Stored(f"sqlite:///{path}", held, read)

    return Case(f"SQLite: {name}", outcome=outcome, writers={"SQLite table": write}, **options)


COLUMNS = ("action", "reward", "user", "key")
NOCASE = "TEXT COLLATE NOCASE"
PLAIN = [("A", 1, "ann"), ("B", 0.5, "bob"), ("A", 0, None)]
TABLE = "CREATE TABLE log (action, reward, user)"


def users(*values: Any) -> list[Row]:
    return [("A", 1, value) for value in values]


def sqlite_users(type_: str) -> str:
    return f"CREATE TABLE log (action TEXT, reward REAL, user {type_})"


SQLITE_CASES = [
    in_sqlite(
        "users of several types in a column", TABLE, users(7, "7", 7.0, "7.0", "007", None, 7.5, b"7", "ann")
    ),
    in_sqlite(
        "actions of several types in a column",
        TABLE,
        [(1, 1, "a"), ("1", 0, "b"), (1.0, 1, "c")],
        actions=("1",),
    ),
    in_sqlite(
        "integers in a column NUMERIC", sqlite_users("NUMERIC"), users(BIG, BIG - 1, str(BIG + 1), 2**63 - 1)
    ),
    in_sqlite("floats of 17 digits in a column without a type", TABLE, users(0.1 + 0.2, 0.3, 1 / 3)),
    in_sqlite(
        "rewards in a column INTEGER",
        "CREATE TABLE log (action TEXT, reward INTEGER, user TEXT)",
        [("A", 1, "a"), ("A", 0.5, "b")],
        refused("CAST"),
    ),
    in_sqlite(
        "rewards in a column INTEGER, by a view",
        "CREATE TABLE log (action TEXT, reward INTEGER, user TEXT)"
        ";CREATE VIEW seen AS SELECT action, CAST(reward AS REAL) AS reward, user FROM log",
        [("A", 1, "a"), ("A", 0.5, "b")],
        read="seen",
    ),
    in_sqlite("a reward of text among numbers", TABLE, [*PLAIN, ("A", "0.5", "ann")]),
    in_sqlite("a reward of bytes that are a digit", TABLE, [*PLAIN, ("A", b"1", "ann")], refused("reward")),
    in_sqlite(
        "a view", TABLE + ";CREATE VIEW seen AS SELECT * FROM log WHERE reward > 0", PLAIN, read="seen"
    ),
    in_sqlite(
        "a view that is broken",
        TABLE + ";CREATE VIEW seen AS SELECT * FROM log;DROP TABLE log",
        PLAIN,
        refused("cannot be read"),
        read="seen",
    ),
    in_sqlite(
        "generated columns",
        "CREATE TABLE log (action, reward, user, half AS (reward / 2.0) STORED, who AS (user || '!'))",
        PLAIN,
        roles=("action", "half", "who"),
    ),
    in_sqlite(
        "texts that NOCASE takes for equal",
        f"CREATE TABLE log (action {NOCASE}, reward, user {NOCASE}, key {NOCASE})",
        [("A", 1, "ann", "de"), ("a", 0, "Ann", "DE"), ("A", 1, "ann", "De")],
        actions=("A", "a"),
        by=(Key("key", "key"),),
    ),
    in_sqlite(
        "a condition on a column NOCASE",
        "CREATE TABLE log (action, reward, user, key TEXT COLLATE NOCASE)",
        [("A", 1, "ann", "de"), ("A", 0, "bob", "DE")],
        where=(Where("key = de", "key", lambda v: v == "de"),),
    ),
    in_sqlite(
        "texts that RTRIM takes for equal", sqlite_users("TEXT COLLATE RTRIM"), users("ann", "ann ", "ann  ")
    ),
    in_sqlite("text with a NUL", TABLE, users("a\0b", "a")),
    in_sqlite(
        "text that is not UTF-8",
        TABLE + ";INSERT INTO log VALUES ('A', 1, CAST(x'61ff' AS TEXT))",
        PLAIN,
        refused("UTF-8"),
    ),
    in_sqlite("no such table", TABLE, PLAIN, refused("'nowhere'"), read="nowhere"),
]


def in_postgres(
    name: str,
    types: str,
    rows: Sequence[Row],
    outcome: Outcome = RIGHT,
    *,
    holds: Callable[[Held], Held] | None = None,
    before: str = "",
    after: str = "",
    read: str = "{table}",
    **options: Any,
) -> Case:
    """A table of these types and rows; statements before and after name `{table}` and its `{schema}`."""

    def write(place: Place) -> Stored:
        number = uuid.uuid4().hex
        named = {"table": f"{place.schema}.log_{number}", "schema": place.schema, "number": number}
        run = place.connection.execute
        for statement in filter(None, before.split(";")):
            try:
                run(statement.format(**named))
            except psycopg.errors.FeatureNotSupported:
                pytest.skip("this PostgreSQL server was built without ICU")
        run(f"CREATE TABLE {named['table']} ({types.format(**named)})")
        if rows:
            with place.connection.cursor() as cursor:
                marks = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f"INSERT INTO {named['table']} VALUES ({marks})", list(rows))
        for statement in filter(None, after.split(";")):
            run(statement.format(**named))
        held = by_columns(COLUMNS[: len(rows[0])], rows) if rows else {}
        return Stored(postgres_url(), holds(held) if holds else held, read.format(**named))

    return Case(f"PostgreSQL: {name}", outcome=outcome, writers={"PostgreSQL table": write}, **options)


def typed(user: str = "text", reward: str = "float8", action: str = "text") -> str:
    return f'action {action}, reward {reward}, "user" {user}'


def rewards(*values: Any) -> list[Row]:
    return [("A", value, "ann") for value in values]


NUMERIC = typed(reward="numeric")
ANY_CASE = (
    "CREATE COLLATION {schema}.any_{number}"
    " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
)
POSTGRES_CASES = [
    in_postgres("numeric NaN as a reward", NUMERIC, rewards("1", "NaN"), refused("reward")),
    in_postgres("numeric Infinity as a reward", NUMERIC, rewards("1", "Infinity"), refused("reward")),
    in_postgres(
        "numeric of many digits as a reward",
        NUMERIC,
        rewards("0." + "3" * 60, "0." + "0" * 400 + "1", "1.000"),
        holds=lambda held: {**held, "reward": [float(v) for v in held["reward"]]},
    ),
    in_postgres(
        "numeric NaN as a user",
        typed("numeric"),
        users("7", "NaN"),
        holds=lambda held: {**held, "user": ["7", None]},
    ),
    in_postgres(
        "numeric of any scale as users",
        typed("numeric"),
        users("1.50", "1.5", "1000", "0.00000012", "10000000000000000000001"),
        holds=lambda held: {**held, "user": ["1.5", "1.5", "1000", "0.00000012", "10000000000000000000001"]},
    ),
    in_postgres(
        "real as users, with more digits than it shows",
        typed("real"),
        users(0.1),
        holds=lambda held: {**held, "user": [0.10000000149011612]},
    ),
    in_postgres("char(n) without its padding", typed("char(10)", action="char(3)"), users("ann", "bob", "é")),
    in_postgres(
        "an enumeration",
        typed("{schema}.mood_{number}"),
        users("sad", "ok"),
        before="CREATE TYPE {schema}.mood_{number} AS ENUM ('sad', 'ok')",
    ),
    in_postgres(
        "an enumeration with the name of a number",
        typed(reward="{schema}.numeric"),
        rewards("0.5"),
        before="CREATE TYPE {schema}.numeric AS ENUM ('0.5', '1')",
    ),
    in_postgres("arrays as users", typed("int[]"), users([1, 2]), refused("user")),
    in_postgres("a moment with a zone of infinity as a user", typed("timestamptz"), users("infinity", None)),
    in_postgres(
        "a view", typed(), PLAIN, after="CREATE VIEW {table}_v AS SELECT * FROM {table}", read="{table}_v"
    ),
    in_postgres(
        "a view that divides by zero",
        typed(),
        PLAIN,
        refused("its server refused"),
        after='CREATE VIEW {table}_v AS SELECT action, reward / 0 AS reward, "user" FROM {table}',
        read="{table}_v",
    ),
    in_postgres(
        "generated columns",
        typed() + ", half float8 GENERATED ALWAYS AS (reward / 2) STORED",
        [],
        after="INSERT INTO {table} VALUES ('A', 1, 'ann'), ('B', 0.5, 'bob')",
        holds=lambda _: {"action": ["A", "B"], "half": [0.5, 0.25], "user": ["ann", "bob"]},
        roles=("action", "half", "user"),
    ),
    in_postgres("addresses", typed("inet"), users("10.0.0.1", "10.0.0.0/24", "::1", None)),
    in_postgres("text with backslashes", typed(), users("a\\b", "a\\\\b", "\\x41")),
    in_postgres(
        "texts that a collation takes for equal",
        typed("text COLLATE {schema}.any_{number}"),
        users("ann", "Ann"),
        before=ANY_CASE,
    ),
    in_postgres("no such table", typed(), PLAIN, refused("nowhere"), read="{schema}.nowhere"),
]
DATABASE_CASES = [*SQLITE_CASES, *POSTGRES_CASES]
