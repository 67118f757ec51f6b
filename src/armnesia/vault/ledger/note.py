"""Signed notes (c2sp.org/signed-note): a text of lines, and below it a line for each signature.

The name of a key and four bytes of a hash say which key a signature is of; they are hints, and the key that
the verifier holds decides. Signatures of keys that it does not know are passed over, so a witness can add
its own.

>>> note = Note.signed("a line\\n", "example.com/log", bytes(32))
>>> print(note)
a line
<BLANKLINE>
— example.com/log Hd5F...
<BLANKLINE>
>>> Note.read(str(note)).is_signed_by("example.com/log", signatures.public_key(bytes(32)))
True
"""

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import sha256

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import shown
from armnesia.vault.keys import signatures

ED25519 = b"\x01"
_LINE = re.compile(r"— ([^\s+]+) (\S+)")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]")


@dataclass(frozen=True)
class Signature:
    """One line of signature: who made it, as hints, and what it is."""

    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"— {self.name} {encoded(self.key_id + self.signature)}\n"


@dataclass(frozen=True)
class Note:
    """A text that ends a line, and the signatures on it."""

    text: str
    signatures: tuple[Signature, ...]

    @classmethod
    def signed(cls, text: str, name: str, seed: bytes) -> "Note":
        """Sign a text with an Ed25519 key, given by its secret seed, under a name."""
        key_id = key_id_of(name, signatures.public_key(seed))
        return cls(text, (Signature(name, key_id, signatures.sign(text.encode(), seed)),))

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
        matches = [_LINE.fullmatch(line) for line in lines]
        if not parted or rest or None in matches or not matches or _CONTROL.search(note):
            raise InvalidInputError(
                "a signed note must be lines of text, an empty line and lines of signatures"
            )
        parts = [(match[1], decoded(match[2])) for match in matches if match]
        return cls(text + "\n", tuple(Signature(name, data[:4], data[4:]) for name, data in parts))

    def __str__(self) -> str:
        return self.text + "\n" + "".join(map(str, self.signatures))

    def is_signed_by(self, name: str, public: str) -> bool:
        """Whether the holder of this key signed the text; a wrong signature in its name spoils the note."""
        key_id = key_id_of(name, public)
        own = [each.signature for each in self.signatures if (each.name, each.key_id) == (name, key_id)]
        data = self.text.encode()
        return bool(own) and all(signatures.is_signed(data, signature, public) for signature in own)


def key_id_of(name: str, public: str) -> bytes:
    """Four bytes by which a signature names an Ed25519 key.

    >>> key_id_of("example.com/log", signatures.public_key(bytes(32))).hex()
    '1dde4531'
    """
    return sha256(name.encode() + b"\n" + ED25519 + bytes.fromhex(public)).digest()[:4]


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
