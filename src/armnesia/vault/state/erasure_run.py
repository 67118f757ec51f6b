"""One run of erasures over all sources of an external vault: what is counted, planned, done and recorded.

For each source a plan is made and stored, then applied; then one transaction stores what was counted as it is
now, with a ledger entry, and removes the plan. Killed in between, the next run finds the plan: if the source
is still as it was counted, it plans again, and otherwise it finishes what was begun. The statistics do not
change: forgotten people are not counted. Each time the other rows are counted again, and compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from armnesia.core.errors import (
    ArmnesiaError,
    ChangedSourceError,
    MissingExtraError,
    OutdatedSourceError,
    PartlyErasedError,
    UnfinishedError,
    VaultError,
)
from armnesia.core.messages import system_failure, without_unchanged
from armnesia.logs import Source
from armnesia.logs.counting import Sums
from armnesia.logs.erasing import Erasure, ErasurePlan, People, SourceState, open_eraser
from armnesia.logs.erasing.eraser import SourceEraser
from armnesia.logs.manifests import Changes
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.source_claim import ERASURE, weakest
from armnesia.vault.results.sources import RowsAtSource, SourceErasures
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import CountedSource, checked_sources, put_sources
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.kept_plans import KeptPlans
from armnesia.vault.state.source_counting import SourceCounter, added_up
from armnesia.vault.state.source_erasures import last_erasures, read_erasures, requests_answered
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.storage import tables

_REWRITTEN = {"FileSource": "Parquet files", "DeltaSource": "Delta tables", "IcebergSource": "Iceberg tables"}
"""The classes of sources whose files are written again, by an extra that reading them does not need."""
_NAMES_NOBODY = (
    "the source has no column by which forgotten {} could be found in it, and none were looked for"
)
_FORGOTTEN = {"user": "people", "id": "records"}


def open_eraser_of(each: CountedSource, configuration: Configuration) -> SourceEraser:
    """Open an eraser of a source; refuse one where rows cannot be erased, or not by what is installed."""
    if not configuration.plain_decimals:
        raise VaultError(
            "this vault reads decimals as they are written, as the vault that it succeeds, and cannot erase"
            " rows at their sources by such names; nothing was changed"
        )
    source = each.reopened(configuration)
    eraser, kind = open_eraser(source), _REWRITTEN.get(type(source).__name__)
    if kind is not None and find_spec("pyarrow") is None:
        raise MissingExtraError.naming(f"Erasing rows of {kind}", "erase")
    return eraser


def refuse_uncounted(each: CountedSource, has_more: bool) -> None:
    """Refuse rows that are not counted, if nothing tells them from those that were after an erasure."""
    if has_more and each.counted is not None and not each.counted.manifest.names_its_rows:
        raise OutdatedSourceError(
            f"source {each.name!r} has rows that are not counted yet; nothing was changed; to count them"
            f" first, run {each.ingest_command}",
            each.number,
        )


@dataclass
class ErasureRun:
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
    sums: dict[int, Sums] = field(default_factory=dict)
    """What each source adds up to, if it is as it was counted, before rows are erased there and after."""
    left_alone: dict[int, ArmnesiaError | OSError] = field(default_factory=dict)
    """Sources that could not be counted, or are not as they were counted, and why."""
    left_out: dict[int, int] = field(default_factory=dict)
    """How many rows of forgotten people each of these sources had at the beginning."""
    deleted: list[RowsAtSource] = field(default_factory=list)

    @classmethod
    def begin(cls, connection: VaultConnection) -> "ErasureRun":
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
        """Count every source, before any is touched; leave those alone that are not as they were counted."""
        begun = []
        for number, each in self.sources.items():
            try:
                self._count_before(each)
            except ChangedSourceError as error:
                if each.counted is not None and each.plans.under_way:
                    begun.append(each)
                else:
                    self.left_alone[number] = replace(each, plans=KeptPlans()).outdated(error)
            except (ArmnesiaError, OSError) as error:
                self.left_alone[number] = error
        if len(begun) > 1 or not (begun or self.left_alone or self._adds_up()):
            raise VaultError(
                "the sources do not add up to the statistics of the vault: run armnesia ingest for each"
                " source that has changed, or armnesia rebuild; nothing was changed"
            )

    def _count_before(self, each: CountedSource) -> None:
        part, has_more = each.reopened_counted(self.counter.configuration)
        refuse_uncounted(each, has_more)
        with each.being_read():
            counted = self.counter.count(part, checked_before=True)
        self.sums[each.number], self.left_out[each.number] = counted.sums, counted.n_left_out
        if has_more or each.has_new_files():  # rows are erased there as well
            self.left_out[each.number] = self._n_forgotten(each.reopened(self.counter.configuration))

    def _adds_up(self) -> bool:
        """Whether all sources together have the rows that the vault has counted."""
        if len(self.sums) < len(self.sources):
            return False
        found = added_up(self.sums.values())
        return {place: own for place, own in found.items() if own != (0, 0)} == self.total

    def combined(
        self, failures: Mapping[int, ArmnesiaError | OSError], found: SourceErasures
    ) -> ArmnesiaError:
        """Why rows of some sources could not be erased, in one error that names them."""
        (first, *others) = failures.values()
        if found.head.sequence == self.through and not others and isinstance(first, ArmnesiaError):
            return first  # nothing at all was changed
        reasons = [self._reason(number, error) for number, error in failures.items()]
        return PartlyErasedError("; ".join(reasons), found)

    def _reason(self, number: int, error: ArmnesiaError | OSError) -> str:
        name = self.sources[number].name
        reason = system_failure(error) if isinstance(error, OSError) else str(error)
        reason = without_unchanged(reason)  # that is true of this source only
        return reason if name in reason else f"source {name!r}: {reason}"

    def erase(self, number: int) -> None:
        """Delete rows at one source by each column that names people; note in the ledger how far that went.

        What an interrupted run has begun is finished first. Where there is nothing to do, nothing is noted;
        otherwise what is noted is true of all columns, also of those in which nobody was found.
        """
        if number in self.left_alone:
            raise self.left_alone[number]
        roles, was_begun = self._roles(number), bool(self._plans(number).under_way)
        is_due = self._is_due(number) or was_begun
        outcomes: list[Erasure] = []
        without_rows: list[tuple[str, ErasurePlan]] = []
        files: set[str] = set()
        for role in roles:
            finished = self._finish_begun(number, role)
            eraser = self._open_eraser(number)
            plan, has_rows = self._plan(number, role, eraser, is_due=is_due)
            if not (has_rows or is_due or outcomes):
                without_rows.append((role, plan))
                continue
            with self._saying_what_is_left(number):
                outcomes.append(eraser.apply(plan, self.people[role]))
                if finished is not None and not has_rows:  # it says which versions it made
                    outcomes.append(eraser.apply(finished, self.people[role]))
                for own in filter(None, (plan, finished)):
                    files |= own.replaced.keys()
                facts = None
                if role == roles[-1]:
                    outcomes += [
                        self._open_eraser(number).apply(own, self.people[at]) for at, own in without_rows
                    ]
                    facts = self._facts(number, outcomes)
                self._record(
                    number, plan, self._plans(number).done(role, None if plan.files else plan), facts
                )
        if is_due and not roles:
            self._put(self.sources[number], self._facts(number, [Erasure(SourceState.PURGED)]))
        rows = self.left_out.get(number)
        if rows or (rows is None and was_begun):
            name = self.sources[number].name
            self.deleted.append(RowsAtSource(number, name, rows, len(files) or None))

    def _open_eraser(self, number: int) -> SourceEraser:
        return open_eraser_of(self.sources[number], self.counter.configuration)

    def _finish_begun(self, number: int, role: str) -> ErasurePlan | None:
        """Finish the plan of an interrupted run, if rows are gone by it already; it is kept as applied."""
        plan = self._plans(number).under_way.get(role)
        if plan is None or number in self.sums:
            return None
        if self.left_alone:
            raise VaultError(
                f"the erasure at source {self.sources[number].name!r} cannot be finished before all other"
                " sources can be read and are as they were counted: whether their rows add up tells whether"
                " it was done"
            )
        with self._saying_what_is_left(number):
            self._open_eraser(number).finish(plan, self.people[role])
            self._record(number, plan, self._plans(number).done(role, None if plan.files else plan), None)
        return plan

    def purge(self, number: int, *, ignore_retention: bool) -> None:
        """Remove what still holds rows at one source, also what came there after it was purged."""
        last, roles = self.last.get(number), self._roles(number)
        # A log may still name people when the files with their rows are gone.
        more = ignore_retention and self._plans(number).applied
        if last is None:
            return
        has_looked = last["sequence"] > self.through  # this run has erased rows there, and looked at the rest
        if last["state"] == SourceState.PURGED and not more and (has_looked or self._is_clean(number)):
            return
        outcomes: list[Erasure] = []
        for role in roles:
            each = self.sources[number]
            eraser = self._open_eraser(number)
            plan = eraser.with_removals(each.plans.applied.get(role) or eraser.empty_plan())
            self._put(replace(each, plans=each.plans.begun(role, plan)))
            with self._saying_what_is_left(number):
                outcomes.append(eraser.purge(plan, self.people[role], ignore_retention=ignore_retention))
                facts = self._new_facts(number, outcomes) if role == roles[-1] else None
                all_gone = ignore_retention and outcomes[-1].state is SourceState.PURGED
                self._record(number, plan, self._plans(number).done(role, None if all_gone else plan), facts)

    def _is_clean(self, number: int) -> bool:
        """Whether no file of a source holds forgotten people now, as far as can be told."""
        eraser = self._open_eraser(number)
        found = (eraser.apply(eraser.empty_plan(), self.people[role]) for role in self._roles(number))
        return all(erasure.state is SourceState.PURGED for erasure in found)

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
        if begun is not None:  # nothing was done by it
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
        before = self.sums.pop(number, None)
        after = self.counter.count(part, checked_before=True).sums
        if before is None:  # its erasure was begun before this run
            self.sums[number] = after
            is_same = self._adds_up()
        else:
            is_same = after == before
        if not is_same:
            self.sums.pop(number, None)
            raise VaultError(f"source {each.name!r} has other rows than were counted")
        self.sums[number] = after
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
        sentences = (sentence for each in outcomes for sentence in each.remains)
        dues = [each.due.isoformat() for each in outcomes if each.due is not None]
        if not dues and last is not None and last["due"] and state != SourceState.PURGED:
            dues.append(last["due"])  # what an earlier erasure has left is still there
        return {
            "source": number,
            "state": state,
            "before": versions["before"],
            "after": versions["after"],
            "remains": list(dict.fromkeys([*sentences, *self._not_looked_for(number)])),
            "due": max(dues, default=None),
            "through": self.through,
        }

    def _not_looked_for(self, number: int) -> list[str]:
        """Whose rows cannot be found at a source, because no column of it names them."""
        lacking = self.people.keys() - self._roles(number)
        return [_NAMES_NOBODY.format(_FORGOTTEN[role]) for role in sorted(lacking)]

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
