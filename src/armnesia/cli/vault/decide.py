"""What `decide` prints of a vault."""

from pathlib import Path

from armnesia.cli.output import print_result
from armnesia.vault import Served, Vault

_REASONS = {
    "default": "by default: there is no record to decide from",
    "learner": "decided by the learner, from all records",
    "release": "drawn, once, when records were last forgotten",
}


def decide_in_vault(url: str, keys: Path | None, timeout: float, as_json: bool) -> None:
    """Print the arm that the vault serves."""
    with Vault.open(url, keys=keys, timeout=timeout) as vault:
        served = vault.decide()
    print_result(served.to_dict(), as_json, f"Served: {served_text(served)}")


def served_text(served: Served) -> str:
    """The served arm, and why it is served."""
    if served.action is None:
        return "nothing yet: the vault has no actions before a log is ingested"
    return f"{served.action} ({_REASONS[served.by]})"
