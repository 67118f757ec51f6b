"""Checkpoints of the ledger, and proofs for them, in the texts that C2SP publishes.

A checkpoint (c2sp.org/tlog-checkpoint) is the ledger at one moment, in three lines: whose it is, how many
entries it has, and the root of the Merkle tree over them. Whoever keeps the newest one notices a ledger that
was cut or changed. It is signed as a note (c2sp.org/signed-note). A proof (c2sp.org/tlog-proof) says that an
entry is in the ledger of a signed checkpoint.

>>> from armnesia.vault.ledger.merkle import Tree, leaf_hash
>>> leaves = [leaf_hash(b"first"), leaf_hash(b"second")]
>>> note = Checkpoint(origin_of("v-1"), 2, Tree(leaves).root).signed(bytes(32))
>>> print(note)
armnesia/v-1
2
...=
<BLANKLINE>
— armnesia/v-1 ...
>>> print(Proof(1, Tree(leaves).proof(1), note))
c2sp.org/tlog-proof@v1
index 1
...=
<BLANKLINE>
armnesia/v-1
...
>>> proof = Proof.read(str(Proof(1, Tree(leaves).proof(1), note)))
>>> proof.includes(leaves[1]), proof.includes(leaves[0])
(True, False)
"""

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import shown
from armnesia.vault.keys import signatures
from armnesia.vault.ledger.merkle import HASH_BYTES, root_from_proof

_ED25519 = b"\x01"
_SIGNATURE = re.compile(r"— ([^\s+]+) (\S+)")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]")
_SIZE = re.compile(r"0|[1-9][0-9]{0,17}")
_HEADER = "c2sp.org/tlog-proof@v1"
_PROOF = re.compile(r"(?:extra \S+\n)?index (0|[1-9][0-9]{0,17})\n((?:\S+\n)*)\n(.*)", re.DOTALL)


@dataclass(frozen=True)
class Note:
    """A text that ends a line, and the signatures on it.

    The name of a key and four bytes of a hash say which key a signature is of. They are hints, and the key
    that the verifier holds decides. Signatures of other keys are passed over, so a witness can add its own.
    """

    text: str
    signatures: tuple[tuple[str, bytes], ...]
    """The name of each key, and its four bytes with the signature behind them."""

    @classmethod
    def signed(cls, text: str, name: str, seed: bytes) -> "Note":
        """Sign a text with an Ed25519 key, given by its secret seed, under a name."""
        key_id = key_id_of(name, signatures.public_key(seed))
        return cls(text, ((name, key_id + signatures.sign(text.encode(), seed)),))

    @classmethod
    def read(cls, note: str) -> "Note":
        """Read a note; it says nothing until a signature is verified.

        >>> Note.read("a line")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a signed note must be lines of text, an empty line and
        lines of signatures
        """
        # The last empty line parts them: the text may have others.
        text, parted, below = note.rpartition("\n\n")
        *lines, rest = below.split("\n")
        matches = [_SIGNATURE.fullmatch(line) for line in lines]
        if not parted or rest or None in matches or not matches or _CONTROL.search(note):
            raise InvalidInputError(
                "a signed note must be lines of text, an empty line and lines of signatures"
            )
        return cls(text + "\n", tuple((match[1], decoded(match[2])) for match in matches if match))

    def __str__(self) -> str:
        return self.text + "\n" + "".join(f"— {name} {encoded(data)}\n" for name, data in self.signatures)

    def is_signed_by(self, name: str, public: str) -> bool:
        """Whether the holder of this key signed the text; a wrong signature in its name spoils the note."""
        key_id, text = key_id_of(name, public), self.text.encode()
        own = [data[4:] for signer, data in self.signatures if (signer, data[:4]) == (name, key_id)]
        return bool(own) and all(signatures.is_signed(text, each, public) for each in own)


@dataclass(frozen=True)
class Checkpoint:
    """The size and the root of the ledger of this origin; as text, size:root.

    >>> str(Checkpoint(origin_of("v-1"), 12, bytes(32)))[:10]
    '12:0000000'
    """

    origin: str
    size: int
    root: bytes

    def __str__(self) -> str:
        return f"{self.size}:{self.root.hex()}"

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
        return f"{_HEADER}\nindex {self.index}\n{hashes}\n{self.note}"

    @classmethod
    def read(cls, text: str) -> "Proof":
        """Read a proof; extra data, which nothing signs, is passed over.

        >>> Proof.read("index 1")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a proof must be the lines of c2sp.org/tlog-proof@v1
        """
        header, _, below = text.partition("\n")
        match = _PROOF.fullmatch(below)
        if header != _HEADER or match is None:
            raise InvalidInputError(f"a proof must be the lines of {_HEADER}")
        proof = cls(int(match[1]), tuple(map(decoded, match[2].splitlines())), Note.read(match[3]))
        _ = proof.checkpoint  # refused here if it is none
        return proof


def origin_of(vault: str) -> str:
    """The name of a vault's ledger, which is also that of its key.

    >>> origin_of("v-1")
    'armnesia/v-1'
    """
    return f"armnesia/{vault}"


def key_id_of(name: str, public: str) -> bytes:
    """Four bytes by which a signature on a note names an Ed25519 key.

    >>> key_id_of("example.com/log", signatures.public_key(bytes(32))).hex()
    '1dde4531'
    """
    return sha256(name.encode() + b"\n" + _ED25519 + bytes.fromhex(public)).digest()[:4]


def encoded(data: bytes) -> str:
    """Standard base64 (RFC 4648, section 4).

    >>> encoded(b"text")
    'dGV4dA=='
    """
    return b64encode(data).decode()


def decoded(text: str) -> bytes:
    """Read standard base64 in the one way in which `encoded` writes it.

    >>> decoded("dGV4dB==")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: base64 must be as RFC 4648 writes it; got 'dGV4dB=='
    """
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        data = b""
    if encoded(data) != text:
        raise InvalidInputError(f"base64 must be as RFC 4648 writes it; got {shown(text)}")
    return data
