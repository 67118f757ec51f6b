"""The command `rebuild`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options


@with_vault_options
def rebuild(
    options: VaultOptions,
    without: Annotated[
        list[str] | None,
        typer.Option(help="A source, by its name in status, that no longer exists: its rows stop counting."),
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
        done = vault.rebuild(without=without or (), progress=progress)
    dropped = [f"Dropped: source {name!r}; its rows no longer count." for name in done.dropped]
    text = "The statistics were recomputed and have changed."
    if not done.changed:
        text = "The statistics have not changed." if dropped else "Nothing to change."
    print_result(done.to_dict, as_json, *dropped, text)
