"""The vault behind the service: one thread writes, some threads read, each with a connection of its own.

A connection to a vault belongs to one thread. Requests to forget that wait for the writer at the same time
are answered in one transaction: on a disk, the commit is most of the time that a deletion takes. Those for
many people take longer, because every name that the vault does not hold is compared with many spellings: they
are answered alone, and let others before them.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sized
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from armnesia.core.errors import (
    ArmnesiaError,
    DamagedDatabaseError,
    DatabaseError,
    UnfinishedError,
    VaultBusyError,
)
from armnesia.service.problems import Problem
from armnesia.service.settings import Settings
from armnesia.service.structured_log import described, log
from armnesia.vault import MANAGED, ForgetRequest, Forgotten, Vault

_Result = TypeVar("_Result")
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds between the attempts to complete erasures that other processes hold back."""
_FEW_NAMES = 10
"""A request for more lets others before it: comparing 1,000 names takes about a second."""
_NAMES_OF_GROUP = 100
"""A group with so many names takes no further request."""
_LONGEST_WAIT_FOR_READERS = 0.5
"""Seconds; a deletion goes on beside whoever reads for longer, and is erased after that."""


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

    @property
    def n_names(self) -> int:
        """How many people, or records, it names."""
        given = self.request.users or self.request.records or ()
        return len(given) if isinstance(given, Sized) else 1


