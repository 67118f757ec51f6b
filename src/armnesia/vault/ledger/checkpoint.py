"""Checkpoints (c2sp.org/tlog-checkpoint): the ledger at one moment, in three lines that its key signs.

The origin says whose ledger it is, the size how many entries it has, and the root is that of the Merkle tree
over them. Whoever keeps the newest checkpoint notices a ledger that was cut or changed.

>>> checkpoint = Checkpoint(origin_of("v-1"), 2, bytes(32))
>>> print(checkpoint.signed(bytes(32)))
armnesia/v-1
2
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
<BLANKLINE>
— armnesia/v-1 ...
"""

import re
from dataclasses import dataclass

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import shown
from armnesia.vault.ledger.merkle import HASH_BYTES
from armnesia.vault.ledger.note import Note, decoded, encoded

_SIZE = re.compile(r"0|[1-9][0-9]{0,17}")


def origin_of(vault: str) -> str:
    """The name of a vault's ledger, which is also that of its key.

    >>> origin_of("v-1")
    'armnesia/v-1'
    """
    return f"armnesia/{vault}"


@dataclass(frozen=True)
class Checkpoint:
    """The size and the root of the ledger of this origin."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{encoded(self.root)}\n"

    def signed(self, seed: bytes) -> Note:
        """The checkpoint as a signed note."""
        return Note.signed(self.text, self.origin, seed)

    @classmethod
    def of(cls, note: Note) -> "Checkpoint":
        """The checkpoint that a note holds; lines below the third are signed with it and not looked at.

        >>> Checkpoint.of(Note("armnesia/v-1\\n02\\nAAAA\\n", ()))
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a checkpoint must be an origin, a size and a root of 32 bytes
        in base64, on a line each; got 'armnesia/v-1\\n02\\nAAAA\\n'
        """
        lines = note.text.removesuffix("\n").split("\n")
        if len(lines) >= 3 and all(lines) and _SIZE.fullmatch(lines[1]):
            root = decoded(lines[2])
            if len(root) == HASH_BYTES:
                return cls(lines[0], int(lines[1]), root)
        raise InvalidInputError(
            f"a checkpoint must be an origin, a size and a root of {HASH_BYTES} bytes in base64, on a line"
            f" each; got {shown(note.text)}"
        )
