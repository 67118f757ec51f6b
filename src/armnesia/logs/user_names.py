"""The user column of a source, in the one spelling that each person has in a vault."""

from collections.abc import Iterable, Sequence

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import UserType, are_plain, is_plain_integer, looks_like_float
from armnesia.logs import rules
from armnesia.logs.values import sized


class UserNames:
    """Normalises the users of one source, chunk by chunk, and notes what is remarkable about them.

    >>> names = UserNames(UserType.INTEGER)
    >>> names.normalise(["1.0", None, "02"], range(3), "user", None)
    ['1', None, '2']
    """

    def __init__(self, user_type: UserType = UserType.EXACT) -> None:
        self.type = user_type
        self.float_row: int | None = None
        """The first row whose user looks like an integer that became a float, if that is another name."""
        self.spaced_row: int | None = None
        """The first row whose user had white space around the name, which was removed."""

    @classmethod
    def of(cls, user_type: UserType | None) -> "UserNames":
        """For a vault whose people are named in this way; as text if that is not fixed yet."""
        return cls(user_type or UserType.TEXT)

    def normalise(
        self, users: list[str | None], positions: Sequence[int], what: str, exact_below: int | None
    ) -> list[str | None]:
        """The names in their one spelling; refuse what cannot be a name of the type.

        `exact_below` is where the whole numbers of a column of short floats begin to stand for several.
        """
        distinct = [user for user in dict.fromkeys(users) if user is not None]
        if self.type is not UserType.INTEGER and are_plain(distinct, self.type):
            return users
        one_spelling: dict[str | None, str | None] = {user: self.type.normalised(user) for user in distinct}
        refused = {user for user, name in one_spelling.items() if name is None}
        if self.type is UserType.INTEGER and exact_below is not None:
            refused |= {user for user, name in one_spelling.items() if name and abs(int(name)) >= exact_below}
        if refused:
            wrong = ((positions[row], user) for row, user in enumerate(users) if user in refused)
            raise not_integers(what, wrong, exact_below)
        if self.type is not UserType.INTEGER:
            self._note(users, positions, distinct)
        changed = {
            user: name or None  # an empty name is none
            for user, name in one_spelling.items()
            if user != name or (not name and self.type is not UserType.EXACT)
        }
        return [changed.get(user, user) for user in users] if changed else users

    def _note(self, users: list[str | None], positions: Sequence[int], distinct: list[str]) -> None:
        if self.float_row is None:
            self.float_row = _first(users, positions, filter(looks_like_float, distinct))
        if self.spaced_row is None and self.type is UserType.TEXT:
            spaced = (user for user in distinct if user != user.strip())
            self.spaced_row = _first(users, positions, spaced)


def with_users(
    others: Sequence[str], place: int, before: list[str | None], after: list[str | None]
) -> list[str]:
    """Put the normalised users into the texts of whole rows, whose user is the part at `place`.

    >>> with_users(["1:A3:1.03:x,y", "1:B-0:"], 1, ["1.0", None], ["1", None])
    ['1:A1:13:x,y', '1:B-0:']
    """
    return [
        text if old == new else _with_part(text, place, new)
        for text, old, new in zip(others, before, after, strict=True)
    ]


def first_user_type(chunks: Iterable[Sequence[str | None]]) -> UserType | None:
    """The type that a vault takes from the users of its first source; None if there are none.

    It is `integer` if every id is an integer as it is usually written, and `text` otherwise.

    >>> first_user_type([["1", None], ["20"]]), first_user_type([["1", "1.0"]]), first_user_type([[None]])
    (<UserType.INTEGER: 'integer'>, <UserType.TEXT: 'text'>, None)
    """
    found = None
    for users in chunks:
        for user in set(users):
            if user and not user.isspace():
                if not is_plain_integer(user):
                    return UserType.TEXT
                found = UserType.INTEGER
    return found


def not_integers(what: str, offences: rules.Offences, exact_below: int | None) -> InvalidLogError:
    """Refuse ids that are no integers in a vault whose people are named by integers."""
    limit = "2**53" if exact_below is None else str(exact_below)
    rule = (
        f"must hold integers, by which this vault names people, and floats only below {limit}, from where one"
        " may stand for several integers"
    )
    return rules.refused(what, rule, offences)


def _first(users: list[str | None], positions: Sequence[int], among: Iterable[str]) -> int | None:
    wanted = set(among)
    if not wanted:
        return None
    return next((positions[row] for row, user in enumerate(users) if user in wanted), None)


def _with_part(text: str, place: int, part: str | None) -> str:
    start = 0
    for _ in range(place):
        start = end_of_part(text, start)
    return text[:start] + sized(part) + text[end_of_part(text, start) :]


def end_of_part(text: str, start: int) -> int:
    """Where the part that `sized` wrote at `start` ends."""
    if text[start] == "-":
        return start + 1
    colon = text.index(":", start)
    return colon + 1 + int(text[start:colon])
