"""Ingesting: every row comes in once, and a batch comes in whole or not at all."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError, InvalidLogError, VaultError
from armnesia.core.progress import Progress
from armnesia.logs import CHUNK, Rows, Source, storable_labels, warn_of_propensities
from armnesia.logs.user_names import UserNames
from armnesia.vault.results import Ingested
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.owner_tallies import IdIndexCheck
from armnesia.vault.state.record_loader import RecordComparison, RecordLoader, user_type_for
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import refuse_other_columns
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session

UserColumn: TypeAlias = Literal["named", "none", "unstated"]
"""What the caller says of the users of a source: which column names them, that there are none, or nothing.

It is unstated also where the column was found because it is called `user`.
"""

_MOST_UNDECLARED = 100
"""Actions that a first ingest may fix; a column with more values rather holds people, times or prices."""


def ingest(
    connection: VaultConnection,
    source: Source,
    *,
    users: UserColumn = "named",
    other_columns: bool = False,
    batch_rows: int | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Add the rows of a source, in one transaction or in one per `batch_rows` rows.

    A batch that fails leaves nothing. Rows that came in with earlier batches of the same source are not added
    twice when it is ingested again. Once people were forgotten, a source whose user column was not named
    could bring their rows back unnoticed: it is refused, unless `users` states that its rows belong to none.
    So is a source with another action or reward column, unless `other_columns` states that it means the same.
    With `dry_run` the rows are read and compared, and nothing is written.
    """
    if users == "none" and source.columns.user is not None:
        raise InvalidInputError("rows that belong to no user have no user column; leave out one of the two")
    if batch_rows is not None and (not isinstance(batch_rows, int) or batch_rows < 1):
        raise InvalidInputError(f"batch_rows must be a whole number, 1 or more; got {batch_rows!r}")
    state = _check_before_reading(connection, source, users, other_columns)
    warn_of_propensities(source.varying_propensity(), stacklevel=4)
    actions, user_type = _actions(state, source), user_type_for(state, source)
    names = UserNames.of(user_type)
    chunks = partial(
        source.rows,
        actions,
        state.configuration.reward_range,
        chunk=min(batch_rows or CHUNK, CHUNK),
        user_names=names,
        plain_booleans=state.configuration.plain_booleans,
    )
    if batch_rows is not None and not dry_run:  # a bad row far down must not leave the batches before it
        for _ in chunks():
            pass
    fixes_actions = state.configuration.actions is None
    result = Ingested(
        rows=0,
        added=0,
        already_there=0,
        suppressed=0,
        served=state.served_action,
        head=state.head,
        user_column=source.columns.named().get("user"),
        actions_fixed=actions if fixes_actions else None,
        user_type_fixed=user_type if state.configuration.user_type is None else None,
        dry_run=dry_run,
    )
    people = _PeopleWithRows(state, source)
    suppression: SuppressionList | None = None
    float_id_row: int | None = None
    if dry_run:
        for rows in chunks():
            with connection.reading() as transaction:  # one per chunk: a long one would delay erasure
                people.look_up(transaction, rows)
                suppression = SuppressionList.read(transaction, suppression)
                compared = RecordComparison(transaction, connection.records, source, suppression)
                compared.check_spelling_of_ids(rows)
                compared.add(rows)
            result = _with_counts(result, compared)
            float_id_row = compared.float_id_row if float_id_row is None else float_id_row
            if progress is not None:
                progress(result.rows)
        _warn_of_names(names, source, float_id_row)
        people.warn_if_nothing_was_known(result)
        return result
    for batch in _batches(chunks(), batch_rows):
        with connection.database.bulk_loading(), connection.writing() as transaction:
            _refuse_unknown_users(transaction.session, users)  # some may be forgotten just now
            if not other_columns:
                refuse_other_columns(transaction.session, source)
            id_index = IdIndexCheck(_records_in(transaction.state), connection.database.integrity_problems)
            suppression = SuppressionList.read(transaction, suppression)
            loader = RecordLoader(
                transaction, connection.records, source, actions, user_type, id_index, suppression
            )
            for rows in batch:
                people.look_up(transaction, rows)
                loader.check_spelling_of_ids(rows)
                loader.add(rows)
                if progress is not None:
                    progress(result.rows + loader.n_rows)
            state = loader.store()
        result = replace(_with_counts(result, loader), served=state.served_action, head=state.head)
        float_id_row = loader.float_id_row if float_id_row is None else float_id_row
    _warn_of_names(names, source, float_id_row)
    people.warn_if_nothing_was_known(result)
    return result


def _with_counts(result: Ingested, compared: RecordComparison) -> Ingested:
    return replace(
        result,
        rows=result.rows + compared.n_rows,
        added=result.added + compared.added,
        already_there=result.already_there + compared.already_there,
        suppressed=result.suppressed + compared.suppressed,
    )


