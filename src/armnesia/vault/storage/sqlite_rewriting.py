"""Rewriting an SQLite file in little memory, in a process of its own."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence

from armnesia.core.errors import VaultError

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
    if not os.access(folder, os.W_OK | os.X_OK):  # SQLite would silently take another folder
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
