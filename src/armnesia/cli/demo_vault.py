"""The demo's vault: the bundled log goes in, aircraft are forgotten, and what happened is checked."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armnesia import datasets
from armnesia.cli.output import table
from armnesia.vault import Certificate, Configuration, Forgotten, Ingested, Served, Vault, Verification
from armnesia.vault.keys import private_files

COLUMNS: dict[str, Any] = {"action": "airline", "reward": "on_time", "user": "aircraft"}


@dataclass(frozen=True)
class VaultStory:
    """What each step gave, from the empty vault to the last check."""

    added: Ingested
    decided: Served
    forgotten: Forgotten
    sent_again: Ingested
    certificate: Certificate
    problems: list[str]
    verified: Verification
    file: Path

    @property
    def facts(self) -> dict[str, Any]:
        """The story as JSON names it."""
        return {
            "added": self.added.added,
            "served_before": self.decided.action,
            "forgotten": self.forgotten.records,
            "served": self.forgotten.served,
            "left_out_when_sent_again": self.sent_again.suppressed,
            "erasure": self.certificate.body["erasure"]["state"],
            "certificate": self.file,
            "certificate_problems": self.problems,
            "holds": self.verified.holds,
        }

    def steps(self, aircraft: list[str]) -> Any:
        """The story as commands and what they say."""
        users = " ".join(f"--user {name}" for name in aircraft)
        checked = f"{self.verified.records} records, {self.verified.entries} entries"
        rows = [
            ["init", "a database, its keys, a ledger with one entry"],
            ["ingest flights", f"{self.added.added} rows added"],
            ["decide", f"{self.decided.action}"],
            [f"forget {users}", f"{self.forgotten.records} records; now served: {self.forgotten.served}"],
            ["ingest flights", f"{self.sent_again.suppressed} rows of forgotten aircraft left out"],
            ["certificate verify", "NOT VALID" if self.problems else "valid"],
            ["verify", f"{checked}: {'as it should be' if self.verified.holds else 'WRONG'}"],
        ]
        return table("4. The same in a vault, for good", ["armnesia …", "what it says"], rows)


def vault_story(out: Path, aircraft: list[str], confidence: float) -> VaultStory:
    """Live through it in a vault of the moment; only a certificate stays, in the folder `out`."""
    log = datasets.flights_path()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/vault.db"
        told = Configuration(actions=datasets.flights().actions, confidence=confidence)
        with Vault.create(url, told) as vault:
            added = vault.ingest(log, **COLUMNS)
            decided = vault.decide()
            forgotten = vault.forget(users=aircraft)
            sent_again = vault.ingest(log, **COLUMNS)
            certificate = vault.certificate(users=aircraft[:1])
            problems = certificate.verify(vault.public_keys())
            verified = vault.verify()
    file = out / "certificate.json"
    private_files.write(file, certificate.to_json(), replace=True)
    return VaultStory(added, decided, forgotten, sent_again, certificate, problems, verified, file)
