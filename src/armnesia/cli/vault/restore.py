"""The command `restore`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.messages import counted
from armnesia.vault import Vault

_NOT_IN_IT = "Rows that were ingested after the backup are not in it: ingest them again."
_REPAIRED = (
    "The suppression list, the answered requests or the commitments had been changed by something other than"
    " armnesia; they are those of the export again."
)
_RECOUNTED = (
    "The sources that the backup names were counted again; those that were first ingested after it are not"
    " in it: ingest them again."
)


@with_vault_options
def restore(
    export_file: Annotated[Path, typer.Argument(metavar="EXPORT", help="Written by export --for-restore.")],
    options: VaultOptions,
    as_it_is: Annotated[
        bool, typer.Option("--as-it-is", help="Also a copy that something other than armnesia has changed.")
    ] = False,
    moved: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="OLD NEW", help="A source, by its name in status, and the place that it was moved to."
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Bring a vault copied back from a backup up to date.

    Everyone forgotten since the backup is forgotten again.
    """
    done = Vault.restore(
        options.url,
        export_file,
        keys=options.keys,
        timeout=options.timeout,
        as_it_is=as_it_is,
        moved=() if moved is None else (moved,),
    )
    print_result(
        done.to_dict(),
        as_json,
        f"{counted(done.replayed, 'ledger entry', 'ledger entries')} replayed: everyone forgotten since the"
        " backup is forgotten again",
        *([_REPAIRED] if done.lists_repaired else []),
        _RECOUNTED if done.recounted else _NOT_IN_IT,
        *(
            [
                f"{counted(done.corrections_lost, 'row')} had been corrected after the backup: ingest the"
                " corrections again with --replace."
            ]
            if done.corrections_lost
            else []
        ),
    )
