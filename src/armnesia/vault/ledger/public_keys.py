"""The public keys of a vault, and from which to which ledger entry each of them signed.

A key is in use from the entry that names it (`init` or `rotate_signing`) to the entry before the next
`rotate_signing`. A certificate says which head the ledger had when it was signed, and that must lie in the
range of its key.

A `rotate_signing` entry is signed with both keys. The signature of the previous key covers the new public
key. The signature of the new key, `signed_by_new`, covers the whole entry, and with `previous` the whole
ledger before it: whoever holds only keys that were retired cannot make another ledger that leads to the new
key. Entries of 0.1.0 lack that signature.

The first entry of a vault that succeeds others has their lists, as of their last heads (`predecessors`), and
is signed with the last key of the vault before (`signed_by_predecessor`): so old certificates stay
verifiable, and whoever trusts the old key can trust the new one.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, overload

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.files import read_plain
from armnesia.vault.keys import signatures
from armnesia.vault.keys.canonical_json import canonical, parse_time, read_json
from armnesia.vault.ledger.ledger import Head

SCHEMA = "armnesia.public_keys/1"
KEY_KINDS = ("init", "rotate_signing")
"""The kinds of entries that put a signing key in use."""
PREDECESSORS, SIGNED_BY_PREDECESSOR = "predecessors", "signed_by_predecessor"
"""Fields of the first entry of a vault that succeeds others."""


@dataclass(frozen=True)
class SigningKey:
    """A public key and the ledger entries that limit what it may have signed.

    It signed while the ledger's last entry was `first_entry` to `last_entry`, written at the times `since`
    and `until`; the latter two are None while it is in use.
    """

    version: int
    public: str
    first_entry: int
    last_entry: int | None
    since: str
    until: str | None
    erased_through: int | None
    """Up to which entry erasure was complete when the key was retired; None: in use, or not known."""
    compromised_since: int | None
    """Certificates signed since this entry must be issued again; None if the key is not compromised."""

    @property
    def retired(self) -> bool:
        """Whether another key has taken its place."""
        return self.last_entry is not None

    @property
    def range_words(self) -> str:
        """The range of entries, in words."""
        if self.last_entry is None:
            return f"from entry {self.first_entry} on"
        return f"from entry {self.first_entry} to entry {self.last_entry}"


def key_history(entries: Iterable[Mapping[str, Any]]) -> tuple[SigningKey, ...]:
    """The signing keys that the entries of a whole ledger name, in order; entries of other kinds are skipped.

    >>> times = {"time": "2026-11-15T10:42:07.123456Z"}
    >>> for key in key_history([
    ...     {"sequence": 1, "kind": "init", "public_key": "ab" * 32, **times},
    ...     {"sequence": 8, "kind": "rotate_signing", "version": 2, "public": "cd" * 32,
    ...      "compromised_since": 5, **times},
    ... ]):
    ...     print(key.version, key.range_words, key.compromised_since)
    1 from entry 1 to entry 7 5
    2 from entry 8 on None
    """
    keys: list[SigningKey] = []
    for entry in entries:
        if entry["kind"] not in KEY_KINDS:
            continue
        sequence, time = entry["sequence"], entry["time"]
        new = SigningKey(
            version=len(keys) + 1,
            public=_public_key_of(entry),
            first_entry=sequence,
            last_entry=None,
            since=time,
            until=None,
            erased_through=None,
            compromised_since=None,
        )
        if (entry["kind"] == "init") == bool(keys) or entry.get("version", 1) != new.version:
            raise InvalidInputError(f"entry {sequence} must name signing key {new.version}")
        if keys:
            erased, since = (
                _checked_entry_number(entry, name, 0 if name == "erased_through" else 1)
                for name in ("erased_through", "compromised_since")
            )
            keys[-1] = replace(keys[-1], last_entry=sequence - 1, until=time, erased_through=erased)
            if since is not None:
                keys = [_compromised(key, since) for key in keys]
        keys.append(new)
    return tuple(keys)


def rotation_problems(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One sentence per signature of a `rotate_signing` entry that does not match."""
    previous = None
    for entry in entries:
        if entry["kind"] not in KEY_KINDS:
            continue
        public = _public_key_of(entry)
        signed = [] if previous is None else [("signed_by_previous", public, previous)]
        if previous is not None and "signed_by_new" in entry:
            signed.append(("signed_by_new", signed_text(entry, "signed_by_new"), public))
        if PREDECESSORS in entry:
            signed.append((SIGNED_BY_PREDECESSOR, signed_text(entry), predecessors_in(entry)[-1][-1]))
        for name, text, key in signed:
            if not _is_signed(text, entry.get(name), key):
                yield f"sequence {entry['sequence']}: {name} is not a signature of that key"
        previous = public


