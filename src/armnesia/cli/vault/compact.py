"""The command `compact`."""

import time

from armnesia.cli import options as opt
from armnesia.cli.output import counting_seconds, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options


@with_vault_options
def compact(options: VaultOptions, as_json: opt.AsJson = False) -> None:
    """Remove deleted bytes from the files of the database.

    Writers wait meanwhile; on PostgreSQL readers, too. An entry of the ledger says so.
    """
    with options.open() as vault, counting_seconds(None, quiet=as_json):
        start = time.monotonic()
        done = vault.compact()
        seconds = time.monotonic() - start
    said = f"Deleted bytes have left the files of the database (entry {done.entry})."
    print_result({**done.to_dict(), "seconds": seconds}, as_json, said)
