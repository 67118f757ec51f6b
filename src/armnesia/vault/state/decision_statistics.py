"""What a decision keeps of its records: a value with one canonical text, which the vault stores and digests.

Tables, seals and digests need no more of statistics than `DecisionStatistics` says: those of another kind
(Gram matrices, say) are stored without a change of the tables, by one class and one line in `STATISTICS`.
Learning and unlearning need the stream of `ArmSums`; another kind comes with learners of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from armnesia.core.statistics import ArmStatistics, Records
from armnesia.unlearners.stream import Penalty, Stream
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import text_of_plain


class DecisionStatistics(Protocol):
    """Statistics that records are added to and removed from; equal ones have equal texts."""

    kind: ClassVar[str]

    def add(self, records: Records) -> Self:
        """The statistics with these records."""

    def remove(self, records: Records) -> Self:
        """The statistics without these records, exactly those of the other records."""

    @property
    def text(self) -> str:
        """The statistics as canonical JSON, with their `kind`."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the JSON that `text` has."""


@dataclass(frozen=True)
class ArmSums:
    """Per arm, in the order of the vault's actions: how many records, and the sum of their reward units.

    `deleted` are the numbers of records deleted so far, where the penalty is frozen; otherwise None.

    >>> sums = ArmSums((2, 1), (1_500_000_000, 0))
    >>> sums.add(ArmStatistics.from_rewards({"A": [1], "B": []})).counts
    (3, 1)
    >>> more = ArmStatistics.from_rewards({"A": [0.5], "B": [1, 0]})
    >>> sums.add(more).remove(more) == sums
    True
    """

    counts: tuple[int, ...]
    units: tuple[int, ...]
    deleted: tuple[int, ...] | None = None
    _known: tuple[Configuration, Stream] | None = field(default=None, init=False, repr=False, compare=False)
    """The stream of these sums, and the configuration that it has: a cache."""
    kind: ClassVar[str] = "arms"

    @classmethod
    def empty(cls, n_arms: int, penalty: Penalty) -> Self:
        """The sums without records.

        >>> ArmSums.empty(2, "frozen")
        ArmSums(counts=(0, 0), units=(0, 0), deleted=(0, 0))
        """
        nothing = (0,) * n_arms
        return cls(nothing, nothing, nothing if penalty == "frozen" else None)

    @classmethod
    def of(cls, stream: Stream, configuration: Configuration | None = None) -> Self:
        """The sums of a stream of one data set; they remember it, if its configuration is named."""
        statistics, deleted = stream.statistics, stream.deleted_counts
        sums = cls(
            tuple(statistics.counts.tolist()),
            tuple(statistics.sums.tolist()),
            None if deleted is None else tuple(deleted.tolist()),
        )
        if configuration is not None:
            object.__setattr__(sums, "_known", (configuration, stream))
        return sums

    def add(self, records: Records) -> Self:
        """The sums with these records."""
        return self.plus(records.counts.tolist(), records.sums.tolist())

    def remove(self, records: Records) -> Self:
        """The sums without these records; with a frozen penalty they count as deleted.

        >>> ArmSums((2, 1), (5, 0), (0, 0)).remove(ArmStatistics.from_rewards({"A": [0], "B": []}))
        ArmSums(counts=(1, 1), units=(5, 0), deleted=(1, 0))
        """
        deleted = self.deleted
        if deleted is not None:
            pairs = zip(deleted, records.counts.tolist(), strict=True)
            deleted = tuple(before + more for before, more in pairs)
        left = self.plus((-records.counts).tolist(), (-records.sums).tolist())
        return replace(left, deleted=deleted)

    def plus(self, counts: Sequence[int], units: Sequence[int]) -> Self:
        """The sums with so many more records per arm."""
        return replace(
            self,
            counts=tuple(old + more for old, more in zip(self.counts, counts, strict=True)),
            units=tuple(old + more for old, more in zip(self.units, units, strict=True)),
        )

    def with_arms(self, n_arms: int) -> Self:
        """The sums of so many arms, of which those that were added are empty.

        >>> ArmSums((2,), (5,)).with_arms(2)
        ArmSums(counts=(2, 0), units=(5, 0), deleted=None)
        """
        more = (0,) * (n_arms - len(self.counts))
        deleted = None if self.deleted is None else self.deleted + more
        return replace(self, counts=self.counts + more, units=self.units + more, deleted=deleted)

    def stream(self, configuration: Configuration) -> Stream:
        """The stream of a decision without a key, from these sums on; impossible ones are refused."""
        if self._known is not None and self._known[0] is configuration:
            return self._known[1]
        assert configuration.actions is not None  # there are no sums before
        statistics = ArmStatistics.of_checked_arms(
            configuration.actions, self.counts, self.units, configuration.reward_range
        )
        deleted = None if self.deleted is None else np.array(self.deleted, dtype=np.int64)
        offered = configuration.offered([()])[0] if configuration.arms else None
        stream = Stream(configuration.make_learner(), statistics, configuration.penalty, deleted, offered)
        object.__setattr__(self, "_known", (configuration, stream))
        return stream

    @property
    def text(self) -> str:
        """The lists `counts` and `units`, and with a frozen penalty `deleted`, as canonical JSON.

        >>> ArmSums((2, 1), (1_500_000_000, 0)).text
        '{"counts":[2,1],"kind":"arms","units":[1500000000,0]}'
        """
        deleted = {} if self.deleted is None else {"deleted": self.deleted}
        return text_of_plain({"kind": self.kind, "counts": self.counts, "units": self.units, **deleted})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the JSON that `text` has."""
        deleted = values.get("deleted")
        return cls(
            tuple(values["counts"]), tuple(values["units"]), None if deleted is None else tuple(deleted)
        )


STATISTICS: dict[str, type[ArmSums]] = {ArmSums.kind: ArmSums}
"""The kinds of statistics, by the name that their text has."""