class _PeopleWithRows:
    """How many of the first people of a source have rows in the vault before it is ingested.

    If nearly all of them have, but no row is recognised, the source may be an earlier one in another form.
    """

    most, fewest, share = 10_000, 20, 0.9

    def __init__(self, state: State, source: Source) -> None:
        filled = state.stream is not None and state.stream.statistics.total > 0
        self._asked = filled and source.columns.id is None and source.columns.user is not None
        self._people: set[str] = set()
        self._known = 0

    def look_up(self, transaction: Transaction, rows: Rows) -> None:
        """Look up the people of a chunk who are new in the source, before its rows are added."""
        if not self._asked or len(self._people) >= self.most:
            return
        new = [user for user in dict.fromkeys(rows.users) if user is not None and user not in self._people]
        new = new[: self.most - len(self._people)]
        self._people.update(new)
        owners = [transaction.keyring.owner_digest(user) for user in new]
        self._known += len(tables.keys_with_records(transaction.session, "owner", owners))

    def warn_if_nothing_was_known(self, result: Ingested) -> None:
        """Say that the rows may be counted twice."""
        number = len(self._people)
        if number < self.fewest or self._known < self.share * number:
            return
        if result.added and not result.already_there:
            looked_up = f"the first {number}" if number == self.most else str(number)
            warnings.warn(
                f"none of the {result.added} rows is known, but {self._known} of {looked_up} people have rows"
                " already: if this is the same log in another form, every row"
                f" {'would count' if result.dry_run else 'now counts'} twice (no id column to recognise them"
                " by)",
                stacklevel=4,
            )


def _check_before_reading(
    connection: VaultConnection, source: Source, users: UserColumn, other_columns: bool
) -> State:
    """Refuse a source that cannot be ingested, before its rows are read."""
    with connection.reading() as transaction:
        _refuse_unknown_users(transaction.session, users)
        if not other_columns:
            refuse_other_columns(transaction.session, source)
        unrecognised = source.columns.id is None and tables.suppresses_any(transaction.session, "record")
    connection.records.check_source(source)
    if unrecognised:
        warnings.warn(
            "single records were forgotten here: without the id column they are not recognised, and come in"
            " again if this source has them",
            stacklevel=4,
        )
    return transaction.state


def _records_in(state: State) -> int:
    """How many records the vault holds."""
    return 0 if state.stream is None else int(state.stream.statistics.total)


def _refuse_unknown_users(session: Session, users: UserColumn) -> None:
    """Refuse rows whose user column was not named once people were forgotten: some may be theirs."""
    if users == "unstated" and tables.suppresses_any(session, "user"):
        raise VaultError(
            "people were forgotten here: name the user column (--user-column), so that their rows stay out;"
            " or, if the rows belong to no user, say so with no_user=True (--no-user)"
        )


def _warn_of_names(names: UserNames, source: Source, float_id_row: int | None) -> None:
    """Name columns that may not hold the names of people, or the ids, as they are known elsewhere."""
    if float_id_row is not None:
        warnings.warn(
            f"{source.described('id')} looks like integers that became floats, such as 7.0 for 7, first in"
            f" row {float_id_row}: 7 and 7.0 are two ids",
            stacklevel=4,
        )
    if names.float_row is not None:
        warnings.warn(
            f"{source.described('user')} looks like integers that became floats, such as 7.0 for 7, first in"
            f" row {names.float_row}: this vault names people by text, so that 7 and 7.0 are two people; to"
            " name them by integers, create a vault with user_type='integer' (init --user-type integer)",
            stacklevel=4,
        )
    if names.spaced_row is not None:
        warnings.warn(
            f"{source.described('user')} has white space around names, first in row {names.spaced_row}: in"
            " this vault it is not part of a name",
            stacklevel=4,
        )


def _actions(state: State, source: Source) -> tuple[Any, ...]:
    """The actions of the vault, or those of its first source."""
    if state.configuration.actions is not None:
        return state.configuration.actions
    labels = storable_labels(source.action_labels())
    if "" in labels:
        raise InvalidLogError(f"{source.columns.described('action')} must have no empty labels; got one")
    if len(labels) > _MOST_UNDECLARED:
        raise InvalidLogError(
            f"{source.columns.described('action')} has {len(labels)} different values, which would become the"
            " vault's public actions permanently; is it the right column? Declare more than"
            f" {_MOST_UNDECLARED} actions at armnesia init"
        )
    return checked_actions(labels)


def _batches(chunks: Iterable[Rows], batch_rows: int | None) -> Iterator[Iterator[Rows]]:
    """Group chunks into batches of at least so many rows; without a number, all of them are one batch."""
    remaining = iter(chunks)
    if batch_rows is None:
        yield remaining
        return
    for first in remaining:
        yield _batch(first, remaining, batch_rows)


def _batch(first: Rows, remaining: Iterator[Rows], batch_rows: int) -> Iterator[Rows]:
    yield first
    taken = len(first)
    while taken < batch_rows:
        rows = next(remaining, None)
        if rows is None:
            return
        taken += len(rows)
        yield rows
