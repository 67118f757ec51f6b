"""The command `erase`."""

from collections.abc import Iterable
from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted
from armnesia.cli.output import print_result
from armnesia.cli.vault.options import IgnoreRetention, Purge, VaultOptions, with_vault_options
from armnesia.core.errors import InvalidInputError, PartlyErasedError
from armnesia.core.messages import counted
from armnesia.vault import OPERATOR_ONLY, HeldSource, SourceErasures


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
            found = vault.preview_erasure()
            rows = [f"Would be deleted at source {each.id}: {each.rows}" for each in found.sources]
            print_result(found.to_dict, as_json, *rows, f"Nothing was changed. {OPERATOR_ONLY}")
            return
        if status:
            found = vault.source_erasures()
        else:
            try:
                found = vault.erase_at_sources(purge=purge, ignore_retention=ignore_retention)
            except PartlyErasedError as error:
                _print(error.erasures, as_json, *erasure_lines(error.erasures.sources))
                raise
            except KeyboardInterrupt:
                raise Interrupted(
                    "interrupted; run armnesia erase again with the same options, which does the rest"
                ) from None
    _print(found, as_json, *([] if status else erasure_lines(found.sources)))


def _print(found: SourceErasures, as_json: bool, *done: str) -> None:
    """The sources, what was done there, and what is left to do."""
    shown = [f"Source {each.id}: {each.name}" for each in found.sources] or ["No source is counted."]
    print_result(found.to_dict, as_json, *shown, *done, *_due_lines(found))


def erasure_lines(sources: Iterable[HeldSource]) -> list[str]:
    """What an erasure has deleted at each source, and what may remain there."""
    lines = []
    for each in sources:
        if each.rows is not None:
            lines.append(f"Deleted at source {each.id}: {counted(each.rows, 'row')}.")
        lines += [f"May remain at source {each.id}: {text}" for text in each.remains]
    return lines or ["No row had to be deleted."]


def _due_lines(found: SourceErasures) -> list[str]:
    """What is left to do at each source, and by which command."""
    if not found.permitted:
        return ["This vault may not erase rows at its sources: it was created without that permission."]
    lines = []
    for each in found.sources:
        if each.to_erase:
            lines.append(f"Source {each.id} may have rows of forgotten people: run armnesia erase")
        if each.to_purge:
            lines.append(
                f"Source {each.id} is not purged: files or earlier versions still hold the rows; run"
                " armnesia erase --purge when the retention of the source is over"
            )
    return lines
