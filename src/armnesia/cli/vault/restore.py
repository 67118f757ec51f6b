"""The command `restore`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.messages import counted
from armnesia.vault import Vault


@with_vault_options
def restore(
    export_file: Annotated[Path, typer.Argument(metavar="EXPORT", help="Written by export --for-restore.")],
    options: VaultOptions,
    as_it_is: Annotated[
        bool, typer.Option("--as-it-is", help="Also a copy that something other than armnesia has changed.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Bring a vault copied back from a backup up to date.

    Everyone forgotten since the backup is forgotten again.
    """
    done = Vault.restore(
        options.url, export_file, keys=options.keys, timeout=options.timeout, as_it_is=as_it_is
    )
    print_result(
        done.to_dict(),
        as_json,
        f"{counted(done.replayed, 'ledger entry', 'ledger entries')} replayed: everyone forgotten since the"
        " backup is forgotten again",
        "Rows that were ingested after the backup are not in it: ingest them again.",
        *(
            [
                f"{counted(done.corrections_lost, 'row')} had been corrected after the backup: ingest the"
                " corrections again with --replace."
            ]
            if done.corrections_lost
            else []
        ),
    )
