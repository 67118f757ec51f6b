"""External records: the rows stay at their sources, and the vault holds nothing of single rows.

It holds statistics, and of each source the version that was counted. People are looked up at the sources.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import ClassVar

from armnesia.core.errors import ArmnesiaError, OutdatedSourceError, VaultError
from armnesia.core.progress import RowCounter
from armnesia.core.units import UNIT
from armnesia.logs import Source
from armnesia.logs.files import FileSource
from armnesia.logs.frames import FrameSource
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
    version_of,
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
from armnesia.vault.state.source_counting import SourceCounter, Sums, Update, added_up
from armnesia.vault.state.source_lookup import SourceLookup, look_up_people
from armnesia.vault.state.source_statistics import with_recounted, with_update
from armnesia.vault.state.suppression import Suppressed, read_suppressed
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import EXTERNAL_LAYOUT, RecordLayout


class ExternalRecords(Records):
    """The table `source` says what was counted; there is no table of rows."""

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
    ) -> SourceLookup:
        """Look the people up at the sources."""
        return look_up_people(reading, target, exactly=exactly)

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> DecisionSums:
        """What the rows at the sources add up to, in the decisions of the vault, for a preview."""
        assert lookup is not None  # it was made before the transaction
        if lookup.update is not None and _changes(transaction, lookup.update):
            update = lookup.update
            changed = next(each for each in update.before if each.version is None or each not in update.after)
            raise OutdatedSourceError(
                f"source {changed.name!r} has changed since it was counted, and a preview writes nothing:"
                f" first run {changed.ingest_command} ; a request itself counts again what has changed",
                changed.number,
            )
        return self._found(transaction, lookup)

    def _found(self, transaction: Transaction, lookup: SourceLookup) -> DecisionSums:
        sums: dict[int, list[tuple[int, int, int, bool]]] = {}
        by_key = dict.fromkeys(key for key, _ in lookup.sums)
        number_of = dict.fromkeys(by_key, FIRST)
        if transaction.state.configuration.by:
            texts = {text_of_plain(key): key for key in by_key}
            known = tables.numbers_of_keys(transaction.session, list(texts))
            number_of = {texts[text]: number for text, number in known.items()}
        for (key, arm), own in lookup.sums.items():
            if key not in number_of:
                raise _not_counted()
            sums.setdefault(number_of[key], []).append((arm, *own))
        self._refuse_more(transaction.state, sums)
        return sums

    @staticmethod
    def _refuse_more(state: State, sums: DecisionSums) -> None:
        """Refuse rows that the statistics cannot contain; those of many decisions are compared later."""
        if state.decision is not None:
            held = state.decision.statistics
            for arm, count, units, _ in sums.get(FIRST, ()):
                others = held.counts[arm] - count
                if not 0 <= held.units[arm] - units <= others * UNIT:
                    raise _not_counted()

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> DeletedRecords:
        """Store what has changed at the sources; nothing is deleted here but a part of the statistics."""
        assert lookup is not None
        if lookup.update is not None:
            state = with_update(transaction, transaction.state, lookup.update)
            if state != transaction.state:
                transaction.store(state)
        return DeletedRecords(self._found(transaction, lookup), [], set(lookup.held), [])

    def current(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup, *, exactly: bool
    ) -> SourceLookup:
        """Look again if the sources, or who is forgotten, have changed in the vault since."""
        if lookup.still_true(transaction):
            return lookup
        return look_up_people(lambda: nullcontext(transaction), target, exactly=exactly)

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

    def some_without_user(self, session: Session, lookup: SourceLookup | None) -> bool:
        """What the lookup found, which looks for them if somebody has no rows."""
        return lookup is not None and lookup.some_without_user

    def check_source(self, session: Session, source: Source) -> None:
        """Refuse a dataframe, which cannot be opened again, and conditions and paths that may name people."""
        if isinstance(source, FrameSource):
            raise VaultError("an external vault looks people up at the source: give a file or a table")
        for role in ("user", "id"):
            partitions = source.partitions if isinstance(source, FileSource) else ()
            if source.columns.named().get(role) in partitions:
                raise VaultError(
                    "an external vault stores the paths of its files, which must not name people;"
                    f" {source.described(role)} is in the names of folders: write it into the files, or use a"
                    " managed vault"
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

    def check_corrections(self, source: Source) -> None:
        """Refuse: the old rows are at their sources, and not here."""
        raise VaultError(
            "an external vault holds no rows that others could replace: rows that were corrected at their"
            " source count after armnesia ingest, which counts a source that has changed again"
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
        """Compute the digests only: what the rows say is known at the sources."""
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
        sources = read_sources(session)
        if state.configuration.actions is None:
            return problems, notes
        counting = SourceCounter(state.configuration, keyring, read_suppressed(session))
        sums = [self._compared(each, counting, counter, problems, notes) for each in sources]
        complete = [own for own in sums if own is not None]
        if len(complete) < len(sums):
            return problems, notes
        every = list(decisions)
        found = by_number(every, added_up(complete))
        differing = statistics_problems(every, state, found, "the sources' rows")
        if differing and sources:
            problems.append(_changed_in_place(sources))
        return problems + differing, notes

    @staticmethod
    def _compared(
        each: CountedSource,
        counting: SourceCounter,
        counter: RowCounter,
        problems: list[str],
        notes: list[str],
    ) -> Sums | None:
        """What a source adds up to, if it is as it was counted; what is remarkable is noted."""
        where = f"source {each.name!r}"
        if each.recount:
            notes.append(
                f"{where} has to be counted again ({each.recount}), and until then the statistics cannot be"
                f" compared with the sources: run {each.ingest_command}"
            )
            return None
        try:
            source = each.opened(counting.configuration)
            version = version_of(source)
            if version != each.version:
                before, now = each.version or {}, version or {}
                if each.version is not None and source.new_since(each.version) is not None:
                    notes.append(
                        f"{where}: there are rows that are not counted yet: run {each.ingest_command}"
                    )
                elif "table" in before and before["table"] == now.get("table"):
                    notes.append(
                        f"{where} has another version than when it was counted, and until it is counted"
                        " again the statistics cannot be compared with the sources: run"
                        f" {each.ingest_command}"
                    )
                else:
                    problems.append(
                        f"{where} has changed since it was counted: put back what is gone, or to count it"
                        f" again, run {each.ingest_command}"
                    )
                return None
            counted = counting.count(source)
        except ArmnesiaError as error:
            told = str(error)  # most errors of a source name it themselves
            problems.append(told if told.startswith(where) else f"{where}: {told}")
            return None
        counter.add(counted.n_rows)
        if number := counted.n_left_out:
            rows, are, them = ("row", "is", "it") if number == 1 else ("rows", "are", "them")
            may_erase = counting.configuration.may_erase_at_source
            notes.append(
                f"{where}: {number} {rows} of forgotten people or records {are} still present;"
                f" {'armnesia erase deletes' if may_erase else 'delete'} {them}"
            )
        return counted.sums

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
        counting = SourceCounter(state.configuration, transaction.keyring, read_suppressed(session))
        counted = counting.count_all(before, "", counter=counter)
        digests, statements = put_sources(before, counted.after, transaction.keyring, state.digests)
        session.execute_together(statements)
        return with_recounted(transaction, replace(state, digests=digests), counted.sums, decisions)

    @staticmethod
    def _fix_user_type(transaction: Transaction, sources: Sequence[CountedSource]) -> None:
        """Fix how people are named as the first source does that names any, if it is not fixed yet."""
        state = transaction.state
        for each in sources if state.configuration.user_type is None else ():
            user_type = user_type_for(state, each.opened(state.configuration))
            if user_type is not None:
                transaction.append("user_type", user_type=str(user_type))
                transaction.store(with_user_type(state, user_type))
                return

    def readmit(self, transaction: Transaction, state: State) -> State:
        """Count all sources again next time: they may have rows of people who are readmitted."""
        before = checked_sources(transaction.session, transaction.keyring, transaction.state.digests)
        after = [replace(each, recount=READMITTED) for each in before]
        digests, statements = put_sources(before, after, transaction.keyring, state.digests)
        transaction.add(*statements)
        return replace(state, digests=digests)

    def sources(self, session: Session) -> tuple[HeldSource, ...]:
        """Each source, and whether it has to be counted again."""
        return tuple(
            HeldSource(
                each.name,
                each.recount or None,
                each.columns,
                tuple(each.address["where"]),
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


def differing_statistics(transaction: Transaction, sums: Sums) -> list[str]:
    """Where the statistics of the vault are not these sums of all sources."""
    decisions = [VaultDecision.of_row(row) for row in tables.stream_decisions(transaction.session)]
    return statistics_problems(decisions, transaction.state, by_number(decisions, sums), "the sources' rows")


def _changes(transaction: Transaction, update: Update) -> bool:
    """Whether what was counted changes the statistics."""
    if update.because is None:
        return bool(update.n_counted)
    return bool(differing_statistics(transaction, update.sums))


def _changed_in_place(sources: Sequence[CountedSource]) -> str:
    """Say what differing statistics mean; nothing is held of single sources, so none can be singled out."""
    unsure = [each for each in sources if each.version is None]
    named = unsure or sources
    where = f"source {named[0].name!r}" if len(named) == 1 else "a source"
    told = f"{where} has changed since it was counted, in a way that only counting shows"
    if unsure:  # rows may just have been added to a table of a database
        return f"{told}: to count it before armnesia verify, run {unsure[0].ingest_command}"
    return f"{told}: run armnesia rebuild"


def _not_counted() -> VaultError:
    """Refuse rows of a request that the statistics do not contain."""
    return VaultError(
        "the sources have more rows of this request than the vault has counted: they have changed since, in a"
        " way that cannot be told from outside; nothing was changed: run armnesia rebuild"
    )
