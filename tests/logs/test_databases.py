"""Tables of databases: settings of sessions, names, and what is refused."""

import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.logs import engine, read_log
from tests.databases import postgres_url
from tests.logs.conformance.sources import Place

ROWS: dict[str, list[Any]] = {
    "action": ["A", "B", "A"],
    "reward": [1.0, 0.5, 0.0],
    "who": ["ann", "bob", "Zoë"],
}
NAMES: dict[str, Any] = {"user": "who", "actions": ["A", "B"]}


def created(place: Place, types: str, values: str) -> str:
    table = f"{place.schema}.log_{uuid.uuid4().hex}"
    place.connection.execute(f"CREATE TABLE {table} ({types})")
    place.connection.execute(f"INSERT INTO {table} VALUES {values}")
    return table


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "setting",
    [
        "standard_conforming_strings=off",
        "extra_float_digits=0",
        "datestyle=German",
        "timezone=America/New_York",
        "client_encoding=LATIN1",
    ],
)
def test_settings_of_a_session_change_nothing(
    place: Place, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(
        place,
        "action text, reward float8, who text, moment timestamptz, day date, price numeric",
        "('A', 0.1 + 0.2::float8, 'ann', '2026-01-02 03:04Z', '2026-01-02', 1.50),"
        " ('B', 1, E'a\\\\b', '2026-01-02 03:04Z', '2026-01-02', 1.5), ('A', 0, 'Zoë', now(), now(), 2),"
        " ('B', 0, 'Ã«', now(), now(), 2)",
    )

    def found() -> list[Any]:
        log = read_log(postgres_url(), table=table, **NAMES)
        keys = [log.by(name).keys for name in ("moment", "day", "price")]
        return [log.statistics(), log.users(), keys, log.request(user="a\\b").counts.tolist()]

    plain = found()
    monkeypatch.setenv("PGOPTIONS", f"-c {setting}")
    assert found() == plain
    assert plain[1] == {"Zoë": 1, "a\\b": 1, "ann": 1, "Ã«": 1}


def test_a_database_without_an_encoding_is_refused(place: Place) -> None:
    name = f"ascii_{uuid.uuid4().hex}"
    place.connection.execute(
        f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    url = urlsplit(postgres_url())._replace(path=f"/{name}").geturl()
    try:
        with psycopg.connect(url, client_encoding="latin1") as connection:
            connection.execute("CREATE TABLE log AS SELECT 'A' AS action, 1 AS reward, 'Zo\u00eb' AS who")
        with pytest.raises(InvalidLogError, match="cannot be read: its server refused the query") as caught:
            read_log(url, table="log", **NAMES).users()
        assert "Zo" not in str(caught.value)
    finally:
        place.connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_what_cannot_be_read_at_a_server(place: Place) -> None:
    missing = urlsplit(postgres_url())._replace(path="/no_such_database").geturl()
    with pytest.raises(
        InvalidLogError, match=r"does not answer, refuses this user, or has no such database$"
    ):
        read_log(missing, table="log")
    created(place, "action text", "('A')")
    with pytest.raises(InvalidLogError, match=r"table 'nowhere' is not in 'postgresql://.*'"):
        read_log(postgres_url(), table="nowhere")
    with pytest.raises(InvalidLogError, match="reward column 'reward' is not in the source; it has 'action'"):
        read_log(postgres_url(), table=created(place, "action text", "('A')"))


def test_what_is_no_sqlite_database(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("action,reward\nA,1\n" * 99)
    with pytest.raises(InvalidLogError, match=r"log\.csv' cannot be read: "):
        read_log(f"sqlite:///{tmp_path}/log.csv", table="log")
    with pytest.raises(InvalidLogError, match=r"none\.db' cannot be read: there is no such file"):
        read_log(f"sqlite:///{tmp_path}/none.db", table="log")
    assert not (tmp_path / "none.db").exists()


def test_names_of_every_kind_are_quoted(place: Place, tmp_path: Path) -> None:
    table, column = 'my "own"; log--', "it's $x {y}"
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        quoted = [name.replace('"', '""') for name in (table, column)]
        file.execute(
            "CREATE TABLE \"{}\" AS SELECT 'A' AS action, 1.0 AS reward, 'ann' AS \"{}\"".format(*quoted)
        )
    log = read_log(f"sqlite:///{tmp_path}/log.db", table=table, user=column, actions=["A"])
    assert log.request(user="ann").counts.tolist() == [1]
    named = created(place, f'action text, reward float8, "{column}" text', "('A', 1, 'ann')")
    log = read_log(postgres_url(), table=named, user=column, actions=["A"], where=f'"{column}" = ann')
    assert log.users() == {"ann": 1}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3@cret@db/logs",
        "postgresql://ann:s3cret@db:port/logs",
        "postgresql://ann:s3cret@localhost:1/logs",
        "mysql://ann:s3cret@db/logs",
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_log(url, table="clicks")
    assert not any(piece in str(caught.value) for piece in ("s3c", "cret"))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_missing_extension_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine._database_of.cache_clear()  # it may have loaded the extension
    monkeypatch.setattr(engine, "find_spec", lambda _: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(MissingExtraError, match=r'pip install "armnesia\[databases\]" brings DuckDB 1\.5\.5'):
        read_log("postgresql://db/logs", table="clicks")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    engine._database_of.cache_clear()
    with pytest.raises(MissingExtraError, match=r'pip install "armnesia\[engines\]"'):
        read_log("postgresql://db/logs", table="clicks")


READ = """
import sys
import time
import armnesia as am
print("ready", flush=True)
am.read_log(sys.argv[1], table="slow", actions=["A"])
"""


def test_ctrl_c_ends_a_reading(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute("CREATE TABLE many (action TEXT, reward REAL)")
        file.executemany("INSERT INTO many VALUES ('A', ?)", [(row % 2,) for row in range(3000)])
        file.execute("CREATE VIEW slow AS SELECT a.* FROM many AS a, many AS b, many AS c")
    command = [sys.executable, "-c", READ, f"sqlite:///{tmp_path}/log.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)  # it is being read by then, or else interrupted before: it ends all the same
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
