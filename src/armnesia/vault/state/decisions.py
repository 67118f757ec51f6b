"""A decision of a vault: its key, its statistics, and the arm that it serves."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from armnesia.vault.keys.canonical_json import text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decision_statistics import ArmSums, read_statistics
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

    @property
    def row(self) -> DecisionRow:
        """The decision as the table holds it."""
        return DecisionRow(
            self.number,
            text_of_plain(list(self.key)),
            self.statistics.text,
            self.served,
            self.served_by,
        )

    @classmethod
    def of_row(cls, row: DecisionRow) -> "VaultDecision":
        """Read a row whose digest was checked."""
        return cls(
            row.number, tuple(json.loads(row.key)), read_statistics(row.statistics), row.served, row.served_by
        )


def digest_of_decision(row: DecisionRow | None, keyring: Keyring) -> int:
    """The keyed digest of a decision: without the key, another row cannot be given one; 0 without a decision.

    >>> keyring, row = Keyring.create("v-1"), DecisionRow(1, "[]", "{}", 0, LEARNER)
    >>> digest_of_decision(row, keyring) == digest_of_decision(row._replace(served=1), keyring)
    False
    """
    if row is None:
        return 0
    digest = keyring.hasher(b"decision")
    digest.update(ascii(tuple(row)).encode())
    return int.from_bytes(digest.digest())


def digest_of_decisions(rows: Iterable[DecisionRow], keyring: Keyring) -> int:
    """The digest of all decisions, which are given by their numbers; 0 if there are none."""
    digest = 0
    for row in rows:
        digest ^= digest_of_decision(row, keyring)
    return digest
