"""The command `export`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import tell
from armnesia.cli.vault.options import DEFAULT_TIMEOUT, Keys, NewFile, Timeout, Url
from armnesia.vault import DEFAULT_URL, Vault


def export(
    file: NewFile,
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    for_restore: Annotated[
        bool, typer.Option("--for-restore", help="Also the suppression list, as keyed digests.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write a file for an auditor, or for restore.

    Without personal data; with --for-restore also the suppression list, as keyed digests.
    """
    with Vault.open(url, keys=keys, timeout=timeout) as vault:
        done = vault.export(file, for_restore=for_restore)
    written = f"{done.entries} entries and {done.certificates} certificates written to {file}"
    tell(done.to_dict(), as_json, written)
