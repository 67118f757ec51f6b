"""The command `upgrade`."""

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.vault import Vault


@with_vault_options
def upgrade(options: VaultOptions, as_json: opt.AsJson = False) -> None:
    """Upgrade a vault of an older version to this one.

    Back it up first.
    """
    done = Vault.upgrade(options.url, keys=options.keys, timeout=options.timeout)
    before, now = done.from_version, done.to_version
    text = f"Schema version {now}, as before." if before == now else f"Schema version {before} → {now}."
    recount = [
        f"Source {name} has to be counted again, by armnesia rebuild or armnesia ingest: until then nobody"
        " can be forgotten."
        for name in done.to_recount
    ]
    print_result(done.to_dict, as_json, text, *recount)
