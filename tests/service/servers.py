"""Services of tests: each with a vault of its own, on a port of this machine."""

import asyncio
import atexit
import queue
import shutil
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from armnesia.service.app import create_app
from armnesia.service.client import Client
from armnesia.service.opendsr.processor import Processor
from armnesia.service.server import Address, Server, configuration
from armnesia.service.settings import Settings
from armnesia.vault import Configuration, Role, UserType, Vault
from tests.databases import Place, fresh_place

PEOPLE = ("ann-marie.keller@example.org", "bob.ñandú@example.org", "cem-4711", "dan-4712", "eva-4713")
SETTINGS = Settings(token_seconds=1e-6, verify_hours=0)
NO_AUTHORITY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of services without TLS: by default each of them would load all authorities, for 12 ms."""
COLUMNS = {role: role for role in ("action", "reward", "user", "id")}
CONFIGURATION = Configuration(actions=("A", "B"), user_type=UserType.TEXT, columns=COLUMNS)


def log_of(people: tuple[str, ...] = PEOPLE, rows: int = 4) -> dict[str, list[Any]]:
    """Some rows of each person."""
    every = [(person, row) for person in people for row in range(rows)]
    return {
        "action": ["AB"[row % 2] for _, row in every],
        "reward": [row % 3 / 2 for _, row in every],
        "user": [person for person, _ in every],
        "id": [f"record-{number}" for number in range(len(every))],
        "page": [("home", "a/b & c=d")[row % 2] for _, row in every],
    }


@dataclass
class Served:
    """A running service, its vault, and a token of each role."""

    url: str
    place: Place
    tokens: dict[str, str]
    app: Any
    numbers: dict[str, int] = field(default_factory=dict)

    def headers(self, role: str = "operator") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[role]}"}

    def http(self, role: str | None = "operator") -> httpx.Client:
        headers = {} if role is None else self.headers(role)
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=30, trust_env=False, verify=NO_AUTHORITY
        )

    def client(self, role: str = "operator", **options: Any) -> Client:
        return Client(self.url, self.tokens[role], **{"verify": NO_AUTHORITY, **options})


@contextmanager
def held_writer(served: Served) -> Iterator[None]:
    """Keep the writer of a service busy, so that whatever is asked meanwhile waits behind it.

    It is waited for: a request that comes before would be in one batch with this, and answered first.
    """
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: Vault) -> None:
        begun.set()
        go_on.wait()

    served.app.state.service.worker.write(hold)
    assert begun.wait(60)
    try:
        yield
    finally:
        go_on.set()


def let_the_desk_work(served: Served, is_done: Callable[[], bool]) -> None:
    """Let requests of controllers be worked through until something is so; the service does it as well."""
    until = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < until, "the desk has nothing left to do"
        asyncio.run(served.app.state.desk.work())


def fill(
    place: Place, configuration: Configuration = CONFIGURATION, log: dict[str, list[Any]] | None = None
) -> dict[str, str]:
    """Make a vault with some rows, and a token of each role."""
    if place.url.startswith("sqlite") and log is None and configuration is CONFIGURATION:
        return copied(*filled_once(), place)
    with place.create(configuration) as vault:
        vault.ingest(log or log_of(), user="user", id="id")
        return {str(role): vault.create_token(role, name=f"test of {role}").text for role in Role}


@cache
def filled_once() -> tuple[Place, dict[str, str]]:
    """The vault of most tests, made once: a copy of its files takes a tenth of the time."""
    folder = Path(tempfile.mkdtemp(prefix="armnesia-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = fresh_place("sqlite", folder)
    return place, fill(place, log=log_of())


def copied(made: Place, tokens: dict[str, str], place: Place) -> dict[str, str]:
    """Copy a vault, its keys and its journal."""
    shutil.copy(made.path, place.path)
    for ending in ("", ".journal"):
        shutil.copy(f"{made.keys}{ending}", f"{place.keys}{ending}")
    return dict(tokens)


@contextmanager
def serving(
    place: Place,
    configuration: Configuration = CONFIGURATION,
    settings: Settings = SETTINGS,
    log: dict[str, list[Any]] | None = None,
) -> Iterator[Served]:
    """Serve a new vault from a thread of this process."""
    tokens = fill(place, configuration, log)
    with serving_existing(place, tokens, settings) as served:
        yield served


@contextmanager
def serving_existing(
    place: Place, tokens: dict[str, str], settings: Settings = SETTINGS, made: Processor | None = None
) -> Iterator[Served]:
    """Serve a vault, of which these tokens are the first, from a thread of this process."""
    app = create_app(place.open, settings, processor=made)
    with listening(app) as url:
        yield Served(url, place, tokens, app, {role: number for number, role in enumerate(tokens, 1)})


class PromptServer(Server):
    """Looks ten times as often whether it is told to end: that is most of the time of a short test."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """Run an application on a free port."""
    started: queue.SimpleQueue[str] = queue.SimpleQueue()
    server = PromptServer(configuration(app, Address(port=0)), started.put)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield started.get(timeout=60)
    finally:
        server.should_exit = True
        thread.join()