_Job = TypeVar("_Job", _Forget, _Work)


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
        self._looks: queue.Queue[_Work | None] = queue.Queue(settings.waiting)
        self._put_back: deque[_Forget | _Work | None] = deque()
        self._for_many: deque[_Forget] = deque()
        """Requests for many names, which wait until others had their turn."""
        self._gave_way = False
        """Whether others had their turn since the last of them."""
        self._gate = Gate()
        self._groups = self._is_ending = False
        self.may_erase_at_source = False
        """Whether rows may be erased at the sources of the vault, which is fixed when it is created."""
        self._threads = [
            threading.Thread(target=self._write, name="vault-writer", daemon=True),
            threading.Thread(
                target=partial(self._read, self._looks, at_once=True), name="vault-tokens", daemon=True
            ),
            *(
                threading.Thread(
                    target=partial(self._read, self._reads), name=f"vault-reader-{number}", daemon=True
                )
                for number in range(settings.readers)
            ),
        ]
        self._pending = False
        self._pause = _FIRST_PAUSE
        self._try_again_at = 0.0
        self.observe_group: Callable[[int], None] = lambda size: None
        """Is told how many requests were answered in one transaction."""
        self.observe_answer: Callable[[Forgotten], None] = lambda result: None
        """Is told of every request to forget that was answered."""
        self.observe_damage: Callable[[BaseException], None] = lambda error: None
        """Is told whenever the database is found to be damaged."""

    def __enter__(self) -> "VaultWorker":
        with self._open() as vault:  # refused here, not at the first request
            # An external vault looks people up at its sources again after every other request.
            self._groups = vault.configuration.mode == MANAGED
            self.may_erase_at_source = vault.configuration.may_erase_at_source
            self._note_pending(vault.pending_erasures().number > 0)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Do what was accepted, then close all connections."""
        self.end()

    def end(self, seconds: float | None = None) -> bool:
        """Take on nothing more and do what was accepted; whether that was done within so many seconds."""
        self._is_ending = True
        until = None if seconds is None else time.monotonic() + seconds

        def left() -> float | None:
            return None if until is None else max(0.0, until - time.monotonic())

        ends: list[queue.Queue[Any]] = [self._writes, self._looks, *[self._reads] * self._settings.readers]
        with suppress(queue.Full):
            for jobs in ends:
                jobs.put(None, timeout=left())
        for thread in self._threads:
            thread.join(left())
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def is_alive(self) -> bool:
        """Whether all threads are there."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def waiting(self) -> int:
        """How many requests wait for the writer."""
        return self._writes.qsize() + len(self._put_back) + len(self._for_many)

    def forget(self, request: ForgetRequest) -> "Future[Forgotten]":
        """Forget people, together with whoever waits at the same time."""
        return self._put(self._writes, _Forget(request)).answer

    def write(self, function: Callable[[Vault], _Result]) -> "Future[_Result]":
        """Do something that may change the vault."""
        return self._put(self._writes, _Work(function)).answer

    def read(self, function: Callable[[Vault], _Result]) -> "Future[_Result]":
        """Do something that changes nothing."""
        return self._put(self._reads, _Work(function)).answer

    def look(self, function: Callable[[Vault], _Result]) -> "Future[_Result]":
        """Read something small, which every other request needs: it does not wait for those who read."""
        return self._put(self._looks, _Work(function)).answer

    def _put(self, jobs: "queue.Queue[Any]", job: _Job) -> _Job:
        if self._is_ending or (jobs is self._writes and self.waiting >= self._settings.waiting):
            raise Problem("too-busy")
        try:
            jobs.put_nowait(job)
        except queue.Full:
            raise Problem("too-busy") from None
        return job

    def _read(self, jobs: "queue.Queue[_Work | None]", *, at_once: bool = False) -> None:
        """Read for whoever waits, until the end."""
        vault: Vault | None = None
        while (work := jobs.get()) is not None:
            with self._gate.shared(at_once=at_once):
                vault = self._do(vault, work)
        _close(vault)

    def _write(self) -> None:
        """Answer whoever waits, until the end."""
        vault: Vault | None = None
        while (job := self._next_job()) is not None:
            if isinstance(job, _Work):
                vault = self._do(vault, job)
            else:
                vault = self._forget(vault, [job] if job.n_names > _FEW_NAMES else self._group(job))
        _close(vault)

    def _do(self, vault: Vault | None, work: _Work) -> Vault | None:
        """Do some work; returns the connection for the next one."""
        if not work.answer.set_running_or_notify_cancel():
            return vault
        try:
            vault = vault or self._open()
            result = work.function(vault)
        except BaseException as error:  # a library may raise what is no Exception: the thread goes on
            vault = self._usable(vault, error)
            work.answer.set_exception(_told(error))
        else:
            work.answer.set_result(result)
        return vault

    def _forget(self, vault: Vault | None, group: list[_Forget]) -> Vault | None:
        """Answer requests in one transaction; if that fails as a whole, each in its own."""
        group = [each for each in group if each.answer.set_running_or_notify_cancel()]
        if not group:
            return vault
        vault, error = self._forget_together(vault, group)
        if error is None:
            return vault
        # Nothing was changed. A database that does not answer one request does not answer the others.
        alone = [] if len(group) == 1 or _concerns_all(error) else group
        for each in alone:
            vault, error = self._forget_together(vault, [each])
            if error is not None:
                each.answer.set_exception(_told(error))
                if _concerns_all(error):
                    break
        for each in group:
            if not each.answer.done():
                each.answer.set_exception(_told(error))
        return vault

    def _forget_together(
        self, vault: Vault | None, group: list[_Forget]
    ) -> tuple[Vault | None, BaseException | None]:
        """Answer requests in one transaction; or why that failed as a whole."""
        try:
            vault = vault or self._open()
            with self._gate.alone(_LONGEST_WAIT_FOR_READERS) if self._groups else nullcontext():
                results = vault.forget_many([each.request for each in group])
        except BaseException as error:
            return self._usable(vault, error), error
        _observe(self.observe_group, len(group))
        for each, result in zip(group, results, strict=True):
            if isinstance(result, ArmnesiaError):
                vault = self._usable(vault, result)
                if isinstance(result, UnfinishedError):  # whether its bytes have left the files is not told
                    self._note_pending(True)
                each.answer.set_exception(result)
                continue
            if result.erasure == "pending":
                self._note_pending(True)
            _observe(self.observe_answer, result)
            each.answer.set_result(result)
        return vault, None

    def _group(self, first: _Forget) -> list[_Forget]:
        """The requests to forget that wait already, also behind other work, which is done after them.

        Nobody is waited for. All of them wait at the same time, so that none has to be before another.
        """
        group, n_names = [first], first.n_names
        with suppress(queue.Empty):
            while self._groups and len(group) < self._settings.group and n_names < _NAMES_OF_GROUP:
                job = self._writes.get_nowait()
                if isinstance(job, _Forget):
                    if job.n_names > _FEW_NAMES:
                        self._for_many.append(job)
                        continue
                    group.append(job)
                    n_names += job.n_names
                    continue
                self._put_back.append(job)
                if job is None:
                    break
        return group

    def _next_job(self) -> _Forget | _Work | None:
        """What has waited longest, in turns with requests for many names if some wait; None at the end."""
        if self._for_many and self._gave_way:
            self._gave_way = False
            return self._for_many.popleft()
        while True:
            try:
                job = self._waiting_job(at_once=bool(self._for_many))
            except queue.Empty:
                return self._for_many.popleft() if self._for_many else _Work(self._finish)
            if job is None and self._for_many:
                self._put_back.appendleft(None)  # what was accepted is done before the end
                return self._for_many.popleft()
            if not (isinstance(job, _Forget) and job.n_names > _FEW_NAMES):
                self._gave_way = True
                return job
            self._for_many.append(job)

    def _waiting_job(self, *, at_once: bool) -> _Forget | _Work | None:
        """What has waited longest; raises `queue.Empty` at once, or when it is time to complete erasures."""
        if self._put_back:
            return self._put_back.popleft()
        if at_once:
            return self._writes.get_nowait()
        wait = max(0.0, self._try_again_at - time.monotonic()) if self._pending else None
        return self._writes.get(timeout=wait)

    def _usable(self, vault: Vault | None, error: BaseException) -> Vault | None:
        """The connection, if it can still be used: after a refusal, but not after a failure."""
        if isinstance(error, DamagedDatabaseError):
            _observe(self.observe_damage, error)
        if isinstance(error, ArmnesiaError | Problem) and not isinstance(error, DatabaseError):
            return vault
        _close(vault)
        return None

    def _note_pending(self, pending: bool) -> None:
        """Remember whether erasures are pending; the first attempt to complete them is soon."""
        self._pending, self._pause = pending, _FIRST_PAUSE
        self._try_again_at = time.monotonic() + self._pause

    def _finish(self, vault: Vault) -> None:
        """Complete erasures that other processes held back; on some databases only `armnesia compact` can.

        Nobody is waited for: as long as that does not succeed it is tried again, less and less often.
        """
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self._try_again_at = time.monotonic() + self._pause
        try:
            with self._gate.alone(_LONGEST_WAIT_FOR_READERS):
                number = vault.pending_erasures().number
            if number == 0 and vault.finish(wait=False).erasure == "complete":
                self._pending = False
        except Exception as error:
            log("erasures not completed", described(error), logging.ERROR)
            raise  # to whoever decides whether the connection can still be used


