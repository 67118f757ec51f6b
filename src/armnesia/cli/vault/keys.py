"""The commands `public-key` and `rotate-key`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options


@with_vault_options
def public_key(options: VaultOptions, as_json: opt.AsJson = False) -> None:
    """Print the public keys of the vault, the current one last.

    Compromised ones are left out. --json prints the list to publish.
    """
    with options.open() as vault:
        found = vault.public_keys()
    print_result(found.to_dict, as_json, *found.keys)


@with_vault_options
def rotate_key(
    options: VaultOptions,
    compromised_since: Annotated[
        int | None,
        typer.Option(
            metavar="ENTRY",
            help="The key was stolen: what it signed since this entry is not to be believed.",
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Make a new signing key.

    Back the key file up afterwards.
    """
    with options.open() as vault:
        done = vault.rotate_signing_key(compromised_since=compromised_since)
    lines = [
        f"The signing key is version {done.version} now. Back up its file: older copies do not have it.",
        "Publish the new list of public keys: armnesia public-key --json",
    ]
    if compromised_since is not None:
        lines.append(
            "Certificates with a checkpoint of an old key are refused now: run armnesia verify, then hand out"
            " new ones (armnesia certificate show)."
        )
    print_result(done.to_dict, as_json, *lines)
