"""Works through the requests of controllers: begins them, answers them, and tells of every change."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import httpx

from armnesia.core.errors import ArmnesiaError, DatabaseError, InvalidInputError, VaultBusyError
from armnesia.service.opendsr.processor import Processor, called_host
from armnesia.service.problems import Problem, problem_of
from armnesia.service.structured_log import described, log
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import Callback, ForgetRequest, SubjectRequest, Vault
from armnesia.vault.keys.canonical_json import canonical, time_text
from armnesia.vault.ledger.certificate import concerns

PENDING, IN_PROGRESS, COMPLETED, CANCELLED = "pending", "in_progress", "completed", "cancelled"
_POLL = 5.0
_RETRY_REFUSED = timedelta(hours=1)
_RETRY_SOONER = timedelta(minutes=1)
"""After the second refusal, if the ledger has grown; twice as long after each further one."""
_PAUSES = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440, 1440)]
"""Between the attempts to tell a controller; after the last one it is given up, and the log says so."""
_SECONDS = 10.0
"""How long an answer is waited for, and for how long one host is called in a round."""


def with_status(request: SubjectRequest, status: str, **changes: Any) -> SubjectRequest:
    """The request with another status, of which its controller is to be told at every address."""
    told = tuple(Callback(url, status) for url in request.urls)
    return replace(request, status=status, callbacks=(*request.callbacks, *told), **changes)


class _Refused(NamedTuple):
    """How often a request was refused, and the length of the ledger when it was tried last."""

    times: int
    head: int
    sooner: datetime
    """When it is tried again if the ledger has grown: then it may be possible."""
    later: datetime
    """When it is tried again in any case."""


class Desk:
    """The requests of one service."""

    def __init__(
        self,
        worker: VaultWorker,
        processor: Processor,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._worker, self._processor, self._now = worker, processor, now
        self._transport = transport
        self._refused: dict[str, _Refused] = {}
        self._at_sources: dict[str, int] = {}
        """By request, the length of the ledger at which its rows were still to be erased at a source."""
        self.wake = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                await self.work()
            except Exception as error:  # the next time goes on
                log("requests of controllers wait", described(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), _POLL)
            self.wake.clear()

    async def work(self) -> None:
        """Do what is to be done now."""
        requests = await self._write(lambda vault: vault.subject_requests(only_open=True))
        waiting = {request.id for request in requests}
        self._refused = {id_: each for id_, each in self._refused.items() if id_ in waiting}
        self._at_sources = {id_: head for id_, head in self._at_sources.items() if id_ in waiting}
        answered = [await self._each(self._answer, request) for request in requests]
        calls = _Calls(self._processor, self._transport)
        tell = partial(self._tell, calls)
        told = [self._each(tell, request) for request in answered if request is not None]
        for result in await asyncio.gather(*told, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _each(
        self, step: Callable[[SubjectRequest], Awaitable[SubjectRequest]], request: SubjectRequest
    ) -> SubjectRequest | None:
        """Go on with a request; one that fails does not hold up the others."""
        try:
            return await step(request)
        except InvalidInputError as error:  # it was cancelled meanwhile: the next time sees that
            log("request of a controller has changed", described(error))
        except (DatabaseError, VaultBusyError, Problem):  # which all others would meet as well
            raise
        except Exception as error:
            log("request of a controller failed", described(error), logging.ERROR)
        return None

    async def _answer(self, request: SubjectRequest) -> SubjectRequest:
        return await self._complete(await self._forget(await self._begin(request)))

    async def _begin(self, request: SubjectRequest) -> SubjectRequest:
        if request.status == PENDING and request.begin <= time_text(self._now()):
            return await self._change(request, with_status(request, IN_PROGRESS))
        return request

    async def _forget(self, request: SubjectRequest) -> SubjectRequest:
        """Forget the people; if that is refused, it is tried again later, and an operator can help."""
        if request.status != IN_PROGRESS or request.users is None:
            return request
        head = await self._write(lambda vault: vault.head.size)
        if self._waits(request, head):
            return request
        asked = ForgetRequest(users=request.users, by=request.controller)
        try:
            done = await asyncio.wrap_future(self._worker.forget(asked))
        except (DatabaseError, VaultBusyError):  # the next time has the answer
            raise
        except ArmnesiaError as error:
            self._note_refused(request, head)
            kind = problem_of(error).kind
            log("request of a controller refused", {"problem": kind, **described(error)})
            return (
                request
                if request.obstacle == kind
                else await self._change(request, replace(request, obstacle=kind))
            )
        self._refused.pop(request.id, None)
        return await self._change(request, replace(request, users=None, sequence=done.entry, obstacle=""))

    def _waits(self, request: SubjectRequest, head: int) -> bool:
        """Whether a refused request is not tried yet: once the ledger has grown, it may be possible."""
        refused = self._refused.get(request.id)
        if refused is None:
            return False
        return self._now() < (refused.later if head == refused.head else refused.sooner)

    def _note_refused(self, request: SubjectRequest, head: int) -> None:
        """Remember that a request was refused, and when it is tried again: less and less often."""
        now, before = self._now(), self._refused.get(request.id)
        times = 1 if before is None else before.times + 1
        pause = _RETRY_SOONER * 2 ** min(times - 2, 10) if times > 1 else timedelta()
        later = now + _RETRY_REFUSED
        self._refused[request.id] = _Refused(times, head, min(now + pause, later), later)

    def next_try(self, id_: str) -> str | None:
        """When a request that was refused is tried again, unless the ledger grows before."""
        refused = self._refused.get(id_)
        return None if refused is None else time_text(refused.later)

    async def _complete(self, request: SubjectRequest) -> SubjectRequest:
        """Completed is a request whose rows are gone: in an external vault, those at the sources as well."""
        number = request.sequence
        if request.status != IN_PROGRESS or number is None:
            return request
        if self._worker.is_external and not self._processor.sources_erased_elsewhere:
            head = await self._write(lambda vault: vault.head.size)
            if self._at_sources.get(request.id) == head:  # every erasure at a source adds an entry
                return request
            if await self._write(lambda vault: _is_due_at_a_source(vault, number)):
                self._at_sources[request.id] = head
                return request
        return await self._change(request, with_status(request, COMPLETED))

    async def _tell(self, calls: "_Calls", request: SubjectRequest) -> SubjectRequest:
        """Tell each address of the changes that it does not know yet."""
        by_address: dict[str, list[Callback]] = {}
        for callback in request.callbacks:
            by_address.setdefault(callback.url, []).append(callback)
        told = [self._tell_address(calls, request, each) for each in by_address.values()]
        left = await asyncio.gather(*told)
        if left == list(by_address.values()):
            return request
        kept = tuple(callback for each in left for callback in each)
        return await self._change(request, replace(request, callbacks=kept))

    async def _tell_address(
        self, calls: "_Calls", request: SubjectRequest, callbacks: list[Callback]
    ) -> list[Callback]:
        """Tell an address of changes in their order; returns those that are still to be told."""
        now = self._now()
        for place, callback in enumerate(callbacks):
            if callback.after > time_text(now):
                return callbacks[place:]
            sent, later = await calls.sent(request, callback), callbacks[place + 1 :]
            if sent is None:
                return callbacks[place:]
            if not sent and callback.attempts < len(_PAUSES):
                after = time_text(now + _PAUSES[callback.attempts])
                return [replace(callback, attempts=callback.attempts + 1, after=after), *later]
            if not sent:
                log("callback given up", {"status": callback.status})
                return later
        return []

    async def _change(self, before: SubjectRequest, after: SubjectRequest) -> SubjectRequest:
        changed: SubjectRequest = await self._write(lambda vault: vault.change_subject_request(before, after))
        return changed

    async def _write(self, function: Callable[[Any], Any]) -> Any:
        return await asyncio.wrap_future(self._worker.write(function))


def _is_due_at_a_source(vault: Vault, number: int) -> bool:
    """Whether a source may still hold rows of whoever was forgotten by an entry, or an old version of it."""
    later = (each for each in vault.ledger(after=number) if each.kind == "erased")
    purged = {
        each.facts["source"] for each in later if concerns(each, number) and each.facts["state"] == "purged"
    }
    sources = vault.source_erasures().sources
    return any(each.to_erase or each.to_purge for each in sources if each.id not in purged)


class _Calls:
    """The calls of one round: hosts are called at the same time, and each host by one call at a time.

    A host that has taken long, or has not answered, is not called again in the same round.
    """

    def __init__(self, processor: Processor, transport: httpx.AsyncBaseTransport | None) -> None:
        self._processor, self._transport = processor, transport
        self._one_by_one: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._begun: dict[str, float] = {}

    async def sent(self, request: SubjectRequest, callback: Callback) -> bool | None:
        """Whether an address has taken a callback; None if its host is to be called later."""
        host = called_host(callback.url)
        if host is None or not self._processor.may_call(callback.url):  # the hosts may be declared anew
            return False
        async with self._one_by_one[host]:
            now = time.monotonic()
            if now - self._begun.setdefault(host, now) >= _SECONDS:
                return None
            return await self._posted(request, callback, host)

    async def _posted(self, request: SubjectRequest, callback: Callback, host: str) -> bool:
        facts = {**status_body(request), "request_status": callback.status}
        body = canonical({**facts, "status_callback_url": callback.url}).encode()
        headers = {"Content-Type": "application/json", **self._processor.headers(body)}
        try:
            return await asyncio.wait_for(self._post(callback.url, body, headers), _SECONDS)
        except Exception as error:  # an address is the controller's: whatever it leads to is its failure
            log("callback failed", described(error))
            self._begun[host] = float("-inf")
            return False

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> bool:
        """Whether the answer is a success; its body is not read."""
        async with (
            httpx.AsyncClient(
                timeout=_SECONDS, trust_env=False, follow_redirects=False, transport=self._transport
            ) as client,
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            return answer.is_success


def status_body(request: SubjectRequest) -> dict[str, Any]:
    """What a controller is told of a request."""
    return {
        "api_version": "2.0",
        "controller_id": request.controller,
        "expected_completion_time": request.due,
        "request_status": request.status,
        "subject_request_id": request.id,
    }
