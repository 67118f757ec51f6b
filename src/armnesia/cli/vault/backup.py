"""The command `backup`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.vault import EXTERNAL


@with_vault_options
def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write; one that exists is refused.")
    ],
    options: VaultOptions,
    as_json: opt.AsJson = False,
) -> None:
    """Copy an SQLite vault, as of one moment, to a new file."""
    with options.open() as vault:
        done = vault.back_up(file)
        external = vault.configuration.mode == EXTERNAL
    has = "It counts rows" if external else "It has the records"
    print_result(
        done.to_dict(),
        as_json,
        f"Written to {file}. {has} of people who may be forgotten later: after copying it back, run armnesia"
        " restore. The keys and the journal beside them are not in it: back them up, too, elsewhere.",
    )
