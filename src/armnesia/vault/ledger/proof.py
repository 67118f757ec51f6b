"""Proofs (c2sp.org/tlog-proof): that an entry is in the ledger of a signed checkpoint, in one text.

>>> from armnesia.vault.ledger import merkle
>>> leaves = [merkle.leaf_hash(b"first"), merkle.leaf_hash(b"second")]
>>> note = Checkpoint("armnesia/v-1", 2, merkle.root_of(leaves)).signed(bytes(32))
>>> proof = Proof(1, merkle.inclusion_proof(leaves, 1), note)
>>> print(proof)
c2sp.org/tlog-proof@v1
index 1
...=
<BLANKLINE>
armnesia/v-1
2
...=
<BLANKLINE>
— armnesia/v-1 ...
>>> Proof.read(str(proof)).includes(leaves[1]), Proof.read(str(proof)).includes(leaves[0])
(True, False)
"""

import re
from dataclasses import dataclass
from functools import cached_property

from armnesia.core.errors import InvalidInputError
from armnesia.vault.ledger.checkpoint import Checkpoint
from armnesia.vault.ledger.merkle import root_from_proof
from armnesia.vault.ledger.note import Note, decoded, encoded

HEADER = "c2sp.org/tlog-proof@v1"
_FORM = re.compile(r"(?:extra \S+\n)?index (0|[1-9][0-9]{0,17})\n((?:\S+\n)*)\n(.*)", re.DOTALL)


@dataclass(frozen=True)
class Proof:
    """The place of an entry, counted from 0, the hashes from its leaf up to the root, and the checkpoint."""

    index: int
    hashes: tuple[bytes, ...]
    note: Note

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """What the note says, whoever signed it."""
        return Checkpoint.of(self.note)

    def includes(self, leaf: bytes) -> bool:
        """Whether the leaf with this hash is at this place in the ledger of the checkpoint."""
        try:
            root = root_from_proof(leaf, self.index, self.checkpoint.size, self.hashes)
        except InvalidInputError:
            return False
        return root == self.checkpoint.root

    def __str__(self) -> str:
        hashes = "".join(f"{encoded(each)}\n" for each in self.hashes)
        return f"{HEADER}\nindex {self.index}\n{hashes}\n{self.note}"

    @classmethod
    def read(cls, text: str) -> "Proof":
        """Read a proof; extra data, which nothing signs, is passed over.

        >>> Proof.read("index 1")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a proof must be the lines of c2sp.org/tlog-proof@v1
        """
        header, _, below = text.partition("\n")
        match = _FORM.fullmatch(below)
        if header != HEADER or match is None:
            raise InvalidInputError(f"a proof must be the lines of {HEADER}")
        proof = cls(int(match[1]), tuple(map(decoded, match[2].splitlines())), Note.read(match[3]))
        _ = proof.checkpoint  # refused here if it is none
        return proof
