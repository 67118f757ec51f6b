"""Settings of a role or a database on PostgreSQL change nothing of what a name, a reward or a table is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.core.units import to_units
from armnesia.logs import read_log
from armnesia.vault import Configuration, Vault
from tests.databases import fresh_place
from tests.logs.conftest import Schema

COLUMNS = {"n": "int", "action": "text", "reward": "float8", "who": "text"}
PLAIN = Configuration(actions=("A", "B"), mode="external", user_type=UserType.TEXT, may_erase_at_source=True)


def options(monkeypatch: pytest.MonkeyPatch, *settings: str) -> None:
    """Let sessions begin with these settings, as ALTER ROLE and ALTER DATABASE do."""
    monkeypatch.setenv("PGOPTIONS", " ".join(f"-c {setting}" for setting in settings))


def written(schema: Schema, users: list[str], rewards: list[float] | None = None) -> dict[str, Any]:
    rows = [(n, "AB"[n % 2], 1.0 if rewards is None else rewards[n], user) for n, user in enumerate(users)]
    table = schema.create("log", COLUMNS, rows)
    return {"source": schema.url, "table": table, "user": "who", "ordered_by": "n"}


def vault_of(tmp_path: Path) -> Vault:
    return fresh_place("sqlite", tmp_path).create(PLAIN)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("erases", [False, True])
def test_strings_with_backslashes(
    schema: Schema, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, erases: bool
) -> None:
    named = written(schema, ["ANN-Z", " ANN-Z", "ANN-Z ", "bob"])
    options(monkeypatch, "standard_conforming_strings=off", "escape_string_warning=off")
    with vault_of(tmp_path) as vault:
        assert vault.ingest(**named).added == 4
        assert vault.forget(users=["ANN-Z"], erase_at_source=erases).records == 3
        assert vault.verify().holds
    left = schema.connection.execute(f"SELECT who FROM {named['table']}").fetchall()
    assert len(left) == (1 if erases else 4)


def test_digits_of_floats(schema: Schema, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def differs(reward: float) -> bool:
        shown = float(f"{reward:.15g}")
        return bool(to_units([reward], (0.0, 1.0))[0] != to_units([shown], (0.0, 1.0))[0])

    halves = ((k + 0.5) / 1e9 * (1 + 4.4e-16) for k in range(10**8, 10**9, 12_345))
    rewards = [reward for reward, _ in zip(filter(differs, halves), range(6), strict=False)]
    named = written(schema, ["ann", "ann", "ann", "ann", "bob", "only"], rewards)
    options(monkeypatch, "extra_float_digits=0")
    with vault_of(tmp_path) as vault:
        assert vault.ingest(**named).added == 6
        assert vault.forget(users=["only"]).records == 1
        assert vault.forget(users=["ann"]).records == 4
        assert vault.verify().holds


@pytest.mark.parametrize(
    "setting",
    ["datestyle=German", "datestyle=SQL\\,DMY", "intervalstyle=iso_8601", "intervalstyle=sql_standard"],
)
def test_dates_and_intervals(schema: Schema, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    dates = {"moment": "timestamptz", "at": "timestamp", "day": "date", "took": "interval"}
    values = ("2026-01-02 03:04Z", "2026-01-02 03:04", "2026-01-02", "1 day 02:00")
    table = schema.create("log", COLUMNS | dates, [(0, "A", 1.0, "ann", *values)])

    def keys() -> set[Any]:
        log = read_log(schema.url, table=table, user="who", actions=("A", "B"))
        return {key for name in dates for key in log.by(name).keys}

    plain = keys()
    options(monkeypatch, setting)
    assert keys() == plain
    assert len(plain) == 4


def test_quoted_names(schema: Schema, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = written(schema, ["ann", "bob"])
    with vault_of(tmp_path) as vault:
        assert vault.ingest(**named).added == 2
        options(monkeypatch, "quote_all_identifiers=on")
        done = vault.ingest(**named)
        assert (done.rows, done.recounted) == (0, False)
        assert vault.forget(users=["ann"]).records == 1


def test_the_encoding_of_a_client(schema: Schema, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = written(schema, ["Zoë", "bob"])
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    with vault_of(tmp_path) as vault:
        assert vault.ingest(**named).added == 2
        assert vault.forget(users=["Zoë"], erase_at_source=True).records == 1
        assert vault.verify().holds
    assert schema.connection.execute(f"SELECT who FROM {named['table']}").fetchall() == [("bob",)]


@pytest.fixture
def without_encoding(schema: Schema) -> Iterator[str]:
    """The URL of a database in which text is bytes."""
    name = f"{schema.name}_ascii"
    schema.connection.execute(
        f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    yield urlsplit(schema.url)._replace(path=f"/{name}").geturl()
    schema.connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_database_without_an_encoding_is_refused(without_encoding: str, tmp_path: Path) -> None:
    with psycopg.connect(without_encoding, client_encoding="utf8") as connection:
        connection.execute("CREATE TABLE log (n int, action text, reward float8, who text)")
        connection.execute("INSERT INTO log VALUES (0, 'A', 1, 'Zoë')")
    with vault_of(tmp_path) as vault:
        with pytest.raises(InvalidLogError, match="has the encoding SQL_ASCII") as refused:
            vault.ingest(without_encoding, table="log", user="who", ordered_by="n")
        assert "Zo" not in str(refused.value)
        assert vault.n_records == 0


def test_a_database_that_does_not_exist_is_asked_about(schema: Schema) -> None:
    url = urlsplit(schema.url)._replace(path="/no_such_database").geturl()
    with pytest.raises(InvalidLogError, match="names of database and user, and the password"):
        read_log(url, table="log")