class Gate:
    """Lets many in together, or one alone; whoever wants to be alone is not overtaken by newcomers.

    A reader of SQLite holds back the erasure of what is deleted meanwhile, so that no reader of this process
    is in the way of a deletion. One that reads for long is not waited for: the erasure is then completed
    after it, as if another process had read.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._together = self._want_alone = self._want_at_once = 0
        self._is_alone = False

    @contextmanager
    def shared(self, *, at_once: bool = False) -> Iterator[None]:
        """Be in with others; `at_once`, for what is rare and short, before those who want to be alone."""
        with self._changed:
            self._want_at_once += at_once
            self._changed.wait_for(lambda: not self._is_alone and (at_once or not self._want_alone))
            self._want_at_once -= at_once
            self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, seconds: float | None = None) -> Iterator[None]:
        """Be in alone; after so many seconds beside those who are still in, but nobody else comes in."""
        with self._changed:
            self._want_alone += 1
            self._changed.wait_for(
                lambda: not (self._is_alone or self._together or self._want_at_once), seconds
            )
            self._changed.wait_for(lambda: not self._is_alone)
            self._want_alone -= 1
            self._is_alone = True
        try:
            yield
        finally:
            with self._changed:
                self._is_alone = False
                self._changed.notify_all()


def _close(vault: Vault | None) -> None:
    """Close a connection, which may be broken."""
    if vault is not None:
        with suppress(Exception):
            vault.close()


def _concerns_all(error: BaseException) -> bool:
    """Whether the database would refuse other requests as well."""
    return isinstance(error, DatabaseError | VaultBusyError)


def _told(error: BaseException | None) -> Exception:
    """The error as an answer has it: what is no Exception would end whoever waits."""
    return error if isinstance(error, Exception) else RuntimeError(type(error).__name__)


def _observe(observer: Callable[[Any], None], fact: object) -> None:
    """Tell an observer; whoever waits for an answer gets it in any case."""
    try:
        observer(fact)
    except Exception as error:
        log("not noted", described(error), logging.ERROR)
