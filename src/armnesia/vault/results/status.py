"""What a vault is, and how it stands."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.certificate import Erasure
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.public_keys import PublicKeys
from armnesia.vault.results.notes import OPERATOR_ONLY
from armnesia.vault.results.served import Served
from armnesia.vault.results.sources import HeldSource


@dataclass(frozen=True)
class ArmScore:
    """The numbers of one arm, for the operator: their change reveals what was deleted."""

    action: Any
    count: int
    mean: float
    score: float


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
class PendingErasures:
    """How many certificates and corrections wait for bytes to leave the files, and since when the oldest."""

    number: int
    since: str | None
    """The time of the ledger entry; None if none waits."""
