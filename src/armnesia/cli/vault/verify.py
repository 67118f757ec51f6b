"""The command `verify`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import StoredHead, VaultOptions, with_vault_options
from armnesia.core.errors import DamagedDatabaseError
from armnesia.core.messages import counted
from armnesia.vault import Head, Verification


@with_vault_options
def verify(
    options: VaultOptions,
    head: StoredHead = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Read an SQLite vault itself, not a private copy; see docs/limits.md."
        ),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Recompute the statistics; check seal, ledger and certificates.

    Exit code 1 if there are problems.
    """
    stored = None if head is None else Head.parse(head)  # refused before the vault is opened
    # An old copy is opened too: that it is old is one of the problems to report.
    try:
        with (
            options.open(accept="any") as vault,
            counting_rows(quiet=as_json) as progress,
        ):
            found = vault.verify(stored, in_place=in_place, progress=progress)
    except DamagedDatabaseError as error:  # it cannot even be opened
        found = Verification.of_damage(error)
    print_result(
        found.to_dict(),
        as_json,
        *(f"Note: {note}" for note in found.notes),
        *(f"Problem: {problem}" for problem in found.problems),
        f"{counted(found.records, 'record')}, {counted(found.entries, 'entry', 'entries')} and"
        f" {counted(found.certificates, 'certificate')}:"
        f" {number_of_problems(found.problems)}",
    )
    if not found.holds:
        raise typer.Exit(1)


def number_of_problems(problems: Sequence[str]) -> str:
    """How many problems were found.

    >>> number_of_problems([]), number_of_problems(["x"]), number_of_problems(["x", "y"])
    ('no problems found', '1 problem found', '2 problems found')
    """
    return f"{counted(len(problems), 'problem') if problems else 'no problems'} found"
