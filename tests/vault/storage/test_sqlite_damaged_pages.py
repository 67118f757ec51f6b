"""Pages of an SQLite vault that are in use twice: nothing is certified that the vault does not have."""

import struct
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import DamagedDatabaseError, VaultError
from armnesia.vault import Configuration, ForgetRequest
from armnesia.vault.storage import sqlite, sqlite_read_back
from armnesia.vault.storage.sqlite_unused_space import SharedFile
from tests.databases import Place
from tests.red_team.pages import pages_of
from tests.vault.raw_vaults import change, filled, values

SIZE = 4096
LEAF = 13
"""The first byte of a page with rows of a table."""
READ_BACK = "what was written is not found again; nothing was changed"
FREE = "list of free pages names some that are in use"


def old_vault(place: Place) -> dict[str, list[int]]:
    """A vault with some history; the pages of each of its tables and indexes."""
    rows = range(120)
    log: dict[str, list[Any]] = {
        "action": ["A", "B"] * 60,
        "reward": [1.0, 0.0] * 60,
        "who": [f"user-{row % 20}" for row in rows],
        "id": [f"r{row}" for row in rows],
    }
    with place.create(Configuration(actions=("A", "B"))) as vault:
        database = vault._connection.database
        assert isinstance(database, sqlite.SqliteDatabase)
        database._connection.execute("PRAGMA synchronous = OFF")
        vault.ingest(log, user="who", id="id")
        for number in range(6):
            vault.forget(users=[f"user-{number}"])
    return pages_of(place.path)


def name_as_free(data: bytes, *pages: int) -> bytes:
    """The file with these pages in its list of free ones, which was empty."""
    assert data[32:40] == bytes(8)
    last = len(data) // SIZE
    changed = bytearray(data + struct.pack(f">{2 + len(pages)}I", 0, len(pages), *pages).ljust(SIZE, b"\0"))
    struct.pack_into(">III", changed, 28, last + 1, last + 1, 1 + len(pages))
    return bytes(changed)


def answer(place: Place, original: bytes, page: int) -> str:
    """Forget somebody though a page is named as free; why that is refused.

    If it is not, the vault has the entry and the certificate.
    """
    head = Path(f"{place.keys}.head")
    pinned = head.read_bytes()
    place.path.write_bytes(name_as_free(original, page))
    try:
        with place.open() as vault:
            done = vault.forget(users=["user-9"]).certificate
        with place.open() as vault:
            entries = values(vault, "SELECT hash FROM ledger NOT INDEXED ORDER BY sequence")
            assert entries[-1] == (done.body["entry_hash"],)
            assert vault.certificate(users=["user-9"]).body["entry"] == done.body["entry"]
        return ""
    except VaultError as error:
        return str(error)
    finally:
        head.write_bytes(pinned)


def test_a_page_in_use_that_is_named_as_free_is_not_written_over(sqlite_place: Place) -> None:
    pages = old_vault(sqlite_place)
    original = sqlite_place.path.read_bytes()
    for name in sorted(pages.keys() - {"sqlite_master"}):
        for page in pages[name]:
            if any(original[(page - 1) * SIZE :][:SIZE]):
                assert FREE in answer(sqlite_place, original, page), (name, page)


