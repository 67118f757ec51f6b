"""Which columns of a source hold the action, the reward, the user and the id of a row."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from armnesia.core.errors import InvalidInputError
from armnesia.logs import refusals


class IfPresent(Enum):
    """The type of `IF_PRESENT`."""

    IF_PRESENT = "user"

    def __repr__(self) -> str:
        return self.name


IF_PRESENT: Final = IfPresent.IF_PRESENT
"""The default of `user`: the column named `user`, if the source has one."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns that the package reads; all others are only part of a row's content.

    >>> Columns("arm", "click").found_in(["arm", "click", "user"]).user
    'user'
    """

    action: str
    reward: str
    user: str | IfPresent | None = IF_PRESENT
    id: str | None = None

    def __post_init__(self) -> None:
        others: dict[str, tuple[object, ...]] = {"user": (None, IF_PRESENT), "id": (None,)}
        for role, name in vars(self).items():
            if not isinstance(name, str) and name not in others.get(role, ()):
                raise InvalidInputError(
                    f"{role} must be the name of a column of the source; got {type(name).__name__}"
                )
        if self.user in (self.action, self.reward):  # a vault publishes its actions: they must not be people
            raise InvalidInputError(
                f"user must be another column than action and reward; got {self.user!r} for both"
            )

    def found_in(self, available: Sequence[str]) -> "Columns":
        """Replace `IF_PRESENT` by what the source has; refuse a name that it does not have."""
        resolved = self
        if self.user is IF_PRESENT:
            name = IF_PRESENT.value
            free = name in available and name not in (self.action, self.reward)
            resolved = replace(self, user=name if free else None)
        for role, name in resolved.named().items():
            if name not in available:
                raise refusals.missing_column(role, name, available)
        return resolved

    def check_keys(self, names: Sequence[str]) -> None:
        """Refuse keys that are the action, the reward or the user: keys are public.

        >>> Columns("arm", "click", None).check_keys(["click"])
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a key must be another column than those of the action, the
        reward and the user; got 'click', the reward column
        """
        role_of = {name: role for role, name in self.named().items() if role != "id"}
        taken = [name for name in names if name in role_of]
        if taken:
            raise InvalidInputError(
                "a key must be another column than those of the action, the reward and the user;"
                f" got {taken[0]!r}, the {role_of[taken[0]]} column"
            )

    def named(self) -> dict[str, str]:
        """All columns by their role, without those that there are none of."""
        return {role: name for role, name in vars(self).items() if isinstance(name, str)}


_PEOPLE = "user person customer client account member player visitor subscriber patient contact profile"
_USER_COLUMNS = {
    *(f"{word}{suffix}" for word in _PEOPLE.split() for suffix in ("", "id", "key", "name", "no", "number")),
    *("uid", "distinctid", "anonymousid", "deviceid", "userpseudoid", "useruuid", "email", "who"),
}


def likely_user_columns(names: Iterable[str]) -> list[str]:
    """The columns that may name people, by their names alone.

    >>> likely_user_columns(["variant", "User_ID", "customerId", "users_online", "distinct_id"])
    ['User_ID', 'customerId', 'distinct_id']
    """
    return [name for name in names if re.sub(r"[\W_]", "", name).lower() in _USER_COLUMNS]


_PROPENSITY = re.compile(
    "p|prob|probability|pscore.*|propensit.*|(action|logging|logged|behaviou?r|assignment|exposure|treatment)"
    "(prob|probability|propensity|pscore)"
)


def propensity_columns(names: Iterable[str]) -> list[str]:
    """The columns that hold propensities, by their names alone.

    >>> propensity_columns(["arm", "Propensity Score", "price", "action_prob", "pscore_cascade"])
    ['Propensity Score', 'action_prob', 'pscore_cascade']
    """
    return [name for name in names if _PROPENSITY.fullmatch(re.sub("[^a-z]", "", name.lower()))]
