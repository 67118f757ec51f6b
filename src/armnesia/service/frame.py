"""Around every request: a limit of its body, security headers, one line in the log, and no traceback."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from armnesia.core.randomness import secret_bytes
from armnesia.service.metrics import Metrics
from armnesia.service.problems import Problem, problem_of
from armnesia.service.structured_log import described, log
from armnesia.service.tokens import TOKEN

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
HSTS = {"strict-transport-security": "max-age=31536000"}
"""Of a service that browsers reach by TLS only."""
_NO_ROUTE = "none"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Frame:
    """The outermost layer of the application."""

    def __init__(
        self,
        app: ASGIApp,
        tell: Callable[[Scope, Problem], ASGIApp],
        metrics: Metrics,
        body_bytes: int,
        headers: Mapping[str, str],
    ) -> None:
        self._app, self._tell, self._metrics, self._body_bytes = app, tell, metrics, body_bytes
        self._headers = {name.encode(): text.encode() for name, text in headers.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, id_ = time.perf_counter(), secret_bytes(8).hex()
        received = status = 0

        async def receive_some() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._body_bytes:
                raise Problem("body-too-large")
            return message

        async def send_framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = dict(message.get("headers", []))
                added = [(name, text) for name, text in self._headers.items() if name not in own]
                headers = [*message.get("headers", []), *added, (b"x-request-id", id_.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            self._check_length(scope)
            await self._app(scope, receive_some, send_framed)
        except Exception as error:
            problem = problem_of(error)
            scope["armnesia.problem"] = {"problem": problem.kind, **described(error)}
            if not status:
                await self._tell(scope, problem)(scope, receive, send_framed)
        self._note(scope, {"request": id_}, status, time.perf_counter() - begun)

    def _check_length(self, scope: Scope) -> None:
        """Refuse a body that is said to be too long before it is read."""
        said = dict(scope["headers"]).get(b"content-length", b"")
        if said.isdigit() and int(said) > self._body_bytes:
            raise Problem("body-too-large")

    def _note(self, scope: Scope, facts: Mapping[str, Any], status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", _NO_ROUTE)
        if "app" in scope and scope["path"] == scope["app"].openapi_url:  # FastAPI does not call it a route
            route = scope["path"]
        method = scope["method"] if scope["method"] in _METHODS else ""  # any text can be sent as a method
        self._metrics.observe_request(method, route, status, seconds)
        facts = {
            **facts,
            "method": method,
            "route": route,
            "status": status,
            "milliseconds": round(1000 * seconds, 3),
            "token": getattr(scope.get(TOKEN), "number", None),
            **scope.get("armnesia.problem", {}),
        }
        log("request", facts, logging.ERROR if status >= 500 else logging.INFO)
