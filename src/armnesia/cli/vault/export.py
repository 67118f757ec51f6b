"""The command `export`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.messages import counted


@with_vault_options
def export(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file to write; an older export of the vault is replaced."),
    ],
    options: VaultOptions,
    for_restore: Annotated[
        bool, typer.Option("--for-restore", help="Also the suppression list, as keyed digests.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write a file for an auditor, or for restore.

    Without personal data; with --for-restore also the suppression list, as keyed digests.
    """
    with options.open() as vault:
        done = vault.export(file, for_restore=for_restore)
    entries = counted(done.entries, "entry", "entries")
    written = f"{entries} and {counted(done.certificates, 'certificate')} written to {file}"
    print_result(done.to_dict, as_json, written)
