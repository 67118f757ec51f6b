"""The command `ingest`."""

import warnings
from typing import Annotated, Any

import typer

from armnesia import datasets
from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted
from armnesia.cli.output import counting_rows, print_result
from armnesia.cli.vault.options import VaultOptions, with_vault_options
from armnesia.core.errors import ArmnesiaError
from armnesia.core.messages import counted, listed
from armnesia.logs import IF_PRESENT
from armnesia.vault import EXTERNAL, Ingested
from armnesia.vault.ledger.checkpoint import Checkpoint

_MOST_ACTIONS_SHOWN = 30
_DEFAULT_COLUMNS: dict[str, Any] = {
    "action": None,
    "reward": None,
    "user": IF_PRESENT,
    "id": None,
    "table": None,
    "where": None,
    "delimiter": None,
}
_AS_BEFORE = "if not given, as before"


@with_vault_options
def ingest(
    log: opt.LogArgument,
    options: VaultOptions,
    table: opt.Table = None,
    action_column: Annotated[str | None, typer.Option(help=f"Column of the action; {_AS_BEFORE}.")] = None,
    reward_column: Annotated[str | None, typer.Option(help=f"Column of the reward; {_AS_BEFORE}.")] = None,
    user_column: Annotated[str | None, typer.Option(help=f"Column of the user; {_AS_BEFORE}.")] = None,
    id_column: Annotated[
        str | None, typer.Option(help=f"Column of a permanent id of each row; {_AS_BEFORE}.")
    ] = None,
    where: opt.Where = None,
    delimiter: opt.Delimiter = None,
    no_user: Annotated[
        bool,
        typer.Option("--no-user", help="The rows belong to no user: the log has no user column."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Rows come in the place of those with their id: action, reward or key was corrected.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Add the rows of a log, each once.

    Rows of forgotten people are left out and counted.
    """
    columns: dict[str, Any] = {
        "action": action_column,
        "reward": reward_column,
        "user": user_column or (None if no_user else IF_PRESENT),
        "id": id_column,
        "table": table,
        "where": where,
        "delimiter": delimiter,
    }
    own = (
        "columns: leave --action-column, --reward-column, --user-column, --id-column, --no-user, --table,"
        " --where and --delimiter out"
    )
    if opt.is_bundled(log, by_default=columns == _DEFAULT_COLUMNS, own=own):
        log, columns = str(datasets.flights_path()), {**columns, **datasets.FLIGHTS_COLUMNS}
    opt.import_engine(log)
    before: tuple[int, Checkpoint] | None = None
    try:
        with options.open() as vault, counting_rows(quiet=as_json) as progress:
            before = vault.n_records, vault.head
            external = vault.configuration.mode == EXTERNAL
            may_erase = vault.configuration.may_erase_at_source
            done = vault.ingest(
                log,
                **columns,
                no_user=no_user,
                replace=replace,
                dry_run=dry_run,
                progress=progress,
            )
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_what_was_added(options, before)}") from None
    since = "then" if dry_run else "now"
    if done.actions_fixed is not None:
        warnings.warn(
            f"the actions of the vault {'would be' if dry_run else 'are'} fixed from {since} on:"
            f" {listed(done.actions_fixed, _MOST_ACTIONS_SHOWN)}; rows with another action will be refused"
            " until armnesia arms add offers it",
            stacklevel=2,
        )
    if done.already_there and done.id_column is None:
        warnings.warn(
            f"{counted(done.already_there, 'row')} not added: all columns are equal to those of a row that is"
            " there already; if they are different rows, give a column that distinguishes them with"
            " --id-column",
            stacklevel=2,
        )
    warn_of_gone_rows(-done.added, dry_run=dry_run)
    print_result(
        done.to_dict(),
        as_json,
        _counted_at_source(done) if external else _added(done, replace=replace),
        *([_left_at_source(done, may_erase=may_erase)] if external and done.suppressed else []),
        *([] if done.user_type_fixed is None else [f"User type from {since} on: {done.user_type_fixed}"]),
        f"Served now{', before the ingest' * dry_run}: {done.served}"
        if done.decisions is None
        else f"Decisions: {done.decisions}",
        *([_without_user(done)] if done.user_column is not None and done.without_user else []),
        *(
            [f"All sources {'would be' if dry_run else 'were'} counted again: {done.recounted_because}"]
            if done.recounted_because is not None
            else []
        ),
        *(["Nothing was changed."] if dry_run else []),
    )


def warn_of_gone_rows(number: int, *, dry_run: bool = False) -> None:
    """Warn that the sources of an external vault have fewer rows than were counted."""
    if number > 0:
        warnings.warn(
            f"rows that were counted are gone from the sources: {counted(number, 'row')} fewer"
            f" {'would count' if dry_run else 'count now'}; if they are gone by mistake, put them back (the"
            " file, or the rows of the table) and ingest the source again",
            stacklevel=3,
        )


def _added(done: Ingested, *, replace: bool) -> str:
    """What became of the rows, in a vault that holds them."""
    would_be = "would be " * done.dry_run
    replaced = f" {done.replaced} {would_be}replaced," if replace else ""
    return (
        f"{counted(done.rows, 'row')}: {done.added} {would_be}added,{replaced} {done.already_there} already"
        f" there, {done.suppressed} of forgotten people or records left out"
    )


def _without_user(done: Ingested) -> str:
    """Rows that no request of a person finds."""
    rows = counted(done.without_user or 0, "row has", "rows have")
    return (
        f"{rows} no user: no request to forget a person finds {'it' if done.without_user == 1 else 'them'}."
    )


def _counted_at_source(done: Ingested) -> str:
    """What was counted, in a vault whose rows stay at their sources."""
    left_out = f"{done.suppressed} of forgotten people or records left out"
    if done.recounted_because is not None:
        would = "would count" if done.dry_run else "count"
        change = f"as many {would} as before"
        if done.added:
            change = f"{abs(done.added)} {'more' if done.added > 0 else 'fewer'} than before {would}"
        return f"{counted(done.rows, 'row')} in all sources: {change}, {left_out}"
    if not done.rows:
        return "Nothing is new at the sources: all their rows were counted before."
    return f"{counted(done.rows, 'new row')}: {done.added} {'would be ' * done.dry_run}added, {left_out}"


def _left_at_source(done: Ingested, *, may_erase: bool) -> str:
    """Where the rows are that do not count, and how they are deleted."""
    lie = counted(
        done.suppressed, "row of forgotten people or records lies", "rows of forgotten people or records lie"
    )
    where = "the source" if done.recounted_because is None else "the sources"
    them = "it" if done.suppressed == 1 else "them"
    return f"{lie} at {where}: {'run armnesia erase' if may_erase else f'delete {them} there'}."


def _what_was_added(options: VaultOptions, before: tuple[int, Checkpoint] | None) -> str:
    """What an interrupted ingest has left in a vault that had so many records, and this head, before.

    None: it was not opened yet. The commit takes time: if it is interrupted, all rows may be in.
    """
    now = before
    try:
        if before is not None:
            with options.open() as vault:  # the interrupted connection may be unusable
                now = vault.n_records, vault.head
    except (ArmnesiaError, KeyboardInterrupt):
        now = None
    if now == before:
        return "nothing was ingested"
    return "the rows may be in; run the same command again to see: no row is added twice"
