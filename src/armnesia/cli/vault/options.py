"""What the vault's commands share: where the vault is, its policy, and how results are told."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from armnesia.cli.output import emit
from armnesia.privacy import Level
from armnesia.vault import DEFAULT_URL, Policy
from armnesia.vault.ledger.certificate_text import printable

Url = Annotated[
    str,
    typer.Option(
        "--url", envvar="ARMNESIA_URL", help=f"The vault: {DEFAULT_URL} or postgresql://USER@HOST/DATABASE."
    ),
]
Keys = Annotated[
    Path | None,
    typer.Option("--keys", envvar="ARMNESIA_KEYS", help="The keys' file, if not beside the SQLite vault."),
]
MaxEpsilon = Annotated[float | None, typer.Option(help="Policy: the largest ε of a request.")]
MaxDelta = Annotated[float | None, typer.Option(help="Policy: the largest δ of a request.")]
Levels = Annotated[str | None, typer.Option(help=f"Policy: the levels allowed, of {','.join(Level)}.")]
BeyondPolicy = Annotated[str | None, typer.Option("--beyond", help="Policy: beyond it, refuse or rollback.")]


def tell(result: Mapping[str, Any], as_json: bool, *shown: Any) -> None:
    """Print the result as JSON, or what is shown to people; names may hold anything, so none is markup."""
    lines = [
        escape("\n".join(map(printable, each.split("\n")))) if isinstance(each, str) else each
        for each in shown
    ]
    emit(result, as_json, *lines)


def changed_policy(
    policy: Policy,
    max_epsilon: float | None,
    max_delta: float | None,
    levels: str | None,
    beyond: str | None,
) -> Policy:
    """The policy with what was given.

    >>> changed_policy(Policy(0.0, 0.0, (Level.RETAINED,)), 1.0, None, None, "rollback").max_epsilon
    1.0
    """
    given = {
        "max_epsilon": unsigned_zero(max_epsilon),
        "max_delta": unsigned_zero(max_delta),
        "levels": None if levels is None else tuple(level.strip() for level in levels.split(",")),
        "beyond": beyond,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(policy, **changes)


def policy_words(policy: Policy) -> str:
    """The policy for people.

    >>> policy_words(Policy(1.0, 1e-5, (Level.RETAINED,)))
    'up to ε = 1 and δ = 1e-05 at level retained; beyond that: refuse'
    """
    levels = " or ".join(policy.levels)
    return (
        f"up to ε = {policy.max_epsilon:g} and δ = {policy.max_delta:g} at level {levels};"
        f" beyond that: {policy.beyond}"
    )


def unsigned_zero(number: float | None) -> float | None:
    """The number; zero has no sign here, though floats keep one and would show it.

    >>> unsigned_zero(-0.0), unsigned_zero(-1.0), unsigned_zero(None)
    (0.0, -1.0, None)
    """
    return None if number is None else number + 0.0
