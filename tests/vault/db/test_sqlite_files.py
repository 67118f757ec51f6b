"""The files of an SQLite vault: private, and nothing is left of what could not be made."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultBusyError, VaultError
from armnesia.vault import Configuration, Vault
from armnesia.vault.db import sqlite
from tests.databases import Place
from tests.vault.raw_vaults import LOG, dumped, filled, reader_of

MORE = LOG | {"id": ["s1", "s2", "s3", "s4", "s5", "s6"]}


def test_a_file_that_is_replaced_while_it_is_open_is_noticed_by_the_journal(
    sqlite_place: Place, tmp_path: Path
) -> None:
    """An open vault goes on in its own file, which others no longer find; its log stays its own, too."""
    with filled(sqlite_place) as vault:
        vault.back_up(tmp_path / "monday.db")
        backup = (tmp_path / "monday.db").read_bytes()
        with reader_of(sqlite_place):  # who keeps the log from being emptied
            vault.ingest(MORE, user="who", id="id")
        for suffix in ("-wal", "-shm"):
            Path(f"{sqlite_place.path}{suffix}").unlink()
        os.replace(tmp_path / "monday.db", sqlite_place.path)
        assert vault.forget(users=["ann"]).records == 4
    assert sqlite_place.path.read_bytes() == backup
    with pytest.raises(VaultError, match="is older than its journal"):
        sqlite_place.open()
    assert Vault.restore(sqlite_place.url, keys=sqlite_place.keys).rows_deleted == 2
    with sqlite_place.open() as vault:
        assert vault.forget(users=["ann"]).repeated
        assert vault.verify().holds


def test_a_vault_behind_a_link(sqlite_place: Place, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "vault.db"
    link.symlink_to(sqlite_place.path)
    filled(sqlite_place).close()
    with Vault.open(f"sqlite:///{link}", keys=sqlite_place.keys) as vault:
        vault.back_up(tmp_path / "monday.db")
        vault.forget(users=["ann"])
        vault.compact()
        assert vault.verify().holds


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
        from armnesia.core.errors import VaultBusyError, VaultError
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


@pytest.mark.sampled(6)
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


def test_compact_keeps_every_row(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        before = dumped(vault)
        vault.compact()
        assert dumped(vault)["record"] == before["record"]
        assert vault.verify().holds


def test_compact_waits_its_turn(sqlite_place: Place) -> None:
    filled(sqlite_place).close()
    with (
        sqlite_place.open() as vault,
        sqlite_place.open(timeout=0.1) as other,
        vault.database.writing(),
        pytest.raises(VaultBusyError, match="in use by another process"),
    ):
        other.database.compact()
