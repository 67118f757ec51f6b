"""Whose rows are erased: people by their names, or by a function that recognises names."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs.rows import Selection
from armnesia.logs.source import Source

Recognise = Callable[[Sequence[str]], Sequence[bool]]


@dataclass(frozen=True)
class People:
    """People, or records by their ids; their names are in no message and no representation.

    >>> People.named(["ann"], UserType.TEXT)
    People(role='user')
    >>> People.named(["ann"], UserType.TEXT).among(["ann ", "bob"])
    ['ann ']
    >>> People.recognised_by(lambda names: [name.startswith("a") for name in names]).among(["ann", "bob"])
    ['ann']
    """

    role: str
    """The column that is compared: "user" or "id"."""
    selection: Selection | None = field(default=None, repr=False)
    """The names, if they are known."""
    recognise: Recognise | None = field(default=None, repr=False)
    """Tells, for each of several names as the source spells them, whether it is one of these people."""

    @classmethod
    def named(
        cls, names: Collection[str], user_type: UserType = UserType.EXACT, *, role: str = "user"
    ) -> "People":
        """People by their names, which are found in all spellings of a type of names."""
        if isinstance(names, str):
            raise InvalidInputError("names must be a set of texts; got one text")
        return cls(_checked_role(role), Selection(role, frozenset(names), user_type))

    @classmethod
    def recognised_by(cls, recognise: Recognise, *, role: str = "user") -> "People":
        """People whose names a function recognises, where the names themselves are not known."""
        return cls(_checked_role(role), recognise=recognise)

    def among(self, labels: Sequence[str]) -> list[str]:
        """Choose the names of these people among those of a source."""
        if self.selection is not None:
            return [label for label in labels if self.selection.matches(label)]
        if self.recognise is None:
            return []
        return [label for label, found in zip(labels, self.recognise(labels), strict=True) if found]

    def among_all(self, chunks: Iterable[Sequence[str]]) -> frozenset[str]:
        """Choose the names of these people among all chunks of names."""
        return frozenset(name for chunk in chunks for name in self.among(chunk))

    def check_column(self, source: Source) -> str:
        """The name of the column that is compared; refuse a source that lacks it."""
        name = source.columns.named().get(self.role)
        if name is None:
            raise InvalidInputError(
                f"rows of given {self.role}s need the {self.role} column; the source has none"
            )
        if source.holds_bytes(self.role):
            raise UnsupportedError(
                f"rows cannot be erased by the {self.role} column {name!r}, which holds bytes: write it as"
                " text"
            )
        return name


def _checked_role(role: str) -> str:
    if role not in ("user", "id"):
        raise InvalidInputError(f"role must be user or id; got {role!r}")
    return role
