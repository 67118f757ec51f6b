"""Many clients at once, in a process of their own: each has one connection and asks again and again.

A client is a few lines over a socket, so that most of the processor time is the server's.
"""

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

READS = ("/v1/decisions", "/v1/ledger/head", "/v1/decisions/only", "/v1/ledger?limit=20", "/v1/deletions/{}")
"""What is read in turn; the last is a deletion of this client."""


@dataclass
class Plan:
    """What clients do: of `period` requests one forgets the next of `names`, the others read."""

    url: str
    token: str
    names: list[str]
    clients: int
    seconds: float
    period: int = 1
    reads: tuple[str, ...] = READS


@dataclass
class Load:
    """What clients were told."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """The ledger entry of each name."""
    reading: list[float] = field(default_factory=list)
    """The seconds of each read that was answered."""
    forgetting: list[float] = field(default_factory=list)
    refused: list[tuple[int, bool]] = field(default_factory=list)
    """The statuses of refusals, and whether each says when to come back."""
    other: list[str] = field(default_factory=list)
    """Answers that no client should get."""
    broken: int = 0
    """Clients whose connection ended."""
    seconds: float = 0.0
    processor: float = 0.0
    """The processor time of all clients."""


@contextmanager
def loading(plan: Plan) -> Iterator["Future[Load]"]:
    """Run clients in a process of their own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool.submit(run, plan)


def run(plan: Plan) -> Load:
    """Run all clients to the end."""
    return asyncio.run(_run(plan))


async def _run(plan: Plan) -> Load:
    load, names = Load(), iter(plan.names)
    begun, worked = time.perf_counter(), time.process_time()
    end = begun + plan.seconds
    await asyncio.gather(*(_client(plan, number, names, load, end) for number in range(plan.clients)))
    load.seconds = time.perf_counter() - begun
    load.processor = time.process_time() - worked
    return load


async def _client(plan: Plan, number: int, names: Iterator[str], load: Load, end: float) -> None:
    """Ask until the end, until nobody is left, or until the connection breaks."""
    address = urlsplit(plan.url)
    with suppress(StopIteration):
        try:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
        except OSError:
            load.broken += 1
            return
        try:
            asked, own = number, 0
            while time.perf_counter() < end:
                asked += 1
                if asked % plan.period == 0:
                    own = await _forget(plan, reader, writer, next(names), load, end)
                else:
                    path = plan.reads[asked % len(plan.reads)]
                    if own or "{}" not in path:
                        await _read(plan, reader, writer, path.format(own), load)
        except (OSError, EOFError):
            load.broken += 1
        finally:
            writer.close()


async def _read(
    plan: Plan, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, load: Load
) -> None:
    begun = time.perf_counter()
    status, wait, body = await _ask(plan, reader, writer, "GET", path, b"")
    if status == 200:
        load.reading.append(time.perf_counter() - begun)
    else:
        await _refused(load, status, wait, body)


async def _forget(
    plan: Plan,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    name: str,
    load: Load,
    end: float,
) -> int:
    """Forget somebody; if the service is busy, again after the time that it says."""
    while True:
        begun = time.perf_counter()
        content = json.dumps({"users": [name]}).encode()
        status, wait, body = await _ask(plan, reader, writer, "POST", "/v1/deletions", content)
        if status in (200, 201):
            load.forgetting.append(time.perf_counter() - begun)
            entry = load.acknowledged[name] = int(json.loads(body)["entry"])
            return entry
        await _refused(load, status, wait, body)
        if time.perf_counter() >= end or status not in (429, 503):
            return 0


async def _refused(load: Load, status: int, wait: str | None, body: bytes) -> None:
    if status not in (429, 503):
        load.other.append(f"{status} {body[:200]!r}")
        return
    load.refused.append((status, wait is not None))
    await asyncio.sleep(float(wait or 1))


async def _ask(
    plan: Plan,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    body: bytes,
) -> tuple[int, str | None, bytes]:
    """Send a request; returns the status, Retry-After and the body."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {plan.token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}\r\n".encode() + body)
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    answer = await reader.readexactly(int(headers["content-length"]))
    return int(lines[0].split()[1]), headers.get("retry-after"), answer
