"""HTTP as uvicorn speaks it, with limits of time, and with our own answers where uvicorn has its own."""

import asyncio
from collections.abc import Mapping
from typing import Any

import h11
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from armnesia.service.newcomers import TOKEN, Newcomers
from armnesia.service.problems import Problem
from armnesia.service.structured_log import log

HEAD_SECONDS, BODY_SECONDS = 10.0, 60.0
"""For the head of a request, since the connection was made or the last answer ended; and for its body."""


class Protocol(H11Protocol):
    """A connection; one that sends no complete request in time is closed."""

    def __init__(
        self, *arguments: Any, headers: Mapping[str, str], newcomers: Newcomers, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._headers, self._newcomers = headers, newcomers
        self._application, self._most = self.app, self.limit_concurrency
        self.limit_concurrency = None  # checked here, because uvicorn would answer without our headers
        self._timed: object = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._limit_time()
        self._newcomers.add(self, self.client[0] if self.client else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._newcomers.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def handle_events(self) -> None:
        """Go on with what was received."""
        is_full = self._most is not None and len(self.connections) >= self._most
        self.app = self._refuse if is_full else self._application
        super().handle_events()
        self._limit_time()

    def on_response_complete(self) -> None:
        """Wait for the next request; whoever has a token is no newcomer any more."""
        super().on_response_complete()
        if self._has_token:
            self._newcomers.discard(self)

    @property
    def _has_token(self) -> bool:
        return self.scope is not None and TOKEN in self.scope

    @property
    def is_waited_for(self) -> bool:
        """Whether it has neither sent a whole request nor an accepted token."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self._has_token

    def give_up(self) -> None:
        """Close the connection at once, in favour of another."""
        log("too many connections without a token", {})
        self.transport.abort()

    def _limit_time(self) -> None:
        """Limit the time of a part of the request; more bytes of the same part gain no time."""
        part = self.conn.their_state
        if part is self._timed:
            return
        self._timed = part
        if self._timer is not None:
            self._timer.cancel()
        seconds = {h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}.get(part)
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.close)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        log("too many connections", {})
        await self._told("too-busy")(scope, receive, send)

    def send_400_response(self, msg: str) -> None:
        """Tell that what was received is no request."""
        answer = self._told("no-http")
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # and not in the middle of an answer
            start = h11.Response(
                status_code=answer.status_code, headers=answer.raw_headers, reason=b"Bad Request"
            )
            events = (start, h11.Data(data=bytes(answer.body)), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def _told(self, kind: str) -> Response:
        answer = Problem(kind).response()
        answer.headers.update({**self._headers, "Connection": "close"})
        return answer
