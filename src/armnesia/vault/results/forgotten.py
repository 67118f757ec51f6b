"""What a request did or would do, and who was readmitted."""

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from armnesia.unlearners import JointRelease, Release
from armnesia.vault.ledger.certificate import Certificate, Erasure
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.results.notes import SCREEN_ONLY
from armnesia.vault.results.sources import RowsAtSource


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
    not_searched_because: str | None = None
    """Why the whole vault was not searched, where that was asked for; None if it was."""
    fallback_because: str | None = None
    may_be_without_user: bool = False
    """Whether some of the people had no rows, while the vault holds rows without a user."""
    not_held: tuple[str, ...] = ()
    """The names that had no rows, unless the request was answered before; in no ledger entry and no JSON."""
    successors: tuple[str, ...] = ()
    """The vaults that succeeded this one: they know nothing of this request, so forget there as well."""
    deleted_at_source: tuple[RowsAtSource, ...] | None = None
    """What an erasure with the request has deleted at the sources; None without one."""
    recounted_because: str | None = None
    """Why all sources of an external vault were counted again first; None if they were not."""
    rows_gone: int = 0
    """How many fewer rows there were then, of everybody, than before; in no ledger entry and no JSON."""

    @property
    def records(self) -> int:
        """How many records were deleted."""
        return sum(self.counts.values())

    @property
    def erasure(self) -> Erasure:
        """Whether the deleted bytes have left the database's files."""
        return self.certificate.erasure

    @property
    def searched(self) -> bool:
        """Whether the whole vault was searched for the people or records after the deletion."""
        return self.certificate.searched is not None

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
            "not_searched_because": self.not_searched_because,
            "fallback_because": self.fallback_because,
            "may_be_without_user": self.may_be_without_user,
            "recounted_because": self.recounted_because,
            **({"successors": list(self.successors)} if self.successors else {}),
            **({} if self.deleted_at_source is None else {"deleted_at_source": self._deleted_at_source()}),
            "certificate": self.certificate.to_dict(),
        }

    def _deleted_at_source(self) -> list[dict[str, Any]]:
        return [asdict(each) for each in self.deleted_at_source or ()]


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
            "branch": release.branch if isinstance(release, Release) else None,
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
