"""The command `export`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import DEFAULT_TIMEOUT, Keys, NewFile, Timeout, Url
from armnesia.core.messages import counted
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
    entries = counted(done.entries, "entry", "entries")
    written = f"{entries} and {counted(done.certificates, 'certificate')} written to {file}"
    print_result(done.to_dict(), as_json, written)
