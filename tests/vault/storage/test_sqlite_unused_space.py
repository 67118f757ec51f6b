"""SQLite leaves copies of cells in the unused space of pages; a vault's file has none."""

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.units import UNIT
from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.storage import sqlite_erasure
from armnesia.vault.storage.sqlite import SqliteDatabase
from armnesia.vault.storage.sqlite_unused_space import Layout, SharedFile
from tests.databases import Place
from tests.vault.raw_vaults import reader_of, values

PEOPLE = [f"person-{number}" for number in range(300)]
MARK = b"a cell that was moved"
NOT_EMPTY = "another process was using the vault"


def log_of(rows: int, seed: int) -> dict[str, list[Any]]:
    """Rows of the people, in a random order, each with a reward of its own."""
    draw = random.Random(seed)
    return {
        "action": draw.choices("AB", k=rows),
        "reward": [draw.randrange(UNIT) / UNIT for _ in range(rows)],
        "user": draw.choices(PEOPLE, k=rows),
        "id": [f"{seed}-{number}" for number in range(rows)],
    }


def filled(place: Place, rows: int = 60) -> Vault:
    """A vault with rows; commits do not wait for the disk."""
    vault = place.create(Configuration(actions=("A", "B"), user_type=UserType.TEXT))
    database_of(vault)._connection.execute("PRAGMA synchronous = OFF")
    vault.ingest(log_of(rows, 1), user="user", id="id")
    return vault