def signed_text(entry: Mapping[str, Any], signature: str = SIGNED_BY_PREDECESSOR) -> str:
    """The text of an entry that a signature in it covers: all but that signature."""
    return canonical({name: value for name, value in entry.items() if name != signature})


class TrustedKeys(Sequence[str]):
    """Public keys to check a certificate with, as text, and what is known of each."""

    @property
    @abstractmethod
    def of_vault(self) -> str | None:
        """The vault whose keys they are; None if that is not known."""

    @property
    @abstractmethod
    def as_of(self) -> Head | None:
        """The head of the ledger that they are as of; None if that is not known."""

    @property
    @abstractmethod
    def ranges(self) -> "tuple[SigningKey, ...]":
        """The keys whose range of ledger entries is known."""

    def named(self, public: object) -> "SigningKey | None":
        """What is known of the key with this text; None if nothing is, or if it is not among them."""
        return next((key for key in self.ranges if key.public == public), None)


@dataclass(frozen=True)
class BareKeys(TrustedKeys):
    """Public keys alone, without the ledger entries that limit what they may have signed.

    >>> keys = BareKeys(("ab" * 32,))
    >>> list(keys) == ["ab" * 32], keys.named("ab" * 32)
    (True, None)
    """

    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        for text in self.texts:
            signatures.checked_public_key(text)

    @property
    def of_vault(self) -> None:
        """Not known."""

    @property
    def as_of(self) -> None:
        """Not known."""

    @property
    def ranges(self) -> tuple[SigningKey, ...]:
        """None of them."""
        return ()

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        return self.texts[place]


@dataclass(frozen=True)
class PublicKeys(TrustedKeys):
    """The public keys that a vault has signed with, in order, as of a head; the last one is in use.

    As a sequence it has the keys as text. This is the list to publish: `to_dict()` as JSON.
    """

    vault: str
    head: Head
    keys: tuple[SigningKey, ...]

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return tuple(key.public for key in self.keys[place])
        return self.keys[place].public

    @property
    def of_vault(self) -> str:
        """The vault."""
        return self.vault

    @property
    def as_of(self) -> Head:
        """The head."""
        return self.head

    @property
    def ranges(self) -> tuple[SigningKey, ...]:
        """All of them."""
        return self.keys

    def to_dict(self) -> dict[str, Any]:
        """The list as it is published; `public_keys` are the keys alone, `public_key` is the one in use."""
        return {
            "schema": SCHEMA,
            "vault": self.vault,
            "head": str(self.head),
            "version": len(self.keys),
            "public_key": self[-1],
            "public_keys": list(self),
            "keys": [asdict(key) for key in self.keys],
        }

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "PublicKeys":
        """Read a published list from its file, as `from_json` does.

        >>> PublicKeys.read("no-such-file")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: no-such-file cannot be read: No such file or directory
        """
        return cls.from_json(read_plain(path))

    @classmethod
    def from_json(cls, file: str | bytes) -> "PublicKeys":
        """Read a published list; one whose parts do not fit together is refused.

        >>> PublicKeys.from_json('{"schema": "armnesia.public_keys/1"}')
        Traceback (most recent call last):
        armnesia.core.errors.VaultError: the list of public keys must be as armnesia public-key --json
        prints it; it has been changed
        """
        try:
            text = file.decode("utf-8-sig") if isinstance(file, bytes) else file
            document = read_json(text, "the list of public keys")
            schema = document.get("schema", "no schema")
            if schema != SCHEMA and ("schema" not in document or str(schema).startswith("armnesia.")):
                raise VaultError(
                    "the list of public keys must be as armnesia public-key --json prints it; this is another"
                    f" kind of file ({schema})"
                )
            names = {field.name for field in fields(SigningKey)}
            if any(key.keys() != names for key in document["keys"]):
                raise ValueError
            keys = tuple(SigningKey(**key) for key in document["keys"])
            found = cls(document["vault"], Head.parse(document["head"]), keys)
            if not isinstance(found.vault, str) or not _fit_together(found):
                raise ValueError
            if canonical(found.to_dict()) != canonical(document):
                raise ValueError
        except (InvalidInputError, KeyError, TypeError, ValueError, AttributeError):
            raise VaultError(
                "the list of public keys must be as armnesia public-key --json prints it; it has been changed"
            ) from None
        return found


