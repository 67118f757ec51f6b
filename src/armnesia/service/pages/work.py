"""Requests that somebody prepares or has made on the page; in memory only, and only while they are signed in.

Names are here, and in no address: an address has the random number under which a request is kept.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from armnesia.core.randomness import secret_bytes
from armnesia.vault import ForgetRequest

_Kept = TypeVar("_Kept")
Kind = Literal["users", "records"]
Stage = Literal["waiting", "certificates", "unopened", "done", "refused", "unknown", "unfinished"]
_NOUNS: Mapping[Kind, tuple[str, str]] = {"users": ("person", "people"), "records": ("record", "records")}


class Shelf(Generic[_Kept]):
    """Keeps a few things under random numbers; the oldest makes room for a new one.

    >>> shelf = Shelf[str](most=2)
    >>> first, second, third = (shelf.put(text) for text in "abc")
    >>> shelf.get(first), shelf.get(third), shelf.get("x")
    (None, 'c', None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def put(self, thing: _Kept) -> str:
        """Keep a thing; returns its number."""
        number = secret_bytes(16).hex()
        self._kept[number] = thing
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return number

    def get(self, number: str) -> _Kept | None:
        """The thing with this number; None if there is none."""
        return self._kept.get(number)

    def __iter__(self) -> Iterator[tuple[str, _Kept]]:
        """All things with their numbers, the newest first."""
        return reversed(self._kept.items())


@dataclass
class Prepared:
    """A request that was previewed and not confirmed yet."""

    kind: Kind
    names: tuple[str, ...] = field(repr=False)
    exactly: bool = False
    job: str = ""
    """The number of the job that answers it, once it is confirmed."""
    found: Any = field(default=None, repr=False, compare=False)
    """What it would do, until that was shown."""

    @property
    def words(self) -> str:
        """How many of what.

        >>> Prepared("users", ("ann", "bob")).words, Prepared("records", ("7",)).words
        ('2 people', '1 record')
        """
        one, many = _NOUNS[self.kind]
        return f"1 {one}" if len(self.names) == 1 else f"{len(self.names):,} {many}"

    def to_request(self) -> ForgetRequest:
        """The request to the vault, by the vault's own method and budget."""
        named: dict[str, Any] = {self.kind: list(self.names)}
        return ForgetRequest(**named, exactly=self.exactly)


class OpenedFor(NamedTuple):
    """A name, the ledger entry that answered it, and what opens the certificate of that entry for it."""

    name: str
    sequence: int
    opening: Mapping[str, Any]
    held: bool


@dataclass
class Job:
    """A request that was confirmed."""

    words: str
    kind: Kind
    named: int
    begun: str
    names: tuple[str, ...] = field(repr=False)
    """Kept until their certificates are opened."""
    stage: Stage = "waiting"
    """Unopened: it is forgotten, and the certificates are still to be opened. Unknown: the vault knows.
    Unfinished: it is forgotten, and the same request gets the certificates later."""
    result: Mapping[str, Any] | None = None
    """What the vault answered, without the certificate."""
    certificates: list[OpenedFor] = field(default_factory=list, repr=False)
    refusal: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing is being done."""
        return self.stage not in ("waiting", "certificates")

    @property
    def changed_first(self) -> list[Mapping[str, Any]]:
        """The decisions that the request touched, those that serve another arm now first."""
        touched = (self.result or {}).get("decisions", [])
        return sorted(touched, key=lambda each: each["served"] == each["served_before"])

    @property
    def percent(self) -> int:
        """How far it is: deleting is the first half, and the certificates are the second.

        >>> Job("1 person", "users", 1, "2026-11-16T10:00:00Z", ("ann",)).percent
        5
        """
        if self.stage == "waiting":
            return 5
        return 100 if self.is_over else 50 + 50 * len(self.certificates) // max(self.named, 1)
