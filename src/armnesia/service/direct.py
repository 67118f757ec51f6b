"""Requests to forget, answered without the layers of FastAPI, which take longer than all the rest.

Only what is plainly a request as documented is answered here. Anything else goes on to FastAPI, which says
what is wrong with it, so that there is one place for that.
"""

from collections.abc import Callable

from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from armnesia.core.errors import ArmnesiaError
from armnesia.service.api import deletions
from armnesia.service.idempotency import IdempotencyKey
from armnesia.service.problems import Problem
from armnesia.service.running import Service
from armnesia.service.tokens import LARGE, authorise, parsed

_JSON = frozenset(
    {b"application/json", b"application/json; charset=utf-8", b"application/json;charset=utf-8"}
)
_KEY = TypeAdapter(IdempotencyKey)
_ROUTE = next(route for route in deletions.router.routes if getattr(route, "methods", None) == {"POST"})


class DirectDeletions:
    """A layer around the application; `tell` makes the answer to a request that is refused."""

    def __init__(self, app: ASGIApp, service: Service, tell: Callable[[Scope, Exception], Response]) -> None:
        self._app, self._service, self._tell = app, service, tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http" or scope["path"] != deletions.PATH or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["route"] = _ROUTE
        headers = dict(scope["headers"])
        if len(headers) < len(scope["headers"]) or headers.get(b"content-type", b"").lower() not in _JSON:
            await self._app(scope, receive, send)  # it looks at the token before it reads the body, as here
            return
        try:
            token = await authorise(scope, deletions.ROLE)
            first = await receive()
            asked = _plainly_asked(first, headers.get(b"idempotency-key"))
            if asked is None:
                await self._app(scope, _put_back(first, receive), send)
                return
            answer = await deletions.answer_deletion(self._service, token, *asked)
        except (ArmnesiaError, Problem) as error:
            answer = self._tell(scope, error)
        await answer(scope, receive, send)


def _plainly_asked(
    message: Message, key: bytes | None
) -> tuple[deletions.Deletion, bytes, str | None] | None:
    """What is asked, the bytes of the body and the key, if all are as documented."""
    content: bytes = message.get("body", b"")
    if message["type"] != "http.request" or message.get("more_body") or not 0 < len(content) < LARGE:
        return None
    try:
        text = _KEY.validate_python(None if key is None else key.decode("latin-1"))
        return deletions.Deletion.model_validate(parsed(content)), content, text
    except (ValidationError, ValueError, RecursionError, Problem):
        return None


def _put_back(first: Message, receive: Receive) -> Receive:
    """The messages of a request of which one was received already."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
