"""A decision of a vault: its key, its statistics, and the arm that it serves."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from armnesia.vault.keys.canonical_json import text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decision_statistics import STATISTICS, ArmSums
from armnesia.vault.storage.schema import DecisionRow

FIRST = 1
"""The number of the first decision; in a vault with one decision there is no other."""
DEFAULT, LEARNER, RELEASE = "default", "learner", "release"
"""What chose the served arm: there are no records, the learner, or the answer to a request."""


@dataclass(frozen=True)
class VaultDecision:
    """One decision; `served` is the position of the served arm, and `served_by` says what chose it."""

    number: int
    key: tuple[str, ...]
    statistics: ArmSums
    served: int | None
    served_by: str

    def row(self, keyring: Keyring) -> DecisionRow:
        """The decision as the table holds it."""
        key = text_of_plain(self.key) if self.key else "[]"
        seal = keyring.decision_seal(self.number, key)
        return DecisionRow(self.number, key, self.statistics.text, self.served, self.served_by, seal)

    @classmethod
    def of_row(cls, row: DecisionRow) -> "VaultDecision":
        """Read a row whose digest was checked."""
        values = json.loads(row.statistics)
        statistics = STATISTICS[values["kind"]].from_dict(values)
        return cls(row.number, tuple(json.loads(row.key)), statistics, row.served, row.served_by)


def count_in_decisions(rows: Iterable[DecisionRow]) -> int:
    """How many records decisions have together, by their statistics.

    >>> count_in_decisions([DecisionRow(1, "[]", '{"counts":[2,1],"kind":"arms","units":[5,0]}', 0, "", b"")])
    3
    """
    return sum(sum(VaultDecision.of_row(row).statistics.counts) for row in rows)


def digest_of_decision(row: DecisionRow | None, keyring: Keyring) -> int:
    """The keyed digest of a decision: without the key, another row cannot be given one; 0 without a decision.

    >>> keyring, row = Keyring.create("v-1"), DecisionRow(1, "[]", "{}", 0, LEARNER, b"")
    >>> digest_of_decision(row, keyring) == digest_of_decision(row._replace(served=1), keyring)
    False
    """
    if row is None:
        return 0
    digest = keyring.hasher(b"decision")
    digest.update(ascii(tuple(row)).encode())
    return int.from_bytes(digest.digest())
