"""The keys of a vault: one digest key for keyed digests, and signing keys for certificates.

The digest key stays the same as long as the vault exists; signing keys s₁…sₘ (Ed25519) follow each other.
All are stored in one file that only its owner can read. A digest is BLAKE2b-128 with the digest key and a
purpose.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, MissingExtraError, VaultError
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys import private_files, signatures
from armnesia.vault.keys.canonical_json import canonical, read_object

SCHEMA = "armnesia.keys/1"
KEY_BYTES = 32
DIGEST_BYTES = 16
_NONCE_BYTES = 12


@dataclass(frozen=True)
class Keyring:
    """The keys of one vault; the newest signing key signs.

    >>> keyring = Keyring.create("v-1")
    >>> keyring
    Keyring(vault='v-1')
    >>> Keyring.create("v-1").owner_digests(["ann"]) == keyring.owner_digests(["ann"])
    False
    """

    vault: str
    digest_key: bytes = field(repr=False)
    signing_keys: tuple[bytes, ...] = field(repr=False)
    """Versions 1 to m, in order."""

    def __post_init__(self) -> None:
        signing, sizes = self.signing_keys, {len(key) for key in (self.digest_key, *self.signing_keys)}
        if not signing or sizes != {KEY_BYTES} or len(set(signing)) < len(signing):
            raise InvalidInputError(
                f"a keyring must be a digest key and different signing keys, of {KEY_BYTES} bytes each"
            )

    @classmethod
    def create(cls, vault: str) -> "Keyring":
        """Create the first keys of a vault, from the operating system's randomness."""
        return cls(vault, secret_bytes(KEY_BYTES), (secret_bytes(KEY_BYTES),))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Keyring":
        """Read the key file; refuse one that is missing, accessible to other users, or invalid."""
        text = private_files.read(path)
        try:
            document = read_object(text, "it")
            if document["schema"] != SCHEMA or not isinstance(document["vault"], str):
                raise ValueError
            signing = tuple(map(bytes.fromhex, document["signing_keys"]))
            return cls(document["vault"], bytes.fromhex(document["digest_key"]), signing)
        except (KeyError, TypeError, ValueError):
            raise VaultError(
                f"{Path(path)} is not a valid key file: copy it from your backup of the keys"
            ) from None

    def save(self, path: str | PathLike[str], *, replace: bool = False) -> None:
        """Write the key file in one step, for its owner only.

        An existing file is refused; with `replace` it is replaced, but only by a keyring that has all of its
        keys: without them nobody's records are found, and nothing that was signed can be signed again.
        """
        if replace and Path(path).exists() and not self.extends(Keyring.read(path)):
            raise VaultError(f"{Path(path)} holds keys that the new keyring lacks; nothing was written")
        keys = {"digest_key": self.digest_key.hex(), "signing_keys": [key.hex() for key in self.signing_keys]}
        text = canonical({"schema": SCHEMA, "vault": self.vault, **keys}) + "\n"
        private_files.write(path, text, replace=replace)

    @property
    def signing_version(self) -> int:
        """The version of the newest signing key, which is the number of signing keys."""
        return len(self.signing_keys)

    def with_new_signing_key(self) -> "Keyring":
        """The keyring with one more signing key.

        >>> Keyring.create("v-1").with_new_signing_key().signing_version
        2
        """
        return replace(self, signing_keys=(*self.signing_keys, secret_bytes(KEY_BYTES)))

    def of_another_vault(self, vault: str) -> "Keyring":
        """The keys of a vault that recognises whoever is forgotten in this one: the same digest key.

        >>> old = Keyring.create("v-1").with_new_signing_key()
        >>> new = old.of_another_vault("v-2")
        >>> new.owner_digests(["ann"]) == old.owner_digests(["ann"]), new.signing_version
        (True, 1)
        """
        return Keyring(vault, self.digest_key, (secret_bytes(KEY_BYTES),))

    def at(self, signing_version: int) -> "Keyring":
        """The keyring up to this version: a key that was saved just before a crash is not in use yet.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.with_new_signing_key().at(1) == keyring
        True
        """
        if signing_version == self.signing_version:
            return self
        if not 1 <= signing_version <= self.signing_version:
            raise VaultError(
                f"the keyring has signing keys 1 to {self.signing_version}; the vault uses {signing_version}"
            )
        return replace(self, signing_keys=self.signing_keys[:signing_version])

    def extends(self, older: "Keyring") -> bool:
        """Whether this keyring has all keys of the older one, and perhaps newer ones.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.with_new_signing_key().extends(keyring), keyring.extends(keyring.with_new_signing_key())
        (True, False)
        """
        return (self.vault, self.digest_key) == (older.vault, older.digest_key) and (
            self.signing_keys[: older.signing_version] == older.signing_keys
        )

    def owner_digests(self, users: Iterable[str]) -> list[bytes]:
        """The digests of users' ids, by which rows name their owner and the suppression list names people.

        >>> keyring = Keyring.create("v-1")
        >>> len(keyring.owner_digests(["ann", "bob"]))
        2
        """
        return list(self.digests(b"user", map(_utf8, users)))

    def record_identities(self, kind: str, *columns: Sequence[str]) -> list[bytes]:
        """The identities of rows, whose parts are a kind and the values of these columns.

        Each is a digest of the parts, each part after its length, so that they do not run together.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.record_identities("id", ["ab"], ["c"]) == keyring.record_identities("id", ["a"], ["bc"])
        False
        """
        before = f"{len(kind)}:{kind}"
        if len(columns) == 1:  # nearly always
            texts = [f"{before}{len(part)}:{part}" for part in columns[0]]
        else:
            rows = zip(*columns, strict=True)
            texts = [before + "".join([f"{len(part)}:{part}" for part in parts]) for parts in rows]
        return list(self.digests(b"record", map(_utf8, texts)))

    def digest(self, purpose: bytes, text: str) -> bytes:
        """The digest of a text."""
        return next(self.digests(purpose, [_utf8(text)]))

    def digests(self, purpose: bytes, texts: Iterable[bytes]) -> Iterator[bytes]:
        """The digests of many texts, for a purpose of up to 16 bytes.

        >>> keyring = Keyring.create("v-1")
        >>> list(keyring.digests(b"test", [b"text"])) == [keyring.digest(b"test", "text")]
        True
        """
        # Copying a keyed hash object is a third faster than creating one.
        empty = hashlib.blake2b(digest_size=DIGEST_BYTES, key=self.digest_key, person=purpose)
        for text in texts:
            hasher = empty.copy()
            hasher.update(text)
            yield hasher.digest()

    def seal(self, text: str) -> bytes:
        """A MAC of 32 bytes on a text and on all keys: it fits this keyring only."""
        hasher = hashlib.blake2b(_utf8(text), digest_size=32, key=self.digest_key, person=b"seal")
        hasher.update(b"".join(self.signing_keys))
        return hasher.digest()

    @property
    def digest_check(self) -> str:
        """A value by which the digest key is recognised and which does not reveal it: the ledger has it."""
        return self.digest(b"check", "").hex()

    def encrypted(self, value: Any, context: str) -> bytes:
        """A value in JSON, encrypted (AES-256-GCM) with a key made of the digest key.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.decrypted(keyring.encrypted(["ann"], "request 7"), "request 7")
        ['ann']
        """
        nonce = secret_bytes(_NONCE_BYTES)
        sealed: bytes = self._cipher.encrypt(nonce, canonical(value).encode(), context.encode())
        return nonce + sealed

    def decrypted(self, data: bytes, context: str) -> Any:
        """What was encrypted in this context."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 (an extra)

        try:
            text: bytes = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], context.encode())
        except InvalidTag:
            raise VaultError(
                "encrypted values of the vault were changed by something other than armnesia: run armnesia"
                " verify"
            ) from None
        return json.loads(text)

    @cached_property
    def _cipher(self) -> Any:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 (an extra)
        except ImportError:
            raise MissingExtraError.naming("The vault", "vault") from None
        key = hashlib.blake2b(digest_size=KEY_BYTES, key=self.digest_key, person=b"encryption").digest()
        return AESGCM(key)

    def public_key(self, version: int | None = None) -> str:
        """The public half of a signing key, the newest by default, as 64 hexadecimal digits."""
        if version is not None and not 1 <= version <= len(self.signing_keys):
            raise VaultError(f"the keyring has signing keys 1 to {len(self.signing_keys)}; got {version}")
        return signatures.public_key(self.signing_keys[-1 if version is None else version - 1])

    def sign(self, data: bytes) -> bytes:
        """The Ed25519 signature of the newest signing key.

        >>> keyring = Keyring.create("v-1")
        >>> signatures.is_signed(b"text", keyring.sign(b"text"), keyring.public_key())
        True
        """
        return signatures.sign(data, self.signing_keys[-1])


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError("an id must be encodable as UTF-8; got an unpaired surrogate") from None
