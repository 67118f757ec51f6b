"""The suppression list and the answered requests, by digest.

The suppression list keeps forgotten people's rows out of later ingests. It is separate from the permanent
ledger because it can be erased: `readmit` lets a person's new records in again. Until a row is erased as
well, it still says since when the person is forgotten, which restoring an older backup needs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from armnesia.core.errors import VaultError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import SUPPRESSED_RECORD, USER, Keyring
from armnesia.vault.ledger.commitments import Opening
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement

KINDS = ("user", "record")
"""What the suppression list names."""

PURPOSES = {"user": USER, "record": SUPPRESSED_RECORD}
"""The purpose of the digests of each kind, for `Keyring.wrapped`."""

FIRST_ENTRY = 1
"""Since when names are suppressed that another vault forgot: since the entry that created this one."""

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
    def read(cls, transaction: Transaction, digests: Sequence[bytes]) -> "SuppressionRows":
        """The rows with these digests in either list."""
        suppressed: dict[bytes, Row] = {}
        request: dict[bytes, Row] = {}
        found: Iterable[Row]
        if transaction.lists is None:
            found = tables.read_suppression(transaction.session, digests)
        else:  # a digest that was not looked up is a mistake, and not a digest without rows
            found = [row for digest in digests for row in transaction.lists[digest]]
        for table, digest, text, number, readmitted in found:
            if table == "suppressed":
                suppressed[digest] = (digest, text, number, readmitted)
            else:
                request[digest] = (digest, number, text)
        return cls(suppressed, request)

    @property
    def inherited(self) -> set[bytes]:
        """The names that are suppressed since the vault was created: another vault forgot them."""
        return {digest for digest, row in self.suppressed.items() if row[2] == FIRST_ENTRY and row[3] is None}

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


class NameDigests(NamedTuple):
    """The digests of one name of a request, as the lists hold them."""

    name: bytes
    kind: str
    request_alone: bytes
    """Of the request for this name alone."""


def history_digests(target: ErasureTarget, keyring: Keyring) -> tuple[bytes, list[NameDigests], list[bytes]]:
    """The digest of a request, those of its names, and all that its history is looked up by."""
    whole = keyring.request_digest(target.to_dict())
    alone = [whole if one is target else keyring.request_digest(one.to_dict()) for one in target.one_by_one()]
    own = zip(target.suppression_digests(keyring), alone, strict=True)
    names = [NameDigests(name, kind, request) for (name, kind), request in own]
    digests = {whole, *(digest for one in names for digest in (one.name, one.request_alone))}
    return whole, names, list(digests)


@dataclass(frozen=True)
class RequestHistory:
    """What the lists say of a request as a whole, and of each of its names."""

    request: bytes
    """The digest of the whole request."""
    names: list[NameDigests]
    rows: SuppressionRows
    suppressed: list[bool]
    """Which of the names are forgotten and not readmitted."""
    answered_before: bool
    """Whether the same request was answered, and none of its names was readmitted since."""

    @classmethod
    def read(cls, transaction: Transaction, target: ErasureTarget) -> "RequestHistory":
        """Look a request up, whose names are spelled as the vault does."""
        whole, names, digests = history_digests(target, transaction.keyring)
        rows = SuppressionRows.read(transaction, digests)
        held = rows.suppressed
        suppressed = [one.name in held and held[one.name][-1] is None for one in names]
        return cls(whole, names, rows, suppressed, whole in rows.request and all(suppressed))

    def after_forgetting(self, openings: list[Opening], sequence: int) -> SuppressionRows:
        """The rows after the request: every name suppressed, and the entry that answered it noted.

        It is noted for the request as a whole and for each name; a name that was forgotten before keeps the
        certificate of that time, unless another vault has it, which this one succeeds.
        """
        answered, suppressed = dict(self.rows.request), dict(self.rows.suppressed)
        opening = str(openings[0]) if len(openings) == 1 else ""
        answered[self.request] = (self.request, sequence, opening)
        for (name, kind, alone), before, own in zip(self.names, self.suppressed, openings, strict=True):
            if not before or alone not in self.rows.request:
                answered[alone] = (alone, sequence, str(own))
            suppressed[name] = (name, kind, sequence, None)
        return SuppressionRows(suppressed, answered)

    def after_readmitting(self, sequence: int, *, erase: bool) -> SuppressionRows:
        """The rows after the names were readmitted by a ledger entry; none if they are erased."""
        if erase:
            return SuppressionRows()
        readmitted = {digest: (*row[:-1], sequence) for digest, row in self.rows.suppressed.items()}
        return SuppressionRows(readmitted, self.rows.request)


@dataclass(frozen=True)
class SuppressionList:
    """The whole suppression list, as it is under the seal."""

    digests: Suppressed
    sealed: tuple[int, int]
    """The table digest that it has, and the version of the key of both."""

    @classmethod
    def read(cls, transaction: Transaction, known: "SuppressionList | None" = None) -> "SuppressionList":
        """Read the list without its index, in which a flipped bit would hide a name; refuse a changed one.

        `known` is returned if the list is still the same.
        """
        state = transaction.state
        sealed = (state.digests.suppressed, state.digest_key)
        if known is not None and known.sealed == sealed:
            return known
        found: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
        rows = _collect(tables.stream_by_scan(transaction.session, "suppressed"), found)
        if TableDigests().update(transaction.keyring, "suppressed", rows).suppressed != sealed[0]:
            raise VaultError(
                "the suppression list was changed by something other than armnesia, so that rows of forgotten"
                " people could come in; nothing was changed: run armnesia restore with the latest export"
            )
        return cls(found, sealed)


def _collect(rows: Iterable[Row], found: dict[str, set[bytes]]) -> Iterator[Row]:
    """Yield the same rows; the digests of those that are not readmitted are noted by kind."""
    for row in rows:
        digest, kind, _, readmitted = row
        if readmitted is None:
            found.setdefault(kind, set()).add(digest)
        yield row


def read_suppressed(session: Session) -> Suppressed:
    """All digests on the suppression list."""
    found: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
    for digest, kind in tables.stream_suppressed(session):
        found.setdefault(kind, set()).add(bytes(digest))
    return found
