"""Who calls: tokens, roles, and how often each token may be used."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.responses import Response
from starlette.types import Scope

from armnesia.core.errors import ArmnesiaError
from armnesia.service.newcomers import TOKEN
from armnesia.service.problems import Problem, responses, unreadable
from armnesia.service.settings import Settings
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import Role, Token, Tokens
from armnesia.vault.tokens import token_digest

_ROLE = "x-role"
_AUTHORISED = "armnesia.authorised"
"""Where the scope of a request has the role for which its token was found to be strong enough."""
_BEARER = HTTPBearer(auto_error=False, description="A token, made by `armnesia token create`.")


@dataclass
class Bucket:
    """So many requests at once, and so many per second in the long run.

    >>> bucket = Bucket(rate=1.0, burst=2, level=2.0, seen=100.0)
    >>> [bucket.take(now) for now in (100.0, 100.0, 100.0, 101.5)]
    [0, 0, 1, 0]
    """

    rate: float
    burst: int
    level: float
    seen: float

    def wait(self, now: float) -> int:
        """After how many seconds to come back; 0: there is one to take."""
        level = self._level(now)
        return 0 if level >= 1 else max(1, round((1 - level) / self.rate))

    def take(self, now: float) -> int:
        """Take one; 0, or after how many seconds to come back."""
        wait = self.wait(now)
        self.level, self.seen = self._level(now) - (wait == 0), now
        return wait

    def _level(self, now: float) -> float:
        return min(self.burst, self.level + (now - self.seen) * self.rate)


class TokenGuard:
    """Knows the tokens of the vault, as of a moment ago, and counts their uses."""

    def __init__(self, worker: VaultWorker, settings: Settings) -> None:
        self._worker, self._settings = worker, settings
        self._tokens = Tokens(())
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._buckets: dict[int, Bucket] = {}
        self._uses: Counter[int] = Counter()

    async def check(self, text: str) -> Token:
        """The token with this text; refused if there is none, or if it is used too often."""
        return await self.check_digest(token_digest(text))

    async def check_digest(self, digest: bytes) -> Token:
        """The token whose text has this digest, as `check` finds it: a session of the page keeps that."""
        await self._refresh()
        found = self._tokens.find_digest(digest)
        if found is None:
            raise Problem("unauthorized")
        wait = self._bucket(found.number).take(time.monotonic())
        if wait:
            raise Problem("too-many-requests", retry_after=wait)
        self._uses[found.number] += 1
        return found

    async def _refresh(self) -> None:
        if self._is_fresh():  # most often
            return
        async with self._reading:
            if not self._is_fresh():
                self._tokens = await self._read()
                self._read_at = time.monotonic()

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._read_at < self._settings.token_seconds

    async def _read(self) -> Tokens:
        try:
            return await asyncio.wrap_future(self._worker.look(lambda vault: vault.tokens()))
        except ArmnesiaError as error:
            raise unreadable(error) from error

    def _bucket(self, number: int) -> Bucket:
        if number not in self._buckets:
            rate, burst = self._settings.rate, self._settings.burst
            self._buckets[number] = Bucket(rate, burst, burst, time.monotonic())
        return self._buckets[number]

    async def note_uses(self) -> None:
        """Note in the vault how often tokens were used since the last time."""
        uses = Counter(self._uses)
        if uses:
            await asyncio.wrap_future(self._worker.write(lambda vault: vault.note_token_uses(uses)))
            self._uses -= uses  # of those since then; if noting has failed, all are kept


class _StrictRequest(Request):
    """A request in whose JSON no field is given twice: two readers might believe different ones."""

    async def json(self) -> Any:
        """The body; refused if a field is given twice, or if it has too many parts."""
        body = await self.body()
        lists = body.count(b"[") + body.count(b"{")
        if lists > _MOST_LISTS or lists + body.count(b",") > _MOST_PARTS:
            raise Problem("batch-too-large")
        if len(body) < LARGE:
            return parsed(body)
        return await asyncio.to_thread(parsed, body)  # others are answered meanwhile


LARGE = 100_000
"""Bodies of so many bytes are not read in the thread that answers."""
_MOST_PARTS = 500_000
"""Of a body: commas and opening brackets. Millions would take seconds, for which nobody else is answered."""
_MOST_LISTS = 100_000
"""Of a body: opening brackets. Lists and objects take ten times as long as other parts."""
_MOST_FIELDS = 1_000
"""Of one object: each of them may be wrong, and is then an error of its own."""


def parsed(body: bytes) -> Any:
    """The JSON of a body; refused if a field is given twice."""
    return json.loads(body, object_pairs_hook=_each_once)


def _each_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields) > _MOST_FIELDS:
        message = f"an object has more than {_MOST_FIELDS:,} fields"
        raise Problem("invalid-request", errors=[{"at": "body", "message": message}])
    found = dict(fields)
    if len(found) < len(fields):
        raise Problem("invalid-request", errors=[{"at": "body", "message": "a field is given twice"}])
    return found


class Route(APIRoute):
    """An endpoint that looks at the token before it reads the body.

    Every endpoint says which role it needs (`access`), or that it needs none (`security=[]`): one that says
    neither is a mistake, and refused when the application is made.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check the token, then answer."""
        answer, extra = super().get_route_handler(), self.openapi_extra or {}
        role = None if _ROLE not in extra else Role(extra[_ROLE])
        if role is None and extra.get("security") != []:
            raise TypeError(f"{self.path} must say which role it needs")

        async def answer_if_allowed(request: Request) -> Response:
            if role is not None:
                await authorise(request.scope, role)
            return await answer(_StrictRequest(request.scope, request.receive))

        return answer_if_allowed


async def authorise(scope: Scope, role: Role) -> Token:
    """The token of a request; refused without one, or with one of a role that is too weak."""
    if scope.get(_AUTHORISED) is role:  # by a layer further out; its use is counted once
        known: Token = scope[TOKEN]
        return known
    sent = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    scheme, _, text = sent.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer":
        raise Problem("unauthorized")
    guard: TokenGuard = scope["app"].state.service.guard
    token = scope[TOKEN] = await guard.check(text.strip())
    if not token.role.includes(role):
        raise Problem("forbidden")
    scope[_AUTHORISED] = role
    return token


async def _caller(request: Request) -> Token:
    """Not a plain function, for which each request would need a thread."""
    token: Token = request.scope[TOKEN]
    return token


Caller = Annotated[Token, Depends(_caller)]
"""The token of a request."""


def access(
    role: Role, *problems: int, model: Any = None, answers: dict[int, dict[str, Any]] | None = None
) -> dict[str, Any]:
    """What an endpoint needs to be open to a role and those above it, and what it tells.

    `model` documents its answer, and `answers` those with other statuses; `problems` are statuses as well.
    """
    return {
        "dependencies": [Security(_BEARER)],  # for the document: `Route` has looked at it before
        "openapi_extra": {_ROLE: str(role)},
        "responses": {**responses(*problems), **(answers or {})},
        "response_model": model,
    }
