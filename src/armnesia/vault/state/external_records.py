"""External records: the rows stay at their sources, and the vault holds nothing of single rows.

It holds statistics, and of each source the version that was counted. People are looked up at the sources;
whatever has changed there is counted first, and the same statement tells the people's rows apart.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from armnesia.core.errors import ArmnesiaError, OutdatedSourceError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.core.progress import RowCounter
from armnesia.core.units import UNIT
from armnesia.logs import Source
from armnesia.logs.counting import check_tallies
from armnesia.logs.files import FileSource
from armnesia.logs.frames import FrameSource
from armnesia.logs.refusals import empty_log
from armnesia.logs.statements import Chosen, Tally
from armnesia.logs.values import arm_of_text
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results import HeldSource
from armnesia.vault.state.check_sums import compute_check_sums
from armnesia.vault.state.decision_table import read_decisions
from armnesia.vault.state.decisions import VaultDecision, count_in_decisions
from armnesia.vault.state.likely_names import likely_spellings
from armnesia.vault.state.records import (
    DecisionSums,
    DeletedRecords,
    Records,
    RecordScan,
    statistics_problems,
    unknown_source,
)
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import known_columns, user_type_for, with_user_type
from armnesia.vault.state.source_counting import KIND_OF, SourceCounter, Sums, Update, by_role, digests_of
from armnesia.vault.state.source_statistics import with_rows, with_update
from armnesia.vault.state.sources import CountedSource, checked_sources, put_sources, read_sources, version_of
from armnesia.vault.state.suppression import History, Suppressed, any_suppressed, read_suppressed
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import DecisionRow, SourceRow, SuppressedRow


@dataclass(frozen=True)
class SourceLookup:
    """What the sources have of a request, without rows that are suppressed and so not counted."""

    update: Update
    """What changed at the sources since they were counted, and is stored before anybody is forgotten."""
    sums: Mapping[tuple[tuple[str, ...], int], tuple[int, int, bool]]
    """By key and arm: how many rows, their units, and whether all rewards are the lowest or the highest."""
    held: frozenset[bytes]
    """The row keys of the names, and of likely spellings of them, that have rows."""
    some_without_user: bool
    """Whether there are rows without a user; looked for if somebody has no rows."""

    @property
    def sources(self) -> tuple[str, ...]:
        """By which the ledger names the sources."""
        return tuple(each.id for each in self.update.before)


class ExternalRecords(Records):
    """The table `source` says what was counted; the table `record` stays empty."""

    holds_rows = False

    def count(self, session: Session) -> int:
        """By the statistics."""
        return count_in_decisions(tables.stream(session, DecisionRow))

    def new_rows(self, transaction: Transaction, state: State, source: Source) -> Update:
        """Count what is new at a source and at all others: rows may have moved here from one of them."""
        before, new, address = checked_sources(transaction), None, source.address()
        known = next((each for each in before if each.address == address), None)
        if known is None:
            if source.where and not source.tallies(state.configuration.reward_range):
                raise empty_log(source.where)
            number = max((each.number for each in before), default=0) + 1
            known = new = CountedSource(number, address, version_of(source))
        opened = {each.number: each.opened(state.configuration) for each in before if each is not known}
        return SourceCounter.of(transaction, state).update(before, {**opened, known.number: source}, new=new)

    def look_up(self, transaction: Transaction, target: ErasureTarget, *, exactly: bool) -> SourceLookup:
        """Look the people, or the ids, of a request up at the sources; with `exactly` no other spellings."""
        suppressed, state = History.read(transaction, target).suppressed, transaction.state
        names = {name for name in target.names if name not in suppressed}
        sources = checked_sources(transaction)
        update = Update(sources, sources, {}, None)
        if not names:
            return SourceLookup(update, {}, frozenset(), False)
        if not sources:
            raise VaultError(
                "the vault has counted no source yet, and so no rows: that nothing is held of somebody cannot"
                " be told before armnesia ingest; nothing was changed"
            )
        role = "user" if target.users else "id"
        chosen = Chosen(users=names) if target.users else Chosen(ids=names)
        opened = {each.number: each.opened(state.configuration) for each in sources}
        if not all(each.is_as_counted(opened[each.number]) for each in sources):
            update = SourceCounter.of(transaction, state).update(sources, opened, chosen)
        if update.because:
            found = [tally for own in update.counted.values() for tally in own.of_request]
        else:
            found = [tally for each in sources for tally in _rows_of(transaction, each, opened, chosen)]
        arm_of, labels = arm_of_text(state.require_actions()), set[str]()
        sums: dict[tuple[tuple[str, ...], int], tuple[int, int, bool]] = {}
        for each in found:
            labels.add(str(getattr(each, role)))
            place = (tuple(map(str, each.key)), arm_of[str(each.action)])
            count, units, binary = sums.get(place, (0, 0, True))
            sums[place] = (count + each.number, units + each.units, binary and each.is_binary)
        missing = names - labels
        if (
            missing
            and not exactly
            and (role == "id" or state.configuration.user_type is not UserType.INTEGER)
        ):
            texts = {spelling for name in missing for spelling in likely_spellings(name)} - names
            labels |= _held_of(transaction, sources, opened, role, texts)
        without_user = bool(missing and target.users) and any(_has_nobodys(each, opened) for each in sources)
        held = digests_of(transaction.keyring, role, labels)
        return SourceLookup(update, sums, frozenset(held), without_user)

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> DecisionSums:
        """What the rows at the sources add up to, in the decisions of the vault, for a preview."""
        assert lookup is not None
        update = lookup.update
        if update.n_counted if update.because is None else differing_statistics(transaction, update.sums):
            changed = next(each for each in update.before if each.version is None or each not in update.after)
            raise OutdatedSourceError(
                f"source {changed.name!r} has changed since it was counted, and a preview writes nothing:"
                f" first run {changed.ingest_command} ; a request itself counts again what has changed",
                changed.id,
            )
        return self._found(transaction, lookup)

    def _found(self, transaction: Transaction, lookup: SourceLookup) -> DecisionSums:
        """The sums of a lookup by the numbers of decisions; refuse rows that these cannot contain."""
        sums: dict[int, list[tuple[int, int, int, bool]]] = {}
        texts = [canonical(key) for key, _ in lookup.sums]
        rows = tables.read(transaction.session, DecisionRow, key=list(dict.fromkeys(texts)))
        held = {each.key: each for each in read_decisions(transaction, [row.number for row in rows])}
        for (key, arm), (count, units, binary) in lookup.sums.items():
            own = held[key].statistics if key in held else None
            left = 0 if own is None else own.units[arm] - units
            if own is None or not 0 <= left <= (own.counts[arm] - count) * UNIT:
                raise VaultError(
                    "the sources have more rows of this request than the vault has counted: they have changed"
                    " since, in a way that cannot be told from outside; nothing was changed: run armnesia"
                    " restore, which counts all sources again"
                )
            sums.setdefault(held[key].number, []).append((arm, count, units, binary))
        return sums

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> DeletedRecords:
        """Store what has changed at the sources, and that rows are to be erased there, if any were or not."""
        assert lookup is not None
        marked = [replace(each, to_erase=True) for each in lookup.update.after]
        state = with_update(transaction, transaction.state, replace(lookup.update, after=marked))
        if state != transaction.state:
            transaction.store(state)
        held = self.names_held(transaction, target, lookup)
        return DeletedRecords(self._found(transaction, lookup), [], held)

    def names_held(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceLookup | None
    ) -> set[bytes]:
        """What the lookup found; people who are forgotten have no rows here."""
        return self.keys_held(transaction, target, target.row_keys(transaction.keyring), lookup)

    def keys_held(
        self,
        transaction: Transaction,
        target: ErasureTarget,
        keys: Iterable[bytes],
        lookup: SourceLookup | None,
    ) -> set[bytes]:
        """What the lookup found."""
        return set() if lookup is None else set(lookup.held.intersection(keys))

    def some_without_user(self, session: Session, lookup: SourceLookup | None) -> bool:
        """What the lookup found, which looks for them if somebody has no rows."""
        return lookup is not None and lookup.some_without_user

    def check_source(self, session: Session, source: Source) -> None:
        """Refuse a dataframe, which cannot be opened again, and conditions and paths that may name people."""
        if isinstance(source, FrameSource):
            raise VaultError("an external vault looks people up at the source: give a file or a table")
        partitions = source.partitions if isinstance(source, FileSource) else ()
        for role in ("user", "id"):
            name = source.columns.named().get(role)
            if name in partitions:
                raise VaultError(
                    "an external vault stores the paths of its files, which must not name people;"
                    f" {source.described(role)} is in the names of folders: write it into the files, or use a"
                    " managed vault"
                )
            # A column `user` has names also where this source names no user column, or another.
            own = [each for each in (name, "user" if role == "user" else None) if each is not None]
            columns = {each.casefold() for each in (*known_columns(session, role), *own)}
            for condition in source.where:
                if condition.column.casefold() in columns:
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
        self, session: Session, keyring: Keyring, suppressed: Suppressed, *, counter: RowCounter | None = None
    ) -> RecordScan:
        """Compute the check-sums only: what the rows say is known at the sources."""
        check_sums = compute_check_sums(session, keyring)
        return RecordScan(check_sums)

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
        problems, notes, sources = list[str](), list[str](), read_sources(session)
        if state.configuration.actions is None:
            return problems, notes
        counting, counted = SourceCounter(state.configuration, keyring, read_suppressed(session)), {}
        for each in sources:
            try:
                source = each.opened(state.configuration)
                if each.recount or version_of(source) != each.version:
                    why = ", because people were readmitted" if each.recount else " since it was counted"
                    told = f"source {each.name!r} has changed{why}: run {each.ingest_command}"
                    (notes if _may_have_changed(each, source) else problems).append(told)
                    continue
                with each.being_read():
                    own = counted[each.number] = counting.count(source)
            except ArmnesiaError as error:
                problems.append(str(error))
                continue
            counter.add(own.n_rows)
            if own.n_left_out:
                notes.append(
                    f"source {each.name!r} still has rows of forgotten people or records"
                    f" ({own.n_left_out}): armnesia erase deletes them, in a vault that may"
                )
        if len(counted) == len(sources):
            sums = Update(sources, sources, counted, None).sums
            problems += _problems_of(list(decisions), state, sums)
            if problems and sources:
                problems.append("run armnesia restore, which counts all sources again")
        return problems, notes

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
        if transaction.state.configuration.actions is None:
            return transaction.state
        before = read_sources(transaction.session)
        opened = {each.number: each.opened(transaction.state.configuration) for each in before}
        for source in opened.values():
            user_type = user_type_for(transaction.state, source)
            if user_type != transaction.state.configuration.user_type:
                named = with_user_type(transaction.state, user_type)
                transaction.append("user_type", configuration=named.configuration)
                transaction.store(named)
        state = transaction.state
        counting = SourceCounter(
            state.configuration, transaction.keyring, read_suppressed(transaction.session)
        )
        opened = {each.number: each.opened(state.configuration) for each in before}
        update = counting.update(before, opened, because="all are counted again", counter=counter)
        state = with_rows(transaction, state, update.sums, instead=True)
        anybody = any(counting.suppressed.values())  # who was forgotten since the copy was made may be there
        after = [replace(each, to_erase=each.to_erase or anybody) for each in update.after]
        return put_sources(transaction, state, before, after)

    def readmit(self, transaction: Transaction, state: State) -> State:
        """Count all sources again next time: they may have rows of people who are readmitted."""
        before = checked_sources(transaction)
        return put_sources(transaction, state, before, [replace(each, recount=True) for each in before])

    def sources(self, session: Session) -> tuple[HeldSource, ...]:
        """Each source, and what is due there."""
        return tuple(each.held for each in read_sources(session))

    def drop_sources(self, session: Session, names: Sequence[str]) -> list[str]:
        """Remove sources that no longer exist, and return their ids: their rows no longer count."""
        known = read_sources(session)
        for name in names:
            if name not in {each.name for each in known}:
                raise unknown_source(name, {each.name: each for each in known})
        dropped = [each for each in known if each.name in names]
        for each in dropped:
            tables.delete(session, SourceRow, number=each.number)
        return [each.id for each in dropped]


def _rows_of(
    transaction: Transaction, each: CountedSource, opened: Mapping[int, Source], chosen: Chosen
) -> list[Tally]:
    """The rows of a request that count, at one source, told apart by their names."""
    source, configuration, session = opened[each.number], transaction.state.configuration, transaction.session
    columns, asked = source.columns.named(), dict(by_role(chosen))
    if not any(role in columns for role, names in asked.items() if names):
        return []  # no row of this source can be named by the request
    roles = [role for role, kind in KIND_OF.items() if asked[role] or any_suppressed(session, kind)]
    by = [role for role in roles if role in columns]
    with each.being_read():
        found = source.tallies(configuration.reward_range, chosen=chosen, by=by)
        if found:
            check_tallies(source, found, transaction.state.require_actions(), configuration.reward_range)
    gone = {role: _forgotten(transaction, role, {getattr(tally, role) for tally in found}) for role in by}
    return [tally for tally in found if not any(getattr(tally, role) in gone[role] for role in by)]


def _held_of(
    transaction: Transaction,
    sources: Sequence[CountedSource],
    opened: Mapping[int, Source],
    role: str,
    texts: set[str],
) -> set[str]:
    """Which of these names have rows at the sources, and are not forgotten."""
    found = set[str]()
    for each in sources:
        source = opened[each.number]
        if texts and role in source.columns.named():
            with each.being_read(), source.reading() as reading:
                found |= {label for piece in reading.labels(role, texts) for label in piece}
    return found - _forgotten(transaction, role, found)


def _forgotten(transaction: Transaction, role: str, names: Collection[str | None]) -> set[str]:
    """Which of these names are suppressed."""
    asked = [name for name in names if name is not None]
    digests = digests_of(transaction.keyring, role, asked)
    found = tables.read(transaction.session, SuppressedRow, digest=digests, readmitted=None)
    suppressed = {bytes(row.digest) for row in found}
    return {name for name, digest in zip(asked, digests, strict=True) if digest in suppressed}


def _has_nobodys(each: CountedSource, opened: Mapping[int, Source]) -> bool:
    """Whether a source has rows without a user."""
    source = opened[each.number]
    with each.being_read():
        return "user" not in source.columns.named() or bool(source.first_wrong("user"))


def _may_have_changed(each: CountedSource, source: Source) -> bool:
    """Whether a change is no problem: the source has more rows, or a table has another version."""
    before: Mapping[str, Any] = each.version or {}
    more = each.version is not None and source.new_since(each.version) is not None
    same_table = "table" in before and before["table"] == (version_of(source) or {}).get("table")
    return each.recount or more or same_table


def _problems_of(decisions: Sequence[VaultDecision], state: State, sums: Sums) -> list[str]:
    """Where the statistics are not these sums of all sources; a key that there is not has the number 0."""
    number_of = {each.key: each.number for each in decisions}
    found = {(number_of.get(key, 0), arm): own for (key, arm), own in sums.items()}
    return statistics_problems(decisions, state, found, "the sources' rows")


def differing_statistics(transaction: Transaction, sums: Sums) -> list[str]:
    """Where the statistics of the vault are not these sums of all sources."""
    decisions = [VaultDecision.of_row(row) for row in tables.stream(transaction.session, DecisionRow)]
    return _problems_of(decisions, transaction.state, sums)
