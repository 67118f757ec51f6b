"""What the operations of a vault return: frozen values, each with one form as JSON."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.unlearners import JointRelease, Release
from armnesia.unlearners.stream import Stream
from armnesia.vault.arm_rules import ArmRule, NewRows
from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.checkpoint import Checkpoint
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.result import Result, plain

SCREEN_ONLY = "For this screen only: together with the served arm, the probabilities reveal deleted rewards."
OPERATOR_ONLY = "For the operator only: published before and after a deletion, this reveals what was deleted."
"""What the operator is told not to publish."""


@dataclass(frozen=True)
class Served(Result):
    """The served arm, what chose it ("default", "learner", "release"), and the head of the ledger."""

    action: Any
    by: str
    head: Checkpoint
    key: Mapping[str, str] | None = None
    """The key of the decision, in a vault that has many."""
    stream: Stream | None = None
    """The records of the decision, if the operator asked for them."""

    @property
    def margin(self) -> float | None:
        """How far the best score is ahead of the second best, for the operator only; None if not asked for.

        Of one arm there is no margin, nor without records.
        """
        return None if self.stream is None else _margins(self.stream)[0]

    def to_dict(self) -> dict[str, Any]:
        """The keys `action`, `by` and `head`; `key` where there are many decisions; `margin` if asked for."""
        key = {} if self.key is None else {"key": dict(self.key)}
        margin = {} if self.stream is None else {"margin": self.margin}
        return {**key, "action": self.action, "by": self.by, **margin, "head": str(self.head)}


@dataclass(frozen=True)
class ServedDecisions(Result):
    """The served arms of decisions, all or some, in the order in which the decisions appeared."""

    by: tuple[str, ...]
    """The key columns."""
    keys: tuple[Mapping[str, str], ...]
    actions: tuple[Any, ...]
    chosen_by: tuple[str, ...]
    """What chose each arm: "default", "learner" or "release"."""
    head: Checkpoint
    stream: Stream | None = None
    """The records of these decisions, if the operator asked for them."""
    total: int = 0
    """How many decisions there are, also where some were asked for."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def margins(self) -> list[float | None] | None:
        """As `Served.margin`, of each decision; None if they were not asked for."""
        return None if self.stream is None else _margins(self.stream)

    def to_dict(self) -> dict[str, Any]:
        """The keys `by`, `head` and `decisions`, with `key`, `action`, `by` (and `margin`) of each."""
        each = zip(self.keys, self.actions, self.chosen_by, strict=True)
        decisions = [{"key": dict(key), "action": action, "by": by} for key, action, by in each]
        for decision, margin in zip(decisions, self.margins or (), strict=False):
            decision["margin"] = margin
        return {"by": list(self.by), "head": str(self.head), "decisions": decisions}


def _margins(stream: Stream) -> list[float | None]:
    decision = stream.decision()
    scores = np.sort(np.where(decision.no_data[:, None], -np.inf, decision.scores), axis=-1)
    if scores.shape[-1] < 2:
        return [None] * len(scores)
    best, second = scores[:, -1], scores[:, -2]
    known = np.isfinite(second) & np.isfinite(best)
    return [
        float(one - other) if is_known else None
        for one, other, is_known in zip(best, second, known, strict=True)
    ]


