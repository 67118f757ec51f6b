"""What the operations of a vault return: frozen values, each with its JSON form in `to_dict()`."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, overload

from armnesia.core.identifiers import UserType
from armnesia.logs.erasing.plan import SourceState
from armnesia.unlearners import JointRelease, Release
from armnesia.unlearners.stream import Stream
from armnesia.vault.arm_rules import ArmRule, NewRows
from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.certificate import Certificate, Erasure
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.ledger.public_keys import PublicKeys

SCREEN_ONLY = "For this screen only: together with the served arm, the probabilities reveal deleted rewards."
OPERATOR_ONLY = "For the operator only: published before and after a deletion, this reveals what was deleted."


@dataclass(frozen=True)
class Served:
    """The served arm, what chose it ("default", "learner", "release"), and the head of the ledger."""

    action: Any
    by: str
    head: Head
    key: Mapping[str, str] | None = None
    """The key of the decision, in a vault that has many."""

    def to_dict(self) -> dict[str, Any]:
        """The keys `action`, `by` and `head`, and in a vault with many decisions `key`."""
        key = {} if self.key is None else {"key": dict(self.key)}
        return {**key, "action": self.action, "by": self.by, "head": str(self.head)}


@dataclass(frozen=True)
class ServedDecisions:
    """The served arms of all decisions, in the order in which the decisions appeared."""

    by: tuple[str, ...]
    """The key columns."""
    keys: tuple[Mapping[str, str], ...]
    actions: tuple[Any, ...]
    chosen_by: tuple[str, ...]
    """What chose each arm: "default", "learner" or "release"."""
    head: Head
    stream: Stream | None = None
    """The records of all decisions, if the operator asked for them."""

    def __len__(self) -> int:
        return len(self.keys)

    def to_dict(self) -> dict[str, Any]:
        """The keys `by`, `head` and `decisions`, with `key`, `action` and `by` of each."""
        each = zip(self.keys, self.actions, self.chosen_by, strict=True)
        return {
            "by": list(self.by),
            "head": str(self.head),
            "decisions": [{"key": dict(key), "action": action, "by": by} for key, action, by in each],
        }


@dataclass(frozen=True)
class Ingested:
    """What an ingest did with the rows of a source, or with `dry_run` would do: then nothing was written.

    `user_column` is the column of the user, None if the rows have none; `actions_fixed` are the actions, and
    `user_type_fixed` is how people are named, that this ingest fixed, if the vault had none declared.
    """

    rows: int
    added: int
    already_there: int
    suppressed: int
    served: Any
    head: Head
    user_column: str | None = None
    actions_fixed: tuple[Hashable, ...] | None = None
    user_type_fixed: UserType | None = None
    dry_run: bool = False
    decisions: int | None = None
    """How many decisions the vault has now; None in a vault without key columns."""
    replaced: int = 0
    """How many rows came in the place of a record with the same id."""
    erasure: Erasure | None = None
    """Whether what they replaced has left the database's files; None if nothing was replaced."""
    recounted_because: str | None = None
    """In an external vault, why all sources were counted again; None if only new rows were counted.

    Then `added` is how many more records there are, which may be fewer than 0.
    """

    @property
    def recounted(self) -> bool:
        """Whether all sources of an external vault were counted again."""
        return self.recounted_because is not None

    def to_dict(self) -> dict[str, Any]:
        """All fields, `user_type_fixed` and `head` as text.

        `decisions` is left out where there is one only, `erasure` where nothing was replaced, and `recounted`
        and `recounted_because` where only new rows were counted.
        """
        optional = {name: getattr(self, name) for name in ("decisions", "erasure", "recounted_because")}
        fields = {name: value for name, value in vars(self).items() if name not in optional}
        fields |= {name: value for name, value in optional.items() if value is not None}
        if self.recounted:
            fields["recounted"] = True
        fixed = {
            "actions_fixed": None if self.actions_fixed is None else list(self.actions_fixed),
            "user_type_fixed": None if self.user_type_fixed is None else str(self.user_type_fixed),
        }
        return {**fields, **fixed, "head": str(self.head)}


