"""Options of the vault's commands: where the vault is, and its policy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.parameters import with_options_of
from armnesia.core.messages import any_of
from armnesia.privacy import Level
from armnesia.vault import DEFAULT_URL, Accept, Policy, Vault, known_addresses

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
StoredHead = Annotated[
    str | None,
    typer.Option(
        "--head", metavar="HEAD", help="Compare with a head of the ledger that was stored elsewhere."
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

    def open(self, *, accept: Accept = "intact") -> Vault:
        """Open the vault; see `Vault.open`."""
        return Vault.open(self.url, keys=self.keys, timeout=self.timeout, accept=accept)


with_vault_options = with_options_of(VaultOptions, "options")
"""Replaces the argument `options` of a command by the options of `VaultOptions`, from which it is made."""


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
