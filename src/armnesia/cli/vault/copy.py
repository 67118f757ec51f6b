"""The command `copy`."""

from pathlib import Path
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import Keys, Timeout
from armnesia.core.messages import counted
from armnesia.vault import Vault


def copy(
    source: Annotated[str, typer.Argument(metavar="URL", help="The vault.")],
    target: Annotated[str, typer.Argument(metavar="NEW_URL", help="Where the copy will be.")],
    keys: Keys = None,
    new_keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file of the copy's keys, by default as for a new vault; it may be that of the vault.",
        ),
    ] = None,
    timeout: Timeout = 30.0,
    as_json: opt.AsJson = False,
) -> None:
    """Copy a vault to another database.

    From SQLite to PostgreSQL, back, or to another place, with the same keys. Retire the old vault afterwards.
    """
    with Vault.open(source, keys=keys, timeout=timeout) as vault, counting_rows(quiet=as_json) as progress:
        old = vault.identity()
        done = vault.copy_to(target, keys=new_keys, timeout=timeout, progress=progress)
    print_result(
        done.to_dict(),
        as_json,
        f"{counted(done.records, 'record')} and the ledger up to {done.head} are at {done.location}",
        f"Keys: {done.keys_path}",
        f"Retire the old vault at {old.location}: whoever is forgotten in one of the two stays in the other,"
        " and both continue the same ledger. Delete it and its backups once the copy is verified.",
    )
