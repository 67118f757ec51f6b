"""A file says by a mark whether copies of cells may be in its unused space, whatever became of its log."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Vault
from armnesia.vault.storage.sqlite_unused_space import SharedFile
from tests.databases import Place
from tests.vault.storage.test_sqlite_unused_space import database_of, filled, has_mark, log_of, with_mark

CLEAN = 2


def ingest(vault: Vault, seed: int = 2) -> None:
    """Change the page of the index of owners, so that its unused space gets into the log."""
    vault.ingest(log_of(5, seed), user="user", id="id")


def check_next_certificate(place: Place) -> None:
    """The next process that calls erasure complete has overwritten the copy, and says so in the file."""
    assert has_mark(place)
    with place.open() as vault:
        assert vault.forget(users=["nobody"]).erasure == "complete"
        assert not has_mark(place)
        assert vault.verify().holds
    assert user_version(place) == CLEAN


def user_version(place: Place) -> int:
    with closing(sqlite3.connect(place.path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def outside_reader(place: Place) -> Iterator[None]:
    """Another program that reads the vault, and closes it at the end."""
    with closing(sqlite3.connect(place.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        yield


def log_path(place: Place) -> Path:
    return place.path.with_name(place.path.name + "-wal")


def test_a_disk_that_fails_until_the_vault_is_closed(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_mark(sqlite_place)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(SharedFile, "overwrite_leftovers", fail)
        with sqlite_place.open() as vault, pytest.warns(UserWarning, match="Input/output error"):
            ingest(vault)
    assert not log_path(sqlite_place).exists()
    check_next_certificate(sqlite_place)


def test_an_outside_reader_that_closes_the_file_last(sqlite_place: Place) -> None:
    with_mark(sqlite_place)
    with outside_reader(sqlite_place), sqlite_place.open() as vault:
        ingest(vault)
    assert not log_path(sqlite_place).exists()
    check_next_certificate(sqlite_place)


def test_a_program_that_never_closes_the_vault(sqlite_place: Place) -> None:
    with_mark(sqlite_place)
    vault = sqlite_place.open()
    with outside_reader(sqlite_place):
        ingest(vault)
    database = database_of(vault)
    database._connection.close()  # as Python does when the object goes
    database._file.close()
    assert not log_path(sqlite_place).exists()
    check_next_certificate(sqlite_place)


KILLED = """
import os, sys
from armnesia.vault import Vault
from armnesia.vault.storage.sqlite import SqliteDatabase
from tests.vault.storage.test_sqlite_clean_mark import ingest
vault = Vault.open(sys.argv[1], keys=sys.argv[2])
SqliteDatabase._empty_log = lambda _: os._exit(9)
ingest(vault, int(sys.argv[3]))
"""


def kill_after_commit(place: Place, seed: int) -> None:
    command = [sys.executable, "-c", KILLED, place.url, str(place.keys), str(seed)]
    assert subprocess.run(command, check=False, cwd=Path(__file__).parents[3]).returncode == 9
    assert log_path(place).stat().st_size


@pytest.mark.slow
def test_a_killed_process_and_a_vault_that_is_then_refused(sqlite_place: Place) -> None:
    with_mark(sqlite_place)
    kill_after_commit(sqlite_place, 2)
    sqlite_place.path.chmod(0o644)
    with pytest.raises(VaultError, match="accessible to other users"):
        sqlite_place.open()
    sqlite_place.path.chmod(0o600)
    assert not log_path(sqlite_place).exists()
    check_next_certificate(sqlite_place)


@pytest.mark.slow
@pytest.mark.parametrize("again", ["armnesia", "another program"])
def test_a_log_that_is_used_again(sqlite_place: Place, again: str) -> None:
    with_mark(sqlite_place)
    with sqlite_place.open() as idle:
        idle.status()
        kill_after_commit(sqlite_place, 2)
        with closing(sqlite3.connect(sqlite_place.path, isolation_level=None)) as other:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
            if again == "another program":
                other.execute("UPDATE decision SET served = served")
        if again == "armnesia":
            command = KILLED.replace("ingest(vault, int(sys.argv[3]))", "vault.forget(users=['nobody'])")
            killed = [sys.executable, "-c", command, sqlite_place.url, str(sqlite_place.keys)]
            assert subprocess.run(killed, check=False, cwd=Path(__file__).parents[3]).returncode == 9
        check_next_certificate(sqlite_place)


def test_the_log_is_empty_when_copies_are_overwritten(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process must not leave a log that puts them back."""
    with_mark(sqlite_place)
    sizes = []

    def overwrite(file: SharedFile, pages: set[int] | None) -> None:
        sizes.append(os.path.getsize(log_path(sqlite_place)))
        assert pages is not None
        original(file, pages)

    original = SharedFile.overwrite_leftovers
    monkeypatch.setattr(SharedFile, "overwrite_leftovers", overwrite)
    with sqlite_place.open() as vault:
        ingest(vault)
    assert (sizes, has_mark(sqlite_place), user_version(sqlite_place)) == ([0], False, CLEAN)


