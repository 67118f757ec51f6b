"""Check a certificate without armnesia: python check_certificate.py CERTIFICATE PUBLIC_KEY."""

import json
import sys
from base64 import b64decode
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def root(data: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root of the Merkle tree (RFC 9162, 2.1.3.2) of this size that has the leaf at this place."""
    node, last = sha256(b"\x00" + data).digest(), size - 1
    for beside in path:
        while last and index == last and index % 2 == 0:  # no neighbour: it is passed on
            index, last = index // 2, last // 2
        pair = beside + node if index % 2 else node + beside
        node, index, last = sha256(b"\x01" + pair).digest(), index // 2, last // 2
    if index or last:
        raise ValueError("the path does not lead to the root")
    return node


def check_entry(document: dict[str, Any], public_key: str) -> dict[str, Any]:
    """The statement of an entry, if its signer and the holder of this key have signed for it."""
    envelope, (head, checkpoint) = document["envelope"], document["proof"].split("\n\n", 1)
    payload, kind = b64decode(envelope["payload"]), envelope["payloadType"].encode()
    leaf = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    statement: dict[str, Any] = json.loads(payload)
    signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(statement["predicate"]["signer"]))
    signer.verify(b64decode(envelope["signatures"][0]["sig"]), leaf)
    text, signature = checkpoint.rsplit("\n\n", 1)
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    key.verify(b64decode(signature.split()[2])[4:], f"{text}\n".encode())
    origin, size, signed = text.split("\n")
    _, index, *path = head.split("\n")
    place = int(index.removeprefix("index "))
    if root(leaf, place, int(size), [b64decode(each) for each in path]) != b64decode(signed):
        raise ValueError("the entry is not in the ledger of the checkpoint")
    if (origin, place) != (
        f"armnesia/{statement['predicate']['vault']}",
        statement["predicate"]["number"] - 1,
    ):
        raise ValueError("the entry is of another place or vault")
    return statement


def check(text: str, public_key: str) -> list[str]:
    """What a certificate says: of whom, and which later entries concern it; an error if it is not right."""
    certificate = json.loads(text)
    statement = check_entry(certificate, public_key)
    people = bytes.fromhex(statement["subject"][0]["digest"]["sha256"])
    if statement["predicate"]["kind"] != "forget":
        raise ValueError("it is no deletion")
    for each in certificate["opening"]:
        salt, path = bytes.fromhex(each["salt"]), [bytes.fromhex(one) for one in each["path"]]
        data = salt + f"{each['role']}\n{each['outcome']}\n{each['text']}".encode()
        if len(salt) != 16 or root(data, each["index"], 2 ** len(path), path) != people:
            raise ValueError(f"the {each['role']} is not of this entry")
    later = [check_entry(each, public_key)["predicate"]["kind"] for each in certificate["later"]]
    return [f"{each['role']} {each['text']}: {each['outcome']}" for each in certificate["opening"]] + later


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            print(*check(file.read(), sys.argv[2]), "valid", sep="\n")
    except Exception as error:  # whatever is wrong with it
        sys.exit(f"not valid: {error or type(error).__name__}")
