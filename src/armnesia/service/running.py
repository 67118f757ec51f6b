"""What a running service consists of, and its work in the background."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request

from armnesia.service.answer_types import Verified
from armnesia.service.idempotency import Answers
from armnesia.service.metrics import Metrics
from armnesia.service.problems import problem_of
from armnesia.service.settings import Settings
from armnesia.service.source_erasing import SourceErasing
from armnesia.service.structured_log import described, log
from armnesia.service.tokens import TokenGuard
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import Vault
from armnesia.vault.keys.canonical_json import utc_now

_Result = TypeVar("_Result")
SECONDS_TO_END = 10.0
"""For what is left to do when no request is being answered any more."""
_SECONDS_TO_VERIFY_AGAIN = 300.0
"""After a verification that found problems or could not be finished: the reason may be gone."""


@dataclass
class Service:
    """The parts of a service that endpoints use."""

    open_vault: Callable[[], Vault]
    settings: Settings
    metrics: Metrics = field(default_factory=Metrics)
    answers: Answers = field(default_factory=Answers)
    verified: Verified | None = None

    def __post_init__(self) -> None:
        self.worker = VaultWorker(self.open_vault, self.settings, self.metrics)
        self.erasing = SourceErasing(self.open_vault)
        self.sweeps: list[Callable[[], None]] = [self.answers.sweep]
        """What is kept in memory for a time is forgotten by these."""
        self.guard = TokenGuard(self.worker, self.settings)
        self._ended = threading.Event()
        self._always: list[asyncio.Task[None]] = []
        self._begun: set[asyncio.Task[None]] = set()

    @property
    def is_alive(self) -> bool:
        """Whether all threads and tasks are there that have to be."""
        return self.worker.is_alive and not any(task.done() for task in self._always)

    @asynccontextmanager
    async def running(self, *others: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        """Run the threads of the vault, and whatever works in the background until it is cancelled."""
        self.worker.__enter__()
        verifying = threading.Thread(target=self._verify, name="vault-verifier", daemon=True)
        self._always = [asyncio.create_task(work()) for work in (self._upkeep, *others)]
        if self.settings.verify_hours:
            verifying.start()
        try:
            yield
        finally:
            self._ended.set()
            await self._end(time.monotonic() + SECONDS_TO_END, verifying)

    async def _end(self, until: float, verifying: threading.Thread) -> None:
        """End everything that was begun; what has not ended by then is left to the end of the process."""

        def left() -> float:
            return max(0.0, until - time.monotonic())

        if self._begun:
            await asyncio.wait(self._begun, timeout=left())
        for task in (*self._always, *self._begun):
            task.cancel()
        await asyncio.gather(*self._always, *self._begun, return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.upkeep(), left())
        if not await asyncio.to_thread(self.worker.end, left()):
            log("ended before everything was answered", {"waiting": self.worker.waiting}, logging.ERROR)
        if not await asyncio.to_thread(self.erasing.end, left()):
            log("ended before an erasure at the sources; armnesia erase finishes it", {}, logging.ERROR)
        if verifying.is_alive():
            await asyncio.to_thread(verifying.join, left())

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Do some work that the answer to a request does not wait for, and that is done before the end."""
        task = asyncio.create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return task

    async def _upkeep(self) -> None:
        while True:
            await asyncio.sleep(self.settings.note_seconds)
            await self.upkeep()

    async def upkeep(self) -> None:
        """Forget what was kept for a time, and note the uses of tokens; what fails is tried again."""
        for sweep in self.sweeps:
            sweep()
        try:
            await self.guard.note_uses()
        except Exception as error:
            log("upkeep failed", described(error), logging.WARNING)

    def _verify(self) -> None:
        """Verify the vault from time to time, through a connection of its own."""
        pause = 0.0
        while not self._ended.wait(pause):
            self.verify_once()
            holds = self.verified is not None and self.verified["holds"]
            pause = 3600 * self.settings.verify_hours
            pause = pause if holds else min(pause, _SECONDS_TO_VERIFY_AGAIN)

    def verify_once(self) -> None:
        """Verify the vault now."""
        try:
            with self.open_vault() as vault:
                found = vault.verify(progress=self._go_on)
            self._note_verified(found.holds, len(found.problems))
        except Exception as error:
            if not self._ended.is_set():
                self._note_verified(False, 0, problem_of(error).kind, **described(error))

    def _note_verified(self, holds: bool, problems: int, failure: str | None = None, **facts: str) -> None:
        self.verified = {"time": utc_now(), "holds": holds, "problems": problems, "failure": failure}
        log("verified", {**self.verified, **facts}, logging.INFO if holds else logging.WARNING)

    def _go_on(self, rows: int) -> None:
        """Give a verification up at the end."""
        if self._ended.is_set():
            raise InterruptedError


def service_of(request: Request) -> Service:
    """The service that a request was sent to."""
    service: Service = request.app.state.service
    return service


async def done(answer: "Future[_Result]") -> _Result:
    """Wait for the vault without holding others up."""
    return await asyncio.wrap_future(answer)
