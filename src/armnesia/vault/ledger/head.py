"""The head of the ledger: how many entries it has, and the root of the tree over them."""

import re
from dataclasses import dataclass

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import shown

_HEAD = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{64})")


@dataclass(frozen=True)
class Head:
    """The size and the root of a ledger.

    >>> Head.parse("12:" + "ab" * 32).size
    12
    """

    size: int
    root: bytes

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read a head from its text, size:root.

        >>> Head.parse("12")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a head must look like 12:3f8a… (a number from 1, 64 hex
        digits); got '12'
        """
        match = _HEAD.fullmatch(text.strip())
        if not match:
            raise InvalidInputError(
                f"a head must look like 12:3f8a… (a number from 1, 64 hex digits); got {shown(text)}"
            )
        return cls(int(match[1]), bytes.fromhex(match[2]))

    def __str__(self) -> str:
        return f"{self.size}:{self.root.hex()}"
