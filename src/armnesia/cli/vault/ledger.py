"""The command `ledger`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_as_utf8, print_long_json, print_result, table
from armnesia.cli.vault.options import (
    CheckpointFile,
    VaultOptions,
    policy_text,
    read_checkpoint,
    with_vault_options,
)
from armnesia.cli.vault.served import equations
from armnesia.cli.vault.verify import number_of_problems
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted, listed
from armnesia.vault import Configuration, Entry

_ROWS_PER_TABLE = 1000


@with_vault_options
def ledger(
    options: VaultOptions,
    checkpoint_only: Annotated[
        bool,
        typer.Option("--checkpoint-only", help="Only the signed checkpoint, to be stored elsewhere."),
    ] = False,
    checkpoint: CheckpointFile = None,
    witness: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL", help='Send every checkpoint there from now on; "" ends it. See status.'
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print the ledger, or compare it with a checkpoint.

    It has no identifier and no reward. Exit code 1 if the check finds problems.
    """
    if checkpoint_only and checkpoint is not None:
        raise InvalidInputError("--checkpoint-only and --checkpoint exclude each other; give one")
    if checkpoint is not None:
        _check(options, read_checkpoint(checkpoint), as_json)
        return
    with options.open() as vault:
        if witness is not None:
            vault.name_witness(witness)
            status = vault.status()
            told = f"{status.witness} has {counted(status.witnessed, 'entry', 'entries')} now"
            result = {"witness": status.witness, "witnessed": status.witnessed}
            print_result(result, as_json, f"Witness: {told if status.witness else 'none'}")
            return
        if checkpoint_only:
            note = vault.checkpoint()
            if as_json:
                print_result({"head": vault.head, "checkpoint": note}, as_json)
            else:
                print_as_utf8(note)
            return
        found = vault.ledger()
    if as_json:
        print_long_json({"head": found.head}, "entries", found.to_dict()["entries"])
        return
    entries = found.entries
    for start in range(0, len(entries), _ROWS_PER_TABLE):
        print_result({}, False, _table(entries[start : start + _ROWS_PER_TABLE]))
    print_result({}, False, f"Head: {found.head}")


def _check(options: VaultOptions, kept: str, as_json: bool) -> None:
    with options.open(checked=False) as vault:
        found = vault.check_ledger(kept)
    print_result(
        found.to_dict(),
        as_json,
        *(f"Problem: {problem}" for problem in found.problems),
        f"The ledger against the checkpoint of {counted(found.size, 'entry', 'entries')}:"
        f" {number_of_problems(found.problems)}",
    )
    if not found.holds:
        raise typer.Exit(1)


def _table(entries: Sequence[Entry]) -> Any:
    """One row per entry, readable in 80 columns: only the details are wrapped."""
    rows = [
        [
            entry.number,
            entry.time[:19].replace("T", " "),
            entry.kind,
            _details(entry),
            entry.facts.get("released", ""),
        ]
        for entry in entries
    ]
    columns = ["", "time (UTC)", "kind", "details", "released"]
    return table("The ledger", columns, rows, unwrapped=columns[:3])


def _details(entry: Entry) -> str:
    """Which unlearner answered at which level, which arm came or went where, what was repaired."""
    facts, words = entry.facts, ""
    match entry.kind:
        case "forget":
            words = f"{facts['unlearner']['name']}, {facts['level']}"
        case "arms":
            where = equations(facts["where"])
            what = "offered" if facts["offered"] else "retired"
            new_rows = f"; new rows: {facts['new_rows']}" if "new_rows" in facts else ""
            words = f"{facts['arm']} {what}{f' where {where}' if where else ''}{new_rows}"
        case "correct":
            words = counted(facts["replaced"], "row replaced", "rows replaced")
        case "erased":
            words = f"source {facts['source']}, up to entry {facts['through']}"
        case "restored":
            words = f"{counted(facts['replayed'], 'entry', 'entries')} replayed"
        case "signing_key":
            words = f"version {facts['version']}"
        case "readmit":
            words = f"of {'entry' if len(facts['ends']) == 1 else 'entries'} {listed(facts['ends'])}"
        case "policy":
            words = policy_text(Configuration.from_dict(facts["configuration"]).policy)
        case "configured":
            made = Configuration.from_dict(facts["configuration"])
            words = f"arms {listed(made.actions or (), 5)}; user type {made.user_type or 'not known yet'}"
        case "token_revoked":
            words = f"token {facts['token']}"
    return words
