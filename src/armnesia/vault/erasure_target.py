"""Whose records, or which records, a request names."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidNameError
from armnesia.core.identifiers import UserType, normalised_request
from armnesia.logs import label_text
from armnesia.logs.values import LONGEST_TEXT
from armnesia.vault.keys.keyring import Keyring

_TEXTS, _ITERABLES = (str, bytes), (list, tuple, Iterable)  # lists first: the check for an Iterable is slow


@dataclass(frozen=True)
class ErasureTarget:
    """The people, or the single records, of one request.

    >>> ErasureTarget.of(users=["u-2", "u-1", "u-2"])
    ErasureTarget(kind='user', names=('u-1', 'u-2'))
    """

    kind: str
    """What the names are of: "user" or "record"."""
    names: tuple[str, ...]
    _keys: tuple[Keyring, list[bytes]] | None = field(default=None, init=False, repr=False, compare=False)
    """The row keys, and the keyring that they are made with: a cache."""

    @classmethod
    def of(cls, users: Iterable[Any] | None = None, records: Iterable[Any] | None = None) -> "ErasureTarget":
        """Check and sort the names: either users or records."""
        if (users is None) == (records is None):
            raise InvalidInputError("name what to forget, by exactly one of users and records")
        given = users if users is not None else records
        if isinstance(given, _TEXTS) or not isinstance(given, _ITERABLES):
            got = "a single text" if isinstance(given, str) else f"a single {type(given).__name__}"
            raise InvalidInputError(f"what to forget must be a list of names; got {got}")
        labels = {label_text(value) for value in given}
        texts = tuple(sorted(label for label in labels if label))
        if not texts or len(texts) < len(labels):
            raise empty_request_error()
        for text in texts:
            if len(text.encode("utf-8", "surrogatepass")) > LONGEST_TEXT:
                raise InvalidNameError(
                    f"a name in a request must have at most {LONGEST_TEXT:,} bytes, as in a log; got one of"
                    f" {len(text):,} characters",
                    text,
                    "long",
                )
        return cls("user" if users is not None else "record", texts)

    def normalised(self, user_type: UserType | None) -> "ErasureTarget":
        """The request in the spelling of a vault whose people are named in this way; ids of records stay.

        >>> ErasureTarget.of(users=["1.0", "01", " 2"]).normalised(UserType.INTEGER).names
        ('1', '2')
        """
        if self.kind == "record":
            return self
        names = {normalised_request(user, user_type) for user in self.names}
        if "" in names:
            raise empty_request_error()
        return replace(self, names=tuple(sorted(names)))

    def without(self, names: Collection[str]) -> "ErasureTarget":
        """The request of all others.

        >>> ErasureTarget.of(users=["ann", "bob"]).without(["ann"]).names
        ('bob',)
        """
        return replace(self, names=tuple(each for each in self.names if each not in names))

    @property
    def row_column(self) -> str:
        """The column of the table `record` by which the rows are found."""
        return "owner" if self.kind == "user" else "identity"

    def row_keys(self, keyring: Keyring) -> list[bytes]:
        """The value of `row_column` in the rows of each name, by which the suppression list has it, too."""
        if self._keys is None or self._keys[0] is not keyring:
            if self.kind == "user":
                keys = keyring.owner_digests(self.names)
            else:
                keys = keyring.record_identities("id", self.names)
            object.__setattr__(self, "_keys", (keyring, keys))
            return keys
        return self._keys[1]


def empty_request_error() -> InvalidNameError:
    """Refuse a request with an empty name, or with none."""
    sentence = "what to forget must name at least one user or record, none of them empty"
    return InvalidNameError(sentence, "", "empty")
