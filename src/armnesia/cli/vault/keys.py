"""The commands `public-key` and `rotate-key`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed
from armnesia.vault import PublicKeys, Vault


@with_vault_options
def public_key(
    options: VaultOptions,
    of: Annotated[
        str | None,
        typer.Option(metavar="VAULT", help="The keys of a vault that this one succeeds, by its id."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print the public keys of the vault, the current one last.

    One per line: every key that the vault has signed with. --json prints the list to publish, which also says
    from which to which ledger entry each key signed.
    """
    with options.open() as vault:
        found = vault.public_keys() if of is None else _keys_of(vault, of)
    print_result(found.to_dict, as_json, *found)


def _keys_of(vault: Vault, named: str) -> PublicKeys:
    """The keys of a vault that this one succeeds, as they were then."""
    before = {keys.vault: keys for keys in vault.predecessors()}
    if named not in before:
        known = f"it succeeds {listed(before)}" if before else "it succeeds none"
        raise InvalidInputError(
            f"--of must be the id of a vault that this one succeeds, and {known}; got {named!r}"
        )
    return before[named]


@with_vault_options
def rotate_key(
    which: Annotated[str, typer.Argument(metavar="signing|digest", help="The key to replace.")],
    options: VaultOptions,
    compromised_since: Annotated[
        int | None,
        typer.Option(
            metavar="ENTRY",
            help="The signing key was stolen: certificates signed since this entry must be issued again.",
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Make a new signing key or a new digest key.

    The digest key is that of the suppression list; the vault can be used while it is rotated, and an
    interrupted rotation is finished by the same command. Back the key file up afterwards.
    """
    if which not in ("signing", "digest"):
        raise InvalidInputError(f"the key must be signing or digest; got {which!r}")
    if which == "digest" and compromised_since is not None:
        raise InvalidInputError("--compromised-since is for the signing key: a digest key signs nothing")
    with options.open() as vault, counting_rows(quiet=as_json) as progress:
        if which == "signing":
            done = vault.rotate_signing_key(compromised_since=compromised_since)
        else:
            done = vault.rotate_digest_key(progress=progress)
    lines = [
        f"The {done.key} key is version {done.version} now. Back up its file: older copies do not have it."
    ]
    if which == "signing":
        lines.append("Publish the new list of public keys: armnesia public-key --json")
        lines.append(
            "Export again for auditors, who cannot decide with an older export: armnesia export FILE"
        )
    if compromised_since is not None:
        lines.append(
            f"Certificates signed since entry {compromised_since} must be issued again: armnesia status says"
            " how many; armnesia certificate show issues one, armnesia finish all."
        )
    print_result(done.to_dict, as_json, *lines)
