"""The copy that `verify` reads: it holds nobody back, nobody else can read it, and nothing of it is left."""

import os
import resource
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Vault
from armnesia.vault.storage import sqlite, sqlite_copy
from tests.databases import Place
from tests.vault.forked_children import Nursery, nursery
from tests.vault.raw_vaults import change, filled, reader_of

linux = pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="looks into /proc")
IN_PLACE = "the vault was read in place, which held back the erasure of people forgotten meanwhile: "


@pytest.fixture(autouse=True)
def _small_vaults_are_copied_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_SMALL", 0)


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery(__name__) as started:
        yield started


def forgetting(place: Place, seen: list[str]) -> Any:
    """While `verify` reads, another connection forgets somebody and notes the state of erasure."""

    def progress(_: int) -> None:
        if not seen:
            with place.open() as other:
                seen.append(other.forget(users=["ann"]).erasure)

    return progress


def test_who_is_forgotten_while_verify_reads_is_erased_at_once(sqlite_place: Place) -> None:
    seen: list[str] = []
    with filled(sqlite_place) as vault:
        found = vault.verify(progress=forgetting(sqlite_place, seen))
        assert (found.problems, found.notes, found.records) == ((), (), 6)  # as it was when verify began
        assert seen == ["complete"]
        assert vault.verify().records == 4


def test_reading_in_place_is_said_and_holds_erasure_back(sqlite_place: Place) -> None:
    seen: list[str] = []
    with filled(sqlite_place) as vault:
        found = vault.verify(progress=forgetting(sqlite_place, seen), in_place=True)
        assert (found.problems, found.notes) == ((), (f"{IN_PLACE}as asked",))
        assert seen == ["pending"]


