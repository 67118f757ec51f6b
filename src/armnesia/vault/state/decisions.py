"""The decisions of a vault as values: key, statistics and served arm; and how they are made again.

A vault without key columns has one decision, whose key is empty.
"""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from armnesia.core.errors import Fault, InvalidInputError, RefusedArmError, VaultError
from armnesia.core.messages import listed
from armnesia.core.statistics import ArmStatistics
from armnesia.learners.penalty_warning import warn_of_a_dominating_penalty
from armnesia.logs.keys import KeyColumn
from armnesia.unlearners.stream import Penalty, Stream
from armnesia.vault.configuration import Configuration
from armnesia.vault.db.schema import DecisionRow
from armnesia.vault.keys.canonical_json import canonical

FIRST = 1
"""The number of the first decision; in a vault with one decision there is no other."""
DEFAULT, LEARNER, RELEASE = "default", "learner", "release"
"""What chose the served arm: there are no records, the learner, or the answer to a request."""


@dataclass(frozen=True)
class ArmSums:
    """Per arm, in the order of the vault's actions: how many records, and the sum of their reward units.

    `deleted` are the numbers of records deleted so far, where the penalty is frozen; otherwise None.

    Tables and check-sums need no more than `kind`, `text` and `from_dict`: statistics of another kind (Gram
    matrices, say) are another class with these three, and a line in `STATISTICS`.
    """

    counts: tuple[int, ...]
    units: tuple[int, ...]
    deleted: tuple[int, ...] | None = None
    kind: ClassVar[str] = "arms"

    @classmethod
    def empty(cls, n_arms: int, penalty: Penalty) -> Self:
        """The sums without records.

        >>> ArmSums.empty(2, "frozen")
        ArmSums(counts=(0, 0), units=(0, 0), deleted=(0, 0))
        """
        nothing = (0,) * n_arms
        return cls(nothing, nothing, nothing if penalty == "frozen" else None)

    def plus(self, counts: Sequence[int], units: Sequence[int]) -> Self:
        """The sums with so many more records per arm.

        >>> ArmSums((2, 1), (5, 0)).plus([1, 0], [7, 0])
        ArmSums(counts=(3, 1), units=(12, 0), deleted=None)
        """
        return replace(
            self,
            counts=tuple(old + more for old, more in zip(self.counts, counts, strict=True)),
            units=tuple(old + more for old, more in zip(self.units, units, strict=True)),
        )

    def with_arms(self, n_arms: int) -> Self:
        """The sums of so many arms, of which those that were added are empty."""
        more = (0,) * (n_arms - len(self.counts))
        deleted = None if self.deleted is None else self.deleted + more
        return replace(self, counts=self.counts + more, units=self.units + more, deleted=deleted)

    @property
    def text(self) -> str:
        """The lists `counts` and `units`, and with a frozen penalty `deleted`, as canonical JSON.

        >>> ArmSums((2, 1), (1_500_000_000, 0)).text
        '{"counts":[2,1],"kind":"arms","units":[1500000000,0]}'
        """
        deleted = {} if self.deleted is None else {"deleted": self.deleted}
        return canonical({"kind": self.kind, "counts": self.counts, "units": self.units, **deleted})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the JSON that `text` has."""
        deleted = values.get("deleted")
        return cls(
            tuple(values["counts"]), tuple(values["units"]), None if deleted is None else tuple(deleted)
        )


STATISTICS: dict[str, type[ArmSums]] = {ArmSums.kind: ArmSums}
"""The kinds of statistics, by the name that their text has."""


@dataclass(frozen=True)
class VaultDecision:
    """One decision; `served` is the position of the served arm, and `served_by` says what chose it."""

    number: int
    key: tuple[str, ...]
    statistics: ArmSums
    served: int | None
    served_by: str

    @property
    def row(self) -> DecisionRow:
        """The decision as the table holds it."""
        return DecisionRow(
            self.number, canonical(self.key), self.statistics.text, self.served, self.served_by
        )

    @classmethod
    def of_row(cls, row: DecisionRow) -> "VaultDecision":
        """Read a row; one that something else has changed may raise any error of a wrong value."""
        values = json.loads(row.statistics)
        statistics = STATISTICS[values["kind"]].from_dict(values)
        return cls(row.number, tuple(json.loads(row.key)), statistics, row.served, row.served_by)


def count_in_decisions(rows: Iterable[DecisionRow]) -> int:
    """How many records decisions have together, by their statistics.

    >>> count_in_decisions([DecisionRow(1, "[]", '{"counts":[2,1],"kind":"arms","units":[5,0]}', 0, "")])
    3
    """
    return sum(sum(VaultDecision.of_row(row).statistics.counts) for row in rows)


def stacked(
    decisions: Sequence[VaultDecision], configuration: Configuration, *, jointly: bool = True
) -> Stream:
    """The records of decisions as one stream, with the decisions on its first axis; of one, if not `jointly`.

    Impossible statistics are refused.
    """
    actions = configuration.actions
    assert actions is not None  # a decision has records, and they have actions
    shape = (len(decisions), len(actions))[0 if jointly else 1 :]
    sums = [decision.statistics for decision in decisions]
    statistics = ArmStatistics(
        actions,
        np.array([each.counts for each in sums], dtype=np.int64).reshape(shape),
        np.array([each.units for each in sums], dtype=object).reshape(shape),  # which may be of any size
        configuration.reward_range,
    )
    deleted = offered = None
    if configuration.penalty == "frozen":
        deleted = np.array([each.deleted for each in sums], dtype=np.int64).reshape(shape)
    if configuration.arms:
        offered = configuration.offered(each.key for each in decisions).reshape(shape)
    return Stream(configuration.make_learner(), statistics, configuration.penalty, deleted, offered)


def decided(
    decisions: Sequence[VaultDecision], configuration: Configuration, *, warns: bool = False
) -> list[VaultDecision]:
    """The same decisions, in which the learner decides again; it `warns` where the counts decide."""
    if not decisions:
        return []
    found = stacked(decisions, configuration).decision()
    if warns:
        which = slice(None) if configuration.by else 0
        scores, no_data = found.scores[which], found.no_data[which]
        warn_of_a_dominating_penalty(scores, no_data, configuration.reward_range, stacklevel=6)
    served = zip(decisions, found.index.tolist(), found.no_data.tolist(), strict=True)
    return [
        replace(decision, served=arm, served_by=DEFAULT if no_data else LEARNER)
        for decision, arm, no_data in served
    ]


def unstacked(
    decisions: Sequence[VaultDecision], stream: Stream, served: Sequence[int], by: Sequence[str]
) -> list[VaultDecision]:
    """The decisions with the records of a stream, which serve these arms."""
    width = len(stream.statistics.actions)
    counts, units = (
        values.reshape(-1, width).tolist() for values in (stream.statistics.counts, stream.statistics.sums)
    )
    deleted = stream.deleted_counts
    lost = [None] * len(decisions) if deleted is None else map(tuple, deleted.reshape(-1, width).tolist())
    return [
        replace(decision, statistics=ArmSums(tuple(own), tuple(sums), gone), served=arm, served_by=why)
        for decision, own, sums, gone, arm, why in zip(
            decisions, counts, units, lost, served, by, strict=True
        )
    ]


def key_dict(columns: Sequence[KeyColumn], key: Sequence[str]) -> dict[str, str]:
    """The key of a decision, as JSON holds it: each column's name with its value."""
    return dict(zip((column.name for column in columns), key, strict=True))


