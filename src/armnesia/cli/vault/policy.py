"""The command `policy`."""

from typing import Any

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.parameters import with_options_of
from armnesia.cli.vault.options import VaultOptions, policy_changes, policy_text, with_vault_options


@with_options_of(policy_changes, "changes")
@with_vault_options
def policy(
    options: VaultOptions,
    changes: Any = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print or change the weakest guarantee that requests may get.

    A change holds from now on.
    """
    with options.open() as vault:
        done = vault.change_policy(**changes)
    print_result(
        done.to_dict(),
        as_json,
        f"A request may be answered with {policy_text(done.policy)}",
        *(["The policy is changed; the ledger has an entry for it."] if done.changed else []),
    )