def test_what_another_program_wrote_is_looked_at(sqlite_place: Place) -> None:
    with_mark(sqlite_place)
    with sqlite_place.open() as vault:
        with closing(sqlite3.connect(sqlite_place.path, isolation_level=None)) as other:
            other.execute("INSERT INTO record SELECT x'00', owner, arm, units FROM record LIMIT 1")
            other.execute("DELETE FROM record WHERE identity = x'00'")
        assert user_version(sqlite_place) == CLEAN
        assert vault.forget(users=["nobody"]).erasure == "complete"
        assert not has_mark(sqlite_place)
        assert vault.verify().holds
    assert user_version(sqlite_place) == CLEAN


def test_all_pages_are_looked_at_only_where_nobody_knows_which(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[set[int] | None] = []
    original = SharedFile.overwrite_leftovers

    def overwrite(file: SharedFile, pages: set[int] | None) -> None:
        looked_at.append(None if pages is None else set(pages))
        original(file, pages)

    with_mark(sqlite_place)
    monkeypatch.setattr(SharedFile, "overwrite_leftovers", overwrite)
    with sqlite_place.open() as one, sqlite_place.open() as other:
        for seed in range(2, 5):
            ingest(one, seed)
            ingest(other, 10 + seed)
        assert len(looked_at) == 1
        with outside_reader(sqlite_place):
            one.ingest(log_of(8000, 20), user="user", id="id")
            one.forget(users=["person-1"])
            assert len(looked_at) == 1
        assert one.finish().complete
        assert len(looked_at) == 2
        assert None not in looked_at
        with outside_reader(sqlite_place):
            one.ingest(log_of(8000, 21), user="user", id="id")
            other.forget(users=["person-2"])  # which does not know what the first one has seen
        assert other.finish().complete
        assert looked_at[2:] == [None]


def test_a_transaction_without_changes_leaves_the_mark(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault, outside_reader(sqlite_place):
        before = user_version(sqlite_place)
        with database_of(vault).writing() as session:
            session.query("SELECT 1 FROM record")
        assert user_version(sqlite_place) == before == CLEAN


@pytest.mark.parametrize("by", ["back_up", "another program"])
def test_a_backup_made_while_erasure_is_pending_is_looked_at(
    sqlite_place: Place, tmp_path: Path, by: str
) -> None:
    with_mark(sqlite_place)
    backup, export = tmp_path / "backup.db", tmp_path / "export.json"
    with sqlite_place.open() as vault:
        with outside_reader(sqlite_place):
            ingest(vault)
            if by == "back_up":
                vault.back_up(backup)
                with closing(sqlite3.connect(backup)) as copy:
                    assert copy.execute("PRAGMA user_version").fetchone() == (0,)
            else:
                source, copy = sqlite3.connect(sqlite_place.path), sqlite3.connect(backup)
                with closing(source), closing(copy):
                    source.backup(copy)
                backup.chmod(0o600)
        assert vault.finish().complete
        vault.export(export, for_restore=True)
    assert not has_mark(sqlite_place)
    os.replace(backup, sqlite_place.path)
    assert has_mark(sqlite_place)
    Vault.restore(sqlite_place.url, export, keys=sqlite_place.keys)
    assert not has_mark(sqlite_place)
    with sqlite_place.open() as vault:
        assert vault.status().erasure == "complete"
        assert vault.verify().holds


def test_restoring_looks_at_all_pages_of_a_copy_that_is_marked_clean(
    sqlite_place: Place, tmp_path: Path
) -> None:
    with_mark(sqlite_place)
    assert user_version(sqlite_place) == CLEAN
    with sqlite_place.open() as vault:
        vault.export(tmp_path / "export.json", for_restore=True)
    assert has_mark(sqlite_place)
    Vault.restore(sqlite_place.url, tmp_path / "export.json", keys=sqlite_place.keys)
    assert not has_mark(sqlite_place)


def test_rewriting_a_file_marks_it_before(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def rewrite(*_: object) -> bool:
        seen.append(user_version(sqlite_place))
        return True

    with filled(sqlite_place) as vault:
        monkeypatch.setattr("armnesia.vault.storage.sqlite.run_with_temporary_files", rewrite)
        assert vault.compact().erasure == "complete"
    assert (seen, user_version(sqlite_place)) == ([0], CLEAN)
