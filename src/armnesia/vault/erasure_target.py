"""Whose records, or which records, a request names."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
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

    >>> ErasureTarget.of(users=["u-2", "u-1", "u-2"]).to_dict()
    {'users': ['u-1', 'u-2']}
    """

    users: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """All names of the request, of people or of records."""
    row_column: str = field(init=False, repr=False, compare=False)
    """The column of the table `record` by which the rows are found."""
    _keys: tuple[Keyring, list[bytes]] | None = field(default=None, init=False, repr=False, compare=False)
    """The row keys, and the keyring that they are made with: a cache."""

    def __post_init__(self) -> None:
        column = "owner" if self.users else "identity"
        self.__dict__.update(names=self.users or self.records, row_column=column)

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
        return cls(users=texts) if users is not None else cls(records=texts)

    def normalised(self, user_type: UserType | None) -> "ErasureTarget":
        """The request in the spelling of a vault whose people are named in this way; ids of records stay.

        >>> ErasureTarget.of(users=["1.0", "01", " 2"]).normalised(UserType.INTEGER).users
        ('1', '2')
        """
        users = {normalised_request(user, user_type) for user in self.users}
        if users == set(self.users):
            return self
        if "" in users:
            raise empty_request_error()
        return ErasureTarget(users=tuple(sorted(users)))

    def to_dict(self) -> dict[str, list[str]]:
        """The request as the commitment and the certificate spell it."""
        return {"users": list(self.users)} if self.users else {"records": list(self.records)}

    def one_by_one(self) -> list["ErasureTarget"]:
        """The request of each person, or record, alone."""
        if len(self.names) == 1:
            return [self]
        return [ErasureTarget(users=(user,)) for user in self.users] or [
            ErasureTarget(records=(record,)) for record in self.records
        ]

    def without(self, names: Collection[str]) -> "ErasureTarget":
        """The request of all others.

        >>> ErasureTarget.of(users=["ann", "bob"]).without(["ann"]).users
        ('bob',)
        """
        if not names:
            return self
        users, records = (
            tuple(each for each in some if each not in names) for some in (self.users, self.records)
        )
        return ErasureTarget(users=users, records=records)

    def suppression_digests(self, keyring: Keyring) -> list[tuple[bytes, str]]:
        """The digest and the kind of each name, as the suppression list holds them."""
        return [(key, "user" if self.users else "record") for key in self.row_keys(keyring)]

    def row_keys(self, keyring: Keyring) -> list[bytes]:
        """The value of `row_column` in the rows of each name."""
        if self._keys is None or self._keys[0] is not keyring:
            keys = keyring.owner_digests(self.users) or keyring.record_identities("id", self.records)
            object.__setattr__(self, "_keys", (keyring, keys))
            return keys
        return self._keys[1]


def empty_request_error() -> InvalidNameError:
    """Refuse a request with an empty name, or with none."""
    sentence = "what to forget must name at least one user or record, none of them empty"
    return InvalidNameError(sentence, "", "empty")
