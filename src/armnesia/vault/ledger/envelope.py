"""Envelopes (DSSE 1.0): bytes with their type and a signature over both, in JSON of any layout.

What is signed is the pre-authentication encoding (PAE) of type and bytes, not the JSON around them. Those
bytes are also the leaf of the ledger's tree. `keyid` is the SHA-256 of the public key. It is a hint for
other tools, and proves nothing.

>>> envelope = Envelope.signed(b"{}", bytes(32))
>>> envelope.pae
b'DSSEv1 28 application/vnd.in-toto+json 2 {}'
>>> Envelope.from_dict(envelope.to_dict()).is_signed_by(signatures.public_key(bytes(32)))
True
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys import signatures
from armnesia.vault.ledger.checkpoint import decoded, encoded
from armnesia.vault.ledger.merkle import leaf_hash

STATEMENT = "application/vnd.in-toto+json"


@dataclass(frozen=True)
class Envelope:
    """Some bytes, what they are, and who signed them."""

    payload: bytes
    payload_type: str
    signatures: tuple[tuple[str, bytes], ...]
    """Each behind the hint which key made it; "" for none."""

    @classmethod
    def signed(cls, payload: bytes, seed: bytes, payload_type: str = STATEMENT) -> Self:
        """Sign bytes with an Ed25519 key, given by its secret seed."""
        signature = signatures.sign(pre_authentication_encoding(payload_type, payload), seed)
        return cls(payload, payload_type, ((keyid_of(signatures.public_key(seed)), signature),))

    @property
    def pae(self) -> bytes:
        """What is signed."""
        return pre_authentication_encoding(self.payload_type, self.payload)

    @property
    def leaf(self) -> bytes:
        """The hash of the leaf that the envelope is in the ledger's tree: signatures are no part of it."""
        return leaf_hash(self.pae)

    def is_signed_by(self, public: str) -> bool:
        """Whether one of the signatures is of this key."""
        own = (sig for keyid, sig in self.signatures if keyid in ("", keyid_of(public)))
        return any(signatures.is_signed(self.pae, sig, public) for sig in own)

    def to_dict(self) -> dict[str, Any]:
        """The envelope as JSON has it."""
        return {
            "payload": encoded(self.payload),
            "payloadType": self.payload_type,
            "signatures": [{"keyid": keyid, "sig": encoded(sig)} for keyid, sig in self.signatures],
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Read an envelope; fields that DSSE does not have are passed over, as it asks.

        >>> Envelope.from_dict({"payload": "e30="})
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: an envelope must have payload, payloadType and signatures,
        each with a sig, in base64
        """
        try:
            payload, payload_type = _bytes(document["payload"]), document["payloadType"]
            payload_type.encode()
            signed = ((each.get("keyid", ""), _bytes(each["sig"])) for each in document["signatures"])
            return cls(payload, payload_type, tuple(signed))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise InvalidInputError(
                "an envelope must have payload, payloadType and signatures, each with a sig, in base64"
            ) from None


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """The PAE of DSSE: type and bytes, each behind its length.

    >>> pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def keyid_of(public: str) -> str:
    """The hint that names a public key.

    >>> keyid_of("00" * 32)[:8]
    '66687aad'
    """
    return sha256(bytes.fromhex(public)).hexdigest()


def _bytes(text: str) -> bytes:
    # DSSE asks verifiers to take the alphabet for addresses as well.
    return decoded(text.replace("-", "+").replace("_", "/"))
