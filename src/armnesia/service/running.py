"""What a running service consists of, and its work in the background."""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO, TypeVar

from fastapi import Request

from armnesia.service.idempotency import Answers
from armnesia.service.metrics import Metrics
from armnesia.service.problems import problem_of
from armnesia.service.settings import Settings
from armnesia.service.source_erasing import SourceErasing
from armnesia.service.structured_log import described, log
from armnesia.service.tokens import TokenGuard
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import ForgetRequest, Forgotten, Vault
from armnesia.vault.keys.canonical_json import utc_now

_Result = TypeVar("_Result")
SECONDS_TO_END = 10.0
"""For what is left to do when no request is being answered any more."""
_SECONDS_TO_VERIFY_AGAIN = 300.0
"""After a verification that could not be finished, because the reason may be gone; and between those that
begin because the database was found to be damaged."""


@dataclass
class Verified:
    """The last verification of the vault by this service."""

    time: str
    holds: bool
    problems: int
    failure: str | None = None
    """The kind of problem that kept it from being finished."""


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
        self.erasing = SourceErasing(self.open_vault)
        self.worker.observe_group = self.metrics.group_sizes.observe
        self.worker.observe_answer = self._count
        self.worker.observe_damage = self._note_damage
        self.damage: float | None = None
        """When a request last found the database damaged, unless a verification has passed since."""
        self._to_verify = threading.Event()
        self.sweeps: list[Callable[[], None]] = [self.answers.sweep]
        """What is kept in memory for a time is forgotten by these."""
        self.guard = TokenGuard(self.worker, self.settings)
        self._previews = asyncio.Semaphore(max(1, self.settings.readers // 2))
        self._asked: list[tuple[ForgetRequest, asyncio.Future[Forgotten]]] = []
        """Requests to forget that were read in this step of the loop."""
        self._answered: deque[tuple[Future[Forgotten], asyncio.Future[Forgotten]]] = deque()
        """Those that were answered since the last step; whoever waits is told in the next one."""
        self._is_woken = False
        self._pin: BinaryIO | None = None
        """The file of the pinned head at the start, kept open so that no later one can get its number."""
        self._state_of_pin = "ok"
        self._ended = threading.Event()
        self._always: list[asyncio.Task[None]] = []
        self._begun: set[asyncio.Task[None]] = set()

    @property
    def is_alive(self) -> bool:
        """Whether all threads and tasks are there that have to be."""
        return self.worker.is_alive and not any(task.done() for task in self._always)

    async def preview(self, function: Callable[[Vault], _Result]) -> _Result:
        """Read what may take seconds: half of the readers are left to others."""
        async with self._previews:
            return await done(self.worker.read(function))

    async def forget(self, request: ForgetRequest) -> Forgotten:
        """Forget people, together with whoever asks in the same step of the loop.

        Handed over one by one, the first would be alone in its transaction, and whoever waits for an answer
        would be woken one by one.
        """
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._hand_over, loop)
        waiting: asyncio.Future[Forgotten] = loop.create_future()
        self._asked.append((request, waiting))
        return await waiting

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the vault what was asked for."""
        asked, self._asked = self._asked, []
        for request, waiting in asked:
            if waiting.cancelled():
                continue
            try:
                answer = self.worker.forget(request)
            except Exception as error:  # the others of this step are handed over all the same
                waiting.set_exception(error)
                continue
            waiting.add_done_callback(partial(_cancel_with, answer))
            answer.add_done_callback(partial(self._note_answer, loop, waiting))

    def _note_answer(
        self,
        loop: asyncio.AbstractEventLoop,
        waiting: "asyncio.Future[Forgotten]",
        answer: "Future[Forgotten]",
    ) -> None:
        """Have whoever waits told, in the thread of the loop; called in that of the vault."""
        self._answered.append((answer, waiting))
        if not self._is_woken:  # noted before this is looked at, and told after it is unset: none is left
            self._is_woken = True
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._tell_answers)

    def _tell_answers(self) -> None:
        self._is_woken = False
        while self._answered:
            answer, waiting = self._answered.popleft()
            if waiting.done():  # cancelled
                continue
            if answer.cancelled():
                waiting.cancel()
            elif (error := answer.exception()) is not None:
                waiting.set_exception(error)
            else:
                waiting.set_result(answer.result())

    def state_of_pin(self, file: int | None) -> str:
        """Whether the file of the pinned head is the one of the start: it is never replaced."""
        first = None if self._pin is None else os.fstat(self._pin.fileno()).st_ino
        state = "missing" if file is None else "ok" if file == first else "recreated"
        if state != self._state_of_pin:
            log("pinned head", {"state": state}, logging.WARNING)
        self._state_of_pin = state
        return state

    @asynccontextmanager
    async def running(self, *others: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        """Run the threads of the vault, and whatever works in the background until it is cancelled."""
        with self.open_vault() as vault:
            self._pin = vault.open_pin()
        self.worker.__enter__()
        verifying = threading.Thread(target=self._verify, name="vault-verifier", daemon=True)
        self._always = [asyncio.create_task(work()) for work in (self._upkeep, *others)]
        verifying.start()
        try:
            yield
        finally:
            self._ended.set()
            self._to_verify.set()
            await self._end(time.monotonic() + SECONDS_TO_END, verifying)
            if self._pin is not None:
                self._pin.close()

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
            await asyncio.wait_for(self._note_uses(), left())
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

    def _count(self, result: Forgotten) -> None:
        self.metrics.deletions.labels(result.certificate.summary()["unlearner"] or "none").inc()

    async def _upkeep(self) -> None:
        """From time to time note the uses of tokens, and forget what was kept for a time."""
        while True:
            await asyncio.sleep(self.settings.note_seconds)
            await self._note_uses()
            for sweep in self.sweeps:
                sweep()

    async def _note_uses(self) -> None:
        try:
            await self.guard.note_uses()
        except Exception as error:  # they are kept, and noted the next time
            log("uses of tokens not noted", described(error))

    def _note_damage(self, error: BaseException) -> None:
        """Remember that the database is damaged, and have the vault verified soon."""
        if self.damage is None:
            log("the database is damaged", described(error), logging.ERROR)
        self.damage = time.monotonic()
        if self.verified is None or self.verified.holds:
            self._to_verify.set()

    def _verify(self) -> None:
        """Verify the vault from time to time, and after damage, through a connection of its own."""
        pause = self._verify_once() if self.settings.verify_hours else None
        not_before = 0.0
        while True:
            is_hurried = self._to_verify.wait(pause)
            if self._ended.wait(max(0.0, not_before - time.monotonic()) if is_hurried else 0.0):
                return
            self._to_verify.clear()
            pause = self._verify_once()
            if is_hurried:
                not_before = time.monotonic() + _SECONDS_TO_VERIFY_AGAIN

    def _verify_once(self) -> float | None:
        """Verify the vault; returns after how many seconds to do so again."""
        begun, pause = time.monotonic(), self.settings.verify_hours * 3600 or None
        try:
            with self.open_vault() as vault:
                found = vault.verify(progress=self._go_on)
            self.verified = Verified(utc_now(), found.holds, len(found.problems))
            level = logging.INFO if found.holds else logging.WARNING
            log("verified", {"holds": found.holds, "problems": len(found.problems)}, level)
            if found.holds and self.damage is not None and self.damage < begun:
                self.damage = None
        except Exception as error:
            if not self._ended.is_set():
                kind = problem_of(error).kind
                self.verified = Verified(utc_now(), False, 0, kind)
                log("not verified", {"problem": kind, **described(error)}, logging.WARNING)
        if self.damage is not None or self.verified is None or not self.verified.holds:  # it may be repaired
            pause = min(pause or _SECONDS_TO_VERIFY_AGAIN, _SECONDS_TO_VERIFY_AGAIN)
        return None if pause is None else max(1.0, pause - time.monotonic() + begun)

    def _go_on(self, rows: int) -> None:
        """Give a verification up at the end."""
        if self._ended.is_set():
            raise InterruptedError


def service_of(request: Request) -> Service:
    """The service that a request was sent to."""
    service: Service = request.app.state.service
    return service


def _cancel_with(answer: "Future[Forgotten]", waiting: "asyncio.Future[Forgotten]") -> None:
    """Do not begin what nobody waits for any more."""
    if waiting.cancelled():
        answer.cancel()


async def done(answer: "Future[_Result]") -> _Result:
    """Wait for the vault without holding others up."""
    return await asyncio.wrap_future(answer)
