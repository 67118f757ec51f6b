"""Requests that are sent twice: the same Idempotency-Key gives the same answer, for an hour.

The answers are in memory only, and never the bodies of requests: of these a keyed digest is kept. After a
restart of the service the vault itself makes sure that nothing is done twice: the same people are forgotten
once, and a row with the same id is added once.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Response

from armnesia.core.randomness import secret_bytes
from armnesia.service.problems import Problem

SECONDS = 3600.0
_MOST = 10_000

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="With the same key, the same request is answered once. It must not name anybody.",
        examples=["4f9c5d1e-8a55-4c0e-9a39-27f1b3c3e0aa"],
    ),
]


@dataclass
class _Answer:
    """What a key was used for."""

    body: bytes
    """A keyed digest."""
    until: float
    response: Response | None = None
    """None while the request is being answered."""


class Answers:
    """The answers of the last hour, by token, endpoint and key; the oldest first."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._answers: dict[tuple[int, str, str | None], _Answer] = {}
        self._secret = secret_bytes(32)

    async def once(
        self,
        place: tuple[int, str, str | None],
        body: bytes,
        answer: Callable[[], Awaitable[Response]],
    ) -> Response:
        """Answer a request, or repeat the answer to the same one; one that fails can be sent again."""
        if place[2] is None:
            return await answer()
        self.sweep()
        digest = hashlib.blake2b(body, key=self._secret, digest_size=32).digest()
        known = self._answers.get(place)
        if known is not None:
            if known.body != digest:
                raise Problem("another-body")
            if known.response is None:
                raise Problem("key-in-use")
            return _repeated(known.response)
        mine = self._answers[place] = _Answer(digest, self.now() + SECONDS)
        try:
            mine.response = await answer()
        finally:
            if mine.response is None:
                del self._answers[place]
        return mine.response

    def sweep(self) -> None:
        """Forget the oldest answers: those whose hour is over, and those of which there are too many."""
        while self._answers:
            place, oldest = next(iter(self._answers.items()))
            is_kept = self.now() <= oldest.until and len(self._answers) <= _MOST
            if is_kept or oldest.response is None:
                return
            del self._answers[place]


def _repeated(response: Response) -> Response:
    """The same answer, marked."""
    again = Response(response.body, response.status_code, dict(response.headers), response.media_type)
    again.headers["Idempotent-Replayed"] = "true"
    return again
