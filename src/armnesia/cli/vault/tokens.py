"""The commands `token create`, `token list` and `token revoke`."""

import sys
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, table
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.vault import Token


@with_vault_options
def token_create(
    options: VaultOptions,
    role: Annotated[str, typer.Option(metavar="reader|operator|admin", help="What its holder may do.")],
    name: Annotated[str, typer.Option(help="Who holds it, for the list.")] = "",
    days: Annotated[int, typer.Option(help="For how many days it is accepted.")] = 90,
    as_json: opt.AsJson = False,
) -> None:
    """Make a token for the service; it is printed once, and stored nowhere."""
    with options.open() as vault:
        made = vault.create_token(role, name=name, days=days)
    print_result(made.to_dict, as_json, made.text)
    if not as_json:  # on stderr, so that TOKEN=$(armnesia token create …) is the token alone
        print(
            f"Token {made.token.number}, {made.token.role}, accepted until {made.token.expires}. It is not"
            " stored: keep it like a password.",
            file=sys.stderr,
        )


@with_vault_options
def token_list(options: VaultOptions, as_json: opt.AsJson = False) -> None:
    """Print all tokens of the service, without their texts."""
    with options.open() as vault:
        found = vault.tokens()
    rows = [
        [each.number, each.role, each.name, _accepted_until(each), each.last_used, each.uses]
        for each in found
    ]
    columns = ["", "role", "name", "accepted until", "last used", "uses"]
    print_result(found.to_dict, as_json, table("Tokens", columns, rows, unwrapped=columns[3:]))


def _accepted_until(token: Token) -> str:
    return token.expires if token.revoked is None else f"{token.revoked}, revoked"


@with_vault_options
def token_revoke(
    number: Annotated[int, typer.Argument(help="The number of the token, as in the list.")],
    options: VaultOptions,
    as_json: opt.AsJson = False,
) -> None:
    """Refuse a token from now on; a running service does so within a second."""
    with options.open() as vault:
        token = vault.revoke_token(number)
    print_result(token.to_dict, as_json, f"Token {token.number} is refused since {token.revoked}.")
