"""External records: the rows stay at their sources, and the vault holds nothing of single rows.

It holds statistics, and of each source what was counted. People are looked up at the sources.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar

from armnesia.core.errors import ArmnesiaError, ChangedSourceError, VaultError
from armnesia.core.messages import listed
from armnesia.core.progress import RowCounter
from armnesia.core.units import UNIT
from armnesia.logs import Source
from armnesia.logs.counting import Sums
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.canonical_json import text_of_plain
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results.sources import HeldSource
from armnesia.vault.state.counted_sources import (
    READMITTED,
    CountedSource,
    checked_sources,
    put_sources,
    read_sources,
)
from armnesia.vault.state.decisions import FIRST, VaultDecision, count_in_decisions
from armnesia.vault.state.first_source import user_type_for, with_user_type
from armnesia.vault.state.records import (
    DecisionSums,
    DeletedRecords,
    Records,
    RecordScan,
    statistics_problems,
    unknown_source,
)
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import known_columns
from armnesia.vault.state.source_counting import SourceCounter, added_up
from armnesia.vault.state.source_lookup import SourceLookup, look_up_people
from armnesia.vault.state.source_statistics import with_recounted
from armnesia.vault.state.suppression import Suppressed, read_suppressed
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import EXTERNAL_LAYOUT, RecordLayout


class ExternalRecords(Records):
    """The table `source` says which rows were counted; there is no table of rows."""

    erasure_excludes: ClassVar[str] = (
        "; not the source of the records, where they are erased in a step of its own, or stay"
    )

    def __init__(self, layout: RecordLayout = EXTERNAL_LAYOUT) -> None:
        self.layout = layout

    def count(self, session: Session) -> int:
        """By the statistics."""
        return count_in_decisions(tables.stream_decisions(session))

    def look_up(
        self,
        reading: Callable[[], AbstractContextManager[Transaction]],
        target: ErasureTarget,
        *,
        exactly: bool,
        given: Any = None,
    ) -> SourceLookup:
        """Look the people up at the sources."""
        return look_up_people(reading, target, exactly=exactly, given=given)

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> DecisionSums:
        """What the rows at the sources add up to, in the decisions of the vault."""
        assert lookup is not None  # it was made before the transaction
        sums: dict[int, list[tuple[int, int, int, bool]]] = {}
        by_key = dict.fromkeys(key for key, _ in lookup.sums)
        number_of = dict.fromkeys(by_key, FIRST)
        if transaction.state.configuration.by:
            texts = {text_of_plain(key): key for key in by_key}
            known = tables.numbers_of_keys(transaction.session, list(texts))
            number_of = {texts[text]: number for text, number in known.items()}
        for (key, arm), own in lookup.sums.items():
            if key not in number_of:
                raise _not_counted(lookup)
            sums.setdefault(number_of[key], []).append((arm, *own))
        self._refuse_more(transaction.state, sums, lookup)
        return sums

    @staticmethod
    def _refuse_more(state: State, sums: DecisionSums, lookup: SourceLookup) -> None:
        """Refuse rows that the statistics cannot contain; those of many decisions are compared later."""
        if state.decision is not None:
            held = state.decision.statistics
            for arm, count, units, _ in sums.get(FIRST, ()):
                others = held.counts[arm] - count
                if not 0 <= held.units[arm] - units <= others * UNIT:
                    raise _not_counted(lookup)

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> DeletedRecords:
        """Nothing is deleted here but the rows' part of the statistics."""
        assert lookup is not None
        sums = self.find(transaction, target, lookup)
        return DeletedRecords(sums, [], set(lookup.held), [], given=lookup.given is not None)

    def current(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup, *, exactly: bool
    ) -> SourceLookup:
        """Look again if the sources, or who is forgotten, have changed since."""
        if lookup.still_true(transaction):
            return lookup
        return look_up_people(lambda: nullcontext(transaction), target, exactly=exactly, given=lookup.given)

    def names_held(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> set[bytes]:
        """What the lookup found; people who are forgotten have no rows here."""
        return set() if lookup is None else set(lookup.held)

    def keys_held(
        self,
        transaction: Transaction,
        target: ErasureTarget,
        keys: Iterable[bytes],
        lookup: SourceLookup | None,
    ) -> set[bytes]:
        """Which other spellings the lookup found."""
        return set() if lookup is None else set(keys) & lookup.others

    def some_without_user(self, session: Session) -> bool:
        """As far as was noted when they were counted."""
        return any(each.counted is None or each.counted.some_without_user for each in read_sources(session))

    def check_source(self, session: Session, source: Source) -> None:
        """Refuse a dataframe, which cannot be opened again, and conditions and paths that may name people."""
        if not source.can_be_reopened:
            raise VaultError("an external vault looks people up at the source: give a file or a table")
        for role in ("user", "id"):
            if source.columns.named().get(role) in source.columns_in_paths:
                raise VaultError(
                    "an external vault stores the paths of its files, which must not name people;"
                    f" {source.described(role)} is in the names of folders: write it into the files, or use a"
                    " managed vault"
                )
            if source.holds_bytes(role):
                raise VaultError(
                    "an external vault cannot look people up in a column of bytes, of which several may be"
                    f" one name; write the {role} column as text"
                )
        role_of = {"user": "user"}  # also where this source names no user column, or another
        for role in ("id", "user"):
            names = [*known_columns(session, role), source.columns.named().get(role)]
            role_of |= {name.casefold(): role for name in names if name is not None}
        for condition in source.where:
            role = role_of.get(condition.column.casefold(), "")
            if role:
                raise VaultError(
                    "an external vault stores the conditions of its sources, so they must not be on the"
                    f" {role} column of this source or of an earlier one; got one on {condition.column!r}"
                )
        order = source.description.get("ordered_by")
        if order is not None and role_of.get(order.casefold()) == "user":
            raise VaultError(
                "an external vault stores the highest value of the column that rows are ordered by, which"
                f" must not name people; got the user column {order!r}: name an id or a time (--ordered-by)"
            )

    def check_corrections(self, source: Source) -> None:
        """Refuse: the old rows are at their sources, and not here."""
        raise VaultError(
            "an external vault holds no rows that others could replace: rows that were corrected at their"
            " source count after armnesia ingest, which counts a source that has changed again, or after"
            " armnesia rebuild"
        )

    def scan(
        self,
        session: Session,
        keyring: Keyring,
        suppressed: Suppressed,
        *,
        counter: RowCounter | None = None,
        digest_keyring: Keyring | None = None,
    ) -> RecordScan:
        """Compute the digests only: what the rows say is known at the sources.

        Progress does not count these tables: rows are counted where they are read.
        """
        digests = compute_digests(session, digest_keyring or keyring, self.layout)
        return RecordScan(digests, needs_recount=True)

    def problems(
        self,
        session: Session,
        state: State,
        keyring: Keyring,
        scan: RecordScan,
        decisions: Iterable[VaultDecision],
        counter: RowCounter,
    ) -> tuple[list[str], list[str]]:
        """Count the sources again, without the rows of forgotten people, and compare the statistics."""
        problems: list[str] = []
        notes: list[str] = []
        sums, complete = [], True
        counting = SourceCounter.of(state.configuration, keyring, read_suppressed(session))
        remedy = "armnesia erase deletes" if state.configuration.may_erase_at_source else "delete"
        for each in read_sources(session):
            where = f"source {each.name!r}"
            if each.plans.under_way:
                notes.append(
                    f"{where}: an erasure there is under way, or was interrupted: armnesia erase finishes it"
                )
            if each.counted is None:
                complete = False
                notes.append(
                    f"{where} has to be counted again ({each.recount}), and until then the statistics cannot"
                    f" be compared with the sources: run {each.ingest_command}"
                )
                continue
            try:
                part, has_more = each.reopened_counted(state.configuration)
                counted = counting.count(part, checked_before=True)
                has_more = has_more or each.has_new_files()
            except ChangedSourceError as error:
                complete = False
                again = "" if each.plans.under_way else f"; {each.remedy(error)}"
                problems.append(f"{where} has changed since it was counted: {error}{again}")
                continue
            except ArmnesiaError as error:
                complete = False
                told = str(error)  # most errors of a source name it themselves
                problems.append(told if told.startswith(where) else f"{where}: {told}")
                continue
            counter.add(counted.n_rows)
            sums.append(counted.sums)
            if has_more:
                notes.append(f"{where}: there are rows that are not counted yet: run {each.ingest_command}")
            if number := counted.n_left_out:
                rows, are, them = ("row", "is", "it") if number == 1 else ("rows", "are", "them")
                notes.append(
                    f"{where}: {number} {rows} of forgotten people or records {are} still present;"
                    f" {remedy} {them}"
                )
        if not complete:
            return problems, notes
        every = list(decisions)
        found = by_number(every, added_up(sums))
        differing = statistics_problems(every, state, found, "the sources' rows")
        names = [each.name for each in read_sources(session)]
        explained = [_changed_in_place(names)] if differing and names else []
        return problems + explained + differing, notes

    def matches(self, scan: RecordScan, state: State) -> bool:
        """Nothing else is here; sources may have been dropped just now."""
        return True

    def recount(
        self,
        transaction: Transaction,
        scan: RecordScan,
        decisions: Sequence[VaultDecision] = (),
        counter: RowCounter | None = None,
    ) -> State:
        """Count every source again, in this transaction."""
        session = transaction.session
        if transaction.state.configuration.actions is None:
            return transaction.state
        before = read_sources(session)
        self._fix_user_type(transaction, before)
        state = transaction.state
        counting = SourceCounter.of(state.configuration, transaction.keyring, read_suppressed(session))
        counted = counting.count_all(before, counter=counter)
        digests, statements = put_sources(before, counted.sources, transaction.keyring, state.digests)
        session.execute_together(statements)
        return with_recounted(transaction, replace(state, digests=digests), counted.sums, decisions)

    @staticmethod
    def _fix_user_type(transaction: Transaction, sources: Sequence[CountedSource]) -> None:
        """Fix how people are named as the first source does that names any, if it is not fixed yet."""
        state = transaction.state
        for each in sources if state.configuration.user_type is None else ():
            user_type = user_type_for(state, each.reopened(state.configuration))
            if user_type is not None:
                transaction.append("user_type", user_type=str(user_type))
                transaction.store(with_user_type(state, user_type))
                return

    def readmit(self, transaction: Transaction, state: State) -> State:
        """Count all sources again with the next ingest: they may have rows of people who are readmitted."""
        before = checked_sources(transaction.session, transaction.keyring, transaction.state.digests)
        after = [each.to_recount(READMITTED) for each in before]
        digests, statements = put_sources(before, after, transaction.keyring, state.digests)
        transaction.add(*statements)
        return replace(state, digests=digests)

    def confirm_upgrade(self, writing: Callable[[], AbstractContextManager[Transaction]]) -> tuple[str, ...]:
        """Count the sources: if they add up to the statistics, this is what was counted.

        Otherwise, or if one cannot be read, all have to be counted again.
        """
        with writing() as transaction:
            state, session = transaction.state, transaction.session
            before = read_sources(session)
            counting = SourceCounter.of(state.configuration, transaction.keyring, read_suppressed(session))
            try:
                counted = counting.count_all(before)
            except ArmnesiaError:
                return tuple(each.name for each in before)
            decisions = [VaultDecision.of_row(row) for row in tables.stream_decisions(session)]
            if statistics_problems(decisions, state, by_number(decisions, counted.sums), ""):
                return tuple(each.name for each in before)
            digests, statements = put_sources(before, counted.sources, transaction.keyring, state.digests)
            if statements:
                transaction.add(*statements)
                transaction.store(state, digests=digests)
            return tuple(each.name for each in counted.sources if each.counted is None)

    def sources(self, session: Session) -> tuple[HeldSource, ...]:
        """Each source, and whether it has to be counted again."""
        return tuple(
            HeldSource(
                each.name,
                each.recount or None,
                dict(each.address["columns"]),
                tuple(each.address.get("where", ())),
                each.address.get("ordered_by"),
                each.ingest_command,
            )
            for each in read_sources(session)
        )

    def drop_sources(self, session: Session, names: Sequence[str]) -> list[int]:
        """Remove sources that no longer exist, and return their numbers: their rows no longer count."""
        known: dict[str, list[int]] = {}  # one place may have been read by different columns
        for each in read_sources(session):
            known.setdefault(each.name, []).append(each.number)
        for name in names:
            if name not in known:
                raise unknown_source(name, known)
        dropped = sorted({number for name in names for number in known[name]})
        for number in dropped:
            tables.delete_source(session, number)
        return dropped


def by_number(decisions: Iterable[VaultDecision], sums: Sums) -> dict[tuple[int, int], tuple[int, int]]:
    """Sums by the number of their decision, 0 for a key that there is not, and the arm."""
    number_of = {each.key: each.number for each in decisions}
    return {(number_of.get(key, 0), arm): own for (key, arm), own in sums.items()}


def _changed_in_place(names: Sequence[str]) -> str:
    """Say what differing statistics mean; nothing is held of single sources, so none can be singled out."""
    where = f"source {names[0]!r}" if len(names) == 1 else f"one of the sources {listed(names, 5)}"
    return (
        f"{where} may have changed in a way that only counting shows: rows were changed in their place, or"
        " rows that were given with a request were not all of it, or more; armnesia rebuild counts all"
        " sources again"
    )


def _not_counted(lookup: SourceLookup) -> VaultError:
    """Refuse rows of a request that the statistics do not contain."""
    if lookup.given is not None:
        return VaultError(
            "the vault has not counted the given rows, or not all of them: give those of its sources as they"
            " were when they were counted; nothing was changed"
        )
    return VaultError(
        "the sources have more rows of this request than the vault has counted: they have changed since, in a"
        " way that cannot be told from outside; nothing was changed: run armnesia rebuild"
    )