@dataclass(frozen=True)
class Ingested(Result):
    """What an ingest did with the rows of a source, or with `dry_run` would do: then nothing was written.

    `user_column` and `id_column` are the columns of the user and the id, None if the rows have none;
    `actions_fixed` are the actions, and `user_type_fixed` is how people are named, that this ingest fixed, if
    the vault had none declared.
    """

    rows: int
    added: int
    already_there: int
    suppressed: int
    served: Any
    head: Checkpoint
    user_column: str | None = None
    id_column: str | None = None
    actions_fixed: tuple[Hashable, ...] | None = None
    user_type_fixed: UserType | None = None
    dry_run: bool = False
    without_user: int | None = None
    """How many of the rows have no user: no request of a person finds them; None in an external vault."""
    decisions: int | None = None
    """How many decisions the vault has now; None in a vault without key columns."""
    replaced: int = 0
    """How many rows came in the place of a record with the same id."""
    recounted_because: str | None = None
    """In an external vault, why all sources were counted again; None if only new rows were counted.

    Then `added` is how many more records there are, which may be fewer than 0.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = ("without_user", "decisions", "recounted_because")


@dataclass(frozen=True)
class TouchedDecision(Result):
    """A decision that a request takes records from: for the operator, as all counts are.

    `served` is the arm that was released; None while nothing was drawn.
    """

    key: Mapping[str, str]
    counts: Mapping[Hashable, int]
    served_before: Any
    served: Any


@dataclass(frozen=True)
class ForgottenBefore(Result):
    """Those of a request who were forgotten before, by this entry."""

    entry: int
    time: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Answer(Result):
    """What a request did, or would do, for the operator: only certificates may be handed out.

    `held` is the number of people or records, of those `named`, that the vault had rows of. `counts` are the
    deleted records per action. `release` is the distribution of the served arm; None if nothing was held.
    """

    repeated: bool
    """Whether all of them were forgotten before."""
    named: int
    held: int
    counts: Mapping[Hashable, int]
    served_before: Any
    release: Release | JointRelease | None
    decisions: tuple[TouchedDecision, ...] | None = None
    """What happens in each decision that is touched; None in a vault without key columns."""
    decided_again: int | None = None
    """How many other decisions the learner decides again: they serve what an earlier request released, and
    the level conceals which decisions are touched; None in a vault without key columns."""
    fallback_because: str | None = None
    """Why exact rollback answers, and not the unlearner that was asked for; None if that one does."""
    may_be_without_user: bool = False
    """Whether some of the people had no rows, while the vault holds rows without a user."""
    not_held: tuple[str, ...] = ()
    """The names that had no rows, and were not forgotten before; in no ledger entry."""

    OPTIONAL: ClassVar[tuple[str, ...]] = ("decisions", "decided_again")
    DERIVED: ClassVar[tuple[str, ...]] = ("dry_run", "records")
    dry_run: ClassVar[bool]

    @property
    def records(self) -> int:
        """How many records are deleted."""
        return sum(self.counts.values())


@dataclass(frozen=True, kw_only=True)
class Forgotten(Answer):
    """What a request did; if it was `repeated`, `entry` is the last that forgot one of them.

    `certificate` is that of the one name; ask for those of many by `Vault.certificates`.
    """

    entry: int
    served: Any
    head: Checkpoint
    names: ErasureTarget = field(repr=False)
    """Whom the entry is about, in the spelling of the vault; in no JSON."""
    certificate: Certificate | None = None
    forgotten_before: tuple[ForgottenBefore, ...] = ()
    recounted_because: str | None = None
    """Why all sources of an external vault were counted again first; None if they were not."""
    rows_gone: int = 0
    """How many fewer rows there were then, of everybody, than before; in no ledger entry and no JSON."""

    HIDDEN: ClassVar[tuple[str, ...]] = ("names", "release", "not_held", "rows_gone")
    dry_run: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Preview(Answer):
    """What a request would do, without doing it: for the screen, not to be stored."""

    unlearner: str | None
    """The one that would answer; None if nothing is held."""
    forgotten_before: int = 0
    """How many of them were forgotten before."""
    method_lines: tuple[str, ...] = ()
    """The unlearner with the parameters in force, and what it says about this request."""

    HIDDEN: ClassVar[tuple[str, ...]] = ("method_lines", "release")
    DERIVED: ClassVar[tuple[str, ...]] = ("dry_run", "records", "remark", "probabilities")
    dry_run: ClassVar[bool] = True

    @property
    def remark(self) -> str | None:
        """What the unlearner says about this request, such as how many contenders are insured."""
        return next(iter(self.method_lines[1:]), None)

    @property
    def probabilities(self) -> dict[Hashable, float] | None:
        """The probability of each action to be served; None if nothing is held, and with many decisions."""
        if self.release is None or isinstance(self.release, JointRelease):
            return None
        return dict(zip(self.release.actions, self.release.probabilities.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """All fields, with the probability of each action to be served, in each touched decision."""
        fields, release = super().to_dict(), self.release
        if isinstance(release, JointRelease):
            for own, each in zip(fields["decisions"], release.to_dict()["decisions"], strict=True):
                del own["served"]  # nothing was drawn
                own.update(each)
        return {
            **fields,
            "branch": release.branch if isinstance(release, Release) else None,
            "guarantee": None if release is None else release.guarantee.to_dict(),
            "note": SCREEN_ONLY,
        }


@dataclass(frozen=True)
class Readmitted(Result):
    """How many people or records were readmitted, and by which entry."""

    readmitted: int
    entry: int
    head: Checkpoint


@dataclass(frozen=True)
class PolicyChange(Result):
    """The policy in force, and whether it was changed."""

    policy: Policy
    changed: bool
    head: Checkpoint

    def to_dict(self) -> dict[str, Any]:
        """The policy's keys, `changed` and `head`."""
        return {**self.policy.to_dict(), "changed": self.changed, "head": str(self.head)}


