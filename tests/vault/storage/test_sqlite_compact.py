"""Compacting an SQLite vault: in little memory, by temporary files that are private and have no name."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultBusyError, VaultError
from armnesia.vault.storage import sqlite, sqlite_rewriting
from tests.databases import Place
from tests.vault.raw_vaults import change, dumped, filled

WATCHED = """
    held = []
    for number in os.listdir("/proc/self/fd"):
        try:
            link, found = os.readlink(f"/proc/self/fd/{number}"), os.stat(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if "etilqs" in link:
            held.append([link, found.st_mode & 0o777, found.st_nlink])
    peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
    print(json.dumps({"held": held, "peak": int(peak[0]), "names": os.listdir(sys.argv[1])}), file=sys.stderr)
    connection.close()
"""
linux = pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="looks into /proc")


def watched(path: Path, statements: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run statements as `compact` does, and look at the process at their end."""
    program = sqlite_rewriting._STATEMENTS_IN_CHILD.replace("    connection.close()\n", WATCHED)
    told: list[str] = []
    run = subprocess.run

    def running(command: list[str], **options: Any) -> Any:
        done = run([*command, str(path.parent)], **options)
        told.append(done.stderr)
        return done

    monkeypatch.setattr(sqlite_rewriting, "_STATEMENTS_IN_CHILD", program)
    monkeypatch.setattr(subprocess, "run", running)
    assert sqlite_rewriting.run_with_temporary_files(str(path), f"file:{path}?mode=rw", statements, 1.0)
    monkeypatch.undo()
    found: dict[str, Any] = json.loads(told[0])
    return found


@linux
def test_temporary_files_are_private_nameless_and_in_the_vaults_folder(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(sqlite_place):
        old_mask = os.umask(0)
        try:
            found = watched(
                sqlite_place.path,
                (
                    *sqlite._REWRITING[:-1],
                    "PRAGMA temp.cache_size = 1",
                    "CREATE TEMPORARY TABLE rows AS SELECT randomblob(1000000)",
                ),
                monkeypatch,
            )
        finally:
            os.umask(old_mask)
        ((link, mode, names),) = found["held"]
        assert link.startswith(f"{sqlite_place.path.parent}/")
        assert (mode, names) == (0o600, 0)
        assert not any("etilqs" in name for name in found["names"])


@pytest.mark.slow
@linux
def test_compact_needs_less_memory_than_the_file_is_large(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    megabytes = 60
    with filled(sqlite_place) as vault:
        change(vault, "CREATE TABLE ballast (stone BLOB)")
        change(
            vault,
            "INSERT INTO ballast WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            f" WHERE i < {1000 * megabytes}) SELECT randomblob(1000) FROM n",
        )
        in_files = watched(sqlite_place.path, sqlite._REWRITING, monkeypatch)["peak"]
        in_memory = watched(sqlite_place.path, ("PRAGMA temp_store = MEMORY", "VACUUM"), monkeypatch)["peak"]
    assert in_memory - in_files > 0.5 * megabytes * 1000


@pytest.mark.parametrize("here", [False, True])
def test_compact_keeps_every_row(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, here: bool) -> None:
    """Also where no process can be started: then in memory."""
    if here:
        monkeypatch.setattr(sys, "executable", "")
    with filled(sqlite_place) as vault:
        vault.forget(users=["ann"])
        before = dumped(vault)
        assert vault.compact().complete
        assert dumped(vault)["record"] == before["record"]
        assert vault.verify().holds
        assert [path.name for path in sqlite_place.path.parent.iterdir() if "etilqs" in path.name] == []


def test_compact_waits_its_turn(sqlite_place: Place) -> None:
    filled(sqlite_place).close()
    with (
        sqlite_place.open() as vault,
        sqlite_place.open(timeout=0.1) as other,
        vault._connection.database.writing(),
        pytest.raises(VaultBusyError, match="in use by another process"),
    ):
        other._connection.database.compact()


def test_a_compact_that_was_ended_is_told(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sqlite_rewriting, "_STATEMENTS_IN_CHILD", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    with filled(sqlite_place) as vault:
        with pytest.raises(VaultError, match="was not rewritten"):
            vault.compact()
        assert vault.verify().holds