@dataclass(frozen=True)
class TouchedDecision:
    """A decision that a request takes records from: for the operator, as all counts are.

    `served` is the arm that was released; None while nothing was drawn.
    """

    key: Mapping[str, str]
    counts: Mapping[Hashable, int]
    served_before: Any
    served: Any


@dataclass(frozen=True)
class Forgotten:
    """What a request did, for the operator: only the certificate may be handed out.

    `repeated`: the same request was answered before, and this is its certificate. `held` is the number of
    people or records, of those `named`, that the vault had rows of. `counts` are the deleted records per
    action; `release` is the distribution that the served arm was drawn from, None if nothing was held.
    `pending_because` says why deleted bytes are still in the database's files, and `erasure_steps` which
    commands remove them; both are None if they left. `fallback_because` says why exact rollback answered, and
    not the unlearner that was asked for; None if that one did.
    """

    repeated: bool
    named: int
    held: int
    counts: Mapping[Hashable, int]
    served_before: Any
    served: Any
    release: Release | JointRelease | None
    head: Head
    certificate: Certificate
    decisions: tuple[TouchedDecision, ...] | None = None
    """What the request did in each decision that it touched; None in a vault without key columns."""
    decided_again: int | None = None
    """How many other decisions the learner decided again: they served what an earlier request released, and
    the level conceals which decisions were touched; None in a vault without key columns."""
    pending_because: str | None = None
    erasure_steps: str | None = None
    fallback_because: str | None = None
    may_be_without_user: bool = False
    """Whether some of the people had no rows, while the vault holds rows without a user."""
    not_held: tuple[str, ...] = ()
    """The names that had no rows, unless the request was answered before; in no ledger entry and no JSON."""

    @property
    def records(self) -> int:
        """How many records were deleted."""
        return sum(self.counts.values())

    @property
    def erasure(self) -> Erasure:
        """Whether the deleted bytes have left the database's files."""
        return self.certificate.erasure

    def to_dict(self) -> dict[str, Any]:
        """The request's numbers, the served arm, and the certificate with its main facts."""
        decisions = None if self.decisions is None else [asdict(each) for each in self.decisions]
        return {
            "dry_run": False,
            "repeated": self.repeated,
            "named": self.named,
            "held": self.held,
            "records": self.records,
            "counts": dict(self.counts),
            "served_before": self.served_before,
            "served": self.served,
            **({} if decisions is None else {"decisions": decisions, "decided_again": self.decided_again}),
            "head": str(self.head),
            **self.certificate.summary(),
            "pending_because": self.pending_because,
            "erasure_steps": self.erasure_steps,
            "fallback_because": self.fallback_because,
            "may_be_without_user": self.may_be_without_user,
            "certificate": self.certificate.to_dict(),
        }


@dataclass(frozen=True)
class Preview:
    """What a request would do, without doing it: for the screen, not to be stored.

    `unlearner` is the one that would answer; None if nothing is held. `fallback_because` says why it is exact
    rollback instead of the one that was asked for. `not_held` are the names that have no rows, unless the
    request was answered before.
    """

    repeated: bool
    named: int
    held: int
    unlearner: str | None
    counts: Mapping[Hashable, int]
    served_before: Any
    release: Release | JointRelease | None
    not_held: tuple[str, ...] = ()
    fallback_because: str | None = None
    decisions: tuple[TouchedDecision, ...] | None = None
    """The decisions that the request would touch; None in a vault without key columns."""
    decided_again: int | None = None
    """As in `Forgotten`."""
    may_be_without_user: bool = False
    """As in `Forgotten`."""
    method_lines: tuple[str, ...] = ()
    """The unlearner with the parameters in force, and what it says about this request."""

    @property
    def records(self) -> int:
        """How many records would be deleted."""
        return sum(self.counts.values())

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
        """The request's numbers, the probabilities, and the guarantee."""
        release = self.release
        return {
            "dry_run": True,
            "repeated": self.repeated,
            "named": self.named,
            "held": self.held,
            "records": self.records,
            "counts": dict(self.counts),
            "served_before": self.served_before,
            "not_held": list(self.not_held),
            "unlearner": self.unlearner,
            "fallback_because": self.fallback_because,
            "remark": self.remark,
            "may_be_without_user": self.may_be_without_user,
            "probabilities": self.probabilities,
            **self._decisions(),
            "branch": str(release.branch) if isinstance(release, Release) else None,
            "guarantee": None if release is None else release.guarantee.to_dict(),
            "note": SCREEN_ONLY,
        }

    def _decisions(self) -> dict[str, Any]:
        """Each decision that would be touched, with the probability of each action to be served in it."""
        if self.decisions is None:
            return {}
        found = [asdict(each) for each in self.decisions]
        if isinstance(self.release, JointRelease):
            for own, each in zip(found, self.release.to_dict()["decisions"], strict=True):
                del own["served"]  # nothing was drawn
                own.update(each)
        return {"decisions": found, "decided_again": self.decided_again}


