"""Counting rows, each of which is checked: what a log, and a vault, take from a source."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidLogError, UndeclaredActionError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.core.statistics import ArmStatistics
from armnesia.logs.columns import likely_user_columns
from armnesia.logs.refusals import empty_log, refused
from armnesia.logs.source import Source
from armnesia.logs.statements import Tally
from armnesia.logs.values import arm_of_text


def check_tallies(
    source: Source,
    found: Sequence[Tally],
    actions: tuple[Hashable, ...],
    reward_range: tuple[float, float],
) -> None:
    """Refuse rows that are not as a log must be, by what they add up to; the message names the first ones."""
    if not found:
        raise empty_log(source.where)
    if any(each.action is None for each in found):
        raise _missing_actions(source)
    undeclared = sorted({str(each.action) for each in found} - arm_of_text(actions).keys())
    if undeclared:
        rule = f"must hold declared actions only, {listed(actions)}"
        raise _refused(source, "action", rule, kind=UndeclaredActionError, texts=undeclared)
    for place, key in enumerate(source.keys):
        if any(each.key[place] is None for each in found):
            rule = "must have a value in every row"
            if key.edges:
                rule = "has edges, so it must hold a number in every row"
            raise _refused(source, f"key_{place}", rule)
    if any(each.valid < each.number for each in found):
        for role in ("user", "id"):
            strangers = source.wrong_names(role)
            if strangers:
                rule = "must hold no floats from 2**53 (2**24 in 32 bits) on"
                remedy = ": one may stand for several integers; write them as integers or text"
                if role == "user" and source.user_type is UserType.INTEGER:
                    rule = "must hold integers, by which this vault names people"
                    remedy = (
                        ": init --user-type text makes a vault that names them by text; floats are integers"
                        " below 2**53 (2**24 in 32 bits) only, from where one may stand for several"
                    )
                raise refused(source.described(role), rule, strangers, remedy)
        low, high = reward_range
        rule = f"must hold a number from {low!r} to {high!r}, the reward range, in every row"
        only_rewards = f"{source.columns.reward} is not null"
        remedy = (
            f": where={only_rewards!r} (--where) leaves rows without one out, and reward_range=…"
            " (--reward-range) declares another range, in a vault at init"
        )
        raise _refused(source, "reward", rule, remedy, reward_range=reward_range)


def _refused(
    source: Source,
    role: str,
    rule: str,
    remedy: str = "",
    *,
    kind: type[InvalidLogError] = InvalidLogError,
    **given: Any,
) -> InvalidLogError:
    """Name the first rows with a fault; without values, if the column's name says that it holds people."""
    offences = source.first_wrong(role, **given)
    names = source.columns.named() | {f"key_{at}": key.name for at, key in enumerate(source.keys)}
    hidden = bool(likely_user_columns([names[role]]))
    return refused(source.described(role), rule, offences, remedy, hidden=hidden, kind=kind)


def _missing_actions(source: Source) -> InvalidLogError:
    return _refused(source, "action", "must name an action in every row")


def actions_of(source: Source, found: Sequence[Tally]) -> tuple[Hashable, ...]:
    """The actions that occur, where none are declared: integers and booleans as such, others as text."""
    texts = [each.action for each in found if each.action is not None]
    if not texts:
        raise _missing_actions(source)
    type_ = source.type_of("action")
    labels = {
        int(text) if type_ == "integer" else text == "True" if type_ == "boolean" else text for text in texts
    }
    return checked_actions(sorted(labels))


def summed(
    found: Iterable[Tally],
    actions: tuple[Hashable, ...],
    reward_range: tuple[float, float],
    place_of: Mapping[Any, int] | None = None,
) -> ArmStatistics:
    """Add tallies up by arm, and with `place_of` by the place of their key.

    >>> tallies = [Tally("A", (), user, None, True, 2, 10**9, 2, 0) for user in ("ann", "bob")]
    >>> summed(tallies, ("A", "B"), (0.0, 1.0)).counts
    array([4, 0])
    """
    arm_of = arm_of_text(actions)
    shape = (len(actions),) if place_of is None else (len(place_of), len(actions))
    counts, units, products = (np.zeros(shape, dtype=object) for _ in range(3))
    for each in found:
        arm = arm_of[str(each.action)]
        at = (arm,) if place_of is None else (place_of[each.key], arm)
        counts[at] += each.number
        units[at] += each.units
        products[at] += each.products
    return ArmStatistics(actions, counts.astype(np.int64), units, reward_range, products)
