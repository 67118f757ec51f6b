"""The database adds up the rows of an external vault, whatever characters its people's names have."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from armnesia.core.identifiers import UserType
from armnesia.logs.tables.source import TableSource
from armnesia.vault import Configuration
from tests.databases import fresh_place


@pytest.mark.parametrize("name", ["u{}", "u{}@example.com", "Ann Lee {}", "a+{}@example.com", "Zoë {}"])
def test_rows_of_ordinary_names_are_not_read_one_by_one(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE clicks (id INTEGER PRIMARY KEY, action, reward, user)")
        rows = [("AB"[at % 2], 1, name.format(at % 7)) for at in range(50)]
        database.executemany("INSERT INTO clicks (action, reward, user) VALUES (?, ?, ?)", rows)
    place = fresh_place("sqlite", tmp_path)
    with place.create(Configuration(actions=("A", "B"), mode="external", user_type=UserType.TEXT)) as vault:
        with monkeypatch.context() as patched:
            patched.setattr(TableSource, "raw_rows", None)  # is not called
            done = vault.ingest(f"sqlite:///{path}", table="clicks", user="user", ordered_by="id")
        assert done.added == 50
        assert vault.forget(users=[name.format(3)]).records == 7