@dataclass(frozen=True)
class OfferedArm(Result):
    """An arm, and in how many decisions it is offered."""

    action: Any
    decisions: int


@dataclass(frozen=True)
class OfferedArms(Result):
    """Every arm that the vault has records of or ever offered, and where it is offered now."""

    by: tuple[str, ...]
    """The key columns; none in a vault with one decision."""
    arms: tuple[OfferedArm, ...]
    decisions: int
    """How many decisions were asked about."""
    rules: tuple[ArmRule, ...]
    """Which arms were added and retired; of the rules that match a decision, the last holds."""
    head: Checkpoint

    @property
    def offered(self) -> tuple[Any, ...]:
        """The arms that at least one decision offers."""
        return tuple(arm.action for arm in self.arms if arm.decisions)

    def to_dict(self) -> dict[str, Any]:
        """The keys `arms`, `rules` and `head`, and where there are keys also `by` and `decisions`."""
        if self.by:
            return super().to_dict()
        arms = [{"action": arm.action, "offered": arm.decisions > 0} for arm in self.arms]
        return {"arms": arms, "rules": plain(self.rules), "head": str(self.head)}


@dataclass(frozen=True)
class ArmChange(Result):
    """An arm that was added or retired, and where; `new_rows` says what happens to rows of a retired one."""

    action: Any
    offered: bool
    where: Mapping[str, str]
    new_rows: NewRows | None
    decisions: int | None
    """How many decisions offer other arms than before; None in a vault without key columns."""
    served: Any
    head: Checkpoint

    def to_dict(self) -> dict[str, Any]:
        """All fields; `decisions` where there are keys, and `served` where there are none."""
        fields = super().to_dict()
        del fields["served" if self.decisions is not None else "decisions"]
        return fields


@dataclass(frozen=True)
class Check(Result):
    """What a check found: each problem is one sentence that says where."""

    problems: tuple[str, ...]

    DERIVED: ClassVar[tuple[str, ...]] = ("holds",)

    @property
    def holds(self) -> bool:
        """Whether no problem was found."""
        return not self.problems


@dataclass(frozen=True)
class Verification(Check):
    """What verification found; notes are not problems."""

    notes: tuple[str, ...]
    records: int
    entries: int

    @classmethod
    def of_damage(cls, damage: VaultError, problems: Sequence[str] = (), notes: Sequence[str] = ()) -> Self:
        """Of a vault that cannot be opened, or read to its end; `problems` are those found until then."""
        found = dict.fromkeys([f"database: {damage}", *problems])
        return cls(tuple(found), (*notes, "not everything was checked, and nothing was counted"), 0, 0)


@dataclass(frozen=True)
class LedgerCheck(Check):
    """The ledger compared with a checkpoint that was kept elsewhere."""

    size: int
    """How many entries the checkpoint is of."""


@dataclass(frozen=True)
class LedgerEntries:
    """The entries of the ledger, or some of them, and the head of all."""

    entries: tuple[Entry, ...]
    head: Checkpoint

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def to_dict(self) -> dict[str, Any]:
        """The keys `head` and `entries`, each as its predicate says it."""
        return {"head": str(self.head), "entries": [entry.to_dict()["predicate"] for entry in self]}


