"""The keys of a vault: digest keys for keyed digests, signing keys for certificates.

Digest keys k₁…kₙ and signing keys s₁…sₘ (Ed25519) are independent of each other and are stored in one file
that only its owner can read. The digest of a person is chained: d₁ = H(k₁, text), d₂ = H(k₂, d₁), …, where H
is BLAKE2b-128. A new key therefore wraps every stored digest without the text; old keys stay in the keyring.
Digests of rows are stored with the rows and deleted with them, and always use k₁.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys import private_files, signatures
from armnesia.vault.keys.canonical_json import canonical, read_json, text_of_plain

SCHEMA = "armnesia.keys/1"
KEY_BYTES = 32
DIGEST_BYTES = 16

USER = b"user"
SUPPRESSED_RECORD = b"suppressed"
REQUEST = b"request"
"""The purposes of chained digests, for `wrapped`."""


@dataclass(frozen=True)
class Keyring:
    """The keys of one vault, versions 1 to n in order; the newest signs and seals.

    >>> keyring = Keyring.create("v-1")
    >>> keyring
    Keyring(vault='v-1')
    >>> keyring.user_digest("ann") == keyring.user_digest("ann") != keyring.user_digest("bob")
    True
    """

    vault: str
    digest_keys: tuple[bytes, ...] = field(repr=False)
    signing_keys: tuple[bytes, ...] = field(repr=False)
    rotated_below: bytes | None = field(default=None, repr=False)
    """While the digest key is rotated: table digests of records with an identity below this use the newest
    key, those of others the one before."""

    def __post_init__(self) -> None:
        for name, keys in (("digest_keys", self.digest_keys), ("signing_keys", self.signing_keys)):
            if not keys or any(len(key) != KEY_BYTES for key in keys):
                raise InvalidInputError(f"{name} must be one or more keys of {KEY_BYTES} bytes")
            if len(set(keys)) < len(keys):
                raise InvalidInputError(f"{name} must differ from each other; one key occurs twice")

    @classmethod
    def create(cls, vault: str) -> "Keyring":
        """Create the first keys of a vault, from the operating system's randomness."""
        return cls(vault, (secret_bytes(KEY_BYTES),), (secret_bytes(KEY_BYTES),))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Keyring":
        """Read the key file; refuse one that is missing, accessible to other users, or invalid."""
        try:
            document = read_json(private_files.read(path), "it")
            if not isinstance(document, dict) or document.get("schema") != SCHEMA:
                raise InvalidInputError(f"its schema must be {SCHEMA}")
            vault = document.get("vault")
            if not isinstance(vault, str) or not vault:
                raise InvalidInputError("its vault must be text")
            return cls(vault, _keys(document, "digest_keys"), _keys(document, "signing_keys"))
        except InvalidInputError as error:
            raise VaultError(f"{Path(path)} is not a valid key file: {error}") from None

    def save(self, path: str | PathLike[str], *, replace: bool = False) -> None:
        """Write the key file in one step, for its owner only.

        An existing file is refused; with `replace` it is replaced, but only by a keyring that has all of its
        keys: a key that is lost makes its digests worthless.
        """
        if replace and Path(path).exists() and not self.extends(Keyring.read(path)):
            raise VaultError(f"{Path(path)} holds keys that the new keyring lacks; nothing was written")
        keys = {
            "digest_keys": [key.hex() for key in self.digest_keys],
            "signing_keys": [key.hex() for key in self.signing_keys],
        }
        text = canonical({"schema": SCHEMA, "vault": self.vault, **keys}) + "\n"
        private_files.write(path, text, replace=replace)

    @property
    def digest_version(self) -> int:
        """The version of the newest digest key, which is the number of digest keys."""
        return len(self.digest_keys)

    @property
    def signing_version(self) -> int:
        """The version of the newest signing key, which is the number of signing keys."""
        return len(self.signing_keys)

    def with_new_digest_key(self) -> "Keyring":
        """The keyring with one more digest key.

        >>> Keyring.create("v-1").with_new_digest_key().digest_version
        2
        """
        return replace(self, digest_keys=(*self.digest_keys, secret_bytes(KEY_BYTES)))

    def with_new_signing_key(self) -> "Keyring":
        """The keyring with one more signing key.

        >>> Keyring.create("v-1").with_new_signing_key().signing_version
        2
        """
        return replace(self, signing_keys=(*self.signing_keys, secret_bytes(KEY_BYTES)))

    def successor(self, vault: str) -> "Keyring":
        """The keys of a vault that succeeds this one: its digest keys and a new one, and a new signing key.

        With the old digest keys the successor recognises forgotten people; the new one seals what is its own.

        >>> old = Keyring.create("v-1")
        >>> new = old.successor("v-2")
        >>> new.wrapped(old.user_digest("ann"), USER) == new.user_digest("ann"), new.signing_version
        (True, 1)
        """
        return Keyring(vault, (*self.digest_keys, secret_bytes(KEY_BYTES)), (secret_bytes(KEY_BYTES),))

    def at(
        self, *, digest_version: int, signing_version: int, rotated_below: bytes | None = None
    ) -> "Keyring":
        """The keyring up to these versions: a key that was saved just before a crash is not in use yet.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.with_new_digest_key().at(digest_version=1, signing_version=1) == keyring
        True
        """
        newest = len(self.digest_keys), len(self.signing_keys)
        if (digest_version, signing_version, rotated_below) == (*newest, self.rotated_below):
            return self
        for name, version, last in zip(
            ("digest", "signing"), (digest_version, signing_version), newest, strict=True
        ):
            if not 1 <= version <= last:
                raise VaultError(f"the keyring has {name} keys 1 to {last}; the vault uses {version}")
        return replace(
            self,
            digest_keys=self.digest_keys[:digest_version],
            signing_keys=self.signing_keys[:signing_version],
            rotated_below=rotated_below,
        )

    def extends(self, older: "Keyring") -> bool:
        """Whether this keyring has all keys of the older one, and perhaps newer ones.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.with_new_signing_key().extends(keyring), keyring.extends(keyring.with_new_signing_key())
        (True, False)
        """
        return (
            self.vault == older.vault
            and self.digest_keys[: older.digest_version] == older.digest_keys
            and self.signing_keys[: older.signing_version] == older.signing_keys
        )

    def user_digest(self, user: str) -> bytes:
        """The chained digest of a user's id."""
        return self.digest_of_owner(self.owner_digest(user))

    def owner_digest(self, user: str) -> bytes:
        """The first digest of a user's chain, d₁, by which rows name their owner."""
        return _digest(self.digest_keys[0], USER, _utf8(user))

    def owner_digests(self, users: Iterable[str]) -> list[bytes]:
        """`owner_digest` of many users, in two thirds of the time.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.owner_digests(["ann", "bob"]) == [*map(keyring.owner_digest, ["ann", "bob"])]
        True
        """
        prepared, digests = _prepared(self.digest_keys[0], USER), []
        for user in users:
            state = prepared.copy()
            state.update(_utf8(user))
            digests.append(state.digest())
        return digests

    def digest_of_owner(self, owner: bytes) -> bytes:
        """The chained digest of a user, from `owner_digest`; the same as `user_digest`."""
        for key in self.digest_keys[1:]:
            owner = _digest(key, USER, owner)
        return owner

    def digests_of_owners(self, owners: list[bytes]) -> list[bytes]:
        """`digest_of_owner` of many owners.

        >>> keyring = Keyring.create("v-1").with_new_digest_key()
        >>> keyring.digests_of_owners(keyring.owner_digests(["ann"])) == [keyring.user_digest("ann")]
        True
        """
        for key in self.digest_keys[1:]:
            owners = _digests(_prepared(key, USER), owners)
        return owners

    def suppressed_record_digests(self, identities: list[bytes]) -> list[bytes]:
        """`suppressed_record_digest` of many records.

        >>> keyring = Keyring.create("v-1").with_new_digest_key()
        >>> row = keyring.record_identity("id", "r1")
        >>> keyring.suppressed_record_digests([row]) == [keyring.suppressed_record_digest(row)]
        True
        """
        for key in self.digest_keys:
            identities = _digests(_prepared(key, SUPPRESSED_RECORD), identities)
        return identities

    def suppressed_record_digest(self, identity: bytes) -> bytes:
        """The chained digest of a forgotten record's identity."""
        return self._chained(identity, SUPPRESSED_RECORD)

    def request_digest(self, request: Mapping[str, Any]) -> bytes:
        """The chained digest of a request, by which the same request is recognised.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.request_digest({"users": ["ann"]}) == keyring.request_digest({"records": ["ann"]})
        False
        """
        return self._chained(_utf8(text_of_plain(request)), REQUEST)

    def wrapped(self, digest: bytes, purpose: bytes) -> bytes:
        """The next digest of a chain, with the newest key: H(kₙ, dₙ₋₁).

        >>> keyring = Keyring.create("v-1")
        >>> new = keyring.with_new_digest_key()
        >>> new.wrapped(keyring.user_digest("ann"), USER) == new.user_digest("ann")
        True
        """
        return _digest(self.digest_keys[-1], purpose, digest)

    def record_identity(self, *parts: str) -> bytes:
        """The identity of a row: H(k₁, parts), each part after its length, so that parts do not run together.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.record_identity("ab", "c") == keyring.record_identity("a", "bc")
        False
        """
        state = _prepared(self.digest_keys[0], b"record").copy()
        try:
            state.update("".join([f"{len(part)}:{part}" for part in parts]).encode())
        except UnicodeEncodeError:
            raise _not_utf8() from None
        return state.digest()

    def record_identities(self, kind: str, *columns: Sequence[str]) -> list[bytes]:
        """`record_identity` of many rows, whose parts are a kind and the values of these columns.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.record_identities("id", ["a", "b"]) == [
        ...     keyring.record_identity("id", "a"), keyring.record_identity("id", "b")
        ... ]
        True
        """
        before = f"{len(kind)}:{kind}"
        if len(columns) == 1:  # nearly always
            texts = [f"{before}{len(part)}:{part}" for part in columns[0]]
        else:
            rows = zip(*columns, strict=True)
            texts = [before + "".join([f"{len(part)}:{part}" for part in parts]) for parts in rows]
        return _digests(_prepared(self.digest_keys[0], b"record"), map(_utf8, texts))

    def record_content(
        self, identity: bytes, owner: str | None, arm: int, units: int, decision: int | None = None
    ) -> bytes:
        """The digest of a row's content: H(k₁, identity, arm, units, owner), and the decision if given.

        >>> keyring = Keyring.create("v-1")
        >>> row = keyring.record_identity("r1")
        >>> keyring.record_content(row, None, 0, 5) == keyring.record_content(row, "", 0, 5)
        False
        """
        state = _prepared(self.digest_keys[0], b"content").copy()
        state.update(b"%d:%b%d:%d:" % (len(identity), identity, arm, units))
        if decision is not None:
            state.update(b"decision:%d:" % decision)
        if owner is not None:
            state.update(b"owner:" + _utf8(owner))
        return state.digest()

    def decision_seal(self, number: int, key: str) -> bytes:
        """The seal on the number and the key of a decision; with the first key, so that it never changes.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.decision_seal(1, '["DE"]') == keyring.decision_seal(2, '["DE"]')
        False
        """
        return _digest(self.digest_keys[0], b"decision key", f"{self.vault}:{number}:{key}".encode())

    def encryption_key(self, version: int) -> bytes:
        """A key of 32 bytes for texts that are stored for a while, from the digest key of a version.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.with_new_digest_key().encryption_key(1) == keyring.encryption_key(1)
        True
        """
        key = self.digest_keys[version - 1]
        return hashlib.blake2b(digest_size=32, key=key, person=b"encryption").digest()

    def digest_check(self, version: int) -> str:
        """A value by which a digest key is recognised and which does not reveal it: the ledger has it.

        >>> keyring = Keyring.create("v-1")
        >>> newer = keyring.with_new_digest_key()
        >>> newer.digest_check(1) == keyring.digest_check(1) != newer.digest_check(2)
        True
        """
        return _digest(self.digest_keys[version - 1], b"check", b"").hex()

    @cached_property
    def checks(self) -> list[str]:
        """A value by which each key is recognised, for the seal: a state fits one keyring only."""
        return [_digest(key, b"check", b"").hex() for key in (*self.digest_keys, *self.signing_keys)]

    def tally_digest(self, row: tuple[Any, ...]) -> int:
        """The digest of a record in the tally of its owner; like all digests of rows, with the first key."""
        state = _prepared(self.digest_keys[0], b"owned").copy()
        state.update(ascii(row).encode())
        return int.from_bytes(state.digest())

    def tally_digests(self, texts: Iterable[bytes]) -> list[bytes]:
        """`tally_digest` of many records, each written as `ascii` does.

        >>> keyring = Keyring.create("v-1")
        >>> (digest,) = keyring.tally_digests([b"(1, 2)"])
        >>> int.from_bytes(digest) == keyring.tally_digest((1, 2))
        True
        """
        return _digests(_prepared(self.digest_keys[0], b"owned"), texts)

    def digests(self, purpose: bytes, texts: Iterable[bytes], *, before: int = 0) -> list[bytes]:
        """The digests of many texts, as the hash object of `hasher` makes them.

        >>> keyring = Keyring.create("v-1")
        >>> hasher = keyring.hasher(b"test")
        >>> hasher.update(b"text")
        >>> keyring.digests(b"test", [b"text"]) == [hasher.digest()]
        True
        """
        return _digests(_prepared(self.digest_keys[-1 - before], purpose), texts)

    def seal(self, data: str) -> bytes:
        """A MAC of 32 bytes with the newest digest key: without the key, changed data cannot be sealed."""
        key = self.digest_keys[-1]
        return hashlib.blake2b(_utf8(data), digest_size=32, key=key, person=b"seal").digest()

    def sealing(self) -> "hashlib.blake2b":
        """A hash object for the seal on data that comes in parts.

        >>> keyring = Keyring.create("v-1")
        >>> sealing = keyring.sealing()
        >>> sealing.update(b"in "), sealing.update(b"parts"), sealing.digest() == keyring.seal("in parts")
        (None, None, True)
        """
        return hashlib.blake2b(digest_size=32, key=self.digest_keys[-1], person=b"seal")

    def hasher(self, purpose: bytes, *, before: int = 0) -> "hashlib.blake2b":
        """A hash object for digests with the newest digest key, for a purpose of up to 16 bytes.

        With `before` it is for the key that was so many rotations before.
        """
        return _prepared(self.digest_keys[-1 - before], purpose).copy()

    def salt(self, sequence: int, version: int, name: str = "", nonce: str = "") -> bytes:
        """The salt of a name in a ledger entry, from a nonce and the digest key of the entry's version.

        Both are needed: once the nonce is erased, the keys alone cannot test a name against the ledger.

        >>> keyring = Keyring.create("v-1")
        >>> keyring.with_new_digest_key().salt(7, version=1) == keyring.salt(7, version=1)
        True
        """
        if not 1 <= version <= len(self.digest_keys):
            raise VaultError(
                f"the keyring has digest keys 1 to {len(self.digest_keys)}; the entry names {version}"
            )
        return _digest(
            self.digest_keys[version - 1], b"salt", b"%d" % sequence + _utf8(name and f":{nonce}:{name}")
        )

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

    def _chained(self, text: bytes, purpose: bytes) -> bytes:
        for key in self.digest_keys:
            text = _digest(key, purpose, text)
        return text


@lru_cache(maxsize=64)
def _prepared(key: bytes, purpose: bytes) -> "hashlib.blake2b":
    # Copying a keyed hash object is a third faster than creating one.
    return hashlib.blake2b(digest_size=DIGEST_BYTES, key=key, person=purpose)


def _digest(key: bytes, purpose: bytes, data: bytes) -> bytes:
    state = _prepared(key, purpose).copy()
    state.update(data)
    return state.digest()


def _digests(prepared: "hashlib.blake2b", texts: Iterable[bytes]) -> list[bytes]:
    copy, digests = prepared.copy, []
    for text in texts:
        state = copy()
        state.update(text)
        digests.append(state.digest())
    return digests


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _not_utf8() from None


def _not_utf8() -> InvalidInputError:
    return InvalidInputError("an id must be encodable as UTF-8; got an unpaired surrogate")


def _keys(document: Mapping[str, Any], name: str) -> tuple[bytes, ...]:
    values = document.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidInputError(f"its {name} must be a list of keys")
    try:
        return tuple(bytes.fromhex(value) for value in values)
    except ValueError:
        raise InvalidInputError(f"its {name} must be hexadecimal") from None
