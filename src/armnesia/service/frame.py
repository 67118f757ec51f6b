"""Around every request: limits of its body, security headers, one line in the log, and no traceback."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from armnesia.core.randomness import secret_bytes
from armnesia.service.host_names import is_addressed_to
from armnesia.service.metrics import Metrics
from armnesia.service.newcomers import TOKEN
from armnesia.service.problems import Problem, problem_of
from armnesia.service.structured_log import described, log

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Unless an endpoint sets one itself: a page needs another content security policy."""
_NO_ROUTE = "none"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BODY_BYTES = "armnesia.body_bytes"
"""Where the scope of a request has a limit of its own, below that of the service."""


class Frame:
    """The outermost layer of the application."""

    def __init__(
        self,
        app: ASGIApp,
        tell: Callable[[Scope, Problem], ASGIApp],
        metrics: Metrics,
        body_bytes: int,
        headers: Mapping[str, str],
        hosts: Collection[str] | None = None,
    ) -> None:
        self._app, self._tell, self._hosts = app, tell, hosts
        self._metrics, self._body_bytes = metrics, body_bytes
        self._headers = {name.encode(): text.encode() for name, text in {**HEADERS, **headers}.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[_BODY_BYTES] = self._body_bytes
        exchange = _Exchange(scope, receive, send, self._headers)
        try:
            if self._hosts is not None and not is_addressed_to(self._hosts, scope["headers"]):
                raise Problem("unknown-host")
            _check_length(scope)
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:
            problem = problem_of(error)
            scope["armnesia.problem"] = {"problem": problem.kind, **described(error)}
            if exchange.status == 0:
                await self._tell(scope, problem)(scope, receive, exchange.send)
        self._note(scope, exchange)

    def _note(self, scope: Scope, exchange: "_Exchange") -> None:
        route = getattr(scope.get("route"), "path", _NO_ROUTE)
        if "app" in scope and scope["path"] == scope["app"].openapi_url:  # FastAPI does not call it a route
            route = scope["path"]
        seconds = time.perf_counter() - exchange.begun
        method = scope["method"] if scope["method"] in _METHODS else ""  # any text can be sent as a method
        self._metrics.observe_request(method, route, exchange.status, seconds)
        facts = {
            "request": exchange.id,
            "method": method,
            "route": route,
            "status": exchange.status,
            "milliseconds": round(1000 * seconds, 3),
            "token": getattr(scope.get(TOKEN), "number", None),
            **scope.get("armnesia.problem", {}),
        }
        log("request", facts, logging.ERROR if exchange.status >= 500 else logging.INFO)


def limit_body(scope: Scope, most: int) -> None:
    """Refuse the body of a request, before it is read or while it is, if it has more bytes than these."""
    scope[_BODY_BYTES] = min(most, scope[_BODY_BYTES])
    _check_length(scope)


def _check_length(scope: Scope) -> None:
    """Refuse a body that is said to be too long before it is read."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > scope[_BODY_BYTES]:
            raise Problem("body-too-large")


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, headers: Mapping[bytes, bytes]) -> None:
        self._scope, self._receive, self._send, self._headers = scope, receive, send, headers
        self._received = 0
        self.begun, self.status, self.id = time.perf_counter(), 0, secret_bytes(8).hex()

    async def receive(self) -> Message:
        """The next part of the body; refused if the body is too long."""
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > self._scope[_BODY_BYTES]:
            raise Problem("body-too-large")
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer, with the headers that all answers have."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[Any] = list(message.get("headers", []))
            own = {name for name, _ in headers}
            headers += [each for each in self._headers.items() if each[0] not in own]
            headers.append((b"x-request-id", self.id.encode()))
            message = {**message, "headers": headers}
        await self._send(message)
