"""The commands `public-key` and `rotate-key`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import DEFAULT_TIMEOUT, Keys, Timeout, Url
from armnesia.core.errors import InvalidInputError
from armnesia.vault import DEFAULT_URL, Vault


def public_key(
    url: Url = DEFAULT_URL, keys: Keys = None, timeout: Timeout = DEFAULT_TIMEOUT, as_json: opt.AsJson = False
) -> None:
    """Print the public keys of the vault, the current one last.

    One per line: every key that the vault has signed with.
    """
    with Vault.open(url, keys=keys, timeout=timeout) as vault:
        found = vault.public_keys()
    print_result(found.to_dict(), as_json, *found)


def rotate_key(
    which: Annotated[str, typer.Argument(metavar="signing|digest", help="The key to replace.")],
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: opt.AsJson = False,
) -> None:
    """Make a new signing key or a new digest key.

    The digest key is that of the suppression list; the vault can be used while it is rotated, and an
    interrupted rotation is finished by the same command. Back the key file up afterwards.
    """
    if which not in ("signing", "digest"):
        raise InvalidInputError(f"the key must be signing or digest; got {which!r}")
    with Vault.open(url, keys=keys, timeout=timeout) as vault, counting_rows(quiet=as_json) as progress:
        if which == "signing":
            done = vault.rotate_signing_key()
        else:
            done = vault.rotate_digest_key(progress=progress)
    print_result(
        done.to_dict(),
        as_json,
        f"The {done.key} key is version {done.version} now. Back up its file: older copies do not have it.",
    )
