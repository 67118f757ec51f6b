"""How a vault keeps its records: in its own table, or (`ExternalRecords`) at the sources they come from."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import counted
from armnesia.core.progress import RowCounter
from armnesia.core.units import UNIT
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import RecordRow
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.check_sums import CheckSums, compute_check_sums
from armnesia.vault.state.decision_table import put_decisions
from armnesia.vault.state.decisions import VaultDecision, decided, in_decision
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import Suppressed
from armnesia.vault.state.transaction import Transaction

if TYPE_CHECKING:
    from armnesia.vault.state.source_counting import Findings

_MOST_PROBLEMS = 20
_AT_ONCE = 10_000
"""Deleted records that are in memory at the same time."""

DecisionSums: TypeAlias = Mapping[int, list[tuple[int, int, int, bool]]]
"""By the number of a decision, what records add up to: (arm, count, units, whether all are 0 or 1)."""


class DeletedRecords(NamedTuple):
    """The rows of a request that were deleted."""

    sums: DecisionSums
    """What they add up to; empty if there were none."""
    rows: list[RecordRow]
    held: set[bytes]
    """The row keys of those names of the request that had records."""


@dataclass(frozen=True)
class RecordScan:
    """What one pass over all tables found."""

    check_sums: CheckSums
    sums: Mapping[tuple[int, int], Sequence[int]] = field(default_factory=dict)
    """Per decision and arm, the count and the units of the records that may be here; empty if external."""
    forgotten: tuple[bytes, ...] = ()
    """The identities of records that belong to forgotten people, or were forgotten themselves."""


class Records:
    """The records of a vault that holds the rows itself, with a digest of the user: a managed vault.

    `lookup` is None here: an external vault has in it what it has found at its sources.
    """

    holds_rows: ClassVar[bool] = True

    def count(self, session: Session) -> int:
        """How many records there are."""
        return statements.count(session, RecordRow)

    def look_up(self, transaction: Transaction, target: ErasureTarget, *, exactly: bool) -> "Findings | None":
        """Look a request up where the rows are, if that is not in the vault."""
        return None

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: "Findings | None"
    ) -> DecisionSums:
        """Add up the records of a request, which is spelled as the vault does; empty if there are none."""
        keys = target.row_keys(transaction.keyring)
        return _summed(statements.read(transaction.session, RecordRow, **{target.row_column: keys}))

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: "Findings | None"
    ) -> DeletedRecords:
        """Delete the records of a request, and add them up."""
        keys = target.row_keys(transaction.keyring)
        rows = statements.delete(transaction.session, RecordRow, **{target.row_column: keys})
        return DeletedRecords(
            _summed(rows), rows, {bytes(getattr(row, target.row_column) or b"") for row in rows}
        )

    def held(
        self,
        transaction: Transaction,
        target: ErasureTarget,
        keys: Sequence[bytes],
        lookup: "Findings | None",
    ) -> set[bytes]:
        """Which of these row keys, of names of the same kind as those of a request, have records."""
        return statements.values_of_records(transaction.session, target.row_column, keys)

    def scan(
        self,
        session: Session,
        keyring: Keyring,
        suppressed: Suppressed,
        *,
        counter: RowCounter | None = None,
    ) -> RecordScan:
        """Read all tables once: check-sums, the sums of records that may be here, and those that may not."""
        sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        forgotten: list[bytes] = []
        users, records = suppressed["user"], suppressed["record"]

        def observe(rows: Iterable[RecordRow]) -> Iterator[RecordRow]:
            for row in rows:
                identity, owner, arm, units, decision = row
                if owner in users or identity in records:
                    forgotten.append(bytes(identity))
                else:
                    own = sums[decision, arm]
                    own[0] += 1
                    own[1] += units
                yield row

        check_sums = compute_check_sums(session, keyring, counter=counter, observe=observe)
        return RecordScan(check_sums, sums, tuple(forgotten))

    def problems(
        self,
        session: Session,
        state: State,
        keyring: Keyring,
        scan: RecordScan,
        decisions: Iterable[VaultDecision],
        counter: RowCounter,
    ) -> tuple[list[str], list[str]]:
        """Compare the records with the statistics of all decisions: problems, and notes."""
        problems = statistics_problems(decisions, state, scan.sums, "the vault's rows")
        if scan.forgotten:
            kinds = ("row of forgotten people or records is", "rows of forgotten people or records are")
            problems.append(f"records: {counted(len(scan.forgotten), *kinds)} present")
        return problems, []

    def recount(
        self,
        transaction: Transaction,
        scan: RecordScan,
        decisions: Sequence[VaultDecision] = (),
        counter: RowCounter | None = None,
    ) -> None:
        """Delete the records of forgotten people, and take the statistics from the scan.

        `decisions` are all decisions of the vault, by their numbers. A decision whose statistics stay the
        same keeps its served arm.
        """
        configuration, n_arms = transaction.state.configuration, len(transaction.state.actions)
        for start in range(0, len(scan.forgotten), _AT_ONCE):
            some = scan.forgotten[start : start + _AT_ONCE]
            deleted = statements.delete(transaction.session, RecordRow, identity=some)
            transaction.note("record", deleted)
        left, counted_again = dict(scan.sums), []
        for each in decisions:  # what was deleted before stays
            own = [left.pop((each.number, arm), (0, 0)) for arm in range(n_arms)]
            counts, units = zip(*own, strict=True)
            statistics = replace(each.statistics, counts=counts, units=units)
            if statistics != each.statistics:
                counted_again.append(replace(each, statistics=statistics))
        try:
            again = decided(counted_again, configuration)
        except InvalidInputError:  # sums that no records can have
            left[0, 0] = (0, 0)
        if left:
            raise VaultError(
                "the vault has rows that no ingest stored, with arms or rewards that do not exist: restore a"
                " backup"
            )
        put_decisions(transaction, again)


def may_be_without_user(session: Session, lookup: "Findings | None") -> bool:
    """Whether there may be rows without a user."""
    if lookup is None:
        return statements.exists(session, RecordRow, owner=None)
    return any(
        "user" not in source.columns.named() or bool(source.first_wrong("user"))
        for source in lookup.opened.values()
    )


def _summed(rows: Iterable[RecordRow]) -> DecisionSums:
    """What records add up to."""
    sums: defaultdict[int, dict[int, tuple[int, int, bool]]] = defaultdict(dict)
    for row in rows:
        number, units, binary = sums[row.decision].get(row.arm, (0, 0, True))
        sums[row.decision][row.arm] = number + 1, units + row.units, binary and row.units in (0, UNIT)
    return {decision: [(arm, *own) for arm, own in arms.items()] for decision, arms in sums.items()}


def refuse_returned(held: Collection[bytes]) -> None:
    """Refuse to certify again what was done while rows of the request are in the vault again."""
    if held:
        raise VaultError(
            "rows of a person or record forgotten by this request are in the vault again, put there by"
            " something other than armnesia: run armnesia verify, and armnesia restore --as-it-is to remove"
            " them"
        )


def statistics_problems(
    decisions: Iterable[VaultDecision],
    state: State,
    found: Mapping[tuple[int, int], Sequence[int]],
    source: str,
) -> list[str]:
    """Where the statistics differ from the sums of the records, (count, units) per decision and arm."""
    problems: list[str] = []
    left = {place: tuple(sums) for place, sums in found.items()}
    for decision in decisions:
        of_key = in_decision(state.configuration, decision.key)
        for arm, own in enumerate(zip(decision.statistics.counts, decision.statistics.units, strict=True)):
            records, units = left.pop((decision.number, arm), (0, 0))
            if own != (records, units):
                problems.append(
                    f"statistics of action {canonical(state.actions[arm])}{of_key}: the vault has {own[0]}"
                    f" records with reward units {own[1]}, {source} give {records} with {units}"
                )
    if len(problems) > _MOST_PROBLEMS:
        more = f"statistics: {len(problems) - _MOST_PROBLEMS} more differences of the same kind"
        problems = [*problems[:_MOST_PROBLEMS], more]
    unknown = [place for place, sums in left.items() if sums != (0, 0)]
    if unknown:
        problems.append(f"records: rows of {len(unknown)} arms that the vault does not have")
    return problems
