"""HTTP as uvicorn speaks it, with limits of time and size, and our own answers where uvicorn has its own.

The parser (llhttp, by httptools) reads requests that were sent before the answer to another one at once, has
no limit for the length of a head, and takes headers that stand after a body for those of the request. All
three are seen to here. Also, bytes that are made to take long, such as chunks of one byte each, hold nobody
up: they are parsed a step at a time, others have their turn in between, and nothing is parsed of a chunked
body whose request is answered.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import httptools
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from armnesia.service.newcomers import TOKEN, Newcomers
from armnesia.service.problems import Problem
from armnesia.service.structured_log import log

HEAD_SECONDS, BODY_SECONDS = 10.0, 60.0
"""For the head of a request, since the connection was made or the last answer ended; and for its body."""
ANSWERED_SECONDS, ANSWERED_BYTES = 5.0, 16_000_000
"""For the rest of a body whose request is answered already: closed at once, the answer could be lost."""
WRITE_SECONDS, LEAST_WRITTEN = 30.0, 16_384
"""A client must read so many bytes of its answer in this time."""
ENDING_SECONDS = 5.0
"""The same, when the service ends."""
HEAD_BYTES = 65_536
"""The head of a request, and whatever else is no body, may be so long, and a step more."""
_STEP_BYTES = 4_096
"""The parser gets so many bytes at once, because it makes a request of everything that it gets; before it
gets more, others have their turn."""

_VERSIONS = ("1.1", "1.0")
_ONCE = frozenset({b"host", b"authorization", b"content-type", b"idempotency-key", b"transfer-encoding"})
"""Headers of which a proxy may believe another one than we do."""


class Protocol(HttpToolsProtocol):
    """A connection; one that sends no complete request in time is closed."""

    flow: "_Flow"

    def __init__(
        self, *arguments: Any, headers: Mapping[str, str], newcomers: Newcomers, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._headers, self._newcomers = headers, newcomers
        self._application, self._most = self.app, self.limit_concurrency
        self.limit_concurrency = None  # checked here, because uvicorn would answer without our headers
        self._unread = bytearray()
        """What was received and not parsed yet: others have their turn, or an answer is waited for."""
        self._turn: asyncio.Handle | None = None
        """The next step, if there is one."""
        self._discarded: int | None = None
        """How much was received since nothing is parsed any more; None: it is."""
        self._in_body = self._is_bad = self._may_stay = False
        self._has_moved_on = True
        """Whether the last bytes ended a head, or had a part of a body."""
        self._head_bytes = self._heads = 0
        self._current: RequestResponseCycle | None = None
        """The request that is being answered, or was last; `cycle` is the one that was received last."""
        self._timed: object = None
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.flow = _Flow(transport)
        self._limit_time()
        self._newcomers.add(self, self.client[0] if self.client else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        if self._current is not None and not self._current.response_complete:
            self._current.disconnected = True  # uvicorn tells the last one received only
            self._current.message_event.set()
        self.pipeline.clear()
        self._unread.clear()
        self._newcomers.discard(self)
        for timer in (self._timer, self._writing, self._turn):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Go on with what was received."""
        self._unset_keepalive_if_required()
        if self._is_bad:
            return
        if self._discarded is not None:
            self._discarded += len(data)
            if self._discarded > ANSWERED_BYTES:
                self.flow.hold()
            return
        self._unread += data
        if self._turn is None:
            self._read_on()
        self._limit_time()

    def _read_on(self) -> None:
        """Parse a step of what was received, unless a request has to wait for the answer to another one."""
        self._turn = None
        if self._can_parse:
            step = bytes(self._unread[:_STEP_BYTES])
            del self._unread[:_STEP_BYTES]
            self._parse(step)
        if self._can_parse:
            self._turn = self.loop.call_soon(self._take_turn)
        if self._unread:
            self.flow.hold()  # nor is more of it received
        else:
            self.flow.let_go(self.cycle)

    def _take_turn(self) -> None:
        self._read_on()
        self._limit_time()

    @property
    def _can_parse(self) -> bool:
        return bool(self._unread) and not (self._is_bad or self.pipeline or self.transport.is_closing())

    def _parse(self, data: bytes) -> None:
        self._has_moved_on = False
        try:
            self.parser.feed_data(data)
            self._head_bytes = 0 if self._has_moved_on else self._head_bytes + len(data)
            if self._head_bytes > HEAD_BYTES:
                raise httptools.HttpParserError("too long")
        except httptools.HttpParserUpgrade:  # no other protocol is spoken here: answered, and then closed
            self._is_bad = True
            self.cycle.keep_alive = False
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self._is_bad = True
            if self._in_body and self.pipeline:
                self.pipeline.popleft()  # the bad one; those before it are answered first
            elif self._in_body or self._is_idle:
                self.send_400_response("")
        if self._is_bad:
            self._unread.clear()
            self.flow.hold()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those that stand after a body are left out."""
        if not self._in_body:
            super().on_header(name, value.strip(b" \t"))  # the parser leaves what stands behind a value

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        own = self._checked_headers()
        is_full = self._most is not None and len(self.connections) >= self._most
        self.app = self._refuse if is_full else self._application
        super().on_headers_complete()
        self.cycle.transport = cast(asyncio.Transport, _JoinedWriting(self, self.cycle))
        self._may_stay = self.cycle.keep_alive
        if b"transfer-encoding" in own:
            self.cycle.keep_alive = False  # as long as its end has not come: nothing may tell where it is
        if not self.pipeline:
            self._current = self.cycle
        self._in_body = self._has_moved_on = True
        self._heads += 1

    def _checked_headers(self) -> dict[bytes, bytes]:
        """The headers by name; refused where others may read another request, which the parser lets pass."""
        version, own = self.parser.get_http_version(), dict[bytes, bytes]()
        for name, value in self.headers:
            if name in own and name in _ONCE:
                raise ValueError("a header is given twice")  # the parser takes it for an error
            own[name] = value
        if version not in _VERSIONS or (version == "1.1" and b"host" not in own):
            raise ValueError("no request of HTTP/1.1")
        coding = own.get(b"transfer-encoding")
        if coding is not None and (coding.lower() != b"chunked" or version != "1.1"):
            raise ValueError("a body in another coding than chunks")
        if self.parser.should_upgrade() and (coding or own.get(b"content-length", b"0") != b"0"):
            raise ValueError("a body that the parser would leave out, as one of another protocol")
        return own

    def on_body(self, body: bytes) -> None:
        """A part of the body is there."""
        self._has_moved_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there."""
        self._in_body, self._has_moved_on = False, True
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._may_stay
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request; whoever has a token is no newcomer any more."""
        if self._current is not None:
            cast(_JoinedWriting, self._current.transport).flush()
        if self._has_token:
            self._newcomers.discard(self)
        if self._waits_for_rest and not self.cycle.keep_alive:
            self._discarded = len(self._unread)
            self._unread.clear()
            self.flow.let_go(None)
        if self.pipeline:
            self._current = self.pipeline[-1][0]
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_writing()
        elif self._is_bad:
            if self._is_idle:
                self.send_400_response("")
        elif self._waits_for_rest:
            self._close_after(ANSWERED_SECONDS)
        else:
            if self._unread and self._turn is None:
                self._unset_keepalive_if_required()
                self._read_on()
            self._limit_time()

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
        self._may_stay = False
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
    def _is_idle(self) -> bool:
        """Whether every request is answered whose head was received."""
        return not self.pipeline and (self._current is None or self._current.response_complete)

    @property
    def _waits_for_rest(self) -> bool:
        """Whether a request is answered of whose body a part has not come."""
        return self._in_body and self._is_idle

    def end_after(self, cycle: RequestResponseCycle) -> None:
        """Close the connection after an answer; if a part of the body has not come, a while after it."""
        if not (self._in_body and self.cycle is cycle):
            self.transport.close()

    @property
    def _has_token(self) -> bool:
        return self._current is not None and TOKEN in self._current.scope

    @property
    def is_waited_for(self) -> bool:
        """Whether it has not sent a whole request, or does not read the answer, and has no accepted token."""
        is_slow = self._in_body or self._is_idle or self.flow.write_paused
        return is_slow and not self._has_token

    def give_up(self) -> None:
        """Close the connection at once, in favour of another."""
        log("too many connections without a token", {})
        self.transport.abort()

    def _limit_time(self) -> None:
        """Limit the time of a part of the request; more bytes of the same part gain no time."""
        seconds = None
        if self._in_body and not self.pipeline:
            seconds = BODY_SECONDS
        elif self._is_idle:
            seconds = HEAD_SECONDS
        part = (self._heads, self._in_body, seconds is None)
        if part != self._timed:
            self._timed = part
            self._close_after(seconds)

    def _close_after(self, seconds: float | None) -> None:
        """Close the connection after this time, instead of what was said before; None: leave it open."""
        self._until = None if seconds is None else self.loop.time() + seconds
        if self._until is not None and (self._timer is None or self._timer.when() > self._until):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(self._until, self._close_if_late)

    def _close_if_late(self) -> None:
        """Close the connection; or look again later, which takes less than a new timer for each request."""
        self._timer = None
        if self._until is None:
            return
        if self.loop.time() < self._until:
            self._timer = self.loop.call_at(self._until, self._close_if_late)
            return
        self.transport.close()
        self._watch_writing()

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        log("too many connections", {})
        await self._told("too-busy")(scope, receive, send)

    def send_400_response(self, msg: str) -> None:
        """Tell that what was received is no request."""
        if self._in_body:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not (self._in_body and self.cycle.response_started):  # and not after an answer, or in one
            answer = self._told("no-http")
            lines = [b"%b: %b\r\n" % header for header in answer.raw_headers]
            self.transport.write(b"".join([STATUS_LINE[400], *lines, b"\r\n", answer.body]))
        self.transport.close()

    def _told(self, kind: str) -> Response:
        answer = Problem(kind).response()
        answer.headers.update({**self._headers, "Connection": "close"})
        return answer


class _JoinedWriting:
    """Writes the head of an answer with the first part of its body: each write is a call of the system."""

    def __init__(self, protocol: Protocol, cycle: RequestResponseCycle) -> None:
        self._protocol, self._transport, self._cycle = protocol, protocol.transport, cycle
        self._head: bytes | None = None
        self.is_closing = self._transport.is_closing

    def write(self, data: bytes) -> None:
        """Write; the first part of an answer, which is its head, waits for the next one."""
        if self._cycle.response_started and self._head is None:  # before that: 100 Continue
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Write what waits: the answer to HEAD has no body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        """Close the connection after what was written."""
        self.flush()
        self._protocol.end_after(self._cycle)


class _Flow(FlowControl):
    """Reads from a connection only while what was received is parsed."""

    _is_held = False

    def hold(self) -> None:
        """Read nothing, whatever the application waits for."""
        self._is_held = True
        self.pause_reading()

    def let_go(self, cycle: RequestResponseCycle | None) -> None:
        """Read again, unless the application has enough to read."""
        self._is_held = False
        if cycle is None or cycle.response_complete or len(cycle.body) <= HIGH_WATER_LIMIT:
            self.resume_reading()

    def resume_reading(self) -> None:
        """Read again, unless it is held."""
        if not self._is_held:
            super().resume_reading()