def test_rows_that_are_written_over_in_the_same_request_are_missed(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the list cannot be looked at, as while another process keeps the log."""
    pages = old_vault(sqlite_place)
    original = sqlite_place.path.read_bytes()
    monkeypatch.setattr(SharedFile, "names_used_pages_as_free", lambda _: False)
    said = {
        name: answer(sqlite_place, original, pages[name][0])
        for name in ("ledger", "vault", "suppressed", "request", "certificate", "decision")
    }
    assert any(READ_BACK in each or "malformed" in each for each in said.values()), said


def test_a_page_that_is_named_as_free_twice_is_refused(sqlite_place: Place) -> None:
    old_vault(sqlite_place)
    data = sqlite_place.path.read_bytes() + bytes(SIZE)
    page = len(data) // SIZE
    sqlite_place.path.write_bytes(name_as_free(data, page, page))
    with sqlite_place.open() as vault, pytest.raises(DamagedDatabaseError, match=FREE):
        vault.forget(users=["user-9"])


def test_free_pages_are_used_again(sqlite_place: Place) -> None:
    old_vault(sqlite_place)
    with sqlite_place.open() as vault:
        change(vault, "CREATE TABLE large (content BLOB)")
        change(vault, f"INSERT INTO large VALUES (zeroblob({40 * SIZE}))")
        change(vault, "UPDATE large SET content = randomblob(length(content))")
        change(vault, "DROP TABLE large")
        ((free,),) = values(vault, "PRAGMA freelist_count")
        assert free > 40
        for number in range(6, 12):
            vault.forget(users=[f"user-{number}"])
        assert values(vault, "PRAGMA freelist_count")[0][0] < free
        assert vault.verify().problems == ()
        assert vault.compact().complete


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        ("ledger", "DELETE FROM ledger WHERE sequence = (SELECT max(sequence) FROM ledger)"),
        (
            "ledger",
            "UPDATE ledger SET hash = 'other' WHERE sequence = (SELECT max(sequence) FROM ledger) - 1",
        ),
        ("certificate", "DELETE FROM certificate"),
        ("suppressed", "UPDATE suppressed SET since = since + 1"),
        ("request", "DELETE FROM request"),
        ("decision", "UPDATE decision SET served = 1 - served"),
        ("vault", "UPDATE vault SET erased_through = erased_through + 1"),
        ("owner", "INSERT INTO owner SELECT digest, 1, digest FROM suppressed"),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_what_a_request_stores_is_read_back_before_the_commit(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, table: str, sql: str, together: bool
) -> None:
    """As if its pages had been written over in the same transaction."""
    stored = sqlite_read_back.are_stored

    def damaged(session: Any, statements: Any) -> bool:
        assert session.execute(sql) > 0
        return stored(session, statements)

    with filled(sqlite_place) as vault:
        before = values(vault, f"SELECT * FROM {table}")
        monkeypatch.setattr(sqlite, "are_stored", damaged)
        people = ["ann", "bob"] if together else ["ann"]
        with pytest.raises(DamagedDatabaseError, match=READ_BACK):
            vault.forget_many([ForgetRequest(users=[user]) for user in people])
        assert values(vault, f"SELECT * FROM {table}") == before
        monkeypatch.undo()
        assert vault.forget(users=["ann"]).records == 2
        assert vault.verify().problems == ()


def test_requests_that_are_refused_among_others_are_not_looked_for(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        requests = [ForgetRequest(records=[record]) for record in ("r1", " r5", "r4", "r5")]
        done = vault.forget_many(requests)
        assert [isinstance(each, VaultError) for each in done] == [False, True, False, False]
        assert vault.verify().problems == ()


def test_a_page_that_holds_a_copy_of_another_is_found_by_verify(sqlite_place: Place) -> None:
    """No look-up leads to the copies, as docs/limits.md says; `verify` finds them, before and after."""
    rows = range(1500)
    log: dict[str, list[Any]] = {
        "action": ["A", "B"] * 750,
        "reward": [row % 2 for row in rows],
        "who": [f"user-{row // 5}" for row in rows],
        "id": list(rows),
    }
    with sqlite_place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(log, user="who", id="id")
        digest = vault._connection.all_keys.owner_digest
    data = bytearray(sqlite_place.path.read_bytes())
    pages = {
        page: bytes(data[(page - 1) * SIZE : page * SIZE]) for page in pages_of(sqlite_place.path)["record"]
    }
    copied, lost = [page for page, content in pages.items() if content[0] == LEAF][2:6:3]
    names = [f"user-{number}" for number in range(300)]
    person = next(name for name in names if digest(name) in pages[copied] and digest(name) not in pages[lost])
    data[(lost - 1) * SIZE : lost * SIZE] = pages[copied]
    sqlite_place.path.write_bytes(data)
    with sqlite_place.open() as vault:
        assert vault.verify().problems
        vault.forget(users=[person])
        owners = [bytes(owner) for (owner,) in values(vault, "SELECT owner FROM record NOT INDEXED") if owner]
        assert digest(person) in owners, "otherwise the sentence in the limits is not needed any more"
        assert vault.verify().problems
