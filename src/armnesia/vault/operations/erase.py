"""Erasing at the sources: rows of forgotten people are deleted where an external vault has counted others.

For each source a plan is made and stored, then applied; then one transaction stores what was counted as it is
now, with a ledger entry, and removes the plan. Killed in between, the next run finds the plan: if the source
is still as it was counted, it plans again, and otherwise it finishes what was begun. The statistics do not
change: forgotten people are not counted. Each time the other rows are counted again, and compared.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from armnesia.core.errors import (
    ArmnesiaError,
    ChangedSourceError,
    InvalidInputError,
    MissingExtraError,
    OutdatedSourceError,
    UnfinishedError,
    UnsupportedError,
    VaultBusyError,
    VaultError,
)
from armnesia.core.messages import system_failure
from armnesia.logs import Source
from armnesia.logs.counting import Sums
from armnesia.logs.erasing import Erasure, ErasurePlan, People, SourceState, open_eraser
from armnesia.logs.erasing.eraser import SourceEraser
from armnesia.logs.manifests import Changes
from armnesia.logs.tables.sqlite import roll_back_interrupted_write
from armnesia.vault.configuration import Configuration
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.source_claim import ERASURE, weakest
from armnesia.vault.results.sources import ErasurePreview, RowsAtSource, SourceErasures
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import CountedSource, checked_sources, put_sources
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.kept_plans import KeptPlans
from armnesia.vault.state.source_counting import SourceCounter, added_up
from armnesia.vault.state.source_erasures import (
    check_may_erase,
    dropped_unerased,
    last_erasures,
    read_erasures,
    requests_answered,
    source_statuses,
)
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.storage import tables

with suppress(ImportError):  # absent on Windows
    import fcntl

_REWRITTEN = {"FileSource": "Parquet files", "DeltaSource": "Delta tables", "IcebergSource": "Iceberg tables"}
"""The classes of sources whose files are written again, by an extra that reading them does not need."""
_NAMES_NOBODY = "the source has no column by which forgotten people or records could be found in it"


def source_erasures(connection: VaultConnection) -> SourceErasures:
    """How far rows of forgotten people are erased at each source, and what is due."""
    with connection.reading() as transaction:
        configuration = transaction.state.configuration
        sources: list[CountedSource] = []
        if not connection.records.layout.holds_rows:
            sources = checked_sources(transaction.session, transaction.keyring, transaction.state.digests)
        found, dropped = source_statuses(transaction, sources), dropped_unerased(transaction, sources)
        return SourceErasures(configuration.may_erase_at_source, found, transaction.state.head, dropped)


def check_erasable(
    connection: VaultConnection, target: ErasureTarget, *, purge: bool, ignore_retention: bool
) -> None:
    """Refuse, before anybody is forgotten, what could not be erased at the sources afterwards."""
    configuration, sources = _erasable_sources(connection, purge=purge, ignore_retention=ignore_retention)
    with connection.reading() as transaction:
        suppressed = SuppressionList.read(transaction).digests
    named = {"user": target.users or suppressed["user"], "id": target.records or suppressed["record"]}
    for each in sources:
        eraser = _checked_eraser(each, configuration, purge=purge)
        # Afterwards, what cannot be written again matters only in files with rows to be erased.
        eraser.check_rewritable()
        _check_names(each, eraser, (role for role, names in named.items() if names))


def _check_names(each: CountedSource, eraser: SourceEraser, roles: Iterable[str]) -> None:
    """Refuse a source with a column by which people or records are to be erased, and cannot be."""
    for role in roles:
        if each.address["columns"].get(role) is not None:
            eraser.check_named_by(role)


def _erasable_sources(
    connection: VaultConnection, *, purge: bool, ignore_retention: bool
) -> tuple[Configuration, list[CountedSource]]:
    """The sources of a vault that may erase at them; refuse others, and options that do not agree."""
    if ignore_retention and not purge:
        raise InvalidInputError("ignore_retention is about a purge, which was not asked for; give both")
    with connection.reading() as transaction:
        configuration = transaction.state.configuration
        check_may_erase(configuration)
        sources = checked_sources(transaction.session, transaction.keyring, transaction.state.digests)
    return configuration, sources


def _checked_eraser(
    each: CountedSource, configuration: Configuration, *, purge: bool, finish_writes: bool = True
) -> SourceEraser:
    """Open an eraser; refuse a source where rows could not be erased, or files that hold them not be removed.

    With `finish_writes`, a write that was cut short, as of an erasure that was killed, is rolled back first:
    SQLite does not read the file before.
    """
    if finish_writes:
        roll_back_interrupted_write(str(each.address["location"]))
    eraser = _eraser_of(_reopened(each, configuration))
    with suppress(ChangedSourceError):  # which is refused where it matters, or finished
        _refuse_uncounted(each, each.reopened_counted(configuration)[1])
    if purge:
        eraser.with_removals(eraser.empty_plan())
    return eraser


def erase_at_sources(
    connection: VaultConnection, *, purge: bool = False, ignore_retention: bool = False
) -> SourceErasures:
    """Delete the rows of everybody who is forgotten, at all sources, and purge what still holds them.

    A source where that is not possible does not keep others from it; why it was not is raised at the end.
    """
    configuration, sources = _erasable_sources(connection, purge=purge, ignore_retention=ignore_retention)
    failures: list[ArmnesiaError] = []
    with _alone(connection):
        for each in sources:  # before any is touched
            with suppress(UnsupportedError):  # of one source alone
                _checked_eraser(each, configuration, purge=False)
        run = _Run.begin(connection)
        run.count_before()
        for number in run.order():
            try:
                run.erase(number)
                if purge:
                    run.purge(number, ignore_retention=ignore_retention)
            except (InvalidInputError, UnsupportedError, UnfinishedError) as error:
                failures.append(error)
                if number not in run.sums:
                    break  # without its rows it cannot be told whether the others add up
    if failures:
        raise _told_together(failures)
    return replace(source_erasures(connection), deleted=tuple(run.deleted))


def _told_together(failures: Sequence[ArmnesiaError]) -> ArmnesiaError:
    """Why some sources could not be erased from, in one error."""
    if len(failures) == 1:
        return failures[0]
    return UnfinishedError("; ".join(dict.fromkeys(map(str, failures))))


def preview_erasure(connection: VaultConnection) -> ErasurePreview:
    """Count the rows of everybody who is forgotten at each source as it is now, and the files with them."""
    configuration, sources = _erasable_sources(connection, purge=False, ignore_retention=False)
    run = _Run.begin(connection)
    for each in sources:
        eraser = _checked_eraser(each, configuration, purge=False, finish_writes=False)
        _check_names(each, eraser, run.people)
    return ErasurePreview(tuple(map(run.rows_to_delete, run.sources.values())))


@contextmanager
def _alone(connection: VaultConnection) -> Iterator[None]:
    """Refuse to run beside another erasure of this vault, where the system has locks."""
    path = connection.keys_path.with_name(connection.keys_path.name + ".erasing")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise VaultError(f"the file {str(path)!r} cannot be made: {error.strerror}") from None
    try:
        if "fcntl" in globals():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise VaultBusyError(
                    "another process erases rows at the sources of this vault: wait until it is done"
                ) from None
        yield
    finally:
        os.close(descriptor)


def _reopened(each: CountedSource, configuration: Configuration) -> Source:
    if not configuration.plain_decimals:
        raise VaultError(
            "this vault reads decimals as they are written, as the vault that it succeeds, and cannot erase"
            " rows at their sources by such names; nothing was changed"
        )
    return each.reopened(configuration)


def _eraser_of(source: Source) -> SourceEraser:
    eraser, kind = open_eraser(source), _REWRITTEN.get(type(source).__name__)
    if kind is not None and find_spec("pyarrow") is None:
        raise MissingExtraError.naming(f"Erasing rows of {kind}", "erase")
    return eraser


def _refuse_uncounted(each: CountedSource, has_more: bool) -> None:
    """Refuse rows that are not counted, if nothing tells them from those that were after an erasure."""
    if has_more and each.counted is not None and not each.counted.manifest.names_its_rows:
        raise OutdatedSourceError(
            f"source {each.name!r} has rows that are not counted yet; nothing was changed; to count them"
            f" first, run {each.ingest_command}",
            each.number,
        )


@dataclass
class _Run:
    """One run over all sources, by what the vault had at its beginning."""

    connection: VaultConnection
    counter: SourceCounter
    people: Mapping[str, People]
    """Everybody who is forgotten, by the column that names them."""
    through: int
    """The last ledger entry when it was read who they are."""
    total: Sums
    """What all sources must add up to."""
    sources: dict[int, CountedSource]
    last: dict[int, Mapping[str, Any]]
    """The last ledger entry of each source."""
    requests: Sequence[int]
    sums: dict[int, Sums]
    """What each source adds up to, if it is as it was counted."""
    left_out: dict[int, int] = field(default_factory=dict)
    """How many rows of forgotten people each of these sources had at the beginning."""
    deleted: list[RowsAtSource] = field(default_factory=list)

    @classmethod
    def begin(cls, connection: VaultConnection) -> "_Run":
        """Read the sources and who is forgotten, in one transaction."""
        with connection.reading() as transaction:
            session, state = transaction.session, transaction.state
            sources = checked_sources(session, transaction.keyring, state.digests)
            suppressed = SuppressionList.read(transaction).digests
            counter = SourceCounter.of(state.configuration, transaction.keyring, suppressed)
            decisions = map(VaultDecision.of_row, tables.stream_decisions(session))
            return cls(
                connection,
                counter,
                _people(counter),
                state.head.sequence,
                _sums_of(decisions),
                {each.number: each for each in sources},
                last_erasures(read_erasures(session, state.configuration)),
                requests_answered(session),
                {},
            )

    def rows_to_delete(self, each: CountedSource) -> RowsAtSource:
        """How many rows of forgotten people a source has, and how many of its files have some."""
        source = each.reopened(self.counter.configuration)
        manifest = source.manifest()
        if manifest.files_by_name is None:
            return RowsAtSource(each.number, each.name, self._n_forgotten(source), None)
        parts = (source.new_part(manifest, Changes((path,))) for path in manifest.files_by_name)
        found = [n for n in map(self._n_forgotten, parts) if n]
        return RowsAtSource(each.number, each.name, sum(found), len(found))

    def _n_forgotten(self, source: Source) -> int:
        return self.counter.count(source, checked_before=True).n_left_out

    def order(self) -> list[int]:
        """The sources; first the one whose erasure was interrupted."""
        return sorted(self.sources, key=lambda number: (number in self.sums, number))

    def count_before(self) -> None:
        """Count every source; refuse sources that are not as they were counted, before any is touched."""
        begun = []
        for number, each in self.sources.items():
            try:
                part, has_more = each.reopened_counted(self.counter.configuration)
            except ChangedSourceError as error:
                if each.counted is None or not each.plans.under_way:
                    raise replace(each, plans=KeptPlans()).outdated(error) from None
                begun.append(each)
                continue
            _refuse_uncounted(each, has_more)
            with each.being_read():
                counted = self.counter.count(part, checked_before=True)
            self.sums[number], self.left_out[number] = counted.sums, counted.n_left_out
            if has_more or each.has_new_files():  # rows are erased there as well
                self.left_out[number] = self._n_forgotten(each.reopened(self.counter.configuration))
        if len(begun) > 1 or not (begun or self._adds_up()):
            raise VaultError(
                "the sources do not add up to the statistics of the vault: run armnesia ingest for each"
                " source that has changed, or armnesia rebuild; nothing was changed"
            )

    def _adds_up(self) -> bool:
        found = added_up(self.sums.values())
        return {place: own for place, own in found.items() if own != (0, 0)} == self.total

    def erase(self, number: int) -> None:
        """Delete rows at one source, and note in the ledger how far that went."""
        outcomes: list[Erasure] = []
        files: set[str] = set()
        is_due, roles = self._is_due(number), self._roles(number)
        was_begun = bool(self._plans(number).under_way)
        for role in roles:
            eraser = _eraser_of(_reopened(self.sources[number], self.counter.configuration))
            begun = role in self.sources[number].plans.under_way
            plan, has_rows = self._plan(number, role, eraser, is_due=is_due)
            if not (begun or has_rows or is_due or (outcomes and role == roles[-1])):
                continue  # the ledger says already that there are no such rows
            with self._saying_what_is_left(number):
                outcomes.append(eraser.apply(plan, self.people[role]))
                kept = plan
                if begun and not has_rows:
                    # Others may have been forgotten since it was begun, whose rows it has not deleted.
                    kept = replace(eraser.empty_plan(), removals=plan.removals)
                    outcomes.append(eraser.apply(kept, self.people[role]))
                files |= plan.replaced.keys()
                facts = self._facts(number, outcomes) if role == roles[-1] else None
                self._record(
                    number, plan, self._plans(number).done(role, None if plan.files else kept), facts
                )
        if is_due and not roles:
            facts = self._facts(number, [Erasure(SourceState.PURGED, remains=(_NAMES_NOBODY,))])
            self._put(self.sources[number], facts)
        rows = self.left_out.get(number)
        if rows or (rows is None and was_begun):
            name = self.sources[number].name
            self.deleted.append(RowsAtSource(number, name, rows, len(files) or None))

    def purge(self, number: int, *, ignore_retention: bool) -> None:
        """Remove what still holds rows at one source."""
        last, roles = self.last.get(number), self._roles(number)
        # A log may still name people when the files with their rows are gone.
        more = ignore_retention and self._plans(number).applied
        if last is None or (last["state"] == SourceState.PURGED and not more):
            return
        outcomes: list[Erasure] = []
        for role in roles:
            each = self.sources[number]
            eraser = _eraser_of(_reopened(each, self.counter.configuration))
            plan = eraser.with_removals(each.plans.applied.get(role) or eraser.empty_plan())
            self._put(replace(each, plans=each.plans.begun(role, plan)))
            with self._saying_what_is_left(number):
                outcomes.append(eraser.purge(plan, self.people[role], ignore_retention=ignore_retention))
                facts = self._new_facts(number, outcomes) if role == roles[-1] else None
                all_gone = ignore_retention and outcomes[-1].state is SourceState.PURGED
                self._record(number, plan, self._plans(number).done(role, None if all_gone else plan), facts)

    def _plans(self, number: int) -> KeptPlans:
        return self.sources[number].plans

    def _roles(self, number: int) -> list[str]:
        """The columns by which forgotten people are found at a source; first one whose plan is under way."""
        each = self.sources[number]
        columns = [role for role, name in each.address["columns"].items() if name is not None]
        roles = [role for role in self.people if role in columns]
        return sorted(roles, key=lambda role: role not in each.plans.under_way)

    def _plan(
        self, number: int, role: str, eraser: SourceEraser, *, is_due: bool
    ) -> tuple[ErasurePlan, bool]:
        """The plan that is to be applied; also, whether there are rows: then it is stored.

        A plan that was applied before tells nothing of people who were forgotten since.
        """
        each = self.sources[number]
        begun = each.plans.under_way.get(role)
        if begun is not None:
            if number not in self.sums:
                return begun, False  # rows are gone: it is finished as it was begun
            eraser.discard(begun)
        plan, before = eraser.plan(self.people[role]), begun or each.plans.applied.get(role)
        removals = () if before is None else before.removals
        if plan is None:
            known = before if begun or not is_due else None
            return replace(known or eraser.empty_plan(), files=(), removals=removals), False
        plan = replace(plan, removals=removals)
        try:
            self._put(replace(each, plans=each.plans.begun(role, plan)))
        except BaseException:
            eraser.discard(plan)
            raise
        return plan, True

    def _record(
        self, number: int, plan: ErasurePlan, plans: KeptPlans, facts: Mapping[str, Any] | None
    ) -> None:
        """Count the source as a plan has left it; store that, the plans to be kept, and a ledger entry."""
        each, configuration = self.sources[number], self.counter.configuration
        assert each.counted is not None  # it would have been refused
        manifest = each.reopened(configuration).manifest_after(each.counted.manifest, plan.replaced)
        left_out = each.counted.left_out and facts is None  # the last column says that no row is left
        now = replace(each, counted=replace(each.counted, manifest=manifest, left_out=left_out), plans=plans)
        part, _ = now.reopened_counted(configuration)
        self.sums[number] = self.counter.count(part, checked_before=True).sums
        if not self._adds_up():
            del self.sums[number]
            raise VaultError(f"source {each.name!r} has other rows than were counted")
        self._put(now, facts)

    def _put(self, now: CountedSource, facts: Mapping[str, Any] | None = None) -> None:
        """Store a source, with a ledger entry, unless something else has changed it in the vault."""
        known = self.sources[now.number]
        if now == known and facts is None:
            return
        with self.connection.writing() as transaction:
            state, keyring = transaction.state, transaction.keyring
            found = {
                each.number: each for each in checked_sources(transaction.session, keyring, state.digests)
            }
            if now.number not in found or found[now.number].stored != known.stored:
                raise VaultError(
                    f"source {known.name!r} was ingested or counted again meanwhile: run armnesia erase again"
                )
            digests, statements = put_sources([found[now.number]], [now], keyring, state.digests)
            transaction.add(*statements)
            if facts is not None:
                self.last[now.number] = transaction.append(ERASURE, **facts).fields
            transaction.store(state, digests=digests)
        changed = now != known
        self.sources[now.number] = replace(now, stored=now.row[1]) if changed else known

    def _facts(self, number: int, outcomes: Sequence[Erasure]) -> dict[str, Any]:
        """What the ledger says of a source: nobody's name, and no number of rows."""
        last = self.last.get(number)
        deletions = [each for each in outcomes if each.after is not None]
        versions = {"before": None, "after": None} if last is None else last
        if deletions:
            versions = {"before": deletions[0].before, "after": deletions[-1].after}
        state = weakest(str(each.state) for each in outcomes)
        dues = [each.due.isoformat() for each in outcomes if each.due is not None]
        if not dues and last is not None and last["due"] and state != SourceState.PURGED:
            dues.append(last["due"])  # what an earlier erasure has left is still there
        return {
            "source": number,
            "state": state,
            "before": versions["before"],
            "after": versions["after"],
            "remains": list(dict.fromkeys(sentence for each in outcomes for sentence in each.remains)),
            "due": max(dues, default=None),
            "through": self.through,
        }

    def _new_facts(self, number: int, outcomes: Sequence[Erasure]) -> dict[str, Any] | None:
        """The same; None if the ledger says so already."""
        facts, last = self._facts(number, outcomes), self.last[number]
        same = all(last[name] == value for name, value in facts.items() if name != "through")
        return None if same else facts

    def _is_due(self, number: int) -> bool:
        """Whether somebody was forgotten since the last erasure at a source."""
        through = self.last[number]["through"] if number in self.last else 0
        return any(request > through for request in self.requests)

    @contextmanager
    def _saying_what_is_left(self, number: int) -> Iterator[None]:
        """Say what to do about an erasure that cannot be finished."""
        try:
            yield
        except (ArmnesiaError, OSError) as error:
            source = self.sources[number]
            reason = system_failure(error) if isinstance(error, OSError) else str(error)
            raise UnfinishedError(
                f"{reason}; the erasure at source {source.name!r} is not finished: if something else has"
                f" changed the source, run {source.ingest_command}; then run armnesia erase"
            ) from None


def _people(counter: SourceCounter) -> dict[str, People]:
    """Everybody who is forgotten, recognised by keyed digest, by the column that names them."""
    found = {}
    if counter.suppressed["user"]:
        found["user"] = People.recognised_by(
            lambda labels: [label in known for known in [counter.forgotten_users(labels)] for label in labels]
        )
    if counter.suppressed["record"]:
        found["id"] = People.recognised_by(
            lambda labels: [label in known for known in [counter.forgotten_ids(labels)] for label in labels],
            role="id",
        )
    return found


def _sums_of(decisions: Iterator[VaultDecision]) -> dict[tuple[tuple[str, ...], int], tuple[int, int]]:
    """What the vault has counted, by key and arm."""
    return {
        (each.key, arm): (count, units)
        for each in decisions
        for arm, (count, units) in enumerate(zip(each.statistics.counts, each.statistics.units, strict=True))
        if (count, units) != (0, 0)
    }
