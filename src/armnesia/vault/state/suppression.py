"""The suppression list and the answered requests, by digest.

The suppression list keeps forgotten people's rows out of later ingests. It is separate from the permanent
ledger because it can be erased: `readmit` lets a person's new records in again. Until a row is erased as
well, it still says since when the person is forgotten, which restoring an older backup needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement

KINDS = ("user", "record")
"""What the suppression list names."""

Suppressed = Mapping[str, set[bytes]]
"""The digests of people ("user") and of single records ("record") whose rows must stay out."""


@dataclass(frozen=True)
class SuppressionRows:
    """Some rows of both lists, by digest.

    `suppressed`: (digest, kind, since, readmitted); `request`: (digest, sequence, opening).
    """

    suppressed: Mapping[bytes, Row] = field(default_factory=dict)
    request: Mapping[bytes, Row] = field(default_factory=dict)

    @classmethod
    def read(cls, session: Session, digests: Sequence[bytes]) -> "SuppressionRows":
        """The rows with these digests in either list."""
        suppressed: dict[bytes, Row] = {}
        request: dict[bytes, Row] = {}
        for table, digest, text, number, readmitted in tables.read_suppression(session, digests):
            if table == "suppressed":
                suppressed[digest] = (digest, text, number, readmitted)
            else:
                request[digest] = (digest, number, text)
        return cls(suppressed, request)

    def suppresses(self, digest: bytes) -> bool:
        """Whether this is the digest of a person or record that is forgotten and not readmitted."""
        return digest in self.suppressed and self.suppressed[digest][-1] is None

    def apply_changes(
        self, after: "SuppressionRows", keyring: Keyring, digests: TableDigests
    ) -> tuple[TableDigests, list[Statement]]:
        """Put other rows in the place of these: the new table digests, and the statements."""
        statements: list[Statement] = []
        for table, old, new in (
            ("suppressed", self.suppressed, after.suppressed),
            ("request", self.request, after.request),
        ):
            removed = [row for digest, row in old.items() if new.get(digest) != row]
            added = [row for digest, row in new.items() if old.get(digest) != row]
            if removed or added:
                digests = digests.update(keyring, table, [*removed, *added])
            statements += [tables.delete_row(table, row[0]) for row in removed if row[0] not in new]
            statements += [tables.put_row(table, row) for row in added]
        return digests, statements


def read_suppressed(session: Session) -> Suppressed:
    """All digests on the suppression list."""
    found: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
    for digest, kind in tables.stream_suppressed(session):
        found.setdefault(kind, set()).add(bytes(digest))
    return found
