"""The command `erase`."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted
from armnesia.cli.output import print_result, table
from armnesia.cli.vault.options import IgnoreRetention, Purge, VaultOptions, with_vault_options
from armnesia.core.errors import InvalidInputError, PartlyErasedError
from armnesia.core.messages import counted
from armnesia.vault import OPERATOR_ONLY, ErasurePreview, SourceErasures


@with_vault_options
def erase(
    options: VaultOptions,
    purge: Purge = False,
    ignore_retention: IgnoreRetention = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only print how far each source is; nothing is changed.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only print what would change."),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Delete rows of forgotten people at their sources.

    The vault must be created with --may-erase-at-source. After an interruption, run it again.
    """
    if (status or dry_run) and (purge or ignore_retention or (status and dry_run)):
        others = "--dry-run, --purge and --ignore-retention" if status else "--purge and --ignore-retention"
        raise InvalidInputError(
            f"{'--status' if status else '--dry-run'} changes nothing; give it without {others}"
        )
    with options.open() as vault:
        if dry_run:
            _print_preview(vault.preview_erasure(), as_json)
            return
        if status:
            found = vault.source_erasures()
        else:
            try:
                found = vault.erase_at_sources(purge=purge, ignore_retention=ignore_retention)
            except PartlyErasedError as error:
                print_erasures(error.erasures, as_json)
                raise
            except KeyboardInterrupt:
                raise Interrupted(
                    "interrupted; run armnesia erase again with the same options, which does the rest"
                ) from None
    is_claim = status and found.sources
    notes = ["This is what the ledger says: armnesia verify looks at the sources."] if is_claim else []
    print_erasures(found, as_json, *notes)


def print_erasures(found: SourceErasures, as_json: bool, *notes: str) -> None:
    """How far each source is, what was deleted there, and what is left to do."""
    columns = ["source", "state", "requests since", "at version", "purge from"]
    rows = [
        [each.number, each.state, each.pending, each.version or "", _minute(each.due)]
        for each in found.sources
    ]
    shown: list[Any] = [f"Source {each.number}: {each.name}" for each in found.sources]
    shown.append(table("Erased", columns, rows, unwrapped=columns[3:]) if rows else "No source is counted.")
    print_result(found.to_dict, as_json, *deleted_lines(found), *shown, *_lines(found), *notes)


def _print_preview(found: ErasurePreview, as_json: bool) -> None:
    """How many rows an erasure would delete."""
    rows = [[each.number, each.rows] for each in found.sources]
    shown: list[Any] = [f"Source {each.number}: {each.name}" for each in found.sources]
    shown.append(
        table("Would be deleted", ["source", "rows of forgotten people or records"], rows)
        if rows
        else "No source is counted."
    )
    print_result(found.to_dict, as_json, *shown, f"Nothing was changed. {OPERATOR_ONLY}")


def deleted_lines(found: SourceErasures) -> list[str]:
    """How many rows were deleted just now, for the screen."""
    if found.deleted is None:
        return []
    lines = [f"Deleted at source {each.number}: {counted(each.rows, 'row')}." for each in found.deleted]
    return lines or ["No row had to be deleted."]


def _minute(due: str | None) -> str:
    """A time of UTC to the minute, after it.

    >>> _minute("2026-11-23T23:29:06+00:00")
    '2026-11-23 23:30'
    """
    if due is None:
        return ""
    moment = datetime.fromisoformat(due).astimezone(UTC) + timedelta(minutes=1, microseconds=-1)
    return f"{moment:%Y-%m-%d %H:%M}"


def left_out_lines(found: SourceErasures) -> list[str]:
    """Where rows of people who were forgotten before have come with an ingest, and are still there."""
    remedy = "run armnesia erase" if found.permitted else "delete them there"
    return [
        f"Source {each.number} has rows of people or records that were forgotten before: {remedy}"
        for each in found.sources
        if each.left_out
    ]


def _pending_lines(found: SourceErasures) -> list[str]:
    """Where requests wait, and by which command they are erased."""
    if not found.permitted:
        return []
    return [
        f"Source {each.number}: {counted(each.pending, 'request')} since: run armnesia erase"
        for each in found.sources
        if each.pending
    ]


def purge_lines(found: SourceErasures) -> list[str]:
    """Where a purge is left to do, from when on, and by which command."""
    lines = []
    for each in found.sources:
        if each.purge_pending:
            waits = each.due is not None and datetime.fromisoformat(each.due) > datetime.now(UTC)
            then = f"from {_minute(each.due)} UTC on, run" if waits else "run"
            more = "" if waits else "; if that does not change it, what remains is said for the source"
            lines.append(
                f"Source {each.number} is not purged: files or earlier versions still hold the rows; {then}"
                f" armnesia erase --purge{more}"
            )
    return lines


def remains_lines(found: SourceErasures) -> list[str]:
    """Where rows or names may remain."""
    return [
        f"Remains at source {each.number}: {sentence}" for each in found.sources for sentence in each.remains
    ]


def _lines(found: SourceErasures) -> list[str]:
    """What is left to do and what remains at each source, and whether anything may be erased."""
    lines = [*_pending_lines(found), *left_out_lines(found), *purge_lines(found), *remains_lines(found)]
    lines += [
        f"Source {each.number} was dropped by ledger entry {each.entry} before rows were purged there; in"
        f" certificates it stays as it was: {counted(each.requests, 'request')}."
        for each in found.dropped
    ]
    if not found.permitted:
        lines.append("This vault may not erase rows at its sources: it was created without that permission.")
    return lines