def trusted_keys(given: str | Sequence[str], *, what: str = "public_key") -> TrustedKeys:
    """The keys that are named: by a key, by a file of keys, one per line, or by several of these; or a list.

    A list is the file that `armnesia public-key --json` prints; it is named alone. `what` is the name of the
    parameter in messages.

    >>> trusted_keys("ab" * 32) == BareKeys(("ab" * 32,))
    True
    >>> trusted_keys([])
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: public_key must name at least one key; got none
    """
    if isinstance(given, TrustedKeys):
        return given
    names = [given] if isinstance(given, str) else given
    keys: list[str] = []
    for name in names:
        found = _read_keys(name, what)
        if isinstance(found, PublicKeys):
            if len(names) > 1:
                raise InvalidInputError(f"{name} is a list of public keys: give no other {what}")
            return found
        keys += found
    if not keys:
        got = "an empty file" if names else "none"
        raise InvalidInputError(f"{what} must name at least one key; got {got}")
    return BareKeys(tuple(keys))


def _read_keys(name: str, what: str) -> Sequence[str]:
    if not Path(name).is_file():
        try:
            return [signatures.checked_public_key(name)]
        except InvalidInputError as error:
            raise InvalidInputError(f"{what} must be a key or a file that exists; {error}") from None
    try:
        file = read_plain(name)
        if file.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return PublicKeys.from_json(file)
    except InvalidInputError as error:
        raise InvalidInputError(f"{what} {error}") from None
    except VaultError as error:
        raise InvalidInputError(f"{what} {name}: {error}") from None
    try:
        return [signatures.checked_public_key(key) for key in file.decode("utf-8-sig").split()]
    except UnicodeDecodeError:
        raise InvalidInputError(f"{what} must be a key or a file of keys; {name} is neither") from None
    except InvalidInputError as error:
        raise InvalidInputError(f"{what} must be a key or a file of keys; in {name}, {error}") from None


def predecessors_in(entry: Mapping[str, Any]) -> tuple[PublicKeys, ...]:
    """The lists of the vaults that a vault succeeds, the latest last, from the first entry of its ledger.

    >>> predecessors_in({"kind": "init"})
    ()
    """
    listed = entry.get(PREDECESSORS, [])
    if PREDECESSORS in entry and not (isinstance(listed, list) and listed):
        raise InvalidInputError(f"{PREDECESSORS} of entry 1 must be a list of lists of public keys")
    try:
        return tuple(PublicKeys.from_json(canonical(each)) for each in listed)
    except VaultError as error:
        raise InvalidInputError(f"{PREDECESSORS} of entry 1: {error}") from None


def _fit_together(found: PublicKeys) -> bool:
    """Whether the ranges follow each other without a gap, and no number is beyond the range of its key.

    The entries that a ledger would have are made from the list, and must give the same list again.
    """
    keys = found.keys
    entries = [
        {
            "kind": KEY_KINDS[0] if before is None else KEY_KINDS[1],
            "sequence": key.first_entry,
            "time": key.since,
            "version": key.version,
            "public_key": key.public,
            "public": key.public,
            "erased_through": None if before is None else before.erased_through,
        }
        for before, key in zip([None, *keys], keys, strict=False)
    ]
    for key in keys:
        parse_time(key.since)
    lasts = [found.head.sequence if key.last_entry is None else key.last_entry for key in keys]
    return (
        key_history(entries) == tuple(replace(key, compromised_since=None) for key in keys)
        and len(set(found)) == len(keys) > 0
        and keys[0].first_entry == 1
        and all(key.first_entry <= last for key, last in zip(keys, lasts, strict=True))
        and keys[-1].compromised_since is None
        and all(
            key.compromised_since is None
            or (type(key.compromised_since) is int and 1 <= key.compromised_since <= last)
            for key, last in zip(keys, lasts, strict=True)
        )
    )


def _compromised(key: SigningKey, since: int) -> SigningKey:
    """The key after a rotation that says since when keys are compromised: if it was in use then or later."""
    if key.last_entry is None or key.last_entry < since:
        return key
    return replace(key, compromised_since=min(since, key.compromised_since or since))


def _public_key_of(entry: Mapping[str, Any]) -> str:
    public = entry.get("public_key" if entry["kind"] == "init" else "public")
    return signatures.checked_public_key(str(public))


def _checked_entry_number(entry: Mapping[str, Any], name: str, lowest: int) -> int | None:
    number = entry.get(name)
    if number is not None and (type(number) is not int or not lowest <= number < entry["sequence"]):
        raise InvalidInputError(
            f"{name} of entry {entry['sequence']} must be the number of an entry before it; got {number!r}"
        )
    return number


def _is_signed(text: str, signature: object, public: str) -> bool:
    try:
        return signatures.is_signed(text.encode(), bytes.fromhex(str(signature)), public)
    except ValueError:
        return False
