"""The command that fills a vault: ingest."""

import warnings
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from armnesia import datasets
from armnesia.cli import options as opt
from armnesia.cli.main import Interrupted, load_beforehand
from armnesia.cli.output import counting_rows
from armnesia.cli.vault.options import Keys, Url, tell
from armnesia.core.errors import ArmnesiaError, InvalidInputError
from armnesia.core.messages import listed
from armnesia.vault import DEFAULT_URL, Vault
from armnesia.vault.state.connection import Opened, open_vault
from armnesia.vault.state.sealed_state import State

_MOST_ACTIONS_SHOWN = 30


def ingest(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL", help="CSV or Parquet files, a database with --table, or 'flights'."
        ),
    ],
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    action: opt.ActionColumn = "action",
    reward: opt.RewardColumn = "reward",
    user: Annotated[str | None, typer.Option("--user", help="Column of the user.")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Column that names each row, for good.")] = None,
    table_: Annotated[str | None, typer.Option("--table", help="The table of a database.")] = None,
    nobody: Annotated[
        bool, typer.Option("--nobody", help="The rows belong to nobody; said where people were forgotten.")
    ] = False,
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Commit every so many rows; all at once if not given.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Take rows in, each once, whatever is sent twice. Rows of forgotten people are left out and counted."""
    if source == opt.BUNDLED and not Path(source).exists():
        if (action, reward, user, id_) != ("action", "reward", None, None):
            raise InvalidInputError(
                f"the bundled log {opt.BUNDLED!r} has its own columns: leave --action, --reward, --user and"
                " --id out"
            )
        source, action, reward, user = str(datasets.flights_path()), "airline", "on_time", "aircraft"
    elif user is None and not nobody:
        warnings.warn(
            "without --user the rows belong to nobody, and no person's can be found again", stacklevel=2
        )
    if "://" not in source:
        load_beforehand("duckdb")  # reads files; otherwise it would be loaded in the midst of the transaction
    before: State | None = None
    try:
        opened = open_vault(url, keys)
        with Vault(opened) as vault, counting_rows(quiet=as_json) as progress:
            before = _state_of(opened)
            done = vault.ingest(
                source,
                action=action,
                reward=reward,
                user=user,
                id=id_,
                table=table_,
                nobody=nobody,
                batch_rows=batch_rows,
                progress=progress,
            )
            actions = vault.configuration.actions or ()
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_what_came_in(url, keys, before, batch_rows)}") from None
    if before.configuration.actions is None:
        warnings.warn(
            f"the vault's actions are fixed for good now: {listed(actions, _MOST_ACTIONS_SHOWN)}; rows with"
            " another one will be refused, so if one is missing, make a new vault with init --actions",
            stacklevel=2,
        )
    if done.already_there and id_ is None:
        warnings.warn(
            f"{done.already_there} rows were taken for rows that are there already, because all their columns"
            " are the same; if they are not, name a column that tells them apart by --id",
            stacklevel=2,
        )
    tell(
        asdict(done),
        as_json,
        f"{done.rows} rows: {done.added} added, {done.already_there} already there,"
        f" {done.suppressed} of forgotten people left out",
        f"Served now: {done.served}",
    )


def _what_came_in(url: str, keys: Path | None, before: State | None, batch_rows: int | None) -> str:
    """What an ingest that was interrupted has left in the vault, which is looked at once more.

    A commit takes a while, and an interruption in it comes when all rows are in.
    """
    if batch_rows is not None:
        return (
            "the batches finished so far are in, and the same command goes on where it stopped: nothing is"
            " added twice"
        )
    try:
        unchanged = before is None or _rows_in(_read_anew(url, keys)) == _rows_in(before)
    except (ArmnesiaError, KeyboardInterrupt):
        unchanged = False
    if unchanged:
        return "nothing was ingested"
    return "the rows may be in already: the same command tells, and adds nothing twice"


def _read_anew(url: str, keys: Path | None) -> State:
    opened = open_vault(url, keys)  # the connection that was interrupted may be of no use any more
    with closing(opened.database):
        return _state_of(opened)


def _state_of(opened: Opened) -> State:
    with opened.reading() as session:
        return opened.load(session)


def _rows_in(state: State) -> int:
    return 0 if state.stream is None else int(state.stream.statistics.total)
