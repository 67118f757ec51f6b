"""Restoring: everyone who was forgotten since a backup was made is forgotten again before it opens."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from armnesia.core.errors import LostSourceError, VaultError, refuse_first
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import CertificateDraft
from armnesia.vault.ledger.certificate_text import CERTIFIED
from armnesia.vault.ledger.export_file import ExportFile
from armnesia.vault.ledger.ledger import Entry, Head, check_chain
from armnesia.vault.ledger.source_claim import dropped_sources
from armnesia.vault.results.upkeep import Restored
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.corrections import replaced_since
from armnesia.vault.state.counted_sources import read_sources
from armnesia.vault.state.decision_recount import decisions_to_count
from armnesia.vault.state.decision_table import decided, put_all_decisions
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.owner_tallies import rebuild_tallies
from armnesia.vault.state.records import unknown_source
from armnesia.vault.state.replay import ReplayedState, replace_state
from armnesia.vault.state.sealed_state import State, empty_stream
from armnesia.vault.state.source_erasures import read_erasures
from armnesia.vault.state.suppression import KINDS, Suppressed
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session, Statement

_AT_ONCE = 500


def restore(
    connection: VaultConnection,
    export: ExportFile,
    *,
    as_it_is: bool = False,
    moved: Sequence[tuple[str, str]] = (),
) -> Restored:
    """Replay on an older copy what `export`, of the same vault, says came after it.

    The records of everyone forgotten since are deleted, the statistics rolled back exactly, and the ledger,
    certificates and suppression list brought up to date. If that changes the statistics, the learner decides
    again from what is left, which is rollback.

    A copy whose rows or state were changed by something else is refused, unless it is accepted `as_it_is`:
    then its records are counted again, and the ledger says so.

    An external vault counts its sources again, without those that were dropped since. `moved` names sources
    of the copy, each with the place where it is now: the ledger does not know places.
    """
    with connection.writing(partial(_load_copy, connection, export)) as transaction:
        connection.database.distrust_unused_space()
        session, before = transaction.session, transaction.state
        state = _bring_forward(before, export)
        keyring = state.keyring_in_use(connection.all_keys)
        scan = connection.records.scan(
            session, keyring, _suppressed_since(export, before.head), digest_keyring=transaction.keyring
        )
        # The lists come from the export; other changes of this copy must not pass unnoticed.
        intact = transaction.intact and (scan.digests.record, scan.digests.source) == (
            before.digests.record,
            before.digests.source,
        )
        repaired = transaction.intact and not scan.digests.has_lists_of(before.digests)
        decisions: list[VaultDecision] = []
        if before.configuration.by:
            replayed = ReplayedState.of(tables.stream_ledger(session))
            decisions, known = decisions_to_count(transaction, replayed)
            intact = intact and known
        if not intact and not as_it_is:
            raise VaultError(
                "the rows or the state of this copy were changed by something other than armnesia: restore"
                " another backup, or accept it with --as-it-is, which the ledger records"
            )
        tables.delete_tokens(session)  # some may have been revoked since the backup was made
        _replace_lists(session, export, before.head, keyring, connection.erasure_covers)
        missing = export.head.sequence - before.head.sequence
        replaced = replaced_since(session, after=before.head.sequence)
        if state.configuration.by:  # under the keys that the vault has from now on
            decisions = _with_later_arms(decisions, before, ReplayedState.of(export.ledger()))
            state = put_all_decisions(session, state, keyring, decisions)
        numbers = _bring_sources_forward(connection, session, state.configuration, moved)
        transaction.store(state)  # at the head of the export, which the next entry follows
        places: dict[str, Any] = {"moved": numbers} if numbers else {}
        entry = transaction.append("restore", replayed=missing, as_it_was=intact, **places)
        digests = compute_digests(session, keyring, connection.records.layout)
        transaction.store(replace(state, digests=digests._replace(decision=state.digests.decision)))
        if scan.needs_recount or not intact:
            try:
                transaction.store(connection.records.recount(transaction, scan, decisions))
            except LostSourceError as error:
                raise VaultError(
                    f"{error} , but only after the vault is restored: until then put the source back, or say"
                    " where it is now with armnesia restore EXPORT --moved OLD NEW; nothing was changed"
                ) from None
        if connection.records.layout.holds_rows:
            rebuild_tallies(session, keyring, connection.records.layout)
    connection.erase(entry.head)
    recounted = not connection.records.layout.holds_rows
    return Restored(missing, entry.head, replaced, recounted=recounted, lists_repaired=repaired)


def _load_copy(
    connection: VaultConnection, export: ExportFile, session: Session, head_before: Head | None
) -> tuple[State, bool]:
    """The state of the copy, and whether it is as it was stored; if not, the one that its ledger implies.

    Refused unless the copy's ledger is the beginning of the export's.
    """
    version = connection.refuse_foreign_schema(session)
    pinned = connection.pinned_head.read()
    if pinned is not None and export.head.sequence < pinned.sequence:
        raise VaultError(
            f"the export cannot be used: it ends at entry {export.head.sequence} of the ledger, before the"
            f" pinned head, entry {pinned.sequence}: give a newer export"
        )
    problems = check_chain(export.ledger(), vault=connection.all_keys.vault, head=pinned, end=export.head)
    refuse_first(problems, "the export cannot be used: {}")
    if not _is_beginning(tables.stream_ledger(session), export.ledger()):
        raise VaultError("the ledger of the vault is not the beginning of the export's: they have diverged")
    replayed = ReplayedState.of(tables.stream_ledger(session))
    with suppress(VaultError):
        state = connection.load_state(session, head_before)
        if state.head == replayed.head:
            return state, True
    return replace_state(session, connection.all_keys, replayed, version), False


def _bring_sources_forward(
    connection: VaultConnection,
    session: Session,
    configuration: Configuration,
    moved: Sequence[tuple[str, str]],
) -> list[int]:
    """Drop the sources that were dropped since, and move others; the numbers of those that were moved."""
    if connection.records.layout.holds_rows:
        if moved:
            raise unknown_source(moved[0][0], {})
        return []
    for number in dropped_sources(read_erasures(session, configuration)):
        tables.delete_source(session, number)  # no other source has had its number
    known = {each.name: each for each in read_sources(session)}
    numbers = []
    for old, new in moved:
        if old not in known:
            raise unknown_source(old, known)
        now = known[old].relocated(new, configuration)
        session.execute_together([tables.put_source(*now.row)])
        numbers.append(now.number)
    return numbers


def _with_later_arms(
    decisions: list[VaultDecision], before: State, later: ReplayedState
) -> list[VaultDecision]:
    """The decisions with the arms and the deleted counts of the export; those that differ decide again."""
    n_arms, offers = len(later.configuration.actions or ()), later.configuration.offers
    padded = [replace(each, statistics=each.statistics.with_arms(n_arms)) for each in decisions]
    known = {
        each.number: each for each in padded if offers(each.key) == before.configuration.offers(each.key)
    }
    found = later.with_deleted(padded)
    changed = [each for each in found if each != known.get(each.number)]
    again = {each.number: each for each in decided(changed, later.configuration)}
    return [again.get(each.number, each) for each in found]


def _is_beginning(own: Iterable[Row], exported: Iterable[Row]) -> bool:
    """Whether the rows of one ledger, at least one, are the first of another.

    >>> _is_beginning([(1, "a")], [(1, "a"), (2, "b")]), _is_beginning([], [(1, "a")])
    (True, False)
    >>> _is_beginning([(1, "a")], [(1, "a")]), _is_beginning([(1, "b")], [(1, "a")])
    (True, False)
    """
    compared, theirs = 0, iter(exported)
    for mine in own:
        compared += 1
        if tuple(mine) != next(theirs, None):
            return False
    return compared > 0


def _suppressed_since(export: ExportFile, copied: Head) -> Suppressed:
    """Whose rows must not be in the copy: all who are suppressed, unless readmitted before it was made.

    Rows of people who were readmitted later are older than that, and stay deleted.
    """
    suppressed: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
    for digest, kind, since, readmitted in export.suppressed():
        if since > copied.sequence or readmitted is None or readmitted > copied.sequence:
            suppressed[kind].add(digest)
    return suppressed


def _bring_forward(state: State, export: ExportFile) -> State:
    """Take configuration, key versions, ledger, arms and deleted counts from the export."""
    later = ReplayedState.of(export.ledger())
    moved = replace(
        state,
        configuration=later.configuration,
        head=later.head,
        digest_key=later.digest_key,
        signing_key=len(later.public_keys),
        erased_through=0,  # deleted bytes may have come back with the copy
        rotated_below=None,
    )
    if state.decision is None:
        empty = empty_stream(later.configuration, later.deleted_counts)
        return moved if empty is None else moved.with_stream(empty)
    before, offers = state.decision.statistics, later.configuration.offers
    sums = before.with_arms(len(moved.actions))
    if sums.deleted is not None:  # also of records that came in after the copy was made
        sums = replace(sums, deleted=tuple(later.deleted_counts.tolist()))
    if sums.deleted == before.deleted and offers(()) == state.configuration.offers(()):
        return replace(moved, decision=replace(state.decision, statistics=sums))
    return moved.with_stream(sums.stream(later.configuration))


def _replace_lists(
    session: Session, export: ExportFile, before: Head, keyring: Keyring, covers: Callable[[str], str]
) -> None:
    """Append the entries after `before`, draft all certificates again, and take the lists from the export.

    The deleted bytes came back with the copy, so that no certificate may say any more that they are erased:
    each is issued again when it is handed out.
    """
    statements = _ledger_statements(export, before, keyring, covers)
    while some := list(islice(statements, _AT_ONCE)):
        session.execute_together(some)
    tables.replace_table(session, "suppressed", export.suppressed())
    tables.replace_table(session, "request", export.requests())
    tables.replace_table(session, "tree", export.trees())


def _ledger_statements(
    export: ExportFile, before: Head, keyring: Keyring, covers: Callable[[str], str]
) -> Iterator[Statement]:
    certificates = export.certificates()
    number, body = next(certificates, (0, {}))
    for sequence, text, hash_ in export.ledger():
        if sequence > before.sequence:
            yield tables.insert_entry(sequence, text, hash_)
        entry = Entry.from_text(text)
        if entry.kind in CERTIFIED:
            while 0 < number < sequence:
                number, body = next(certificates, (0, {}))
            draft = CertificateDraft.for_reissue(
                entry, body if number == sequence else {}, covers(entry.kind)
            )
            yield tables.put_certificate(sequence, draft.text, keyring.seal(draft.text))