@dataclass(frozen=True)
class HeldSource(Result):
    """A source of an external vault; how many records come from it is not known."""

    id: str
    """By which the ledger and certificates name it."""
    name: str
    columns: Mapping[str, str | None]
    """The column of each role, `action`, `reward`, `user` and `id`."""
    where: tuple[str, ...]
    """The conditions that rows must satisfy to be counted."""
    ingest_command: str
    """The command that ingests it again, as a shell reads it."""
    recount: bool
    """Whether people were readmitted, so that the next ingest counts all of it again."""
    to_erase: bool
    """Whether rows of people may be there who were forgotten since the last erasure."""
    to_purge: bool
    """Whether old files or versions may hold rows that were erased."""
    rows: int | None = None
    """How many rows were deleted just now, or would be; None if that was not asked, or nothing was due."""
    remains: tuple[str, ...] = ()
    """After an erasure, what may remain: fixed sentences."""


@dataclass(frozen=True)
class SourceErasures(Result):
    """The sources of an external vault, and whether rows may be erased there."""

    permitted: bool
    sources: tuple[HeldSource, ...]
    head: Checkpoint


@dataclass(frozen=True)
class ArmScore(Result):
    """The numbers of one arm, for the operator: their change reveals what was deleted."""

    action: Any
    count: int
    mean: float
    score: float


@dataclass(frozen=True)
class Status(Result):
    """The state of a vault. `scores` is None unless the operator asked for it."""

    note: ClassVar[str] = OPERATOR_ONLY

    vault: str
    location: str
    served: Served
    configuration: Configuration
    records: int
    suppressed: int
    replaced: int
    """How many rows of corrections have come in the place of records, in all."""
    head: Checkpoint
    witness: str | None
    """The file or URL that gets every checkpoint."""
    witnessed: int
    """How many entries the last checkpoint had that it got."""
    uncompacted: int
    """How many deletions and corrections came after the last `compact`."""
    signing_key: int
    sources: tuple[HeldSource, ...]
    scores: tuple[ArmScore, ...] | None
    decisions: int | None = None
    """How many decisions there are; None in a vault without key columns."""
    scores_of: Mapping[str, str] | None = None
    """The key of the decision that `scores` are of; None in a vault without key columns."""
    OPTIONAL: ClassVar[tuple[str, ...]] = ("decisions", "scores_of")
    DERIVED: ClassVar[tuple[str, ...]] = ("note",)


@dataclass(frozen=True)
class VaultIdentity(Result):
    """Where a vault and its keys are, and what is public of it; `public_key` is the one in use."""

    vault: str
    location: str
    keys: Path
    public_key: str
    head: Checkpoint
    configuration: Configuration


@dataclass(frozen=True)
class Rotated(Result):
    """The version of the new signing key."""

    version: int
    head: Checkpoint


@dataclass(frozen=True)
class Compacted(Result):
    """The entry that says that deleted bytes have left the database's files."""

    entry: int
    head: Checkpoint


@dataclass(frozen=True)
class SavedCertificates(Result):
    """The certificates of many names, one file each in `folder`; the file `index` says whose they are.

    `missing` is the number of names that have no certificate.
    """

    folder: Path
    index: Path
    written: int
    missing: int


@dataclass(frozen=True)
class SavedFile(Result):
    """A file that was written, an export or a backup, and the head that its ledger has at least."""

    file: Path
    head: Checkpoint


@dataclass(frozen=True)
class Restored(Result):
    """What bringing a vault in line with its journal came to."""

    replayed: int
    """How many entries were missing."""
    head: Checkpoint
    corrections_lost: int = 0
    """How many rows had been corrected since the backup was made: their corrections must come in again."""
    rows_deleted: int = 0
    """How many rows of forgotten people were there."""
    as_it_was: bool = True
    """Whether nothing else had changed the rows and the state."""
    recounted: bool = False
    """Whether the sources were counted again, which an external vault does."""
