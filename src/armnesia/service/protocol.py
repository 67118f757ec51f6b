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
ANSWERED_SECONDS = 5.0
"""For the rest of a body whose request is answered already: closed at once, the answer could be lost."""
WRITE_SECONDS, LEAST_WRITTEN = 30.0, 16_384
"""A client must read so many bytes of its answer in this time."""
ENDING_SECONDS = 5.0
"""The same, when the service ends."""


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
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._limit_time()
        self._newcomers.add(self, self.client[0] if self.client else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._newcomers.discard(self)
        for timer in (self._timer, self._writing):
            if timer is not None:
                timer.cancel()

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
        if self.conn.their_state is h11.SEND_BODY:
            self._close_after(ANSWERED_SECONDS)
        if self.transport.is_closing():
            self._watch_writing()

    def pause_writing(self) -> None:
        """Wait for the client to read its answer, but not for ever."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        if self._writing is not None and not self.transport.is_closing():
            self._writing.cancel()
            self._writing = None

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without a further request."""
        super().timeout_keep_alive_handler()
        self._watch_writing()

    def shutdown(self) -> None:
        """Close the connection when its request is answered."""
        super().shutdown()
        self._watch_writing(ENDING_SECONDS)

    def _watch_writing(self, seconds: float | None = None) -> None:
        """Give a connection up whose client does not read; the transport itself would wait for ever."""
        if self._writing is not None:
            self._writing.cancel()
        size, pause = self.transport.get_write_buffer_size(), seconds or WRITE_SECONDS

        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left and left > size - LEAST_WRITTEN:
                log("answer not read", {})
                self.transport.abort()
            elif left:
                self._watch_writing(seconds)

        self._writing = self.loop.call_later(pause, look) if size else None

    @property
    def _has_token(self) -> bool:
        return self.scope is not None and TOKEN in self.scope

    @property
    def is_waited_for(self) -> bool:
        """Whether it has not sent a whole request, or does not read the answer, and has no accepted token."""
        is_slow = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) or self.flow.write_paused
        return is_slow and not self._has_token

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
        self._close_after({h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}.get(part))

    def _close_after(self, seconds: float | None) -> None:
        """Close the connection after this time, instead of what was said before; None: leave it open."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._close)

    def _close(self) -> None:
        self.transport.close()
        self._watch_writing()

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
