"""Tallies: the rows of a source counted and added up by an engine, per action and whatever else is asked."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs.conditions import Condition
from armnesia.logs.decisions import part_rows, summed_by_decision
from armnesia.logs.key_columns import KeyColumn
from armnesia.logs.rows import Rows
from armnesia.logs.values import arm_of_text, label_text

SUM_OF_PRODUCTS = f"sum(units * ({UNIT} - units))"
"""In SQL of an engine whose sums of 64-bit integers are longer; a product itself is below 2⁶³."""


class Tally(NamedTuple):
    """Rows that have the same action and keys, and the same user where users are asked for."""

    action: Any
    keys: tuple[str | None, ...]
    """The text of each key column; None where it has no value, or none that its edges can part."""
    user: str | None
    n_rows: int
    units: int
    """The sum of the rewards that are numbers of the range, in units."""
    valid: int
    """How many rewards are."""
    binary: int
    """How many are the lowest or the highest reward."""
    products: int
    """The sum of u·(10⁹ − u) over their units u."""


class TallyingSource(Protocol):
    """A source whose engine counts and adds up rows."""

    where: tuple[Condition, ...]

    def tallies(
        self,
        reward_range: tuple[float, float],
        *,
        users: Collection[str] | None = None,
        every_user: bool = False,
    ) -> list[Tally]:
        """Count and add up all rows by action and keys, those of `users` or of every user by user as well."""

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> Self:
        """The same source with key columns."""

    def rows(self, actions: Sequence[Hashable], reward_range: tuple[float, float]) -> Iterator[Rows]:
        """Read all rows; refuse the first wrong one."""


def statistics_of_sums(
    sums_of_labels: Iterable[tuple[Any, int, int, int]],
    actions: tuple[Hashable, ...],
    reward_range: tuple[float, float],
) -> ArmStatistics:
    """Put counts, sums and products by action label in the order of the declared actions.

    >>> sums = [("B", 2, 5, 4999999987), ("B", 1, 3, 2999999991)]
    >>> statistics_of_sums(sums, ("A", "B"), (0.0, 1.0)).sums
    array([0, 8])
    """
    arm_of = arm_of_text(actions)
    counts = np.zeros(len(actions), dtype=np.int64)
    # Python integers: a sum over many files can exceed int64
    sums, products = np.zeros(len(actions), dtype=object), np.zeros(len(actions), dtype=object)
    for label, n, total, product in sums_of_labels:
        arm = arm_of[str(label_text(label))]
        counts[arm] += n
        sums[arm] += total
        products[arm] += product
    return ArmStatistics(actions, counts, sums, reward_range, products)


def statistics_of_tallies(
    tallies: Iterable[Tally], actions: tuple[Hashable, ...], reward_range: tuple[float, float]
) -> ArmStatistics:
    """Add up tallies per action, whatever their keys and users."""
    return statistics_of_sums(
        ((each.action, each.n_rows, each.units, each.products) for each in tallies), actions, reward_range
    )


def parted_tallies(
    columns: tuple[KeyColumn, ...], tallies: Sequence[Tally], totals: ArmStatistics, at_most: int
) -> tuple[tuple[tuple[str, ...], ...], ArmStatistics]:
    """The keys that occur in tallies, in order, and the statistics of each; every key must have a value."""
    coded = [
        np.unique(np.array(texts, dtype=object), return_inverse=True)
        for texts in zip(*(each.keys for each in tallies), strict=True)
    ]
    keys, decisions = part_rows(
        columns, [labels.tolist() for labels, _ in coded], [codes.reshape(-1) for _, codes in coded], at_most
    )
    place_of = dict(zip((each.keys for each in tallies), decisions.tolist(), strict=True))
    return keys, sums_by_decision(tallies, place_of, len(keys), totals)


def sums_by_decision(
    tallies: Sequence[Tally],
    place_of: dict[tuple[str | None, ...], int],
    n_decisions: int,
    totals: ArmStatistics,
) -> ArmStatistics:
    """Add up tallies per decision, whose place is found by its keys, and action."""
    arm_of = arm_of_text(totals.actions)
    columns = (
        np.array([place_of[each.keys] for each in tallies], dtype=np.int64),
        np.array([arm_of[str(label_text(each.action))] for each in tallies], dtype=np.int64),
        np.array([each.n_rows for each in tallies], dtype=np.int64),
        np.array([each.units for each in tallies], dtype=object),
        np.array([each.products for each in tallies], dtype=object),
    )
    return summed_by_decision(n_decisions, totals.actions, totals.reward_range, columns)
