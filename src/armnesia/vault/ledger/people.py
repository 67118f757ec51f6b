"""The people of a request: commitments in a Merkle tree of their own, of which one can be opened.

A leaf is the hash of a salt and of who is named, in which role, with which outcome. The salt is a keyed hash,
so that nobody without the vault's keys can try names. The leaves are sorted, so that their order says
nothing, and filled up to a power of two: so an opening needs no size, which nothing would sign, and does not
tell how many others there are. The ledger has the root; the vault keeps the leaves, and no name: to open a
leaf it needs the name again.

>>> keyring = Keyring.create("v-1")
>>> people = People.of(keyring, 7, [Mention(USER, DELETED, "ann"), Mention(USER, NOTHING, "bob")])
>>> opening = people.opening(keyring, 7, USER, "bob")
>>> opening.mention.outcome, opening.root == people.root
('nothing', True)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import shown
from armnesia.vault.keys.keyring import DIGEST_BYTES, Keyring
from armnesia.vault.ledger.merkle import Tree, leaf_hash, root_from_proof

USER, RECORD, CASE, ACTOR = "user", "record", "case", "actor"
DELETED, UNCOUNTED, NOTHING, READMITTED = "deleted", "uncounted", "nothing", "readmitted"
"""Deleted here; no longer counted, still at the source; nothing was held; may come in again."""
OUTCOMES = {
    USER: (DELETED, UNCOUNTED, NOTHING, READMITTED),
    RECORD: (DELETED, UNCOUNTED, NOTHING, READMITTED),
    CASE: ("",),
    ACTOR: ("",),
}
"""By role. A case is the number of the request in the controller's files, an actor who entered it."""


@dataclass(frozen=True)
class Mention:
    """Who or what a request names, in which role, and with which outcome."""

    role: str
    outcome: str
    text: str

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES.get(self.role, ()) or not isinstance(self.text, str):
            raise InvalidInputError(
                f"a role must be one of {', '.join(OUTCOMES)}, with an outcome of its own; got"
                f" {shown(self.role)} and {shown(self.outcome)}"
            )

    def leaf(self, salt: bytes) -> bytes:
        """The commitment."""
        return leaf_hash(salt + f"{self.role}\n{self.outcome}\n{self.text}".encode())


@dataclass(frozen=True)
class Opening:
    """One leaf of a request, opened: what it says, its salt, and its path to the root."""

    mention: Mention
    salt: bytes
    index: int
    path: tuple[bytes, ...]

    @property
    def root(self) -> bytes:
        """The root over the people, if the opening is right; `InvalidInputError` if it cannot be."""
        return root_from_proof(self.mention.leaf(self.salt), self.index, 1 << len(self.path), self.path)

    def to_dict(self) -> dict[str, Any]:
        """The opening as a certificate has it."""
        path = [each.hex() for each in self.path]
        return {**vars(self.mention), "salt": self.salt.hex(), "index": self.index, "path": path}

    @classmethod
    def from_dict(cls, document: Any) -> "Opening":
        """Read an opening.

        >>> Opening.from_dict({"role": "user"})
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: an opening must have role, outcome, text, salt, index and
        path
        """
        try:
            mention = Mention(document["role"], document["outcome"], document["text"])
            path = tuple(bytes.fromhex(each) for each in document["path"])
            opening = cls(mention, bytes.fromhex(document["salt"]), document["index"], path)
            _ = mention.leaf(opening.salt)  # refused if the text is none that UTF-8 has
            is_sized = len(opening.salt) == DIGEST_BYTES  # or the salt could end within another text
            if is_sized and opening.to_dict() == document and type(opening.index) is int:
                return opening
        except (KeyError, TypeError, ValueError):
            pass
        raise InvalidInputError("an opening must have role, outcome, text, salt, index and path")


@dataclass(frozen=True)
class People:
    """The commitments of one request, in the order of their hashes."""

    leaves: tuple[bytes, ...]

    @classmethod
    def of(cls, keyring: Keyring, number: int, mentions: Iterable[Mention]) -> "People":
        """Commit to everybody whom the request of the entry of this number names."""
        leaves = {each.leaf(_salt(keyring, number, each)) for each in mentions}
        missing = (1 << (len(leaves) - 1).bit_length()) - len(leaves)
        fillers = (keyring.digest(b"salt", f"{number}\nfiller\n{place}") for place in range(missing))
        return cls(tuple(sorted(leaves.union(map(leaf_hash, fillers)))))

    @property
    def root(self) -> bytes:
        """The subject of the entry."""
        return self._tree.root

    @cached_property
    def _tree(self) -> Tree:
        return Tree(self.leaves)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {leaf: place for place, leaf in enumerate(self.leaves)}

    def opening(self, keyring: Keyring, number: int, role: str, text: str) -> Opening:
        """Open the leaf of one of them, whatever its outcome was.

        >>> People(()).opening(Keyring.create("v-1"), 7, USER, "eve")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: the request of entry 7 has no user of this name
        """
        for outcome in OUTCOMES[role]:
            mention = Mention(role, outcome, text)
            salt = _salt(keyring, number, mention)
            index = self._places.get(mention.leaf(salt))
            if index is not None:
                return Opening(mention, salt, index, self._tree.proof(index))
        raise InvalidInputError(f"the request of entry {number} has no {role} of this name")


def refuse_named(case: str, names: Sequence[str]) -> None:
    """Refuse the text of a case that is no line of text, or has a requested name in it, as a word of its own.

    >>> refuse_named("request 4160 of 2026", ["416"])
    >>> refuse_named("request of Ann", ["ann"])
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: the case must not name anybody whom the request is about
    """
    if not case.isprintable():
        raise InvalidInputError("the case must be a line of printable text")
    if any(re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", case, re.IGNORECASE) for name in names):
        raise InvalidInputError("the case must not name anybody whom the request is about")


def _salt(keyring: Keyring, number: int, mention: Mention) -> bytes:
    """The salt of a name in an entry, from the keys alone; that of all outcomes is the same."""
    return keyring.digest(b"salt", f"{number}\n{mention.role}\n{mention.text}")
