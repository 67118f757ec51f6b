"""The command `rebuild`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.messages import counted

_INDEXES = "The indexes of the vault's tables were made again."
_EXPORT = (
    "The ledger has a new entry: run armnesia export --for-restore, because restore needs the latest export."
)


@with_vault_options
def rebuild(
    options: VaultOptions,
    without: Annotated[
        list[str] | None,
        typer.Option(help="A source, by its name in status, that no longer exists: its rows stop counting."),
    ] = None,
    unerased: Annotated[
        bool,
        typer.Option(
            "--unerased", help="Drop sources although rows of forgotten people are not erased there."
        ),
    ] = False,
    moved: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="OLD NEW", help="A source, by its name in status, and the place that it was moved to."
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Recompute the statistics from the rows or sources.

    Forgotten people are left out.
    """
    with (
        options.open(accept="damaged") as vault,
        counting_rows(quiet=as_json) as progress,
    ):
        done = vault.rebuild(without=without or (), unerased=unerased, moved=moved, progress=progress)
    if done.moved is not None:
        text = f"Source {done.moved[0]!r} is counted at {done.moved[1]!r} from now on, by the same number."
        print_result(done.to_dict, as_json, text, _EXPORT)
        return
    dropped = [f"Dropped: source {name!r}; its rows no longer count." for name in done.dropped]
    deleted = []
    if done.rows_deleted:
        deleted = [f"Deleted: {counted(done.rows_deleted, 'row')} of forgotten people or records."]
    text = "The statistics have not changed."
    if done.changed:
        text = "The statistics were recomputed: they have changed, or what they are computed from has."
    print_result(done.to_dict, as_json, *dropped, *deleted, text, _INDEXES, _EXPORT)
