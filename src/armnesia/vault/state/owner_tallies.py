"""A tally per person: how many records there are, and a digest of them.

Records are looked up by an index. A damaged index finds too few, and a damaged row has another content: the
tally, which is stored apart from both, tells. A request is answered only if the records found are exactly
those of the tally; "nothing held" is certified only if there is no tally either.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Self

from armnesia.core.errors import VaultError, refuse_first
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys.keyring import DIGEST_BYTES, Keyring
from armnesia.vault.state.table_digests import row_texts
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.digest_arrays import DigestArray, each_once, packed, xor_of
from armnesia.vault.storage.schema import RecordLayout

IDENTITY, OWNER = 0, 1
"""Their places in a record."""
_AT_ONCE = 10_000
_GROUPS = 1 << 16
"""Of owners, whose tallies are compared together."""


def tally_rows(keyring: Keyring, records: Iterable[Row], texts: Iterable[bytes]) -> list[Row]:
    """The tallies of all owners of these records, as the table holds them; `texts` are those of the records.

    >>> keyring, records = Keyring.create("v-1"), [(b"1", b"ann", 0, 5), (b"2", None, 1, 7)]
    >>> [(owner, number) for owner, number, _ in tally_rows(keyring, records, row_texts(records))]
    [(b'ann', 1)]
    """
    owned: defaultdict[bytes | None, list[bytes]] = defaultdict(list)
    for record, text in zip(records, texts, strict=True):
        owned[record[OWNER]].append(text)
    owned.pop(None, None)  # of records without an owner
    return [
        (owner, len(own), xor_of(keyring.tally_digests(own)).to_bytes(DIGEST_BYTES))
        for owner, own in owned.items()
    ]


class TallyObserver:
    """Adds up the tallies of the owners of records that pass by, and compares them with those of the table.

    There may be too many owners to have the tally of each in memory. So they are in groups, which nobody can
    foresee: tallies that two people have exchanged are told apart unless both are in the same group.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring, self._secret = keyring, secret_bytes(DIGEST_BYTES)
        self._number, self._digests = 0, [0] * _GROUPS

    def observe(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the same rows."""
        for row in rows:
            if row[OWNER] is not None:
                self._number += 1
                self._digests[self._group(row[OWNER])] ^= self._keyring.tally_digest(row)
            yield row

    def _group(self, owner: bytes) -> int:
        return hash((self._secret, bytes(owner))) % _GROUPS

    def problems(self, session: Session) -> list[str]:
        """Compare all tallies with the records that passed by, and each with what the index finds."""
        number, digests = self._number, self._digests.copy()
        for owner, records, digest in tables.stream_tallies(session):
            number -= records
            digests[self._group(owner)] ^= int.from_bytes(digest)
        if number or any(digests) or tables.count_differing_tallies(session):
            return ["tallies: the records of people are not those that the vault has counted"]
        return []


class IdIndexCheck:
    """Confirms in another way than the index of ids that incoming rows are not in the vault yet.

    Rows of few people are compared with what these people have, found by the index of owners and as many as
    their tallies count; rows of many people with all records, read without an index. As soon as that has cost
    more than reading each record once by an index, the indexes are checked as a whole, once. Rows without a
    user are compared by the index of ids only.
    """

    def __init__(self, held: int, index_problems: Callable[[Session], Iterable[str]]) -> None:
        self._held = self._left = held
        self._index_problems = index_problems

    @classmethod
    def of(cls, transaction: Transaction, index_problems: Callable[[Session], Iterable[str]]) -> Self:
        """Of a vault, whose records are not counted by an index: it may be the damaged one."""
        if transaction.state.configuration.by:
            return cls(tables.count_tallied(transaction.session), index_problems)
        return cls(transaction.count_records(), index_problems)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to compare: there were no records, or their indexes are checked."""
        return self._left <= 0

    def confirm_new(self, session: Session, owners: DigestArray, identities: DigestArray) -> None:
        """Refuse incoming rows that the vault holds already; `owners` has the owner of each identity."""
        if self.is_done:
            return
        # Costs as much as so many look-ups, of which each row needs one for every record of its owner.
        scan = max(1, self._held // session.dialect.rows_scanned_per_lookup)
        if (looked_up := len(owners)) < scan:
            owners = each_once(owners)
            looked_up = tables.sum_of_tallies(session, owners)
        self._left -= min(looked_up, scan)
        if self.is_done:
            refuse_first(self._index_problems(session), "{}; nothing was ingested: run armnesia rebuild")
        elif looked_up >= scan:
            if tables.count_records_by_scan(session, identities):
                raise _hidden_records("ingested")
        elif looked_up:
            found, doubled = tables.count_of_owners(session, owners, identities)
            if found != looked_up:
                raise damaged()
            if doubled:
                raise _hidden_records("ingested")


NOTHING_TO_CHECK = IdIndexCheck(0, lambda _: ())
"""For a vault whose records are loaded anew."""


def remove_from_tallies(
    session: Session,
    keyring: Keyring,
    layout: RecordLayout,
    owners: Iterable[bytes],
    deleted: Sequence[Row],
    texts: Sequence[bytes],
) -> list[Statement]:
    """Check deleted records against the tallies of their owners, and of `owners`, who must have none left.

    `texts` are those of the deleted records. These and the records that other owners still have must be
    exactly what the tallies count. Returns the statements that store the tallies of what is left.
    """
    owners = set(owners)
    concerned = list(owners | {record[OWNER] for record in deleted if record[OWNER] is not None})
    left = tables.read_records(session, layout, "owner", concerned)
    kept, left_texts = {record[OWNER] for record in left}, row_texts(left)
    counted = tally_rows(keyring, [*left, *deleted], [*left_texts, *texts])
    # A deletion skips a row that its page does not find, and the row may be found again afterwards.
    if kept & owners or set(counted) != set(tables.read_tallies(session, concerned)):
        raise damaged()
    return [
        *(tables.put_tally(row) for row in tally_rows(keyring, left, left_texts)),
        *(tables.delete_tally(owner) for owner in concerned if owner not in kept),
    ]


def confirm_nobody(transaction: Transaction, owners: Sequence[bytes]) -> None:
    """Confirm that owners of whom nothing was found have neither records nor tallies.

    Both are looked up by indexes. Where these lead to the right place, they name the same people before and
    after each of the owners; where they name nobody at all, there are no records of people.
    """
    session = transaction.session
    neighbours = set(tables.read_neighbours(session, owners))
    if any(by_records != by_tallies for by_records, by_tallies in map(_halves, neighbours)):
        raise damaged()
    if (None,) * 4 in neighbours and not tables.has_records_without_owner(session):
        decision = transaction.state.decision
        counted = 0 if decision is None else sum(decision.statistics.counts)
        if counted or tables.has_records_by_scan(session):
            raise damaged()


def _halves(row: Row) -> tuple[Row, Row]:
    return row[:2], row[2:]


def damaged() -> VaultError:
    """The records found and the tallies differ: what a certificate would say cannot be confirmed."""
    return VaultError(
        "the records found are not those that the vault has counted for these people: an index or a row is"
        " damaged, or was changed by something other than armnesia; nothing was changed: run armnesia verify,"
        " then armnesia rebuild"
    )


def confirm_absence(session: Session, identities: Sequence[bytes]) -> None:
    """Confirm without any index that there are no records with these identities."""
    if tables.count_records_by_scan(session, packed(identities)):
        raise _hidden_records("forgotten")


def _hidden_records(done: str) -> VaultError:
    return VaultError(
        "the vault holds records with these ids that their index does not find: the index is damaged;"
        f" nothing was {done}: run armnesia rebuild"
    )


def rebuild_tallies(session: Session, keyring: Keyring, layout: RecordLayout) -> None:
    """Make all tallies again from the records, in little memory."""
    tables.create_tally_table(session)
    written: list[Row] = []
    for _, group in groupby(tables.stream_records_by_owner(session, layout), key=lambda row: row[OWNER]):
        records = list(group)
        written += tally_rows(keyring, records, row_texts(records))
        if len(written) >= _AT_ONCE:
            tables.load_tallies(session, written)
            written.clear()
    tables.load_tallies(session, written)
