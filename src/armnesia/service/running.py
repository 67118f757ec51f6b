"""What a running service consists of, and its work in the background."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request

from armnesia.core.errors import ArmnesiaError
from armnesia.service.idempotency import Answers
from armnesia.service.metrics import Metrics
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.service.structured_log import described, log
from armnesia.service.tokens import TokenGuard
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import Vault
from armnesia.vault.keys.canonical_json import utc_now

_Result = TypeVar("_Result")


@dataclass
class Verified:
    """The last verification of the vault by this service."""

    time: str
    holds: bool
    problems: int


@dataclass
class Service:
    """The parts of a service that endpoints use."""

    open_vault: Callable[[], Vault]
    settings: Settings
    metrics: Metrics = field(default_factory=Metrics)
    answers: Answers = field(default_factory=Answers)
    verified: Verified | None = None

    def __post_init__(self) -> None:
        self.worker = VaultWorker(self.open_vault, self.settings)
        self.worker.observe_group = self.metrics.group_sizes.observe
        self.guard = TokenGuard(self.worker, self.settings)
        self._ended = threading.Event()
        self._always: list[asyncio.Task[None]] = []

    @property
    def is_alive(self) -> bool:
        """Whether all threads and tasks are there that have to be."""
        return self.worker.is_alive and not any(task.done() for task in self._always)

    @asynccontextmanager
    async def running(self, *others: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        """Run the threads of the vault, and whatever works in the background until it is cancelled."""
        with self.worker:
            tasks = self._always = [asyncio.create_task(work()) for work in (self._note_uses, *others)]
            verifying = threading.Thread(target=self._verify, name="vault-verifier", daemon=True)
            if self.settings.verify_hours:
                verifying.start()
            try:
                yield
            finally:
                self._ended.set()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._note_now()

    async def _note_uses(self) -> None:
        while True:
            await asyncio.sleep(self.settings.note_seconds)
            await self._note_now()

    async def _note_now(self) -> None:
        try:
            await self.guard.note_uses()
        except (ArmnesiaError, Problem) as error:  # the next time counts on
            log("uses of tokens not noted", described(error))

    def _verify(self) -> None:
        """Verify the vault from time to time, through a connection of its own."""
        while True:
            begun = time.monotonic()
            try:
                with self.open_vault() as vault:
                    found = vault.verify()
                self.verified = Verified(utc_now(), found.holds, len(found.problems))
                log("verified", {"holds": found.holds, "problems": len(found.problems)})
            except Exception as error:
                log("not verified", described(error))
            if self._ended.wait(max(1.0, self.settings.verify_hours * 3600 - time.monotonic() + begun)):
                return


def service_of(request: Request) -> Service:
    """The service that a request was sent to."""
    service: Service = request.app.state.service
    return service


async def done(answer: "Future[_Result]") -> _Result:
    """Wait for the vault without holding others up."""
    return await asyncio.wrap_future(answer)
