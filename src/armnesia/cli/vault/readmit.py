"""The command `readmit`."""

from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.names import read_names
from armnesia.cli.output import print_result
from armnesia.cli.parameters import with_options_of
from armnesia.cli.vault.options import VaultOptions, with_vault_options


@with_options_of(read_names, "named")
@with_vault_options
def readmit(
    named: dict[str, Any],
    options: VaultOptions,
    erase: Annotated[
        bool,
        typer.Option("--erase", help="Remove them from the suppression list: see docs/vault-reference.md."),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Accept records of forgotten people again.

    It brings nothing back by itself. Old records that a source still has come in if it is ingested again.
    """
    with options.open() as vault:
        done = vault.readmit(**named, erase=erase)
    lines = [
        f"{done.readmitted} readmitted: their records are accepted from now on, old ones too if a source"
        " that has them is ingested again"
    ]
    if done.erased:
        lines.append(
            "Their digests are erased: the suppression list no longer has them, certificate show no longer"
            " finds their certificate, and a backup from before their deletion, if it is restored, brings"
            " their old records back"
        )
    print_result(done.to_dict, as_json, *lines)
