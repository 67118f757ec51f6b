"""Counting rows, each of which is checked: what a log, and a vault, take from a source."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import refusals
from armnesia.logs.columns import likely_user_columns
from armnesia.logs.source import Source
from armnesia.logs.statements import Tally, Wrong
from armnesia.logs.values import arm_of_text, sorted_if_comparable


def check_tallies(
    source: Source,
    found: Sequence[Tally],
    actions: tuple[Hashable, ...],
    reward_range: tuple[float, float],
) -> None:
    """Refuse rows that are not as a log must be, by what they add up to; the message names the first ones."""
    if not found:
        raise refusals.empty_log(source.where)
    if any(each.action is None for each in found):
        raise _missing_actions(source)
    arm_of = arm_of_text(actions)
    undeclared = sorted({str(each.action) for each in found} - arm_of.keys())
    if undeclared:
        offences = _first_wrong(source, "action", Wrong.UNDECLARED, texts=undeclared)
        raise refusals.undeclared_actions(source.described("action"), offences, actions)
    for place, key in enumerate(source.keys):
        if any(each.key[place] is None for each in found):
            not_numbers = _first_wrong(source, f"key_{place}", Wrong.NO_NUMBER) if key.edges else []
            if not_numbers:
                raise refusals.not_numbers(key.described, not_numbers)
            missing = _first_wrong(source, f"key_{place}", Wrong.MISSING)
            raise refusals.missing_keys(refusals.described("key", key.name), missing)
    if any(each.valid < each.number for each in found):
        offences = _first_wrong(source, "user", Wrong.NO_NAME) if source.user_type is UserType.INTEGER else []
        if offences:
            raise refusals.not_integers(source.described("user"), offences)
        raise _refused_rewards(source, reward_range)


def _first_wrong(source: Source, role: str, fault: Wrong, **given: Any) -> list[tuple[int, Any]]:
    """The first rows with a fault; without the values, if the column's name says that it holds people."""
    found = source.first_wrong(role, fault, **given)
    names = source.columns.named() | {f"key_{at}": key.name for at, key in enumerate(source.keys)}
    return refusals.unnamed(found) if likely_user_columns([names[role]]) else found


def _missing_actions(source: Source) -> InvalidLogError:
    return refusals.missing_actions(source.described("action"), _first_wrong(source, "action", Wrong.MISSING))


def _refused_rewards(source: Source, reward_range: tuple[float, float]) -> InvalidLogError:
    """Name the first refused rewards: those that are no numbers, else not finite, else out of range."""
    what = source.described("reward")
    offences = _first_wrong(source, "reward", Wrong.NO_NUMBER)
    if offences:
        return refusals.not_numbers(what, offences)
    offences = _first_wrong(source, "reward", Wrong.NOT_FINITE)
    if offences:
        return refusals.not_finite(what, source.columns.reward, offences)
    return refusals.outside_range(
        what, _first_wrong(source, "reward", Wrong.OUTSIDE, reward_range=reward_range), reward_range
    )


def actions_of(source: Source, found: Sequence[Tally]) -> tuple[Hashable, ...]:
    """The actions that occur, where none are declared: integers and booleans as such, others as text."""
    texts = [each.action for each in found if each.action is not None]
    if not texts:
        raise _missing_actions(source)
    labels: Iterable[Any] = dict.fromkeys(texts)
    type_ = source.type_of("action")
    if type_ in ("integer", "boolean"):
        labels = [int(text) if type_ == "integer" else text == "True" for text in labels]
    return checked_actions(sorted_if_comparable(labels))


def summed(
    found: Iterable[Tally],
    actions: tuple[Hashable, ...],
    reward_range: tuple[float, float],
    place_of: Mapping[tuple[str | None, ...], int] | None = None,
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