def in_decision(configuration: Configuration, key: Sequence[str]) -> str:
    """Words that name a decision, to follow others.

    >>> in_decision(Configuration(actions=("A", "B"), by=("country",)), ("DE",))
    " in the decision {'country': 'DE'}"
    """
    return f" in the decision {key_dict(configuration.key_columns, key)!r}" if configuration.by else ""


def refused_arm(
    configuration: Configuration, key: Sequence[str], arm: Hashable, row: int | None
) -> VaultError:
    """Refuse a new row of an arm that its decision does not offer; `row` is the first, if that is known."""
    first = "" if row is None else f": the first is row {row}"
    faults = () if row is None else (Fault("action", row, "is an arm that its decision does not offer"),)
    return RefusedArmError(
        f"arm {arm!r} is not offered{in_decision(configuration, key)}, and new rows of it are"
        f" refused{first}; leave them out, offer it there (armnesia arms add), or count them without serving"
        " it (armnesia arms retire --new-rows count); nothing was ingested"
    ).at(*faults)


def checked_key(columns: Sequence[KeyColumn], where: Mapping[str, Any]) -> tuple[str, ...]:
    """The key that names exactly one decision; a number stands for the interval in which it lies."""
    values = checked_values(columns, where)
    missing = [column.name for column in columns if column.name not in values]
    if missing:
        raise InvalidInputError(
            f"a decision of this vault is named by {listed([column.name for column in columns])};"
            f" {listed(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        )
    return tuple(values[column.name] for column in columns)


def checked_values(columns: Sequence[KeyColumn], where: Mapping[str, Any]) -> dict[str, str]:
    """The values of some keys, as decisions have them; refuse keys that the vault does not have."""
    if where and not columns:
        raise InvalidInputError(f"the vault has one decision, without key columns; got the key {where!r}")
    by_name = {column.name: column for column in columns}
    values = {}
    for name, value in where.items():
        if name not in by_name:
            raise InvalidInputError(
                f"the decisions of this vault have the keys {listed(list(by_name))}; got {name!r}"
            )
        column, text = by_name[name], str(value)
        interval = column.interval_of(text) if column.edges else text
        if interval is None:
            raise InvalidInputError(
                f"key {name!r} must be a number or one of {listed(column.intervals)}; got {text!r}"
            )
        values[name] = interval
    return values