@dataclass(frozen=True)
class Readmitted:
    """How many people or records were readmitted, and whether their digests were erased."""

    readmitted: int
    erased: bool
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """The keys `readmitted`, `erased` and `head`."""
        return {**vars(self), "head": str(self.head)}


@dataclass(frozen=True)
class Verification:
    """What verification found: each problem is one sentence that says where; notes are not problems."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    records: int
    entries: int
    certificates: int

    @property
    def holds(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The keys `holds`, `problems`, `notes`, `records`, `entries` and `certificates`."""
        lists = {"problems": list(self.problems), "notes": list(self.notes)}
        return {"holds": self.holds, **vars(self), **lists}


@dataclass(frozen=True)
class LedgerCheck:
    """The ledger compared with a head that was kept elsewhere."""

    problems: tuple[str, ...]
    checked: Head

    @property
    def holds(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The keys `holds`, `problems` and `checked`."""
        return {"holds": self.holds, "problems": list(self.problems), "checked": str(self.checked)}


@dataclass(frozen=True)
class LedgerEntries(Sequence[Entry]):
    """The entries of the ledger, from the first; each is made of its text when it is asked for."""

    texts: tuple[str, ...]

    @property
    def head(self) -> Head:
        """The head of the ledger: that of the last entry."""
        return self[-1].head

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> "LedgerEntries": ...
    def __getitem__(self, place: int | slice) -> "Entry | LedgerEntries":
        if isinstance(place, slice):
            return LedgerEntries(self.texts[place])
        return Entry.from_text(self.texts[place])

    def save(self, path: str | Path) -> None:
        """Write the entries to a new file, one per line, as they are hashed; `LedgerCopy.read` reads it."""
        with (
            private_files.atomic_write(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="\n") as file,
        ):
            file.writelines(f"{text}\n" for text in self.texts)

    def to_dict(self) -> dict[str, Any]:
        """The keys `head` and `entries`."""
        return {"head": str(self.head), "entries": [dict(entry.fields) for entry in self]}


@dataclass(frozen=True)
class ArmScore:
    """The numbers of one arm, for the operator: their change reveals what was deleted."""

    action: Any
    count: int
    mean: float
    score: float


@dataclass(frozen=True)
class HeldSource:
    """A source of an external vault; how many records come from it is not known.

    `recount` says why all of it has to be counted again, by the next ingest; None if it need not be.
    """

    name: str
    recount: str | None
    columns: Mapping[str, str | None]
    """The column of each role, `action`, `reward`, `user` and `id`."""
    where: tuple[str, ...]
    """The conditions that rows must satisfy to be counted."""
    ordered_by: str | None
    """The column whose values tell which rows of a table of a database are new."""
    ingest_command: str
    """The command that ingests it again, as a shell reads it."""


@dataclass(frozen=True)
class SourceErasure:
    """How far rows of forgotten people are erased at a source, by the last ledger entry about it."""

    number: int
    """By which the ledger and certificates name the source."""
    name: str
    state: str
    """`untouched`, `logically deleted` or `purged`."""
    pending: int
    """How many requests were answered since."""
    interrupted: bool
    """Whether an erasure was begun and is not finished."""
    entry: int | None
    before: int | None
    after: int | None
    remains: tuple[str, ...]
    due: str | None
    """From when on a purge respects the retention of the table."""
    left_out: bool = False
    """Whether an ingest has left out rows there, of people or records that were forgotten before."""

    @property
    def purge_pending(self) -> bool:
        """Whether readers no longer see the rows, while files or earlier versions still hold them."""
        return self.state == SourceState.LOGICALLY_DELETED


@dataclass(frozen=True)
class DroppedSource:
    """A source that was dropped (`rebuild --without`) before rows of forgotten people were erased there."""

    number: int
    entry: int
    """The ledger entry that dropped it."""
    requests: int
    """How many requests were answered while it was counted, and are not purged there."""


@dataclass(frozen=True)
class RowsAtSource:
    """How many rows of forgotten people or records an erasure deletes at a source; nothing stores this."""

    number: int
    """By which the ledger and certificates name the source."""
    name: str
    rows: int | None
    """None if they were deleted by an erasure that was interrupted before."""
    files: int | None
    """How many files have such rows, or were written again without them; None where that is not known."""


@dataclass(frozen=True)
class ErasurePreview:
    """What an erasure at the sources would delete, for the operator."""

    sources: tuple[RowsAtSource, ...]

    def to_dict(self) -> dict[str, Any]:
        """The key `sources`, and a note on who may see it."""
        return {"sources": [asdict(each) for each in self.sources], "note": OPERATOR_ONLY}


@dataclass(frozen=True)
class SourceErasures:
    """The sources of an external vault, and whether rows may be erased there."""

    permitted: bool
    sources: tuple[SourceErasure, ...]
    head: Head
    dropped: tuple[DroppedSource, ...] = ()
    deleted: tuple[RowsAtSource, ...] | None = None
    """What an erasure has deleted just now, at the sources where there was something; None without one."""

    @property
    def pending(self) -> int:
        """How many requests are pending at the source where most are."""
        return max((each.pending for each in self.sources), default=0)

    @property
    def purges_pending(self) -> int:
        """At how many sources a purge is left to do."""
        return sum(each.purge_pending for each in self.sources)

    def to_dict(self) -> dict[str, Any]:
        """The keys `permitted`, `pending`, `purges_pending`, `sources`, `dropped`, `deleted` and `head`."""
        sources = [
            {**asdict(each), "remains": list(each.remains), "purge_pending": each.purge_pending}
            for each in self.sources
        ]
        own = {"permitted": self.permitted, "pending": self.pending, "purges_pending": self.purges_pending}
        dropped = [asdict(each) for each in self.dropped]
        deleted = None if self.deleted is None else [asdict(each) for each in self.deleted]
        return {**own, "sources": sources, "dropped": dropped, "deleted": deleted, "head": str(self.head)}


@dataclass(frozen=True)
class Status:
    """The state of a vault. `scores` is None unless the operator asked for it."""

    vault: str
    location: str
    served: Served
    configuration: Configuration
    records: int
    suppressed: int
    replaced: int
    """How many rows of corrections have come in the place of records, in all."""
    head: Head
    erasure: Erasure
    digest_key: int
    signing_key: int
    to_reissue: int
    """How many certificates must be issued again, because the key that signed them was compromised."""
    sources: tuple[HeldSource, ...]
    scores: tuple[ArmScore, ...] | None
    decisions: int | None = None
    """How many decisions there are; None in a vault without key columns."""
    scores_of: Mapping[str, str] | None = None
    """The key of the decision that `scores` are of; None in a vault without key columns."""
    source_erasures_pending: int | None = None
    """How many requests wait for an erasure at a source; None where none may be made."""
    source_purges_pending: int | None = None
    """At how many sources a purge is left to do; None where none may be made."""
    sources_with_left_out: int | None = None
    """At how many sources an ingest has left out rows that are still there; None of a managed vault."""

    def to_dict(self) -> dict[str, Any]:
        """All fields, and a note on who may see them; `decisions` only where there can be many.

        `scores_of` only with the scores of one of them, `source_erasures_pending` and `source_purges_pending`
        only where rows may be erased at their sources, `sources_with_left_out` only of an external vault.
        """
        at_sources = ("source_erasures_pending", "source_purges_pending", "sources_with_left_out")
        optional = {name: getattr(self, name) for name in ("decisions", "scores_of", *at_sources)}
        fields = {name: value for name, value in vars(self).items() if name not in optional}
        return {
            **fields,
            **{name: value for name, value in optional.items() if value is not None},
            "served": {"action": self.served.action, "by": self.served.by},
            "configuration": self.configuration.to_dict(),
            "head": str(self.head),
            "sources": [asdict(source) for source in self.sources],
            "scores": None if self.scores is None else [asdict(arm) for arm in self.scores],
            "note": OPERATOR_ONLY,
        }


@dataclass(frozen=True)
class VaultIdentity:
    """Where a vault and its keys are, and what is public of it; `public_key` is the one in use."""

    vault: str
    location: str
    keys_path: Path
    public_key: str
    head: Head
    configuration: Configuration
    successor_of: PublicKeys | None = None
    """The public keys of the vault that it succeeds, as of that vault's last head."""

    def to_dict(self) -> dict[str, Any]:
        """The keys `vault`, `location`, `keys`, `public_key`, `head` and `configuration`; of a successor also
        `successor_of`, with the id and the head of the vault before."""
        before = self.successor_of
        succession = {} if before is None else {"vault": before.vault, "head": str(before.head)}
        return {
            "vault": self.vault,
            "location": self.location,
            "keys": str(self.keys_path),
            "public_key": self.public_key,
            "head": str(self.head),
            "configuration": self.configuration.to_dict(),
            **({"successor_of": succession} if succession else {}),
        }


@dataclass(frozen=True)
class PolicyChange:
    """The policy in force, and whether it was changed."""

    policy: Policy
    changed: bool
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """The policy's keys, `changed` and `head`."""
        return {**self.policy.to_dict(), "changed": self.changed, "head": str(self.head)}


@dataclass(frozen=True)
class OfferedArm:
    """An arm, and in how many decisions it is offered."""

    action: Any
    decisions: int


@dataclass(frozen=True)
class OfferedArms:
    """Every arm that the vault has records of or ever offered, and where it is offered now."""

    by: tuple[str, ...]
    """The key columns; none in a vault with one decision."""
    arms: tuple[OfferedArm, ...]
    decisions: int
    """How many decisions were asked about."""
    rules: tuple[ArmRule, ...]
    """Which arms were added and retired; of the rules that match a decision, the last holds."""
    head: Head

    @property
    def offered(self) -> tuple[Any, ...]:
        """The arms that at least one decision offers."""
        return tuple(arm.action for arm in self.arms if arm.decisions)

    def to_dict(self) -> dict[str, Any]:
        """The keys `arms`, `rules` and `head`; `decisions`, of each arm and of all, where there are keys."""
        rules, head = [rule.to_dict() for rule in self.rules], str(self.head)
        if not self.by:
            arms = [{"action": arm.action, "offered": arm.decisions > 0} for arm in self.arms]
            return {"arms": arms, "rules": rules, "head": head}
        return {
            "by": list(self.by),
            "decisions": self.decisions,
            "arms": [asdict(arm) for arm in self.arms],
            "rules": rules,
            "head": head,
        }


@dataclass(frozen=True)
class ArmChange:
    """An arm that was added or retired, and where; `new_rows` says what happens to rows of a retired one."""

    action: Any
    offered: bool
    where: Mapping[str, str]
    new_rows: NewRows | None
    decisions: int | None
    """How many decisions offer other arms than before; None in a vault without key columns."""
    served: Any
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """All fields; `decisions` where there are keys, and `served` where there are none."""
        left_out = "served" if self.decisions is not None else "decisions"
        fields = {name: value for name, value in vars(self).items() if name != left_out}
        return {**fields, "where": dict(self.where), "head": str(self.head)}


@dataclass(frozen=True)
class Rotated:
    """Which key is new ("signing" or "digest"), and its version."""

    key: str
    version: int
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """The keys `key`, `version` and `head`."""
        return {**vars(self), "head": str(self.head)}


@dataclass(frozen=True)
class CompactionEstimate:
    """How many bytes `compact` would rewrite, for about how many seconds, and who waits meanwhile.

    The seconds are estimated from a short trial on made-up rows; None if that failed. Waiting for other
    processes is not included.
    """

    bytes: int
    seconds: float | None
    blocks: str

    def to_dict(self) -> dict[str, Any]:
        """The keys `bytes`, `seconds` and `blocks`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Compacted:
    """Whether deleted bytes have left the database's files; if not, why, in words."""

    erasure: Erasure
    pending_because: str | None = None

    @property
    def complete(self) -> bool:
        """Whether they have."""
        return self.erasure == "complete"

    def to_dict(self) -> dict[str, Any]:
        """The keys `erasure` and `pending_because`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Finished:
    """Whether deleted bytes have left the database's files, and whose certificates say so now.

    `reissued` are the ledger entries whose certificates were signed again, with erasure complete; `pending`
    is the number of those that still have to wait, and `pending_because` says for what. `folder` is where
    the certificates that were signed again are written, if that was asked for; None if none was signed.
    """

    erasure: Erasure
    reissued: tuple[int, ...]
    pending: int
    pending_because: str | None
    head: Head
    folder: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing has to wait."""
        return self.erasure == "complete"

    def to_dict(self) -> dict[str, Any]:
        """All fields; `head` and `folder` as text."""
        folder = None if self.folder is None else str(self.folder)
        return {**vars(self), "reissued": list(self.reissued), "head": str(self.head), "folder": folder}


@dataclass(frozen=True)
class SavedCertificates:
    """The certificates of many names, one file each in `folder`; the file `index` says whose they are.

    `pending` is the number of those `written` that have erasure pending; `missing` is the number of names
    that have no certificate.
    """

    folder: Path
    index: Path
    written: int
    pending: int
    missing: int

    def to_dict(self) -> dict[str, Any]:
        """All fields; `folder` and `index` as text."""
        return {**vars(self), "folder": str(self.folder), "index": str(self.index)}


@dataclass(frozen=True)
class Rebuilt:
    """Whether computing the statistics again changed anything, and which sources were dropped or moved."""

    changed: bool
    head: Head
    dropped: tuple[str, ...] = ()
    moved: tuple[str, str] | None = None
    """The names of a source before and after it was moved."""

    def to_dict(self) -> dict[str, Any]:
        """The keys `changed`, `head` and `dropped`, and `moved` if a source was."""
        moved = {} if self.moved is None else {"moved": list(self.moved)}
        return {"changed": self.changed, "head": str(self.head), "dropped": list(self.dropped), **moved}


@dataclass(frozen=True)
class Exported:
    """An export: the file, the head it reaches, and how many entries and certificates it has."""

    file: Path
    head: Head
    entries: int
    certificates: int
    for_restore: bool

    def to_dict(self) -> dict[str, Any]:
        """The keys `file`, `head`, `entries`, `certificates` and `for_restore`."""
        return {**vars(self), "file": str(self.file), "head": str(self.head)}


@dataclass(frozen=True)
class BackedUp:
    """The file of a backup, and the head of its ledger."""

    file: Path
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """The keys `file` and `head`."""
        return {"file": str(self.file), "head": str(self.head)}


@dataclass(frozen=True)
class Copied:
    """Where the copy of a vault and its keys are, the head of its ledger, and how many records it has."""

    vault: str
    location: str
    keys_path: Path
    head: Head
    records: int

    def to_dict(self) -> dict[str, Any]:
        """The keys `vault`, `location`, `keys`, `head` and `records`."""
        return {
            "vault": self.vault,
            "location": self.location,
            "keys": str(self.keys_path),
            "head": str(self.head),
            "records": self.records,
        }


@dataclass(frozen=True)
class Restored:
    """How many ledger entries were replayed on a backup."""

    replayed: int
    head: Head
    corrections_lost: int = 0
    """How many rows had been corrected since the backup was made: their corrections must come in again."""

    def to_dict(self) -> dict[str, Any]:
        """The keys `replayed`, `corrections_lost` and `head`."""
        return {**vars(self), "head": str(self.head)}


@dataclass(frozen=True)
class Upgraded:
    """From which schema version to which.

    `to_recount` are the sources of an external vault that have to be counted again, by the next ingest.
    """

    from_version: int
    to_version: int
    to_recount: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The keys `from` and `to`, and `to_recount` if there are such sources."""
        recount = {"to_recount": list(self.to_recount)} if self.to_recount else {}
        return {"from": self.from_version, "to": self.to_version, **recount}


@dataclass(frozen=True)
class PendingErasures:
    """How many certificates and corrections wait for bytes to leave the files, and since when the oldest."""

    number: int
    since: str | None
    """The time of the ledger entry; None if none waits."""
