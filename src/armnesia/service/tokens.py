"""Who calls: tokens and roles."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.responses import Response

from armnesia.core.errors import ArmnesiaError
from armnesia.service.problems import Problem, responses, unreadable
from armnesia.service.settings import Settings
from armnesia.service.vault_worker import VaultWorker
from armnesia.vault import Role, Token, Tokens
from armnesia.vault.operations.tokens import token_digest

TOKEN = "armnesia.token"
"""Where the scope of a request has its token, once it was accepted."""
_ROLE = "x-role"
_BEARER = HTTPBearer(auto_error=False, description="A token, made by `armnesia token create`.")


def name_of(token: Token) -> str:
    """How a caller is named in entries: by the name of its token, or else its number."""
    return token.name or f"token-{token.number}"


class TokenGuard:
    """Knows the tokens of the vault, as of a moment ago, and counts their uses."""

    def __init__(
        self, worker: VaultWorker, settings: Settings, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._worker, self._settings, self.now = worker, settings, now
        self._tokens = Tokens(())
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._uses: Counter[int] = Counter()

    async def check(self, text: str) -> Token:
        """The token with this text; refused if there is none."""
        return await self.check_digest(token_digest(text))

    async def check_digest(self, digest: bytes) -> Token:
        """The token whose text has this digest, as `check` finds it: a session of the page keeps that."""
        await self._refresh()
        found = self._tokens.find(digest)
        if found is None:
            raise Problem("unauthorized")
        self._uses[found.number] += 1
        return found

    async def _refresh(self) -> None:
        if self._is_fresh():  # most often
            return
        async with self._reading:
            if not self._is_fresh():
                self._tokens = await self._read()
                self._read_at = self.now()

    def _is_fresh(self) -> bool:
        return self.now() - self._read_at < self._settings.token_seconds

    async def _read(self) -> Tokens:
        try:
            return await asyncio.wrap_future(self._worker.read(lambda vault: vault.tokens()))
        except ArmnesiaError as error:
            raise unreadable(error) from error

    async def note_uses(self) -> None:
        """Note in the vault how often tokens were used since the last time."""
        uses = Counter(self._uses)
        if uses:
            await asyncio.wrap_future(self._worker.write(lambda vault: vault.note_token_uses(uses)))
            self._uses -= uses  # of those since then; if noting has failed, all are kept


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
                await _authorise(request, role)
            return await answer(request)

        return answer_if_allowed


async def _authorise(request: Request, role: Role) -> None:
    """Refuse a request without a token, or with one of a role that is too weak."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Problem("unauthorized")
    guard: TokenGuard = request.app.state.service.guard
    token = request.scope[TOKEN] = await guard.check(text.strip())
    if not token.role.includes(role):
        raise Problem("forbidden")


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
