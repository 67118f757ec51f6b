"""The vault of the demo: ingest the bundled log, forget aircraft, ingest it again, and verify."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armnesia import datasets
from armnesia.cli.output import table
from armnesia.cli.vault.flights_vault import flights_configuration, vault_url
from armnesia.cli.vault.verify import number_of_problems
from armnesia.core.messages import counted
from armnesia.vault import (
    Certificate,
    Forgotten,
    Ingested,
    Served,
    Vault,
    Verification,
)
from armnesia.vault.keys import private_files


@dataclass(frozen=True)
class VaultSteps:
    """The results of each step."""

    added: Ingested
    decided: Served
    forgotten: Forgotten
    sent_again: Ingested
    certificate: Certificate
    problems: list[str]
    verified: Verification
    file: Path

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        return {
            "added": self.added.added,
            "served_before": self.decided.action,
            "forgotten": self.forgotten.records,
            "served": self.forgotten.served,
            "left_out_when_sent_again": self.sent_again.suppressed,
            "certificate": self.file,
            "certificate_problems": self.problems,
            "holds": self.verified.holds,
        }

    def table(self, aircraft: list[str]) -> Any:
        """The steps as commands, with their results."""
        users = " ".join(f"--user {name}" for name in aircraft)
        records = counted(self.verified.records, "record")
        entries = counted(self.verified.entries, "entry", "entries")
        rows = [
            ["init", "a database, its keys, and a ledger with one entry"],
            ["ingest flights", f"{self.added.added} rows added"],
            ["decide", f"{self.decided.action}"],
            [f"forget {users}", f"{self.forgotten.records} records; now served: {self.forgotten.served}"],
            ["ingest flights", f"{self.sent_again.suppressed} rows of forgotten aircraft left out"],
            ["certificate verify", "not valid" if self.problems else "valid"],
            ["verify", f"{records}, {entries}: {number_of_problems(self.verified.problems)}"],
        ]
        return table("4. The same in a vault", ["armnesia …", "result"], rows)


def run_vault(out: Path, aircraft: list[str], confidence: float) -> VaultSteps:
    """Run the steps in a temporary vault; only a certificate is kept, in the folder `out`."""
    log = datasets.flights_path()
    with (
        tempfile.TemporaryDirectory() as folder,
        Vault.create(vault_url(folder), flights_configuration(confidence)) as vault,
    ):
        added = vault.ingest(log, **datasets.FLIGHTS_COLUMNS)
        decided = vault.decide()
        forgotten = vault.forget(users=aircraft)
        sent_again = vault.ingest(log, **datasets.FLIGHTS_COLUMNS)
        certificate = vault.certificate(users=aircraft[:1])
        problems = certificate.verify(vault.public_keys())
        verified = vault.verify()
    file = out / "certificate.json"
    file.unlink(missing_ok=True)  # of an earlier demo
    private_files.write(file, certificate.to_json())
    return VaultSteps(added, decided, forgotten, sent_again, certificate, problems, verified, file)
