"""The files of an SQLite vault: private, the same ones all the while, and rewritten within little memory."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import urllib.parse
from collections.abc import Iterable, Sequence
from pathlib import Path

from armnesia.core.errors import VaultError

Identity = tuple[int, int]

_STATEMENTS_IN_CHILD = """
import json, os, sys
path, timeout, statements = json.load(sys.stdin)
import sqlite3  # which looks only now for the folder of temporary files
try:
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, uri=True)
    for statement in statements:
        connection.execute(statement)
    connection.close()
except sqlite3.Error as error:
    json.dump(str(error), sys.stdout)
    sys.exit(3)
"""


def address_of(path: str) -> str:
    """A file as SQLite takes it where it must be there already."""
    return f"file:{urllib.parse.quote(path)}?mode=rw"


def names_of(path: str) -> tuple[str, ...]:
    """What a vault in use consists of: the file, its write-ahead log, and the index of that.

    From the root, because the process may go to another folder. SQLite puts the others beside the file
    itself, also where a link leads to it.
    """
    itself = os.path.realpath(path)
    return os.path.abspath(path), f"{itself}-wal", f"{itself}-shm"


def create_private(path: str) -> None:
    """Make an empty file of mode 0600, where there is none yet."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise VaultError(f"there is already a file {path!r}; choose another name") from None
    except OSError as error:
        raise VaultError(f"the file {path!r} cannot be made: {error.strerror}") from None


def remove(names: Iterable[str]) -> None:
    """Remove a vault's file and what SQLite has put beside it."""
    for name in names:
        Path(name).unlink(missing_ok=True)


def check_private(names: Iterable[str]) -> None:
    """Refuse a vault that others may read or change, in the words in which such keys are refused."""
    if os.name != "posix":
        return
    for name in filter(os.path.exists, names):
        mode = stat.S_IMODE(os.stat(name).st_mode)
        if mode & 0o077:
            raise VaultError(f"{name} is open to others (mode {mode:04o}); close it with: chmod 600 {name}")


def files_at(names: Iterable[str]) -> list[Identity | None]:
    """Which files stand at a vault's names now. They are only asked for, never opened.

    To close a file lets go of all locks that this process has on it, SQLite's own among them.
    """
    return [_identity(name) for name in names]


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def run_with_temporary_files(path: str, statements: Sequence[str], timeout: float) -> bool:
    """Run statements in a process of its own, with temporary files in the vault's folder; if that can be.

    SQLite looks for that folder once, when a process first uses it, so this process has no choice any more.
    Its temporary files are for their owner only and lose their names as soon as they are open: even of a
    process that is killed none is left.
    """
    folder = os.path.dirname(os.path.realpath(path))
    if not sys.executable or getattr(sys, "frozen", False) or os.name != "posix":
        return False
    if not os.access(folder, os.W_OK | os.X_OK):  # SQLite would take another folder, without a word
        return False
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _STATEMENTS_IN_CHILD],
        input=json.dumps([address_of(path), timeout, list(statements)]),
        env={**os.environ, "SQLITE_TMPDIR": folder},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode == 3:
        raise sqlite3.OperationalError(json.loads(done.stdout))
    if done.returncode:
        raise VaultError(
            f"the vault {path!r} was not rewritten: the process that did it was ended; try again"
        )
    return True
