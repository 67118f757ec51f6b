"""Requests that somebody prepares or has made on the page; in memory only, and only while they are signed in.

Names are here, and in no address: an address has the random number under which a request is kept.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from armnesia.core.randomness import secret_bytes
from armnesia.vault import ForgetRequest

_Kept = TypeVar("_Kept")
Kind = Literal["users", "records"]
Stage = Literal["waiting", "done", "refused", "unknown"]
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

    def to_request(self, by: str) -> ForgetRequest:
        """The request to the vault, by the vault's own method and budget; `by` is who confirms it."""
        named: dict[str, Any] = {self.kind: list(self.names)}
        return ForgetRequest(**named, exactly=self.exactly, by=by)


@dataclass
class Job:
    """A request that was confirmed."""

    words: str
    kind: Kind
    begun: str
    names: tuple[str, ...] = field(repr=False)
    """By which its certificates are made when they are asked for; none if it was refused."""
    stage: Stage = "waiting"
    """Unknown: whether it was answered, the ledger says."""
    result: Mapping[str, Any] | None = field(default=None, repr=False)
    """What the vault answered."""
    refusal: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing is being done."""
        return self.stage != "waiting"

    @property
    def changed_first(self) -> list[Mapping[str, Any]]:
        """The decisions that the request touched, those that serve another arm now first."""
        touched = (self.result or {}).get("decisions", [])
        return sorted(touched, key=lambda each: each["served"] == each["served_before"])
