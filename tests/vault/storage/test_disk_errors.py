"""A disk that fails while deleted bytes are removed: the request is done, and what failed is said."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import Vault
from armnesia.vault.storage.sqlite import SqliteDatabase
from tests.databases import Place
from tests.vault.raw_vaults import filled, reader_of

STRACE = shutil.which("strace")
ROOT = Path(__file__).parents[3]
COMMAND = "import sys; from armnesia.cli.main import main; main(sys.argv[1:])"


def failing(vault: Vault, code: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the vault's checkpoints fail with this error of SQLite."""
    database = vault._connection.database
    assert isinstance(database, SqliteDatabase)
    connection = database._erasure.connection

    class Failing:
        def execute(self, sql: str, *parameters: Any) -> Any:
            if "wal_checkpoint" in sql:
                error = sqlite3.OperationalError(text)
                error.sqlite_errorcode = code
                raise error
            return connection.execute(sql, *parameters)

        def __getattr__(self, name: str) -> Any:
            return getattr(connection, name)

    monkeypatch.setattr(database._erasure, "connection", Failing())


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (sqlite3.SQLITE_IOERR, "disk I/O error"),
        (sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error"),
        (sqlite3.SQLITE_FULL, "database or disk is full"),
        (sqlite3.SQLITE_READONLY, "attempt to write a readonly database"),
        (sqlite3.SQLITE_CORRUPT, "database disk image is malformed"),
    ],
)
def test_a_checkpoint_that_fails_is_no_reader(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, code: int, text: str
) -> None:
    with filled(sqlite_place) as vault:
        failing(vault, code, text, monkeypatch)
        with pytest.warns(UserWarning, match=rf"could not be removed .*: {text}; all changes are committed"):
            done = vault.forget(users=["ann"])
        assert (done.records, done.erasure) == (2, "pending")
        assert done.pending_because == f"the disk or the file has an error ({text})"
        with pytest.warns(UserWarning, match=text):
            finished = vault.finish()
        assert (finished.erasure, finished.pending) == ("pending", 1)
        assert finished.pending_because == done.pending_because
        monkeypatch.undo()
        assert vault.forget(users=["ann"]).repeated  # it was done the first time
        finished = vault.finish()
        assert (finished.complete, finished.pending_because) == (True, None)
        assert vault.verify().holds


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_LOCKED])
def test_a_lock_is_no_error_of_the_disk(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with filled(sqlite_place) as vault:
        failing(vault, code, "database is locked", monkeypatch)
        done = vault.forget(users=["ann"])  # without a warning, which would be an error
        assert done.erasure == "pending"
        assert done.pending_because == "another process was using the vault"


def test_a_reader_is_no_error_of_the_disk(sqlite_place: Place) -> None:
    with filled(sqlite_place) as vault, reader_of(sqlite_place):
        for done in (vault.forget(users=["ann"]), vault.forget(users=["ann"])):
            assert done.erasure == "pending"
            assert done.pending_because == "another process was using the vault"
            assert done.erasure_steps == "armnesia finish"
    with sqlite_place.open() as vault:
        done = vault.forget(users=["ann"])
        assert (done.erasure, done.pending_because, done.erasure_steps) == ("complete", None, None)


def _armnesia(folder: Path, *arguments: str, before: tuple[str, ...] = ()) -> Any:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARMNESIA_")}
    return subprocess.run(
        [*before, sys.executable, "-c", COMMAND, *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ("pwrite64", "EIO", "disk I/O error"),
        ("fdatasync", "EIO", "disk I/O error"),
        ("pwrite64", "ENOSPC", "database or disk is full"),
    ],
)
def test_a_disk_that_fails_in_the_checkpoint_of_a_command(
    tmp_path: Path, call: str, error: str, said: str
) -> None:
    """The commit writes to the log only; what fails are the writes to the file itself."""
    (tmp_path / "log.csv").write_text("action,reward,user\nA,1,ann\nB,0,bob\n", encoding="utf-8")
    assert _armnesia(tmp_path, "init", "--actions", "A,B").returncode == 0
    assert _armnesia(tmp_path, "ingest", "log.csv").returncode == 0
    assert STRACE is not None
    options = ("-f", "-o", str(tmp_path / "trace"), "-P", str(tmp_path / "vault.db"))
    fault = (STRACE, *options, "-e", f"trace={call}", "-e", f"inject={call}:error={error}")
    done = _armnesia(tmp_path, "forget", "--user", "ann", before=fault)
    if "INJECTED" not in (tmp_path / "trace").read_text(encoding="utf-8"):
        pytest.skip("strace may not trace here")
    assert done.returncode == 0
    assert done.stderr == (
        "armnesia: warning: deleted bytes could not be removed from the files of the vault 'vault.db':"
        f" {said}; all changes are committed; check the disk, then run armnesia finish\n"
    )
    assert "Forgotten: 1 record." in done.stdout
    assert "Erasure: pending" in done.stdout
    assert f"because the disk or the file has an error ({said}). Run armnesia finish;" in done.stdout
    assert "another process" not in done.stdout
    finished = _armnesia(tmp_path, "finish")
    assert (finished.returncode, finished.stdout) == (
        0,
        "Erasure: complete. Certificates signed again: 1\n",
    )
    assert _armnesia(tmp_path, "verify").returncode == 0
