"""Whatever is added to the schema of an SQLite vault is found, also by a process that had it open before."""

import sqlite3
from contextlib import closing, suppress
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Vault
from tests.databases import Place
from tests.vault.raw_vaults import filled

KEEPING = (
    "AFTER DELETE ON record BEGIN INSERT INTO sqlite_stat1 (tbl, idx, stat)"
    " VALUES ('kept', NULL, hex(old.identity) || ' ' || hex(old.owner)); END"
)
ROW = "INSERT INTO sqlite_master VALUES (?, ?, ?, 0, ?)"
HIDDEN: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "the numbers of rows": (("ANALYZE", ()),),
    "a trigger that is named as the numbers of rows": (
        ("ANALYZE", ()),
        (ROW, ("trigger", "sqlite_stat1", "record", f"CREATE TRIGGER sqlite_stat1 {KEEPING}")),
    ),
    "samples of the keys": (
        ("ANALYZE", ()),
        (ROW, ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,sample)")),
    ),
    "a counter of rows": (("CREATE TABLE more (n INTEGER PRIMARY KEY AUTOINCREMENT)", ()),),
    "an index without a statement": ((ROW, ("index", "sqlite_autoindex_copied_1", "record", None)),),
    "an index of another table": (
        ("UPDATE sqlite_master SET tbl_name = 'arm' WHERE name = 'record_owner'", ()),
    ),
    "a trigger that is said to be an index": (
        ("ANALYZE", ()),
        (ROW, ("index", "sqlite_autoindex_record_2", "record", f"CREATE TRIGGER keeping {KEEPING}")),
    ),
    "a virtual table": (("CREATE VIRTUAL TABLE words USING fts4(text)", ()),),
}


ROOT = (
    "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = ?) WHERE name = ?"
)


def write_schema(place: Place, *statements: tuple[str, tuple[Any, ...]]) -> None:
    """Change the schema as somebody who may write the file."""
    with closing(sqlite3.connect(place.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for statement, parameters in statements:
            connection.execute(statement, parameters)
        ((number,),) = connection.execute("PRAGMA schema_version").fetchall()
        connection.execute(f"PRAGMA schema_version = {number + 1}")


def check_refused(vault: Vault) -> None:
    """Nobody is forgotten, and `verify` says what is wrong."""
    with pytest.raises(VaultError, match=r"schema: |is not a vault, or is damaged: .*malformed"):
        vault.forget(users=["ann"])
    try:
        problems = [*vault.verify().problems]
    except VaultError as error:
        problems = [str(error)]
    assert any(problem.startswith("schema: ") or "is damaged" in problem for problem in problems)


@pytest.mark.parametrize("changes", HIDDEN.values(), ids=HIDDEN)
def test_an_object_with_a_name_of_sqlite_is_refused(
    sqlite_place: Place, changes: tuple[tuple[str, tuple[Any, ...]], ...]
) -> None:
    with filled(sqlite_place) as vault:
        write_schema(sqlite_place, *changes)
        check_refused(vault)
    with pytest.raises(VaultError, match=r"schema: |is damaged"):
        sqlite_place.open()


def test_statistics_can_be_dropped_as_the_message_says(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        with closing(sqlite3.connect(sqlite_place.path)) as other:
            other.execute("ANALYZE")
            with pytest.raises(VaultError, match="by DROP TABLE sqlite_stat1, then run armnesia compact"):
                vault.forget(users=["ann"])
            other.execute("DROP TABLE sqlite_stat1")
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().problems == ()


COPYING = (
    "CREATE TABLE copied (identity, owner)",
    "CREATE TRIGGER copying AFTER DELETE ON record BEGIN"
    " INSERT INTO copied VALUES (old.identity, old.owner); END",
)


@pytest.mark.parametrize("refused_before", [False, True])
def test_a_counter_of_schema_changes_that_is_set_back_hides_nothing(
    sqlite_place: Place, refused_before: bool
) -> None:
    with filled(sqlite_place) as vault:
        assert vault.verify().holds
        with closing(sqlite3.connect(sqlite_place.path, isolation_level=None)) as other:
            ((number,),) = other.execute("PRAGMA schema_version").fetchall()
            for statement in COPYING:
                other.execute(statement)
            if refused_before:
                with pytest.raises(VaultError, match="schema: "):
                    vault.decide()
            other.execute(f"PRAGMA schema_version = {number}")
        check_refused(vault)


def test_a_schema_that_was_read_while_it_was_refused_is_not_used_later(sqlite_place: Place) -> None:
    """The trigger leaves the file, and the counter of changes stays: the connection has to read it again."""
    with filled(sqlite_place) as vault:
        with closing(sqlite3.connect(sqlite_place.path, isolation_level=None)) as other:
            for statement in COPYING:
                other.execute(statement)
            with pytest.raises(VaultError, match="schema: "):
                vault.decide()
            ((number,),) = other.execute("PRAGMA schema_version").fetchall()
            other.execute("DROP TRIGGER copying")
            other.execute("ALTER TABLE copied RENAME TO hidden")
            other.execute("PRAGMA writable_schema = ON")
            ((page,),) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'hidden'").fetchall()
            other.execute("DELETE FROM sqlite_master WHERE name = 'hidden'")
            other.execute(f"PRAGMA schema_version = {number}")
        with suppress(VaultError):
            vault.forget(users=["ann"])
        assert any(f"{page} is never used" in problem for problem in vault.verify().problems)
        with closing(sqlite3.connect(sqlite_place.path, isolation_level=None)) as other:
            other.execute("PRAGMA writable_schema = ON")
            other.execute(
                "INSERT INTO sqlite_master VALUES ('table', 'copied', 'copied', ?, ?)", (page, COPYING[0])
            )
            ((number,),) = other.execute("PRAGMA schema_version").fetchall()
            other.execute(f"PRAGMA schema_version = {number + 1}")
        with closing(sqlite3.connect(sqlite_place.path)) as other:
            assert other.execute("SELECT count(*) FROM copied").fetchall() == [(0,)]


def test_a_schema_that_is_no_text_is_refused_in_a_sentence(sqlite_place: Place) -> None:
    """SQLite quotes it, and Python cannot read what SQLite says."""
    filled(sqlite_place).close()
    data = sqlite_place.path.read_bytes()
    refused = 0
    start = data.index(b"CREATE TABLE source (")
    for at in range(start + 13, start + 60):
        sqlite_place.path.write_bytes(data[:at] + bytes([data[at] | 0x80]) + data[at + 1 :])
        try:
            sqlite_place.open().close()
        except VaultError as error:
            refused += "malformed database schema" in str(error)
    assert refused > 0


@pytest.mark.parametrize("opened", ["before", "after"])
def test_indexes_that_begin_at_the_pages_of_others_are_refused(sqlite_place: Place, opened: str) -> None:
    """Two empty ones would find nobody."""
    moved = [
        (ROOT, ("sqlite_autoindex_token_1", "record_owner")),
        (ROOT, ("sqlite_autoindex_subject_request_1", "sqlite_autoindex_owner_1")),
    ]
    with filled(sqlite_place) as vault:
        if opened == "before":
            write_schema(sqlite_place, *moved)
            check_refused(vault)
            return
    write_schema(sqlite_place, *moved)
    with pytest.raises(VaultError, match="begins at the page of another one"):
        sqlite_place.open()
