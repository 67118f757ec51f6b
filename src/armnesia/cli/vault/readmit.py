"""The command `readmit`."""

from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.parameters import with_options_of
from armnesia.cli.vault.options import DEFAULT_TIMEOUT, Keys, Timeout, Url
from armnesia.cli.vault.request import read_names
from armnesia.vault import DEFAULT_URL, Vault


@with_options_of(read_names, "named")
def readmit(
    named: dict[str, Any],
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    erase: Annotated[
        bool,
        typer.Option("--erase", help="Remove them from the suppression list: see docs/vault-reference.md."),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Accept new records of forgotten people again.

    Deleted records do not come back.
    """
    with Vault.open(url, keys=keys, timeout=timeout) as vault:
        done = vault.readmit(**named, erase=erase)
    lines = [f"{done.readmitted} readmitted: their new records are accepted from now on"]
    if done.erased:
        lines.append(
            "Their digests are erased: the suppression list no longer has them, certificate show no longer"
            " finds their certificate, and a backup from before their deletion, if it is restored, brings"
            " their old records back"
        )
    print_result(done.to_dict(), as_json, *lines)
