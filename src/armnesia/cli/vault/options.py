"""Options of the vault's commands: where the vault is, and its policy."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.parameters import with_options_of
from armnesia.core.errors import InvalidInputError
from armnesia.core.files import read_plain
from armnesia.core.messages import any_of
from armnesia.privacy import Level
from armnesia.vault import DEFAULT_URL, Policy, PublicKeys, Vault, known_addresses
from armnesia.vault.keys.canonical_json import read_object
from armnesia.vault.ledger.checkpoint import Checkpoint, Note, origin_of
from armnesia.vault.ledger.journal import Line
from armnesia.vault.ledger.merkle import Tree

_LARGEST, _KEY_DIGITS = 1 << 28, 64
Url = Annotated[
    str,
    typer.Option("--url", envvar="ARMNESIA_URL", help=f"The vault: {any_of(list(known_addresses()))}."),
]
Keys = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        envvar="ARMNESIA_KEYS",
        help="The file of the keys. Default: "
        + "; ".join(f"with {address}, {keys}" for address, keys in known_addresses().items())
        + ".",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", help="How long to wait for other processes that use the vault."
    ),
]
MaxEpsilon = Annotated[float | None, typer.Option(help="Policy: the largest ε of a request.")]
MaxDelta = Annotated[float | None, typer.Option(help="Policy: the largest δ of a request.")]
Levels = Annotated[str | None, typer.Option(help=f"Policy: the levels allowed, of {','.join(Level)}.")]
Purge = Annotated[
    bool,
    typer.Option(
        "--purge", help="Also remove what still holds the rows, after the retention that a table declares."
    ),
]
IgnoreRetention = Annotated[
    bool, typer.Option("--ignore-retention", help="Purge at once: readers of earlier versions fail.")
]


@dataclass(frozen=True)
class Kept:
    """What was kept of a ledger: the text of a signed checkpoint, or of an export."""

    text: str

    @classmethod
    def read(cls, path: Path) -> "Kept":
        """Read the file, which must begin like one of them."""
        text = read_plain(path, _LARGEST).decode("utf-8", "replace").lstrip()
        if not text.startswith(("{", "armnesia/")):
            raise InvalidInputError(f"--checkpoint {path} is no checkpoint of a ledger, and no export")
        return cls(text)

    def of(self, size: int) -> str | Checkpoint:
        """The checkpoint: as it was signed, or computed from an export at this size."""
        if not self.text.startswith("{"):
            notes = self.notes()
            return next((each for each in notes if Checkpoint.of(Note.read(each)).size == size), notes[-1])
        lines = [Line.from_dict(read_object(each, "an export's line")) for each in self.text.splitlines()]
        envelopes, vault = [each for line in lines for each in line.entries], lines[0].vault
        root = Tree([each.leaf for each in envelopes[:size]]).root
        return Checkpoint(origin_of(vault), min(size, len(envelopes)), root)

    def notes(self) -> list[str]:
        """The checkpoints of the file: a witness appends one after the other."""
        return re.split(r"^(?=armnesia/)", self.text, flags=re.MULTILINE)[1:]


def read_checkpoint(path: Path) -> str:
    """The text of the last signed checkpoint; what is none is refused before a vault is opened."""
    try:
        text = ["", *Kept.read(path).notes()][-1]
        Checkpoint.of(Note.read(text))
    except InvalidInputError as error:
        raise InvalidInputError(f"--checkpoint {path} is no checkpoint of a ledger: {error}") from None
    return text


CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Compare with a checkpoint that armnesia ledger --checkpoint-only printed earlier.",
    ),
]
KeptCheckpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="A checkpoint of the vault that you kept, or an export of its ledger.",
    ),
]
BeyondPolicy = Annotated[
    str | None,
    typer.Option("--beyond", metavar="refuse|rollback", help="Policy: what happens to a request beyond it."),
]


@dataclass(frozen=True)
class VaultOptions:
    """The options of a command on a vault: where it is, where its keys are, how long to wait for others."""

    url: Url = DEFAULT_URL
    keys: Keys = None
    timeout: Timeout = 30.0

    def open(self, *, checked: bool = True) -> Vault:
        """Open the vault; see `Vault.open`."""
        return Vault.open(self.url, keys=self.keys, timeout=self.timeout, checked=checked)


with_vault_options = with_options_of(VaultOptions, "options")
"""Replaces the argument `options` of a command by the options of `VaultOptions`, from which it is made."""


def read_public_keys(given: Sequence[str]) -> list[str]:
    """The public keys of --public-key: each is a key, or a file of keys."""
    found: list[str] = []
    for text in given:
        is_file = Path(text).exists()
        if not is_file and len(text) != _KEY_DIGITS:
            raise InvalidInputError(f"--public-key must be a key or a file that exists; got {text!r}")
        read = read_plain(text, _LARGEST).decode("utf-8", "replace") if is_file else text
        keys = PublicKeys.read(read).keys
        if not keys:
            raise InvalidInputError(f"--public-key must name at least one key; {text} has none")
        found += keys
    return found


def epsilon_and_delta(
    epsilon: float | None, delta: float | None, gamma: float | None
) -> tuple[float | None, float | None]:
    """The budget as the vault stores it: --gamma with --delta becomes the ε of the exact curve.

    Half a budget is refused, also for an unlearner that needs none, as in the commands on a log.
    """
    if epsilon is None and delta is None and gamma is None:
        return None, None
    budget = opt.make_budget(epsilon, delta, gamma)
    return unsigned_zero(budget.epsilon), unsigned_zero(budget.delta)


def policy_changes(
    max_epsilon: MaxEpsilon = None,
    max_delta: MaxDelta = None,
    levels: Levels = None,
    beyond: BeyondPolicy = None,
) -> dict[str, Any]:
    """The fields of the policy that the options give.

    >>> policy_changes(max_epsilon=1.0, levels="retained, request_shape")
    {'max_epsilon': 1.0, 'levels': ('retained', 'request_shape')}
    """
    given = {
        "max_epsilon": unsigned_zero(max_epsilon),
        "max_delta": unsigned_zero(max_delta),
        "levels": None if levels is None else tuple(level.strip() for level in levels.split(",")),
        "beyond": beyond,
    }
    return {name: value for name, value in given.items() if value is not None}


def policy_text(policy: Policy) -> str:
    """The policy in words.

    >>> policy_text(Policy(1.0, 1e-5, (Level.RETAINED,)))
    'up to ε = 1 and δ = 1e-05 at level retained; beyond that: refuse'
    """
    levels = " or ".join(policy.levels)
    return (
        f"up to ε = {policy.max_epsilon:g} and δ = {policy.max_delta:g} at level {levels};"
        f" beyond that: {policy.beyond}"
    )


def unsigned_zero(number: float | None) -> float | None:
    """The number; −0, which Python would print with its sign, becomes 0.

    >>> unsigned_zero(-0.0), unsigned_zero(-1.0), unsigned_zero(None)
    (0.0, -1.0, None)
    """
    return None if number is None else number + 0.0
