"""The files of an SQLite vault: private, and the same ones all the while, or nothing is done."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.vault import Configuration, Vault
from armnesia.vault.storage import sqlite
from tests.databases import Place
from tests.vault.raw_vaults import LOG, filled, reader_of

REPLACED = "was replaced by another file while it was open; open it again"


def _without_log(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()


def by_another_file(path: Path, backup: Path) -> None:
    _without_log(path)
    os.replace(backup, path)


def by_nothing(path: Path, _: Path) -> None:
    _without_log(path)
    path.unlink()


MORE = LOG | {"id": ["s1", "s2", "s3", "s4", "s5", "s6"]}
REPLACING = [by_another_file, by_nothing]
OPERATIONS: dict[str, Callable[[Vault, Path], Any]] = {
    "decide": lambda vault, _: vault.decide(),
    "forget": lambda vault, _: vault.forget(users=["ann"]),
    "ingest": lambda vault, _: vault.ingest(MORE, user="who", id="id"),
    "status": lambda vault, _: vault.status(),
    "verify": lambda vault, _: vault.verify(),
    "compact": lambda vault, _: vault.compact(),
    "back up": lambda vault, folder: vault.back_up(folder / "another.db"),
    "compact the file": lambda vault, _: vault.database.compact(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("replace", REPLACING)
def test_a_file_that_was_replaced_is_not_worked_on(
    sqlite_place: Place, tmp_path: Path, replace: Callable[[Path, Path], None], operation: str
) -> None:
    with filled(sqlite_place) as vault:
        vault.back_up(tmp_path / "monday.db")
        backup = (tmp_path / "monday.db").read_bytes()
        vault.forget(users=["bob"])
        replace(sqlite_place.path, tmp_path / "monday.db")
        with pytest.raises(VaultError, match=REPLACED):
            OPERATIONS[operation](vault, tmp_path)
    if replace is by_nothing:
        assert not sqlite_place.path.exists()
    else:  # nor is anything left in it by closing
        assert sqlite_place.path.read_bytes() == backup
    assert not (tmp_path / "another.db").exists()


@pytest.mark.parametrize("replace", REPLACING)
def test_closing_leaves_the_other_file_alone(
    sqlite_place: Place, tmp_path: Path, replace: Callable[[Path, Path], None]
) -> None:
    """SQLite's last act is to bring its log into the file, whichever that is by now."""
    vault = filled(sqlite_place)
    vault.back_up(tmp_path / "monday.db")
    backup = (tmp_path / "monday.db").read_bytes()
    with reader_of(sqlite_place):  # who keeps the log from being emptied
        vault.ingest(MORE, user="who", id="id")
    assert Path(f"{sqlite_place.path}-wal").stat().st_size > 0
    replace(sqlite_place.path, tmp_path / "monday.db")
    vault.close()
    vault.close()
    if replace is not by_nothing:
        assert sqlite_place.path.read_bytes() == backup


@pytest.mark.parametrize("replace", REPLACING)
def test_what_is_done_while_the_file_is_replaced_is_not_acknowledged(
    sqlite_place: Place, tmp_path: Path, replace: Callable[[Path, Path], None]
) -> None:
    with filled(sqlite_place) as vault:
        vault.back_up(tmp_path / "monday.db")

        def work() -> None:
            with vault.database.writing() as session:
                session.execute("DELETE FROM record")
                replace(sqlite_place.path, tmp_path / "monday.db")

        with pytest.raises(VaultError, match=REPLACED):
            work()


def test_a_vault_behind_a_link(sqlite_place: Place, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "vault.db"
    link.symlink_to(sqlite_place.path)
    filled(sqlite_place).close()
    with Vault.open(f"sqlite:///{link}", keys=sqlite_place.keys) as vault:
        vault.back_up(tmp_path / "monday.db")
        vault.forget(users=["ann"])
        vault.compact()
        Path(f"{sqlite_place.path}-wal").unlink()
        with pytest.raises(VaultError, match=REPLACED):
            vault.forget(users=["bob"])
    with Vault.open(f"sqlite:///{link}", keys=sqlite_place.keys) as vault:
        link.unlink()
        link.symlink_to(tmp_path / "monday.db")
        with pytest.raises(VaultError, match=REPLACED):
            vault.forget(users=["bob"])


def test_a_vault_stays_open_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Vault.create("sqlite:///vault.db", Configuration(actions=("A", "B"))) as vault:
        vault.ingest(LOG, user="who", id="id")
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert vault.forget(users=["ann"]).records == 2
        vault.compact()
        assert vault.status().location == "vault.db"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_what_could_not_be_made_is_not_left_half_made(
    tmp_path: Path, sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_SETTINGS", ("PRAGMA synchronous = FULL", "no SQL"))
    with pytest.raises(VaultError, match="syntax error"):
        sqlite_place.create()
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    sqlite_place.create().close()
    monkeypatch.setattr(sqlite, "_SETTINGS", ("no SQL",))
    with pytest.raises(VaultError, match="syntax error"):
        sqlite_place.open()
    with pytest.raises(VaultError, match="there is already a file"):
        Vault.create(sqlite_place.url, keys=tmp_path / "other.keys")
    assert sqlite_place.path.stat().st_size > 0  # what was there before stays


def test_nor_on_a_disk_without_room(tmp_path: Path) -> None:
    program = """if True:
        import resource, sys
        from armnesia.core.errors import VaultError
        from armnesia.vault import Vault
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        try:
            Vault.create(f"sqlite:///{sys.argv[1]}/vault.db")
        except VaultError as error:
            sys.exit(str(error))
    """
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "vault.db' cannot" in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_vault_open_to_others_is_refused(sqlite_place: Place, suffix: str, mode: int) -> None:
    with filled(sqlite_place) as vault, reader_of(sqlite_place):  # so that all three files are there
        vault.forget(users=["ann"])  # SQLite itself restricts a log that is empty
        path = Path(f"{sqlite_place.path}{suffix}")
        path.chmod(mode)
        with pytest.raises(VaultError) as told:
            sqlite_place.open()
        assert str(told.value) == (
            f"{path} is accessible to other users (mode {mode:04o}); restrict it with: chmod 600 {path}"
        )
        path.chmod(0o600)
        sqlite_place.open().close()


def test_a_file_that_is_no_vault_is_told_so_whatever_its_mode(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_bytes(b"")
    (tmp_path / "other.db").chmod(0o644)
    with pytest.raises(VaultError, match="there is no vault at"):
        Vault.open(f"sqlite:///{tmp_path}/other.db")


def test_a_stream_that_was_given_up_ends_with_its_transaction(sqlite_place: Place) -> None:
    """A pending read hid why a load failed, and complained when it was freed after the vault was closed."""
    with filled(sqlite_place) as vault:
        database = vault.database
        streams: list[Iterator[Any]] = []

        def load() -> None:
            with database.writing() as session:
                session.execute("CREATE TEMP TABLE seen AS SELECT * FROM record")
                streams.append(iter(session.stream("SELECT identity FROM seen")))
                next(streams[0])
                raise LookupError

        with pytest.raises(LookupError):
            load()
        vault.ingest(MORE, user="who", id="id")
    streams.clear()  # what is raised here, pytest makes an error
