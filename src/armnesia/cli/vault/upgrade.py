"""The command `upgrade`."""

from armnesia.cli import options as opt
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import DEFAULT_TIMEOUT, Keys, Timeout, Url
from armnesia.vault import DEFAULT_URL, Vault


def upgrade(
    url: Url = DEFAULT_URL, keys: Keys = None, timeout: Timeout = DEFAULT_TIMEOUT, as_json: opt.AsJson = False
) -> None:
    """Upgrade a vault of an older version to this one.

    Back it up first.
    """
    done = Vault.upgrade(url, keys=keys, timeout=timeout)
    before, now = done.from_version, done.to_version
    text = f"Schema version {now}, as before." if before == now else f"Schema version {before} → {now}."
    print_result(done.to_dict(), as_json, text)
