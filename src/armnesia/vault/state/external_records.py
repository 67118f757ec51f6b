"""External records: the rows stay at their sources, and the vault holds nothing of single rows.

It holds statistics, and of each source the version that was counted. People are looked up at the sources;
whatever has changed there is counted first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from armnesia.core.errors import ArmnesiaError, OutdatedSourceError, VaultError
from armnesia.core.identifiers import UserType
from armnesia.core.progress import RowCounter
from armnesia.core.units import UNIT
from armnesia.logs import Source
from armnesia.logs.files import FileSource
from armnesia.logs.frames import FrameSource
from armnesia.logs.refusals import empty_log
from armnesia.logs.statements import Chosen
from armnesia.vault.configuration import Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import DecisionRow, RecordRow
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decision_table import (
    changed_decisions,
    put_decisions,
    read_decisions,
)
from armnesia.vault.state.decisions import VaultDecision, count_in_decisions, decided, refused_arm
from armnesia.vault.state.likely_names import likely_spellings
from armnesia.vault.state.records import (
    DecisionSums,
    DeletedRecords,
    Records,
    RecordScan,
    statistics_problems,
)
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_counting import Findings, SourceCounter
from armnesia.vault.state.sources import (
    OUTDATED,
    CountedSource,
    checked_sources,
    put_sources,
    read_sources,
    version_of,
)
from armnesia.vault.state.transaction import Transaction


class ExternalRecords(Records):
    """The table `source` says what was counted; the table `record` stays empty."""

    holds_rows = False

    def count(self, session: Session) -> int:
        """By the statistics."""
        return count_in_decisions(statements.stream(session, DecisionRow))

    def look_up(self, transaction: Transaction, target: ErasureTarget, *, exactly: bool) -> Findings:
        """Look the people, or the ids, of a request up at the sources; with `exactly` no other spellings."""
        state, sources = transaction.state, checked_sources(transaction)
        if not sources:
            raise VaultError(
                "the vault has counted no source yet, and so no rows: that nothing is held of somebody cannot"
                " be told before armnesia ingest; nothing was changed"
            )
        counter = SourceCounter(transaction.session, transaction.keyring, state)
        by_user = target.kind == "user"
        found = counter.find(sources, Chosen(target.names) if by_user else Chosen((), target.names))
        one_spelling = by_user and state.configuration.user_type is UserType.INTEGER
        missing = set(target.names) - found.names
        if exactly or one_spelling or not missing:
            return found
        likely = {spelling for name in missing for spelling in likely_spellings(name)} - {*target.names}
        return counter.with_likely(found, Chosen(likely) if by_user else Chosen((), likely))

    def find(self, transaction: Transaction, target: ErasureTarget, lookup: Findings | None) -> DecisionSums:
        """What the rows at the sources add up to, in the decisions of the vault, for a preview."""
        assert lookup is not None
        if changes_of(transaction, transaction.state, lookup):
            changed = next(each for each in lookup.before if each.version is None or each not in lookup.after)
            raise OutdatedSourceError(
                f"source {changed.name!r} has changed since it was counted, and a preview writes nothing:"
                f" first run {changed.ingest_command} ; a request itself counts again what has changed",
                changed.id,
            )
        return self._found(transaction, lookup)

    def _found(self, transaction: Transaction, lookup: Findings) -> DecisionSums:
        """The sums of a request by the numbers of decisions; refuse rows that these cannot contain."""
        sums: dict[int, list[tuple[int, int, int, bool]]] = {}
        for (number, arm), own in lookup.of_request.items():
            sums.setdefault(number, []).append((arm, *own))
        known = {row.number for row in statements.read(transaction.session, DecisionRow, number=list(sums))}
        decisions = read_decisions(transaction, known)
        possible = {each.number for each in decisions if _may_contain(each, sums[each.number])}
        if possible != sums.keys():
            raise VaultError(
                "the sources have more rows of this request than the vault has counted: they have changed"
                " since, in a way that cannot be told from outside; nothing was changed: run armnesia"
                " restore, which counts all sources again"
            )
        return sums

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: Findings | None
    ) -> DeletedRecords:
        """Store what has changed at the sources, and that rows are to be erased there, if any were or not."""
        assert lookup is not None
        marked = [replace(each, to_erase=True) for each in lookup.after]
        put_findings(transaction, replace(lookup, after=marked))
        held = self.held(transaction, target, target.row_keys(transaction.keyring), lookup)
        return DeletedRecords(self._found(transaction, lookup), [], held)

    def held(
        self,
        transaction: Transaction,
        target: ErasureTarget,
        keys: Iterable[bytes],
        lookup: Findings | None,
    ) -> set[bytes]:
        """What the lookup found; people who are forgotten have no rows here."""
        if lookup is None:
            return set()
        held = replace(target, names=tuple(lookup.names))
        return set(held.row_keys(transaction.keyring)).intersection(keys)

    def problems(
        self,
        session: Session,
        state: State,
        keyring: Keyring,
        scan: RecordScan,
        decisions: Iterable[VaultDecision],
        counter: RowCounter,
    ) -> tuple[list[str], list[str]]:
        """Count the sources again, if none has changed, and compare the statistics."""
        problems, notes, opened = list[str](), list[str](), dict[int, Source]()
        sources = read_sources(session) if state.configuration.actions is not None else []
        for each in sources:
            try:
                source = opened[each.number] = each.opened(state.configuration)
            except ArmnesiaError as error:
                problems.append(str(error))
                continue
            if version_of(source) != each.version:
                why = (
                    ", because people were readmitted"
                    if each.version == OUTDATED
                    else " since it was counted"
                )
                told = f"source {each.name!r} has changed{why}: run {each.ingest_command}"
                (notes if _may_have_changed(each, source) else problems).append(told)
        if problems or notes or not sources:
            return problems, notes
        try:
            found = SourceCounter(session, keyring, state).find(
                sources, opened=opened, because="they are verified", counter=counter
            )
        except ArmnesiaError as error:
            return [str(error)], notes
        notes += [
            f"source {each.name!r} still has rows of forgotten people or records"
            f" ({own.n_left_out}): armnesia erase deletes them, in a vault that may"
            for each in sources
            if (own := found.counted[each.number]).n_left_out
        ]
        sums = {place: own[:2] for place, own in found.sums.items()}
        problems = statistics_problems(decisions, state, sums, "the sources' rows")
        return problems + ["run armnesia restore, which counts all sources again"] * bool(problems), notes

    def recount(
        self,
        transaction: Transaction,
        scan: RecordScan,
        decisions: Sequence[VaultDecision] = (),
        counter: RowCounter | None = None,
    ) -> None:
        """Count every source again, in this transaction."""
        state, sources = transaction.state, read_sources(transaction.session)
        if state.configuration.actions is None:
            return
        # What something else has put there: the rows of such a vault are at its sources.
        transaction.note("record", statements.delete(transaction.session, RecordRow))
        counting = SourceCounter(transaction.session, transaction.keyring, state)
        found = counting.find(sources, because="all are counted again", counter=counter)
        if any(counting.suppressed.values()):  # who was forgotten since the copy was made may be there
            found = replace(found, after=[replace(each, to_erase=True) for each in found.after])
        put_findings(transaction, found)


def _may_contain(decision: VaultDecision, rows: Iterable[tuple[int, int, int, bool]]) -> bool:
    """Whether rows, per arm, can be among those of a decision."""
    held = decision.statistics
    return all(
        0 <= held.units[arm] - units <= (held.counts[arm] - count) * UNIT for arm, count, units, _ in rows
    )


def _may_have_changed(each: CountedSource, source: Source) -> bool:
    """Whether a change is no problem: the source has more rows, or a table has another version."""
    before, now = each.version or {}, version_of(source) or {}
    same_table = "table" in before and before["table"] == now.get("table")
    return each.version == OUTDATED or each.new_rows(source) is not None or same_table


def changes_of(
    transaction: Transaction, state: State, found: Findings
) -> list[tuple[VaultDecision, VaultDecision]]:
    """The decisions that differ by what was counted, before and after; the learner has not decided yet."""
    if not (found.counted or found.because):
        return []
    n_arms, rows = len(state.actions), dict[int, tuple[list[int], list[int]]]()
    for (number, arm), (count, units, _) in found.sums.items():
        counts, totals = rows.setdefault(number, ([0] * n_arms, [0] * n_arms))
        counts[arm], totals[arm] = count, units
    instead = found.because is not None
    return changed_decisions(transaction, state, found.numbers.new, rows, instead=instead)


def put_findings(transaction: Transaction, found: Findings, *, warns: bool = False) -> None:
    """Store what was counted at the sources.

    The learner decides again where statistics change; it `warns` where the counts decide.
    """
    changed = [after for _, after in changes_of(transaction, transaction.state, found)]
    put_decisions(transaction, decided(changed, transaction.state.configuration, warns=warns))
    put_sources(transaction, found.before, found.after)


def refuse_source(configuration: Configuration, source: Source) -> None:
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
        own = {name, configuration.columns.get(role), "user" if role == "user" else None}
        columns = {each.casefold() for each in own if each is not None}
        for condition in source.where:
            if condition.column.casefold() in columns:
                raise VaultError(
                    "an external vault stores the conditions of its sources, so they must not be on the"
                    f" {role} column; got one on {condition.column!r}"
                )


def count_new_rows(transaction: Transaction, source: Source, *, dry_run: bool) -> tuple[dict[str, Any], int]:
    """Store what is new at a source, and at all others: the counts, and how many decisions there are then."""
    state = transaction.state
    found = _new_rows(transaction, source)
    changes = changes_of(transaction, state, found)
    _refuse_retired_arms(state, changes)
    n_before = count_in_decisions(statements.stream(transaction.session, DecisionRow)) if found.because else 0
    if not dry_run:
        put_findings(transaction, found, warns=True)
    counts = {
        "rows": sum(own.n_rows for own in found.counted.values()),
        "added": found.n_counted - n_before,
        "already_there": 0,
        "suppressed": sum(own.n_left_out for own in found.counted.values()),
        "recounted_because": found.because,
    }
    return counts, max([state.n_decisions, *(after.number for _, after in changes)])


def _new_rows(transaction: Transaction, source: Source) -> Findings:
    """Count what is new at a source and at all others: rows may have moved here from one of them."""
    before, new, address = checked_sources(transaction), None, source.address()
    known = next((each for each in before if each.address == address), None)
    if known is None:
        number = max((each.number for each in before), default=0) + 1
        known = new = CountedSource(number, address, OUTDATED)
    counter = SourceCounter(transaction.session, transaction.keyring, transaction.state)
    found = counter.find(before, new=new, opened={known.number: source})
    if new is not None and source.where and not found.counted[new.number].n_rows:
        raise empty_log(source.where)
    return found


def _refuse_retired_arms(state: State, changes: Sequence[tuple[VaultDecision, VaultDecision]]) -> None:
    """Refuse rows of arms that their decision refuses, where there are more of them than before."""
    configuration = state.configuration
    if not any(rule.new_rows == "refuse" for rule in configuration.arms):
        return
    for old, new in changes:
        for arm in sorted(configuration.refuses(new.key)):
            if new.statistics.counts[arm] > old.statistics.counts[arm]:
                raise refused_arm(configuration, new.key, state.actions[arm], None)
