"""The command `restore`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.messages import counted
from armnesia.vault import Vault


@with_vault_options
def restore(
    options: VaultOptions,
    journal: Annotated[
        Path | None,
        typer.Argument(metavar="JOURNAL", help="A copy of the journal. Default: the one beside the keys."),
    ] = None,
    as_it_is: Annotated[
        bool,
        typer.Option("--as-it-is", help="Also repair what something other than armnesia has changed."),
    ] = False,
    without_journal: Annotated[
        bool, typer.Option("--without-journal", help="The journal is lost: begin a new one.")
    ] = False,
    moved: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="OLD NEW", help="A source, by its name in status, and the place that it was moved to."
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="A source, by its name in status, that no longer exists."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Bring the vault in line with its journal.

    After a backup was copied back, everyone forgotten since is forgotten again. Also the repair after verify
    has found a problem, and the way to say that a source was moved or lost.
    """
    with counting_rows(quiet=as_json) as progress:
        done = Vault.restore(
            options.url,
            journal,
            keys=options.keys,
            timeout=options.timeout,
            as_it_is=as_it_is,
            without_journal=without_journal,
            moved=() if moved is None else (moved,),
            without=without or (),
            progress=progress,
        )
    lines = [f"{counted(done.replayed, 'ledger entry', 'ledger entries')} replayed from the journal."]
    if done.rows_deleted:
        lines.append(f"{counted(done.rows_deleted, 'row')} of forgotten people deleted again.")
    if done.recounted:
        lines.append("All sources were counted again.")
    if not done.as_it_was:
        lines.append("Something else had changed the rows or the state: they count as they are now.")
    if moved is None and not without:
        lines.append("If a backup was copied back, rows that came after it are missing: ingest them again.")
    if done.corrections_lost:
        number = counted(done.corrections_lost, "row")
        lines.append(f"{number} had been corrected since: ingest the corrections again with --replace.")
    lines.append(f"Head of the ledger: {done.head}")
    print_result(done.to_dict(), as_json, *lines)
