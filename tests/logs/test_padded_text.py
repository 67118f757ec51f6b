"""Columns of PostgreSQL whose values the server takes for equal although their bytes differ, and lists."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from armnesia.logs.opening import open_source
from armnesia.vault import Configuration
from tests.databases import fresh_place, fresh_schema, postgres_url


@pytest.fixture
def schema() -> Iterator[tuple[psycopg.Connection[Any], str]]:
    name = fresh_schema()
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield connection, name
        connection.execute(f"DROP SCHEMA {name} CASCADE")


PADDED = "(arm CHAR(3), won INTEGER, who CHAR(10), id CHAR(5), page CHAR(4))"
NAMES = {"action": "arm", "reward": "won", "user": "who"}


@pytest.mark.parametrize("mode", ["managed", "external"])
@pytest.mark.parametrize("ids", [False, True])
def test_text_of_a_fixed_length_is_read_without_its_padding(
    mode: str, ids: bool, schema: tuple[psycopg.Connection[Any], str], tmp_path: Path
) -> None:
    """To the server 'ann' and 'ann       ' are the same in such a column; so they must be to a request."""
    connection, name = schema
    connection.execute(f"CREATE TABLE {name}.log {PADDED}")
    rows = [("A", 1, "ann", "1", "x"), ("B", 0, "bob", "2", "y"), ("A", 0, "cem", "3", None)]
    for row in rows:
        connection.execute(f"INSERT INTO {name}.log VALUES (%s, %s, %s, %s, %s)", row)
    names: dict[str, Any] = NAMES | ({"id": "id"} if ids else {})
    with fresh_place("sqlite", tmp_path).create(Configuration(actions=None, mode=mode)) as vault:
        vault.ingest(postgres_url(), table=f"{name}.log", **names)
        assert vault.configuration.actions == ("A", "B")
        done = vault.forget(users=["ann"])
        assert (done.records, done.certificate.body["entry"]["kind"]) == (1, "forget")
        assert vault.forget(users=["ann       "]).records == 0
        assert vault.forget(users=["bob", "nobody"]).records == 1
        if ids:
            assert vault.forget(records=["3"]).records == 1
        again = vault.ingest(postgres_url(), table=f"{name}.log", **names)
        assert (again.added, again.suppressed) == (0, 2 + ids)
        assert vault.verify().holds
        if mode == "managed":
            columns = ["arm", "won", "who", "id", "page"]
            log = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
            assert vault.ingest(log, **names).added == 0


def test_columns_of_lists_are_read_as_they_are(
    schema: tuple[psycopg.Connection[Any], str], tmp_path: Path
) -> None:
    connection, name = schema
    connection.execute(f"CREATE TABLE {name}.log (arm TEXT, won INTEGER, who INTEGER[], page FLOAT4[])")
    connection.execute(f"INSERT INTO {name}.log VALUES ('A', 1, '{{1,2}}', '{{0.5}}')")
    source = open_source(postgres_url(), table=f"{name}.log", **NAMES)
    for user in (None, "[1, 2]"):
        (rows,) = source.rows(["A"], (0, 1), user=user)
        assert rows.users == ["[1, 2]"]
    assert list(source.rows(["A"], (0, 1), user="1")) == []
