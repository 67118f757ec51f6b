"""The suppression list, by digest: it keeps rows of forgotten people out of later ingests.

A row says since which entry of the ledger a name is suppressed, and which entry has readmitted it, if one
has. So it also finds the request by which somebody was forgotten.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from armnesia.core.errors import VaultError
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import SuppressedRow
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction

KINDS = ("user", "record")
"""What the suppression list names."""

_INHERITED = 1
"""The entry since which those are suppressed whom another vault has forgotten: this one had no request."""

Suppressed = Mapping[str, set[bytes]]
"""The digests of people ("user") and of single records ("record") whose rows must stay out."""


@dataclass(frozen=True)
class History:
    """What the list says of the names of a request."""

    target: ErasureTarget
    rows: Mapping[bytes, SuppressedRow]
    digests: Mapping[str, bytes]
    """The digest of each name."""

    @classmethod
    def read(cls, transaction: Transaction, target: ErasureTarget) -> "History":
        """Look names up that are spelled as the vault does."""
        digests = target.row_keys(transaction.keyring)
        found = statements.read(transaction.session, SuppressedRow, digest=digests)
        rows = {bytes(row.digest): row for row in found}
        return cls(target, rows, dict(zip(target.names, digests, strict=True)))

    def entry(self, name: str) -> int | None:
        """The entry by which a name was forgotten last, also if it was readmitted since; None if by none."""
        row = self.rows.get(self.digests[name])
        return None if row is None or row.since == _INHERITED else row.since

    @property
    def suppressed(self) -> dict[str, int]:
        """Who is on the list and not readmitted, and since which entry."""
        rows = {name: self.rows.get(digest) for name, digest in self.digests.items()}
        return {name: row.since for name, row in rows.items() if row is not None and row.readmitted is None}

    @property
    def forgotten(self) -> dict[str, int]:
        """Who is forgotten and not readmitted, and by which entry."""
        return {name: since for name, since in self.suppressed.items() if since != _INHERITED}

    def without(self, names: Collection[str]) -> "History":
        """What the list says of the other names."""
        digests = {name: own for name, own in self.digests.items() if name not in names}
        rows = {digest: self.rows[digest] for digest in digests.values() if digest in self.rows}
        return History(self.target.without(names), rows, digests)

    def after_forgetting(self, number: int) -> list[SuppressedRow]:
        """The rows after an entry that forgets all the names."""
        return [SuppressedRow(own, self.target.kind, number, None) for own in self.digests.values()]

    def after_readmitting(self, number: int) -> list[SuppressedRow]:
        """The rows after an entry that readmits all the names."""
        return [row._replace(readmitted=number) for row in self.rows.values()]


def read_checked_suppressed(session: Session, keyring: Keyring, state: State) -> Suppressed:
    """All digests on the suppression list; refuse it if something other than armnesia has changed it."""
    rows = list(statements.stream(session, SuppressedRow))
    if not state.check_sums.has(keyring, "suppressed", rows):
        raise VaultError(
            "the suppression list was changed by something other than armnesia, so that rows of forgotten"
            " people could come in; nothing was changed: run armnesia restore --as-it-is"
        )
    return _by_kind(rows)


def read_suppressed(session: Session) -> Suppressed:
    """All digests on the suppression list."""
    return _by_kind(statements.stream(session, SuppressedRow))


def any_suppressed(session: Session, kind: str) -> bool:
    """Whether any person, or any record, is suppressed."""
    return statements.exists(session, SuppressedRow, kind=kind, readmitted=None)


def suppressed_among(session: Session, digests: Collection[bytes]) -> set[bytes]:
    """Which of these digests are suppressed."""
    found = statements.read(session, SuppressedRow, digest=list(digests), readmitted=None)
    return {bytes(row.digest) for row in found}


def _by_kind(rows: Iterable[SuppressedRow]) -> Suppressed:
    found: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
    for row in rows:
        if row.readmitted is None:
            found.setdefault(row.kind, set()).add(bytes(row.digest))
    return found