def test_a_small_vault_is_read_in_place_without_a_word(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(sqlite, "private_copy", None)
    with filled(sqlite_place) as vault:
        assert vault.verify().notes == ()


def test_a_vault_on_postgresql_has_nothing_to_say(postgres_place: Place) -> None:
    with filled(postgres_place) as vault:
        assert vault.verify(in_place=True).notes == vault.verify().notes == ()


def test_what_is_committed_but_not_yet_in_the_file_is_in_the_copy(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault, reader_of(sqlite_place):
        assert vault.forget(users=["ann"]).erasure == "pending"
        found = vault.verify()
        assert (found.problems, found.records, found.certificates) == ((), 4, 1)


def test_what_was_changed_by_others_is_found_in_the_copy(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        change(vault, "UPDATE record SET units = units + 1 WHERE arm = 0")
        assert vault._connection.database.erase()
        found = vault.verify()
        assert found.notes == ()
        assert found.problems == vault.verify(in_place=True).problems
        assert any(problem.startswith("records: rows were added, changed") for problem in found.problems)


def test_a_damaged_page_is_damaged_in_the_copy(sqlite_place: Place, tmp_path: Path) -> None:
    """The copy is made of pages, not of rows: an index that does not match its table stays so."""
    filled(sqlite_place).close()
    data = bytearray(sqlite_place.path.read_bytes())
    with closing(sqlite3.connect(sqlite_place.path)) as opened:
        ((root,),) = opened.execute("SELECT rootpage FROM sqlite_master WHERE name = 'record_owner'")
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    data[root * 4096 - 3] ^= 1  # the last bytes of the page belong to its first entry
    sqlite_place.path.write_bytes(data)
    with sqlite_place.open() as vault, vault._connection.database.snapshot() as (session, remark):
        assert remark is None
        in_copy = session.query("PRAGMA integrity_check")
    with closing(sqlite3.connect(sqlite_place.path)) as opened:
        assert in_copy == opened.execute("PRAGMA integrity_check").fetchall() != [("ok",)]


def copies() -> dict[int, str]:
    """The open files of this process that are copies of a vault."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if ".copy" in link:
            found[int(number)] = link
    return found


@linux
def test_the_copy_is_private_nameless_and_overwritten_at_the_end(sqlite_place: Place) -> None:
    kept: list[int] = []
    during: list[bytes] = []

    def progress(_: int) -> None:
        if kept:
            return
        links = copies()
        assert links
        assert all(link.endswith(" (deleted)") for link in links.values())
        assert all(Path(link).parent == sqlite_place.path.parent for link in links.values())
        assert {os.fstat(number).st_mode & 0o777 for number in links} == {0o600}
        kept.append(os.open(f"/proc/self/fd/{next(iter(links))}", os.O_RDONLY))
        during.append(os.pread(kept[0], 1 << 20, 0))

    old_mask = os.umask(0)
    try:
        with filled(sqlite_place) as vault:
            owner = vault._connection.all_keys.owner_digest("ann")
            names = sorted(os.listdir(sqlite_place.path.parent))
            vault.verify(progress=progress)
            assert owner in during[0]
            assert copies().keys() == set(kept)  # verify itself has none open any more
            size = os.fstat(kept[0]).st_size
            assert size >= sqlite_place.path.stat().st_size
            assert os.pread(kept[0], size, 0) == bytes(size)
            assert sorted(os.listdir(sqlite_place.path.parent)) == names
    finally:
        os.umask(old_mask)
        for descriptor in kept:
            os.close(descriptor)


def verify_until_killed(url: str, keys: str) -> None:
    """Dies while it reads the copy."""
    sqlite._SMALL = 0
    with Vault.open(url, keys=keys) as vault:
        vault.verify(progress=lambda _: os.kill(os.getpid(), signal.SIGKILL))


def copy_until_killed(url: str, keys: str) -> None:
    """Dies when a few pages of the copy are written: the system kills a process whose file is too large."""
    sqlite._SMALL = 0
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with Vault.open(url, keys=keys) as vault:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 * 4096, 3 * 4096))
        vault.verify()


@pytest.mark.parametrize(
    ("how", "by"), [("verify_until_killed", signal.SIGKILL), ("copy_until_killed", signal.SIGXFSZ)]
)
def test_a_killed_verify_leaves_no_file(
    sqlite_place: Place, children: Nursery, how: str, by: signal.Signals
) -> None:
    filled(sqlite_place).close()
    child = children.start(__name__, how, url=sqlite_place.url, keys=str(sqlite_place.keys))
    assert children.wait(child) == -by
    left = {path.name for path in sqlite_place.path.parent.iterdir()}
    assert not [name for name in left if ".copy" in name]
    with sqlite_place.open() as vault:
        assert vault.verify().holds


def test_without_room_the_vault_is_read_in_place(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(sqlite_place.path.parent)
    with filled(sqlite_place) as vault:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=64 << 20))
        found = vault.verify()
        assert found.holds
        assert found.notes == (f"{IN_PLACE}there is no room for a copy of 0 MB beside it",)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=66 << 20))
        assert vault.verify().notes == ()


def test_a_copy_that_fails_is_replaced_by_reading_in_place(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 * 4096, hard))
        try:
            found = vault.verify()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert found.holds
        (note,) = found.notes
        assert note.startswith(f"{IN_PLACE}a copy could not be made beside it (")
        assert not [name for name in os.listdir(sqlite_place.path.parent) if ".copy" in name]


def test_on_a_system_where_open_files_keep_their_names_the_vault_is_read_in_place(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place) as vault:
        monkeypatch.setattr(os, "name", "nt")
        found = vault.verify()
        monkeypatch.undo()
        assert found.notes == (f"{IN_PLACE}on this system an open file keeps its name",)


def test_a_vault_that_is_replaced_meanwhile_is_not_verified(sqlite_place: Place, tmp_path: Path) -> None:
    with filled(sqlite_place) as vault:
        vault.back_up(tmp_path / "monday.db")

        def replace(_: int) -> None:
            if (tmp_path / "monday.db").exists():
                os.replace(tmp_path / "monday.db", sqlite_place.path)

        with pytest.raises(VaultError, match="was replaced by another file while it was open"):
            vault.verify(progress=replace)


def test_a_copy_waits_for_a_lock_no_longer_than_asked(sqlite_place: Place, tmp_path: Path) -> None:
    """Python's own loop would wait for ever, and with it `verify` and `backup`."""
    filled(sqlite_place).close()
    with sqlite_place.open(timeout=0.2) as vault:
        source = vault._connection.database._connection  # type: ignore[attr-defined]
        with (
            closing(sqlite3.connect(tmp_path / "target.db", isolation_level=None)) as target,
            closing(sqlite3.connect(tmp_path / "target.db", isolation_level=None)) as other,
        ):
            other.execute("BEGIN EXCLUSIVE")
            target.execute("PRAGMA busy_timeout = 0")
            start = time.monotonic()
            with pytest.raises(sqlite3.OperationalError, match="database is locked"):
                sqlite_copy.copy_pages(source, target, timeout=0.2)
            assert 0.15 < time.monotonic() - start < 10
