"""The vault behind the service: one thread writes, some threads read, each with a connection of its own.

A connection to a vault belongs to one thread. Requests to forget that wait for the writer at the same time
are answered in one transaction: on a disk, the commit is most of the time that a deletion takes.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError, DatabaseError, VaultBusyError
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.vault import MANAGED, ForgetRequest, Forgotten, Vault

_Result = TypeVar("_Result")
_IDLE = 1.0
"""After so many seconds without work, erasures that readers held back are completed."""


@dataclass
class _Work:
    """Something to do with the vault, and the place of its answer."""

    function: Callable[[Vault], Any]
    answer: "Future[Any]" = field(default_factory=Future)


@dataclass
class _Forget:
    """A request to forget, and the place of its answer."""

    request: ForgetRequest
    answer: "Future[Forgotten]" = field(default_factory=Future)


class VaultWorker:
    """The threads that use a vault; `open_vault` makes the connection of each of them.

    >>> import tempfile
    >>> from armnesia.vault import Configuration
    >>> folder = tempfile.TemporaryDirectory()
    >>> url = f"sqlite:///{folder.name}/vault.db"
    >>> Vault.create(url, Configuration(actions=("A", "B"))).close()
    >>> with VaultWorker(lambda: Vault.open(url), Settings()) as worker:
    ...     worker.forget(ForgetRequest(users=["ann"])).result().held
    0
    >>> folder.cleanup()
    """

    def __init__(self, open_vault: Callable[[], Vault], settings: Settings) -> None:
        self._open, self._settings = open_vault, settings
        self._writes: queue.Queue[_Forget | _Work | None] = queue.Queue(settings.waiting)
        self._reads: queue.Queue[_Work | None] = queue.Queue(settings.waiting)
        self._put_back: deque[_Forget | _Work | None] = deque()
        self._gate = Gate()
        self._groups = False
        self._threads = [
            threading.Thread(target=self._write, name="vault-writer", daemon=True),
            *(
                threading.Thread(target=self._read, name=f"vault-reader-{number}", daemon=True)
                for number in range(settings.readers)
            ),
        ]
        self._pending = False
        self.observe_group: Callable[[int], None] = lambda size: None
        """Is told how many requests were answered in one transaction."""

    def __enter__(self) -> "VaultWorker":
        with self._open() as vault:  # refused here, not at the first request
            # An external vault looks people up at its sources again after every other request.
            self._groups = vault.configuration.mode == MANAGED
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Do what was accepted, then close all connections."""
        self._writes.put(None)
        for _reader in range(self._settings.readers):
            self._reads.put(None)
        for thread in self._threads:
            thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether all threads are there."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def waiting(self) -> int:
        """How many requests wait for the writer."""
        return self._writes.qsize() + len(self._put_back)

    def forget(self, request: ForgetRequest) -> "Future[Forgotten]":
        """Forget people, together with whoever waits at the same time."""
        asked = _Forget(request)
        _put(self._writes, asked)
        return asked.answer

    def write(self, function: Callable[[Vault], _Result]) -> "Future[_Result]":
        """Do something that may change the vault."""
        work = _Work(function)
        _put(self._writes, work)
        return work.answer

    def read(self, function: Callable[[Vault], _Result]) -> "Future[_Result]":
        """Do something that changes nothing."""
        work = _Work(function)
        _put(self._reads, work)
        return work.answer

    def _read(self) -> None:
        """Read for whoever waits, until the end."""
        vault: Vault | None = None
        while (work := self._reads.get()) is not None:
            with self._gate.shared():
                vault = self._do(vault, work)
        _close(vault)

    def _write(self) -> None:
        """Answer whoever waits, until the end."""
        vault: Vault | None = None
        while (job := self._next_job(vault)) is not None:
            vault = self._do(vault, job) if isinstance(job, _Work) else self._forget(vault, self._group(job))
        _close(vault)

    def _do(self, vault: Vault | None, work: _Work) -> Vault | None:
        """Do some work; returns the connection for the next one."""
        if not work.answer.set_running_or_notify_cancel():
            return vault
        try:
            vault = vault or self._open()
            work.answer.set_result(work.function(vault))
        except Exception as error:
            vault = _usable(vault, error)
            work.answer.set_exception(error)
        return vault

    def _forget(self, vault: Vault | None, group: list[_Forget]) -> Vault | None:
        """Answer requests in one transaction; if that fails as a whole, each in its own."""
        group = [each for each in group if each.answer.set_running_or_notify_cancel()]
        if not group:
            return vault
        try:
            vault = vault or self._open()
            with self._gate.alone() if self._groups else nullcontext():
                results = vault.forget_many([each.request for each in group])
        except Exception as error:
            return self._one_by_one(vault, group, error)
        self.observe_group(len(group))
        for each, result in zip(group, results, strict=True):
            if isinstance(result, ArmnesiaError):
                each.answer.set_exception(result)
            else:
                self._pending |= result.erasure == "pending"
                each.answer.set_result(result)
        return vault

    def _one_by_one(self, vault: Vault | None, group: list[_Forget], error: Exception) -> Vault | None:
        """After a failure that is no refusal of a single request: nothing was changed."""
        vault = _usable(vault, error)
        if len(group) == 1 or isinstance(error, VaultBusyError):
            for each in group:
                each.answer.set_exception(error)
            return vault
        for each in group:
            again = _Work(partial(_forget_alone, each.request))
            vault = self._do(vault, again)
            _copy(again.answer, each.answer)
        return vault

    def _group(self, first: _Forget) -> list[_Forget]:
        """The requests to forget that wait already, also behind other work, which is done after them.

        Nobody is waited for. All of them wait at the same time, so that none has to be before another.
        """
        group = [first]
        with suppress(queue.Empty):
            while self._groups and len(group) < self._settings.group:
                job = self._writes.get_nowait()
                if isinstance(job, _Forget):
                    group.append(job)
                    continue
                self._put_back.append(job)
                if job is None:
                    break
        return group

    def _next_job(self, vault: Vault | None) -> _Forget | _Work | None:
        """What has waited longest; None at the end."""
        if self._put_back:
            return self._put_back.popleft()
        if self._pending and vault is not None:
            try:
                return self._writes.get(timeout=_IDLE)
            except queue.Empty:
                self._finish(vault)
        return self._writes.get()

    def _finish(self, vault: Vault) -> None:
        """Complete erasures that readers held back; on some databases only `armnesia compact` can."""
        self._pending = False
        with suppress(ArmnesiaError), self._gate.alone():
            vault.finish()


