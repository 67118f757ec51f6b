"""Check a certificate without armnesia: python check_certificate.py CERTIFICATE PUBLIC_KEY."""

import hashlib
import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def canonical(value: object) -> bytes:
    """Canonical JSON in UTF-8; Python reads and writes the numbers of armnesia as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def check(text: str, public_key: str) -> None:
    """Raise an error unless this key signed the certificate, and its entry and opening agree with it."""
    certificate = json.loads(text)
    body, opening = certificate["body"], certificate["opening"]
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    key.verify(bytes.fromhex(certificate["signature"]), canonical(body))
    entry, words = body["entry"], [body["claims"], body["not_covered"], body["proves"]]
    if hashlib.sha256(canonical(entry)).hexdigest() != body["entry_hash"]:
        raise ValueError("the entry does not have its hash")
    if hashlib.sha256(canonical([*words, body["erasure"]["covers"]])).hexdigest() != entry["terms"]:
        raise ValueError("the words are not those that the entry fixes")
    if opening is not None:
        node = hashlib.sha256(bytes.fromhex(opening["salt"]) + canonical(opening["request"])).digest()
        for step in opening.get("path", ()):
            side, other = step.split(":")
            pair = bytes.fromhex(other) + node if side == "left" else node + bytes.fromhex(other)
            node = hashlib.sha256(b"\x01" + pair).digest()
        if node.hex() != entry["commitment"]:
            raise ValueError("the opening is not that of the commitment")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        check(file.read(), sys.argv[2])
    print("signed with this key; the entry, its words and the opening agree")
