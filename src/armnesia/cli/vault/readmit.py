"""The command `readmit`."""

from typing import Any

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
    as_json: opt.AsJson = False,
) -> None:
    """Accept records of forgotten people again.

    It brings nothing back by itself. Old records that a source still has come in if it is ingested again.
    """
    with options.open() as vault:
        done = vault.readmit(**named)
    lines = [
        f"{done.readmitted} readmitted: their records are accepted from now on, old ones too if a source"
        " that has them is ingested again"
    ]
    print_result(done.to_dict, as_json, *lines)
