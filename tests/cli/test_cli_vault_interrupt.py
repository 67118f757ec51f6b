"""Ctrl-C during an ingest: the command ends, the vault is as it was, and the ingest can be run again."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROWS = 200_000
PATIENCE = 60  # seconds; a command that does not stop is killed and the test fails


def is_being_written(vault: str) -> bool:
    """Whether another process is in a writing transaction."""
    database = sqlite3.connect(vault, timeout=0, isolation_level=None)
    try:
        database.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    finally:
        database.close()
    return False


@pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX")
def test_an_interrupted_ingest_leaves_nothing(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ARMNESIA_URL", "ARMNESIA_KEYS"):
        monkeypatch.delenv(name, raising=False)
    Path("log.csv").write_text("action,reward,user\n" + "A,1,ann\nB,0,bob\n" * (ROWS // 2))
    assert run("init", "--actions", "A,B").code == 0
    before = run("status", "--json").json
    command = "import sys; from armnesia.cli import main; main(sys.argv[1:])"
    ingest = ("ingest", "log.csv", "--user", "user")
    process = subprocess.Popen([sys.executable, "-c", command, *ingest], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + PATIENCE
        while not is_being_written("vault.db") and time.monotonic() < deadline:
            assert process.poll() is None, "the ingest ended before it could be interrupted"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 130
    assert said == "armnesia: interrupted; what was finished is kept\n"
    assert run("status", "--json").json == before
    assert run("verify").code == 0
