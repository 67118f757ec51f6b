"""The command `ledger`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_long_json, print_result, table
from armnesia.cli.vault.options import StoredHead, VaultOptions, with_vault_options
from armnesia.cli.vault.served import equations
from armnesia.cli.vault.verify import number_of_problems
from armnesia.core.errors import InvalidInputError
from armnesia.core.files import check_new_file
from armnesia.core.messages import counted
from armnesia.vault import Entry, Head

_ROWS_PER_TABLE = 1000


@with_vault_options
def ledger(
    options: VaultOptions,
    head_only: Annotated[
        bool, typer.Option("--head-only", help="Only the head, to be stored elsewhere.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the entries to this new file, one per line, as they are hashed."),
    ] = None,
    head: StoredHead = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print or check the ledger.

    It has no identifier and no reward. Exit code 1 if the check with --head finds problems.
    """
    if sum((head_only, export is not None, head is not None)) > 1:
        raise InvalidInputError("--head-only, --export and --head exclude each other; give one")
    if head is not None:
        _check(options, Head.parse(head), as_json)
        return
    if export is not None:
        check_new_file(export)
    with options.open() as vault:
        if head_only:
            print_result({"head": vault.head}, as_json, str(vault.head))
            return
        entries = vault.ledger()
    if export is not None:
        entries.save(export)
        result = {"head": entries.head, "entries": len(entries), "file": export}
        written = counted(len(entries), "entry", "entries")
        print_result(result, as_json, f"{written} written to {export}; head {entries.head}")
    elif as_json:
        print_long_json({"head": entries.head}, "entries", (entry.fields for entry in entries))
    else:
        for start in range(0, len(entries), _ROWS_PER_TABLE):
            print_result({}, False, _table(entries[start : start + _ROWS_PER_TABLE]))
        print_result({}, False, f"Head: {entries.head}")


def _check(options: VaultOptions, stored: Head, as_json: bool) -> None:
    with options.open(accept="any") as vault:
        found = vault.check_ledger(stored)
    print_result(
        found.to_dict(),
        as_json,
        *(f"Problem: {problem}" for problem in found.problems),
        f"The ledger against head {stored}: {number_of_problems(found.problems)}",
    )
    if not found.holds:
        raise typer.Exit(1)


def _table(entries: Sequence[Entry]) -> Any:
    """One row per entry, readable in 80 columns: only the details are wrapped."""
    rows = [
        [
            entry.sequence,
            entry.time[:19].replace("T", " "),
            entry.kind,
            _details(entry),
            entry.fields.get("released", ""),
        ]
        for entry in entries
    ]
    columns = ["", "time (UTC)", "kind", "details", "released"]
    return table("The ledger", columns, rows, unwrapped=columns[:3])


def _details(entry: Entry) -> str:
    """Which unlearner answered at which level, which arm came or went where, how many rows were corrected."""
    fields = entry.fields
    if "unlearner" in fields:
        return f"{fields['unlearner']['name']}, {fields.get('level', '')}"
    if entry.kind in {"add_arm", "retire_arm"}:
        where = equations(fields["where"])
        new_rows = f"; new rows: {fields['new_rows']}" if "new_rows" in fields else ""
        return f"{fields['arm']}{f' where {where}' if where else ''}{new_rows}"
    if entry.kind == "rebuild":
        return _rebuilt(fields)
    if entry.kind == "erase_source":
        return f"source {fields['source']}: {fields['state']}"
    if entry.kind == "user_type":
        return str(fields["user_type"])
    return counted(fields["replaced"], "row replaced", "rows replaced") if entry.kind == "correct" else ""


def _rebuilt(fields: Mapping[str, Any]) -> str:
    """What a rebuild did; older entries say how many sources were dropped, and not which."""
    what = "changed" if fields["changed"] else "nothing changed"
    numbers = fields.get("dropped", ())
    which = f"source {', '.join(map(str, numbers))}" if numbers else ""
    if not numbers and fields.get("sources_dropped"):
        which = counted(fields["sources_dropped"], "source")
    moved = "".join(f"; source {number} moved" for number in fields.get("moved", ()))
    return f"{what}; {which} dropped" if which else what + moved
