"""The command `finish`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.messages import counted
from armnesia.vault.results.notes import withheld_note


@with_vault_options
def finish(
    options: VaultOptions,
    since: Annotated[
        int, typer.Option(metavar="ENTRY", help="Only certificates of this ledger entry and later ones.")
    ] = 1,
    out_folder: Annotated[
        Path | None,
        typer.Option(help="Write the certificates that were signed again to this new folder."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Complete pending erasures and sign their certificates again.

    The written certificates name nobody; certificate show opens them. Exit code 1 if some stay pending, or
    are withheld.
    """
    with (
        options.open() as vault,
        counting_rows(quiet=as_json, name="signed") as progress,
    ):
        done = vault.finish(since=since, folder=out_folder, progress=progress)
    lines = [f"Erasure: {done.erasure}. Certificates signed again: {len(done.reissued)}"]
    if out_folder is not None and done.reissued:
        lines.append(f"Written to {out_folder}, named by their ledger entries; they name nobody")
    if done.erasure != "complete":
        stay = counted(done.pending, "certificate stays", "certificates stay")
        lines.append(f"{stay} pending: {done.pending_because}")
    if done.withheld:
        lines.append(withheld_note(done.withheld))
    print_result(done.to_dict, as_json, *lines)
    if not done.complete:
        raise typer.Exit(1)
