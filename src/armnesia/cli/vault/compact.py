"""The command `compact`."""

import time

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_seconds, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.vault import CompactionEstimate


@with_vault_options
def compact(options: VaultOptions, as_json: opt.AsJson = False) -> None:
    """Remove deleted bytes from the files of the database.

    Says first how long others have to wait. Exit code 1 if some bytes remain.
    """
    with options.open() as vault:
        estimate = vault.estimate_compaction()
        if not as_json:
            print_result({}, False, _announcement(estimate))
        with counting_seconds(estimate.seconds, quiet=as_json):
            start = time.monotonic()
            done = vault.compact()
            seconds = time.monotonic() - start
    result = {**done.to_dict(), "seconds": seconds, "estimate": estimate.to_dict()}
    because = "" if done.complete else f": {done.pending_because}; try again"
    print_result(result, as_json, f"Erasure: {done.erasure}{because}")
    if not done.complete:
        raise typer.Exit(1)


def _announcement(estimate: CompactionEstimate) -> str:
    """What is about to happen, for the operator to interrupt.

    >>> _announcement(CompactionEstimate(1_500_000_000, 41.2, "writers"))
    'Rewriting 1,500 MB; writers wait for about 41 s'
    """
    size = f"Rewriting {max(1, round(estimate.bytes / 1e6)):,} MB; {estimate.blocks} wait for"
    if estimate.seconds is None:
        return f"{size} a time that could not be estimated"
    return f"{size} about {max(1, round(estimate.seconds))} s"
