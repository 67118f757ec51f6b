"""An index of an SQLite table that lacks a row hides nobody from a reading without indexes."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidLogError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source, open_source
from armnesia.vault import Configuration
from tests.databases import fresh_place

NAMES: dict[str, Any] = {"action": "action", "reward": "reward", "user": "user"}
SPELLINGS = ["clicks", "CLICKS", "main.clicks", "Main.Clicks"]
N_ROWS = 500


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """A table with 500 rows, of which that of zoe is in no index."""
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE clicks (at INTEGER, action, reward, user, page)")
        database.execute("CREATE INDEX everything ON clicks (user, action, reward, at)")
        rows = [(at, "AB"[at % 2], 1, f"u{at}", "x" * 200) for at in range(N_ROWS) if at != 250]
        database.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?, ?)", rows)
        database.execute("CREATE VIEW seen AS SELECT * FROM clicks")
        entry = database.execute(
            "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = 'everything'"
        ).fetchone()
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_master WHERE name = 'everything'")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT INTO clicks VALUES (250, 'A', 1, 'zoe', 'p')")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", entry)
    return f"sqlite:///{path}"


def opened(url: str, table: str, **options: Any) -> Source:
    return open_source(url, table=table, whole_rows=False, **NAMES, **options)


def users_of(source: Source) -> set[str | None]:
    return {user for raw in source.raw_rows(1000, None) for user in raw.users}


@pytest.mark.parametrize("where", [None, "reward = 1"], ids=["all", "where"])
@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("table", SPELLINGS)
def test_a_scan_sees_what_an_index_lacks(damaged: str, table: str, part: bool, where: str | None) -> None:
    source = opened(damaged, table, where=where)
    if part:
        source = source.ordered_by("at")
        manifest = source.manifest()
        source = source.counted_part(manifest, source.changes_since(manifest))
    assert "zoe" not in users_of(source)
    assert users_of(source.by_scan()) == {"zoe", *(f"u{at}" for at in range(N_ROWS) if at != 250)}
    assert source.labels_like("user", {"zoe", "u1", "nobody"}, UserType.TEXT) == {"zoe", "u1"}


def test_a_view_on_a_damaged_index_is_refused(damaged: str) -> None:
    """Nothing can be said where the view is read that would reach its tables."""
    source = opened(damaged, "SEEN")
    assert "zoe" not in users_of(source)
    with pytest.raises(InvalidLogError, match=r"one may be damaged: .* run REINDEX on it, or restore it"):
        source.labels_like("user", {"zoe"}, UserType.TEXT)
    with closing(sqlite3.connect(damaged.removeprefix("sqlite:///"))) as database:
        database.execute("REINDEX")
    assert source.labels_like("user", {"zoe"}, UserType.TEXT) == {"zoe"}


@pytest.mark.parametrize("table", [*SPELLINGS, "seen"])
def test_a_person_whom_an_index_hides_is_not_certified_as_absent(
    tmp_path: Path, damaged: str, table: str
) -> None:
    place = fresh_place("sqlite", tmp_path)
    with place.create(Configuration(actions=("A", "B"), mode="external")) as vault:
        assert vault.ingest(damaged, table=table, **NAMES, ordered_by="at").added == N_ROWS - 1
        with pytest.raises(ArmnesiaError, match="index"):
            vault.forget(users=["zoe"])
        if table != "seen":
            with pytest.raises(VaultError, match="are in the sources nevertheless"):
                vault.forget(users=["zoe"])
        assert vault.forget(users=["u7"]).records == 1
