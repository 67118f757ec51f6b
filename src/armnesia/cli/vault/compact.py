"""The command `compact`."""

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import tell
from armnesia.cli.vault.options import DEFAULT_TIMEOUT, Keys, Timeout, Url
from armnesia.vault import DEFAULT_URL, Vault


def compact(
    url: Url = DEFAULT_URL, keys: Keys = None, timeout: Timeout = DEFAULT_TIMEOUT, as_json: opt.AsJson = False
) -> None:
    """Remove deleted bytes from the files of the database.

    This may take long. Exit code 1 if some remain.
    """
    with Vault.open(url, keys=keys, timeout=timeout) as vault:
        done = vault.compact()
    hint = "" if done.complete else ": another process still reads the old pages; try again"
    tell(done.to_dict(), as_json, f"Erasure: {done.erasure}{hint}")
    if not done.complete:
        raise typer.Exit(1)
