"""Works through the requests of controllers: begins them, answers them, and tells of every change."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from armnesia.core.errors import ArmnesiaError, InvalidInputError
from armnesia.service.opendsr.processor import Processor
from armnesia.service.problems import Problem, problem_of
from armnesia.service.structured_log import described, log
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import Callback, ForgetRequest, SubjectRequest
from armnesia.vault.keys.canonical_json import canonical

PENDING, IN_PROGRESS, COMPLETED, CANCELLED = "pending", "in_progress", "completed", "cancelled"
_POLL = 5.0
_RETRY_REFUSED = timedelta(hours=1)
_PAUSES = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440, 1440)]
"""Between the attempts to tell a controller; after the last one it is given up, and the log says so."""
_SECONDS = 10.0


def time_text(time: datetime) -> str:
    """A time as the vault writes it."""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def with_status(request: SubjectRequest, status: str, **changes: Any) -> SubjectRequest:
    """The request with another status, of which its controller is to be told at every address."""
    told = tuple(Callback(url, status) for url in request.urls)
    return replace(request, status=status, callbacks=(*request.callbacks, *told), **changes)


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
        self._refused: dict[str, datetime] = {}
        self._head: int | None = None
        """The length of the ledger at which refused requests were tried last."""
        self.wake = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                await self.work()
            except (ArmnesiaError, Problem) as error:
                log("requests of controllers wait", described(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), _POLL)
            self.wake.clear()

    async def work(self) -> None:
        """Do what is to be done now."""
        requests = await self._write(lambda vault: vault.subject_requests(only_open=True))
        for request in requests:
            try:
                begun = await self._begin(request)
                answered = await self._complete(await self._forget(begun))
                await self._tell(answered)
            except InvalidInputError as error:  # it was cancelled meanwhile: the next time sees that
                log("request of a controller has changed", described(error))

    async def _begin(self, request: SubjectRequest) -> SubjectRequest:
        if request.status == PENDING and request.begin <= time_text(self._now()):
            return await self._change(request, with_status(request, IN_PROGRESS))
        return request

    async def _forget(self, request: SubjectRequest) -> SubjectRequest:
        """Forget the people; if that is refused, it is tried again later, and an operator can help."""
        if request.status != IN_PROGRESS or request.users is None:
            return request
        if await self._waits(request):
            return request
        try:
            done = await asyncio.wrap_future(self._worker.forget(ForgetRequest(users=request.users)))
        except ArmnesiaError as error:
            self._refused[request.id] = self._now() + _RETRY_REFUSED
            kind = problem_of(error).kind
            log("request of a controller refused", {"problem": kind, **described(error)})
            return (
                request
                if request.obstacle == kind
                else await self._change(request, replace(request, obstacle=kind))
            )
        sequence = int(done.certificate.body["sequence"])
        return await self._change(request, replace(request, users=None, sequence=sequence, obstacle=""))

    async def _waits(self, request: SubjectRequest) -> bool:
        """Whether a refused request is not tried yet: once the ledger has grown, it may be possible."""
        head = await self._write(lambda vault: vault.head.sequence)
        if head != self._head:
            self._head = head
            self._refused.clear()
        return self._refused.get(request.id, self._now()) > self._now()

    def next_try(self, id_: str) -> str | None:
        """When a request that was refused is tried again, unless the ledger grows before."""
        after = self._refused.get(id_)
        return None if after is None else time_text(after)

    async def _complete(self, request: SubjectRequest) -> SubjectRequest:
        """Completed is a request whose bytes have left the files as well."""
        number = request.sequence
        if request.status != IN_PROGRESS or number is None:
            return request
        certificate = await self._write(lambda vault: vault.certificate_of_entry(number))
        if certificate.erasure != "complete":
            return request
        return await self._change(request, with_status(request, COMPLETED))

    async def _tell(self, request: SubjectRequest) -> None:
        """Tell the first change that each address does not know yet; later ones wait for it."""
        seen: set[str] = set()
        kept: list[Callback] = []
        now = self._now()
        for callback in request.callbacks:
            if callback.url in seen or callback.after > time_text(now):
                seen.add(callback.url)
                kept.append(callback)
            elif not await self._sent(request, callback):
                seen.add(callback.url)
                if callback.attempts < len(_PAUSES):
                    after = time_text(now + _PAUSES[callback.attempts])
                    kept.append(replace(callback, attempts=callback.attempts + 1, after=after))
                else:
                    log("callback given up", {"status": callback.status})
        if tuple(kept) != request.callbacks:
            await self._change(request, replace(request, callbacks=tuple(kept)))

    async def _sent(self, request: SubjectRequest, callback: Callback) -> bool:
        if not self._processor.may_call(callback.url):  # the hosts may have been declared anew
            return False
        facts = {**status_body(request), "request_status": callback.status}
        body = canonical({**facts, "status_callback_url": callback.url}).encode()
        headers = {"Content-Type": "application/json", **self._processor.headers(body)}
        try:
            async with httpx.AsyncClient(
                timeout=_SECONDS, trust_env=False, follow_redirects=False, transport=self._transport
            ) as client:
                answer = await client.post(callback.url, content=body, headers=headers)
        except httpx.HTTPError as error:
            log("callback failed", described(error))
            return False
        return answer.is_success

    async def _change(self, before: SubjectRequest, after: SubjectRequest) -> SubjectRequest:
        changed: SubjectRequest = await self._write(lambda vault: vault.change_subject_request(before, after))
        return changed

    async def _write(self, function: Callable[[Any], Any]) -> Any:
        return await asyncio.wrap_future(self._worker.write(function))


def status_body(request: SubjectRequest) -> dict[str, Any]:
    """What a controller is told of a request."""
    return {
        "api_version": "2.0",
        "controller_id": request.controller,
        "expected_completion_time": request.due,
        "request_status": request.status,
        "subject_request_id": request.id,
    }
