"""Rewriting an SQLite file in little memory, in a process of its own, and how long that takes."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing

from armnesia.core.errors import VaultError
from armnesia.core.files import may_write

_STATEMENTS_IN_CHILD = """
import json, os, sys
path, timeout, statements = json.load(sys.stdin)
import sqlite3  # chooses the folder of temporary files now
try:
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, uri=True)
    for statement in statements:
        connection.execute(statement)
    connection.close()
except sqlite3.Error as error:
    json.dump(str(error), sys.stdout)
    sys.exit(3)
"""


def run_with_temporary_files(path: str, uri: str, statements: Sequence[str], timeout: float) -> bool:
    """Run statements in another process, with temporary files in the vault's folder; False if impossible.

    SQLite chooses that folder once per process, so this process cannot choose it any more. Its temporary
    files are private and lose their names as soon as they are open: a killed process leaves none.
    """
    folder = os.path.dirname(os.path.realpath(path))
    if not sys.executable or getattr(sys, "frozen", False) or os.name != "posix":
        return False
    if not may_write(folder):  # SQLite would silently take another folder
        return False
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _STATEMENTS_IN_CHILD],
        input=json.dumps([uri, timeout, list(statements)]),
        env={**os.environ, "SQLITE_TMPDIR": folder},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode == 3:
        raise sqlite3.OperationalError(json.loads(done.stdout))
    if done.returncode:
        raise VaultError(
            f"the vault {path!r} was not rewritten: the process that did it was killed; try again"
        )
    return True


_TRIAL = (
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE record (identity BLOB NOT NULL PRIMARY KEY, owner BLOB, arm INTEGER, units BIGINT)",
    "CREATE INDEX record_owner ON record (owner)",
    "INSERT INTO record WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)"
    " SELECT randomblob(16), randomblob(16), i % 5, i FROM n",
    "PRAGMA wal_checkpoint(TRUNCATE)",
)


def rewriting_rate(folder: str, statements: Sequence[str]) -> float:
    """Bytes per second at which these statements rewrite a file in a folder, by a trial on made-up rows."""
    with tempfile.TemporaryDirectory(prefix="armnesia-trial-", dir=folder) as trial:
        path = os.path.join(trial, "trial.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in _TRIAL:
                connection.execute(statement).fetchall()
            # The process itself takes time too, whatever the size of the file.
            starting = _seconds(path, statements[:-1])
            rewriting = _seconds(path, [*statements, _TRIAL[-1]])
        return os.path.getsize(path) / max(rewriting - starting, 1e-3)


def _seconds(path: str, statements: Sequence[str]) -> float:
    start = time.perf_counter()
    run_with_temporary_files(path, f"file:{path}?mode=rw", statements, 1.0)
    return time.perf_counter() - start
