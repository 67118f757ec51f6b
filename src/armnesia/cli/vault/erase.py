"""The command `erase`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, table
from armnesia.cli.vault.options import IgnoreRetention, Purge, VaultOptions, with_vault_options
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted
from armnesia.vault import SourceErasure, SourceErasures


@with_vault_options
def erase(
    options: VaultOptions,
    purge: Purge = False,
    ignore_retention: IgnoreRetention = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only print how far each source is; nothing is changed.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Delete rows of forgotten people at their sources.

    The vault must be created with --may-erase-at-source. An erasure that was interrupted is finished.
    """
    if status and (purge or ignore_retention):
        raise InvalidInputError("--status changes nothing; give it without --purge and --ignore-retention")
    with options.open() as vault:
        if status:
            found = vault.source_erasures()
        else:
            found = vault.erase_at_sources(purge=purge, ignore_retention=ignore_retention)
    columns = ["source", "", "state", "requests since", "versions", "purge from"]
    rows = [
        [each.number, each.name, _state(each), each.pending, _versions(each), each.due or ""]
        for each in found.sources
    ]
    print_result(found.to_dict, as_json, table("Sources", columns, rows), *_lines(found))


def _state(each: SourceErasure) -> str:
    return f"{each.state}, an erasure is not finished" if each.interrupted else each.state


def _versions(each: SourceErasure) -> str:
    return "" if each.after is None else f"{each.before} to {each.after}"


def _lines(found: SourceErasures) -> list[str]:
    """What remains at each source, and whether anything may be erased."""
    lines = [
        f"Remains at source {each.number}: {sentence}" for each in found.sources for sentence in each.remains
    ]
    lines += [
        f"Source {each.number} was dropped by ledger entry {each.entry} before its rows were erased there; in"
        f" certificates it stays as it was: {counted(each.requests, 'request')}."
        for each in found.dropped
    ]
    if not found.permitted:
        lines.append("This vault may not erase rows at its sources: it was created without that permission.")
    return lines
