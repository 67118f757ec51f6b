"""Requests that are sent twice: the same Idempotency-Key gives the same answer, for an hour.

The answers are in memory only, and never the bodies of requests: of these a keyed digest is kept. After a
restart of the service the vault itself makes sure that nothing is done twice: the same people are forgotten
once, and a row with the same id is added once.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from fastapi import Header, Response

from armnesia.core.randomness import secret_bytes
from armnesia.service.problems import Problem

SECONDS = 3600.0
_MOST = 10_000
"""Of one token: no token can push out the answers of another."""
_AT_ONCE = 10
"""So many of the oldest are looked at: one of them may still be being answered."""

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

    def is_over(self, now: float) -> bool:
        """Whether it is no longer to be repeated."""
        return self.until < now and self.response is not None


class Answers:
    """The answers of the last hour, by token, endpoint and key."""

    def __init__(self) -> None:
        self._answers: dict[int, dict[tuple[str, str], _Answer]] = {}
        self._secret = secret_bytes(32)

    async def once(
        self,
        place: tuple[int, str, str | None],
        body: bytes,
        answer: Callable[[], Awaitable[Response]],
    ) -> Response:
        """Answer a request, or repeat the answer to the same one; one that fails can be sent again."""
        token, endpoint, key = place
        if key is None:
            return await answer()
        own = self._answers.setdefault(token, {})
        _make_room(own)
        digest = hashlib.blake2b(body, key=self._secret, digest_size=32).digest()
        known = own.get((endpoint, key))
        if known is not None and known.is_over(time.monotonic()):
            del own[endpoint, key]
            known = None
        if known is not None:
            if known.body != digest:
                raise Problem("another-body")
            if known.response is None:
                raise Problem("key-in-use")
            return _repeated(known.response)
        mine = own[endpoint, key] = _Answer(digest, time.monotonic() + SECONDS)
        try:
            mine.response = await answer()
        finally:
            if mine.response is None:
                del own[endpoint, key]
        return mine.response

    def sweep(self) -> None:
        """Forget the answers whose hour is over."""
        now = time.monotonic()
        for own in self._answers.values():
            for place in [place for place, each in own.items() if each.is_over(now)]:
                del own[place]


def _make_room(answers: dict[tuple[str, str], _Answer]) -> None:
    """The oldest come first."""
    for place, each in list(islice(answers.items(), _AT_ONCE)):
        if len(answers) >= _MOST and each.response is not None:
            del answers[place]


def _repeated(response: Response) -> Response:
    """The same answer, marked."""
    again = Response(response.body, response.status_code, dict(response.headers), response.media_type)
    again.headers["Idempotent-Replayed"] = "true"
    return again
