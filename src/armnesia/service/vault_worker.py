"""The vault behind the service: one thread writes, some read, each with a connection of its own.

A connection to a vault belongs to one thread. Requests to forget that wait for the writer at the same time
are answered in one transaction: on a disk, the commit is most of the time that a deletion takes.
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError, DatabaseError
from armnesia.service.metrics import Metrics
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.vault import EXTERNAL, ForgetRequest, Forgotten, Vault

_Result = TypeVar("_Result")
_AT_ONCE = 64
"""The most requests to forget in one transaction: whoever asks first waits for all of it."""


@dataclass
class _Job:
    """Something to do with the vault, or a request to forget, and the place of its answer."""

    work: Callable[[Vault], Any] | ForgetRequest
    answer: "Future[Any]" = field(default_factory=Future)


class VaultWorker:
    """The threads that use a vault; `open_vault` makes the connection of each of them.

    >>> import tempfile
    >>> from armnesia.vault import Configuration
    >>> folder = tempfile.TemporaryDirectory()
    >>> url = f"sqlite:///{folder.name}/vault.db"
    >>> Vault.create(url, Configuration(actions=("A", "B"))).close()
    >>> with VaultWorker(lambda: Vault.open(url), Settings(), Metrics()) as worker:
    ...     worker.forget(ForgetRequest(users=["ann"])).result().held
    0
    >>> folder.cleanup()
    """

    def __init__(self, open_vault: Callable[[], Vault], settings: Settings, metrics: Metrics) -> None:
        self._open, self._metrics = open_vault, metrics
        self._writes: queue.Queue[_Job | None] = queue.Queue(settings.waiting)
        self._reads: queue.Queue[_Job | None] = queue.Queue(settings.waiting)
        self._at_once = 1
        self._is_ending = self.is_external = False
        self.may_erase_at_source = False
        """Whether rows may be erased at the sources of the vault, which is fixed when it is created."""
        self._readers = [
            threading.Thread(target=self._read, name=f"vault-reader-{number}", daemon=True)
            for number in range(settings.readers)
        ]
        self._threads = [
            threading.Thread(target=self._write, name="vault-writer", daemon=True),
            *self._readers,
        ]

    def __enter__(self) -> "VaultWorker":
        with self._open() as vault:  # refused here, not at the first request
            # An external vault looks people up at its sources again after every other request.
            self.is_external = vault.configuration.mode == EXTERNAL
            self._at_once = 1 if self.is_external else _AT_ONCE
            self.may_erase_at_source = vault.configuration.may_erase_at_source
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Do what was accepted, then close all connections."""
        self.end()

    def end(self, seconds: float = threading.TIMEOUT_MAX) -> bool:
        """Take on nothing more and do what was accepted; whether that was done within so many seconds."""
        self._is_ending = True
        until = time.monotonic() + seconds
        with suppress(queue.Full):
            for jobs in (self._writes, *[self._reads] * len(self._readers)):
                jobs.put(None, timeout=max(0.0, until - time.monotonic()))
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def is_alive(self) -> bool:
        """Whether all threads are there."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def waiting(self) -> int:
        """How many requests wait for the writer."""
        return self._writes.qsize()

    def forget(self, request: ForgetRequest) -> "Future[Forgotten]":
        """Forget people, together with whoever waits at the same time."""
        return self._put(self._writes, request)

    def write(self, function: Callable[[Vault], _Result]) -> "Future[_Result]":
        """Do something that may change the vault."""
        return self._put(self._writes, function)

    def read(self, function: Callable[[Vault], _Result]) -> "Future[_Result]":
        """Do something that changes nothing."""
        return self._put(self._reads, function)

    def _put(
        self, jobs: "queue.Queue[_Job | None]", work: Callable[[Vault], Any] | ForgetRequest
    ) -> "Future[Any]":
        job = _Job(work)
        try:
            if self._is_ending:
                raise queue.Full
            jobs.put_nowait(job)
        except queue.Full:
            raise Problem("too-busy") from None
        return job.answer

    def _read(self) -> None:
        """Read for whoever waits, until the end."""
        vault: Vault | None = None
        while (job := self._reads.get()) is not None:
            vault = self._do(vault, job)
        _close(vault)

    def _write(self) -> None:
        """Answer whoever waits, until the end: requests to forget together, and then other work."""
        vault: Vault | None = None
        jobs: list[_Job | None] = []
        while None not in jobs:
            jobs = [self._writes.get()]
            with suppress(queue.Empty):
                while len(jobs) < self._at_once:
                    jobs.append(self._writes.get_nowait())
            accepted = [job for job in jobs if job is not None]
            vault = self._forget(vault, [job for job in accepted if isinstance(job.work, ForgetRequest)])
            for job in accepted:
                if not isinstance(job.work, ForgetRequest):
                    vault = self._do(vault, job)
        _close(vault)

    def _do(self, vault: Vault | None, job: _Job) -> Vault | None:
        """Do some work; returns the connection for the next one."""
        assert not isinstance(job.work, ForgetRequest)
        if not job.answer.set_running_or_notify_cancel():
            return vault
        try:
            vault = vault or self._open()
            result = job.work(vault)
        except BaseException as error:  # a library may raise what is no Exception: the thread goes on
            job.answer.set_exception(_told(error))
            return _usable(vault, error)
        job.answer.set_result(result)
        return vault

    def _forget(self, vault: Vault | None, jobs: list[_Job]) -> Vault | None:
        """Answer requests in one transaction; one that is refused does not harm the others."""
        jobs = [job for job in jobs if job.answer.set_running_or_notify_cancel()]
        if not jobs:
            return vault
        try:
            vault = vault or self._open()
            results = vault.forget_many([job.work for job in jobs if isinstance(job.work, ForgetRequest)])
        except BaseException as error:  # nothing was changed
            for job in jobs:
                job.answer.set_exception(_told(error))
            return _usable(vault, error)
        self._metrics.group_sizes.observe(len(jobs))
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, ArmnesiaError):
                vault = _usable(vault, result)
                job.answer.set_exception(result)
                continue
            self._metrics.deletions.inc()
            job.answer.set_result(result)
        return vault


def _usable(vault: Vault | None, error: BaseException) -> Vault | None:
    """The connection, if it can still be used: after a refusal, but not after a failure."""
    if isinstance(error, ArmnesiaError | Problem) and not isinstance(error, DatabaseError):
        return vault
    _close(vault)
    return None


def _close(vault: Vault | None) -> None:
    """Close a connection, which may be broken."""
    if vault is not None:
        with suppress(Exception):
            vault.close()


def _told(error: BaseException) -> Exception:
    """The error as an answer has it: what is no Exception would end whoever waits."""
    return error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