class Gate:
    """Lets many in together, or one alone; whoever wants to be alone is not overtaken by newcomers.

    A reader of SQLite holds back the erasure of what is deleted meanwhile, so that no reader of this process
    is in the way of a deletion.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._together = self._want_alone = 0
        self._is_alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Be in with others."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._is_alone or self._want_alone))
            self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be in alone."""
        with self._changed:
            self._want_alone += 1
            self._changed.wait_for(lambda: not (self._is_alone or self._together))
            self._want_alone -= 1
            self._is_alone = True
        try:
            yield
        finally:
            with self._changed:
                self._is_alone = False
                self._changed.notify_all()


def _forget_alone(request: ForgetRequest, vault: Vault) -> Forgotten:
    return vault.forget(**vars(request))


def _put(jobs: "queue.Queue[Any]", job: _Forget | _Work) -> None:
    try:
        jobs.put_nowait(job)
    except queue.Full:
        raise Problem("too-busy") from None


def _usable(vault: Vault | None, error: Exception) -> Vault | None:
    """The connection, if it can still be used: after a refusal, but not after a failure."""
    if isinstance(error, ArmnesiaError) and not isinstance(error, DatabaseError):
        return vault
    _close(vault)
    return None


def _close(vault: Vault | None) -> None:
    """Close a connection, which may be broken."""
    if vault is not None:
        with suppress(Exception):
            vault.close()


def _copy(done: "Future[Any]", answer: "Future[Any]") -> None:
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)
