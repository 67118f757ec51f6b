"""The command `verify`."""

from collections.abc import Sequence

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import CheckpointFile, VaultOptions, read_checkpoint, with_vault_options
from armnesia.core.errors import DamagedDatabaseError
from armnesia.core.messages import counted
from armnesia.vault import Verification


@with_vault_options
def verify(
    options: VaultOptions,
    checkpoint: CheckpointFile = None,
    as_json: opt.AsJson = False,
) -> None:
    """Recompute everything from the rows; check the ledger.

    Exit code 1 if there are problems.
    """
    kept = None if checkpoint is None else read_checkpoint(checkpoint)
    # An old copy is opened too: that it is old is one of the problems to report.
    try:
        with (
            options.open(checked=False) as vault,
            counting_rows(quiet=as_json) as progress,
        ):
            found = vault.verify(kept, progress=progress)
    except DamagedDatabaseError as error:  # it cannot even be opened
        found = Verification.of_damage(error)
    print_result(
        found.to_dict(),
        as_json,
        *(f"Note: {note}" for note in found.notes),
        *(f"Problem: {problem}" for problem in found.problems),
        f"{counted(found.records, 'record')} and {counted(found.entries, 'entry', 'entries')}:"
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