def with_mark(place: Place) -> None:
    """Make a vault whose index of owners, a single page, has a mark in its unused space."""
    filled(place).close()
    with closing(sqlite3.connect(place.path)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'record_owner'")
    data = bytearray(place.path.read_bytes())
    middle = (page - 1) * 4096 + 1000
    assert not any(data[middle : middle + len(MARK)])
    data[middle : middle + len(MARK)] = MARK
    place.path.write_bytes(data)


def has_mark(place: Place) -> bool:
    return MARK in place.path.read_bytes()


def database_of(vault: Vault) -> SqliteDatabase:
    database = vault._connection.database
    assert isinstance(database, SqliteDatabase)
    return database


def _number_left(place: Place) -> int:
    """Forget all people, five at a time; how many of their digests are left though erasure is complete."""
    left = 0
    with filled(place, 50 * len(PEOPLE)) as vault:
        held: dict[bytes, list[bytes]] = {}
        for owner, identity in values(vault, "SELECT owner, identity FROM record NOT INDEXED"):
            held.setdefault(owner, []).append(identity)
        for start in range(0, len(PEOPLE), 5):
            some = PEOPLE[start : start + 5]
            assert vault.forget(users=some).erasure == "complete"
            data = place.path.read_bytes()
            for owner in map(vault._connection.all_keys.owner_digest, some):
                left += data.count(owner) - 2  # the suppression list has it, and its index
                left += sum(identity in data for identity in held[owner][:5])
        assert vault.verify().holds
    return left


@pytest.mark.slow
def test_nothing_of_people_is_left_where_erasure_is_complete(sqlite_place: Place) -> None:
    assert _number_left(sqlite_place) == 0


@pytest.mark.slow
def test_the_search_finds_copies_that_are_not_overwritten(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are ten on average, so that none is found with a probability of 5·10⁻⁵."""
    monkeypatch.setattr(sqlite_erasure, "pages_with_leftovers", lambda _: set())
    assert _number_left(sqlite_place) > 0


def test_a_page_is_overwritten_when_it_is_in_the_log(sqlite_place: Place) -> None:
    with_mark(sqlite_place)
    with sqlite_place.open() as vault:
        vault.forget(users=["nobody"])
        assert has_mark(sqlite_place)  # that page was not changed
        vault.ingest(log_of(5, 2), user="user", id="id")
        assert not has_mark(sqlite_place)
        assert vault.verify().holds


def test_all_pages_of_a_file_of_an_earlier_version_are_looked_at_once(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_mark(sqlite_place)
    with closing(sqlite3.connect(sqlite_place.path)) as connection:
        connection.execute("PRAGMA user_version = 0")
    with sqlite_place.open() as vault:
        assert vault.status().records == 60
        done = vault.forget(users=["nobody"])
        assert (done.erasure, has_mark(sqlite_place)) == ("complete", False)
    looked_at: list[object] = []
    monkeypatch.setattr(SharedFile, "overwrite_leftovers", lambda _, pages: looked_at.append(pages))
    with sqlite_place.open() as vault:
        vault.ingest(log_of(5, 2), user="user", id="id")
        assert vault.verify().holds
    assert None not in looked_at


def test_a_failing_disk_leaves_erasure_pending(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with_mark(sqlite_place)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with sqlite_place.open() as vault:
        with monkeypatch.context() as patched:
            patched.setattr(SharedFile, "overwrite_leftovers", fail)
            with pytest.warns(UserWarning, match="could not be removed .* Input/output error"):
                done = vault.forget(users=log_of(60, 1)["user"][:5])
            assert done.erasure == "pending"
            assert done.pending_because == "the disk or the file has an error ([Errno 5] Input/output error)"
        assert vault.finish().complete
        assert not has_mark(sqlite_place)


KILLED = """
import os, sys
from armnesia.vault import Vault
from armnesia.vault.storage.sqlite_unused_space import SharedFile
SharedFile.overwrite_leftovers = lambda *_: os._exit(9)
from tests.vault.storage.test_sqlite_unused_space import log_of
vault = Vault.open(sys.argv[1], keys=sys.argv[2])
vault.ingest(log_of(5, 2), user="user", id="id")
"""


@pytest.mark.slow
@pytest.mark.parametrize("then", ["write", "close"])
def test_a_process_killed_before_it_overwrites_leaves_that_to_the_next(
    sqlite_place: Place, then: str
) -> None:
    with_mark(sqlite_place)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, sqlite_place.url, str(sqlite_place.keys)],
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert killed.returncode == 9
    vault = sqlite_place.open()
    assert has_mark(sqlite_place)
    if then == "write":
        vault.forget(users=["nobody"])
        assert not has_mark(sqlite_place)
    vault.close()
    assert not has_mark(sqlite_place)
    with sqlite_place.open() as vault:
        assert vault.status().records == 65
        assert vault.verify().holds


def test_a_reader_keeps_the_copies_and_the_certificate_pending(sqlite_place: Place) -> None:
    with_mark(sqlite_place)
    with sqlite_place.open() as vault:
        with reader_of(sqlite_place):
            vault.ingest(log_of(5, 2), user="user", id="id")
            done = vault.forget(users=["nobody"])
            assert (done.erasure, done.pending_because) == ("pending", NOT_EMPTY)
            assert has_mark(sqlite_place)
        assert vault.finish().complete
        assert not has_mark(sqlite_place)


def test_nothing_is_overwritten_where_somebody_has_written_since_the_checkpoint(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place) as vault:
        database, touched = database_of(vault), []
        connection = database._erasure.connection

        class Meanwhile:
            def execute(self, sql: str, *parameters: Any) -> Any:
                if sql == "BEGIN IMMEDIATE":
                    with closing(sqlite3.connect(sqlite_place.path, isolation_level=None)) as other:
                        other.execute("UPDATE vault SET erased_through = erased_through + 1")
                return connection.execute(sql, *parameters)

            def __getattr__(self, name: str) -> Any:
                return getattr(connection, name)

        monkeypatch.setattr(SharedFile, "overwrite_leftovers", lambda *_: touched.append(1))
        monkeypatch.setattr(database._erasure, "connection", Meanwhile())
        connection.execute("PRAGMA user_version = 0")
        assert not database.erase()
        assert (database.erasure_obstacle, touched) == (NOT_EMPTY, [])
        monkeypatch.setattr(database._erasure, "connection", connection)
        assert database.erase()
        assert touched == [1]


HELD_LOCK = """
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "r+b"), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
except OSError:
    print("locked")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the locks of other handles")
def test_closing_one_connection_keeps_the_lock_of_another(sqlite_place: Place) -> None:
    """On POSIX, closing a file releases the locks that other connections of the process have on it."""

    def is_locked() -> bool:
        command = [sys.executable, "-c", HELD_LOCK, str(sqlite_place.path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "locked\n"

    with filled(sqlite_place) as one:
        with sqlite_place.open() as other:
            for database in (database_of(one), database_of(other)):
                database._connection.execute("PRAGMA user_version = 0")
                assert database.erase()
            one.close()
            assert is_locked()
            assert other.verify().holds
        assert not is_locked()


# Pages, byte by byte.

PLAIN = Layout(512, 512, 0)


def leaf(cells: list[bytes], unused: bytes = b"", *, at: int = 0, kind: int = 10) -> bytes:
    """A b-tree page with these cells at its end, and something in the unused space."""
    page, end, pointers = bytearray(512), 512, []
    for cell in cells:
        end -= len(cell)
        page[end : end + len(cell)] = cell
        pointers.append(end.to_bytes(2))
    head = bytes([kind, 0, 0, *len(cells).to_bytes(2), *end.to_bytes(2), 0]) + bytes(
        4 if kind in (2, 5) else 0
    )
    head += b"".join(pointers)
    page[at : at + len(head)] = head
    begin = at + len(head)
    page[begin + 20 : begin + 20 + len(unused)] = unused
    return bytes(page)


@pytest.mark.parametrize("kind", [2, 5, 10, 13])
@pytest.mark.parametrize("number", [1, 2, 7])
def test_unused_space_is_between_pointers_and_cells(kind: int, number: int) -> None:
    at = 100 if number == 1 else 0
    cells = [b"x" * 30, b"y" * 40]
    pointers_end = at + (12 if kind in (2, 5) else 8) + 4
    page = leaf(cells, b"digest of a person", at=at, kind=kind)
    assert PLAIN.leftover(number, page) == (pointers_end, 512 - 70)
    assert PLAIN.leftover(number, leaf(cells, at=at, kind=kind)) is None


def test_pointers_of_deleted_cells_and_heads_of_free_blocks_are_no_copies() -> None:
    page = bytearray(leaf([b"x" * 30]))
    begin = 10
    stale = b"".join(number.to_bytes(2) for number in (300, 0x100, 511, 256, 257))
    page[begin : begin + len(stale)] = stale
    page[51:55] = page[61:65] = b"\x01\xdd\x01\x17"
    assert PLAIN.leftover(2, bytes(page)) is None
    for at in (begin + len(stale), 40, 70, 400):
        with_copy = page.copy()
        with_copy[at : at + 5] = b"\xff\xfe\xfd\xfc\xfb"
        assert PLAIN.leftover(2, bytes(with_copy)) == (10, 512 - 30), at


def test_five_bytes_are_found_at_every_place_of_a_page_and_of_a_block() -> None:
    stale = b"\x01\x2c" * 5
    for at in range(10 + len(stale), 512 - 30 - 5 + 1):
        page = bytearray(leaf([b"x" * 30]))
        page[10 : 10 + len(stale)] = stale
        page[at : at + 5] = b"\x05\xfe\xfd\xfc\xfb"  # in no pair of which there is a pointer
        block = b"before" + bytes(page) + b"after it"
        assert PLAIN.leftover(2, bytes(page)) == PLAIN.seeming_leftover(2, block, 6) == (10, 512 - 30), at
        page[at + 2] = 0
        block = b"before" + bytes(page) + b"after it"
        assert PLAIN.leftover(2, bytes(page)) is PLAIN.seeming_leftover(2, block, 6) is None, at


def test_random_digests_are_found_wherever_they_are() -> None:
    draw = random.Random(5)
    for _ in range(20_000):  # one of them is missed with a probability of 0.03
        page = bytearray(leaf([b"x" * 30]))
        at = draw.randrange(10, 512 - 30 - 16)
        page[at : at + 16] = draw.randbytes(16)
        assert PLAIN.leftover(2, bytes(page)) == (10, 512 - 30)


@pytest.mark.parametrize("size", [4096, 8192, 16384, 32768, 65536])
def test_a_digest_at_the_beginning_is_no_list_of_pointers(size: int) -> None:
    """A cell of an index: its length, the kinds of its values, a digest, a row number."""
    draw = random.Random(size)
    layout, cells_from = Layout(size, size, 0), size - 600
    for _ in range(3000):  # one is missed with a probability of 0.004
        page = bytearray(size)
        page[:8] = bytes([10, 0, 0, *(20).to_bytes(2), *cells_from.to_bytes(2), 0])
        for cell in range(20):
            page[8 + 2 * cell : 10 + 2 * cell] = (cells_from + 30 * cell).to_bytes(2)
        page[48:70] = bytes.fromhex("15032c02") + draw.randbytes(16) + b"\x12\x34"
        assert layout.leftover(2, bytes(page)) == (48, cells_from)


def test_other_pages_are_left_alone() -> None:
    page = leaf([b"x" * 30], b"digest of a person")
    for first in {*range(256)} - {2, 5, 10, 13}:
        assert PLAIN.leftover(2, bytes([first]) + page[1:]) is None
    with_maps = Layout(512, 512, 512 // 5 + 1)
    found = [number for number in range(2, 400) if with_maps.leftover(number, page) is None]
    assert found == [2, 105, 208, 311]  # each has entries of 5 bytes for the 102 pages after it


def test_cells_of_a_damaged_page_are_left_alone() -> None:
    page = bytearray(leaf([b"x" * 30, b"y" * 40], b"digest of a person"))
    page[5:7] = (512 - 30).to_bytes(2)  # as if the second cell were unused space
    assert PLAIN.leftover(2, bytes(page)) is None
    assert PLAIN.seeming_leftover(2, bytes(page)) == (12, 512 - 30)
    page[5:7] = (600).to_bytes(2)
    assert PLAIN.leftover(2, bytes(page)) is None


def test_the_header_of_a_file_is_read(tmp_path: Path) -> None:
    for size in (512, 4096, 65536):
        for vacuum in ("NONE", "FULL"):
            path = tmp_path / f"{size}-{vacuum}.db"
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(f"PRAGMA page_size = {size}")
                connection.execute(f"PRAGMA auto_vacuum = {vacuum}")
                connection.execute("CREATE TABLE a (b)")
            maps = 0 if vacuum == "NONE" else size // 5 + 1
            assert Layout.of(path.read_bytes()[:100]) == Layout(size, size, maps)


@pytest.mark.parametrize("vacuum", ["NONE", "FULL"])
@pytest.mark.parametrize("size", [512, 4096, 65536])
def test_a_file_with_overwritten_space_is_intact(tmp_path: Path, size: int, vacuum: str) -> None:
    """All kinds of pages, with random rows: SQLite's own check, and the rows, are as before."""
    draw, path = random.Random(size), tmp_path / "some.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {size}")
        connection.execute(f"PRAGMA auto_vacuum = {vacuum}")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("CREATE TABLE a (b BLOB PRIMARY KEY, c TEXT)")
        connection.execute("CREATE INDEX d ON a (c)")
        connection.execute("BEGIN")
        for _ in range(3000):
            row = (draw.randbytes(16), "x" * draw.choice((3, 30, 300)))
            connection.execute("INSERT INTO a VALUES (?, ?)", row)
            if draw.random() < 0.3:
                connection.execute("DELETE FROM a WHERE b = ?", row[:1])
        connection.execute("INSERT INTO a VALUES ('large', ?)", ("\x02\x05\x0a\x0d" * size,))
        connection.execute("DELETE FROM a WHERE b < x'30'")
        connection.execute("COMMIT")
        before = connection.execute("SELECT * FROM a NOT INDEXED").fetchall()
    status = path.stat()
    file = SharedFile(str(path), (status.st_dev, status.st_ino))
    bytes_before = path.read_bytes()
    file.overwrite_leftovers(None)
    file.close()
    assert path.read_bytes() != bytes_before
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT * FROM a NOT INDEXED").fetchall() == before
        assert connection.execute("SELECT count(*) FROM a INDEXED BY d WHERE c > ''").fetchone() == (
            len(before),
        )


def test_a_file_in_the_place_of_another_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    path.write_bytes(b"somebody else's")
    file = SharedFile(str(path), (0, 0))
    with pytest.raises(OSError, match="replaced by another"):
        file.overwrite_leftovers(None)
    file.close()
    file.close()
    assert path.read_bytes() == b"somebody else's"
