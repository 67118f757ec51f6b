"""Who has signed in to the page: sessions, in memory only."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest

from armnesia.core.randomness import secret_bytes
from armnesia.service.pages.work import Job, Prepared, Shelf

LIFETIME, IDLE = 8 * 3600.0, 30 * 60.0
"""After so many seconds a session ends: in all, and since its last request."""
_MOST, _MOST_OF_ONE_TOKEN = 1_000, 20
_MOST_PREPARED, _MOST_JOBS = 5, 20


@dataclass
class Session:
    """Somebody who has signed in by a token."""

    token: bytes
    """The digest of the text of the token: if the token is revoked, the session ends."""
    begun: float
    used: float
    csrf: str = field(default_factory=lambda: secret_bytes(32).hex())
    prepared: Shelf[Prepared] = field(default_factory=lambda: Shelf(_MOST_PREPARED))
    jobs: Shelf[Job] = field(default_factory=lambda: Shelf(_MOST_JOBS))

    def is_over(self, now: float) -> bool:
        """Whether its time is over."""
        return now - self.begun > LIFETIME or now - self.used > IDLE

    def accepts(self, csrf: str) -> bool:
        """Whether a form was made for this session; compared in constant time."""
        return compare_digest(self.csrf.encode(), csrf.encode("utf-8", "replace"))


class Sessions:
    """All sessions, by the digests of their ids: the ids are in the browsers only.

    >>> now = 0.0
    >>> sessions = Sessions(now=lambda: now)
    >>> id_ = sessions.begin(b"digest of a token")
    >>> now = IDLE - 1
    >>> sessions.find(id_) is not None, sessions.find("another")
    (True, None)
    >>> now += IDLE + 1
    >>> sessions.find(id_) is None
    True
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, token: bytes) -> str:
        """Begin a session of a token; returns its id."""
        own = [key for key, each in self._sessions.items() if each.token == token]
        for key in own[: max(0, len(own) - _MOST_OF_ONE_TOKEN + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= _MOST:
            self._sessions.popitem(last=False)
        id_ = secret_bytes(32).hex()
        self._sessions[_digest(id_)] = Session(token, self.now(), self.now())
        return id_

    def find(self, id_: str) -> Session | None:
        """The session with this id, which is used now; None if there is none, or if it has ended."""
        found = self._sessions.get(_digest(id_))
        if found is None:
            return None
        if found.is_over(self.now()):
            self.end(id_)
            return None
        found.used = self.now()
        return found

    def sweep(self) -> None:
        """End the sessions whose time is over, and with them whatever they have prepared."""
        now = self.now()
        for key in [key for key, each in self._sessions.items() if each.is_over(now)]:
            del self._sessions[key]

    def end(self, id_: str) -> None:
        """End a session, and with it whatever it has prepared."""
        self._sessions.pop(_digest(id_), None)


def _digest(id_: str) -> bytes:
    return hashlib.sha256(id_.encode("utf-8", "replace")).digest()
