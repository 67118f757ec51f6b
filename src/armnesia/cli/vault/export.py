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
    as_json: opt.AsJson = False,
) -> None:
    """Write the ledger for an auditor, naming nobody.

    The file is JSON Lines: each line has the entries of one commit, as DSSE envelopes, which standard tools
    check. Whether a certificate belongs to it: armnesia certificate verify CERTIFICATE --public-key KEY
    --checkpoint FILE.
    """
    with options.open() as vault:
        done = vault.export(file)
    written = f"{counted(done.head.size, 'entry', 'entries')} written to {file}"
    print_result(done.to_dict, as_json, written, f"Head of the ledger: {done.head}")
