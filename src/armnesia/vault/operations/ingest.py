"""Ingesting: every row comes in once, and a batch comes in whole or not at all."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from armnesia.core.actions import checked_actions
from armnesia.core.errors import (
    InvalidInputError,
    InvalidLogError,
    UndeclaredActionError,
    UnsupportedError,
    VaultError,
)
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.core.progress import Progress
from armnesia.logs import CHUNK, Rows, Source, storable_labels, warn_of_experiments, warn_of_propensities
from armnesia.logs.erasing import open_eraser
from armnesia.logs.erasing.eraser import SourceEraser
from armnesia.logs.refusals import empty_log
from armnesia.logs.user_names import UserNames
from armnesia.vault.results.ingested import Ingested
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import check_number
from armnesia.vault.state.first_source import user_type_for
from armnesia.vault.state.inheritance import warn_of_successors
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.owner_tallies import IdIndexCheck
from armnesia.vault.state.record_comparison import RecordComparison
from armnesia.vault.state.record_loader import RecordLoader
from armnesia.vault.state.records import Records
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import known_columns, refuse_other_columns, refuse_other_ids
from armnesia.vault.state.source_ingest import SourceIngest
from armnesia.vault.state.source_remarks import SourceRemarks
from armnesia.vault.state.suppression import SuppressionList
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
    other_ids: bool = False,
    other_rows: bool = False,
    replaces: bool = False,
    batch_rows: int | None = None,
    ordered_by: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Add the rows of a source, in one transaction or in one per `batch_rows` rows.

    A batch that fails leaves nothing. Rows that came in with earlier batches of the same source are not added
    twice when it is ingested again. A source without a user column is refused, unless `users` states that its
    rows belong to none. Once people were forgotten, so is one whose user column was not named, because it
    could bring their rows back unnoticed, unless the vault has its people from a column of the same name. So
    is a source with another action or reward column, unless `other_columns` states that it means the same,
    and a source with ids if earlier ones had none, or the reverse, unless `other_ids` states that its rows
    are new.
    With `replaces`, rows come in the place of records that have their id and another action, reward or key.
    With `dry_run` the rows are read and compared, and nothing is written. An external vault counts the rows
    that are new at the source; `ordered_by` is the column of a table of a database that tells which are. It
    refuses files that look like copies of counted ones, unless `other_rows` states that they are none.
    """
    if users == "none" and source.columns.user is not None:
        raise InvalidInputError("rows that belong to no user have no user column; leave out one of the two")
    if batch_rows is not None and (not isinstance(batch_rows, int) or batch_rows < 1):
        raise InvalidInputError(f"batch_rows must be a whole number, 1 or more; got {batch_rows!r}")
    records = connection.records
    source = _with_order(source, ordered_by, managed=isinstance(records, ManagedRecords))
    stated = _Stated(users, other_columns, other_ids)
    state = _check_before_reading(connection, source, stated, replaces)
    source = source.keyed_by(state.configuration.key_columns)
    by_decision = bool(state.configuration.by)
    warn_of_propensities(source.varying_propensity(), stacklevel=4, by_decision=by_decision)
    warn_of_experiments(source.mixes_experiments(), stacklevel=4)
    actions, user_type = _actions(state, source), user_type_for(state, source)
    names = UserNames.of(user_type)
    read = partial(
        source.rows,
        actions,
        state.configuration.reward_range,
        chunk=min(batch_rows or CHUNK, CHUNK),
        user_names=names,
        plain_booleans=state.configuration.plain_booleans,
    )

    def chunks() -> Iterator[Rows]:
        return _with_remedy(read())

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
        decisions=state.n_decisions if state.configuration.by else None,
    )
    if state.configuration.successors:
        warn_of_successors(state.configuration, "rows that come in here do not come in there")
    remarks = SourceRemarks(state, source, names)
    if not isinstance(records, ManagedRecords):
        if state.configuration.may_erase_at_source and state.configuration.plain_decimals:
            _warn_of_unerasable(source)
        found = SourceIngest(connection, source, actions, user_type, names, other_rows)
        with _saying_remedy():
            result = _count_at_source(found, result, batch_rows)
        if progress is not None:
            progress(result.rows)
        remarks.warn(result)
        return result
    if dry_run:
        result = _compare(connection, records, source, chunks(), remarks, result, progress, replaces=replaces)
        remarks.warn(result)
        return result
    if batch_rows is not None:
        # A row far down that is refused must not leave the batches before it.
        _compare(connection, records, source, chunks(), remarks, result, None, replaces=replaces)
    batches = _Batches(connection, records, source, actions, user_type, stated, replaces)
    for batch in _batches(chunks(), batch_rows):
        loaded, state = batches.load(batch, remarks, result.rows, progress)
        result = replace(_with_counts(result, loaded), served=state.served_action, head=state.head)
        result = replace(result, decisions=state.n_decisions if state.configuration.by else None)
    _refuse_no_rows(source, result.rows)
    if result.replaced:
        erased = connection.erase(result.head)
        result = replace(result, erasure="complete" if erased else "pending")
    remarks.warn(result)
    return result


def _warn_of_unerasable(source: Source) -> None:
    """Warn of a source that no erasure can delete rows at."""
    try:
        eraser = open_eraser(source)
    except (UnsupportedError, InvalidLogError) as error:
        warnings.warn(
            f"this vault may erase rows at its sources, but cannot at this one: {error}",
            stacklevel=5,
        )
        return
    try:
        eraser.check_rewritable()
    except (UnsupportedError, InvalidLogError) as error:
        warnings.warn(
            f"this vault may erase rows at its sources, but cannot at this one as it is: {error}",
            stacklevel=5,
        )
    for role in ("user", "id"):
        if source.columns.named().get(role) is not None:
            _warn_of_unerasable_names(eraser, role)


def _warn_of_unerasable_names(eraser: SourceEraser, role: str) -> None:
    try:
        eraser.check_named_by(role)
    except (UnsupportedError, InvalidLogError) as error:
        warnings.warn(
            f"this vault may erase rows at its sources, but not by the {role} column of this one: {error}",
            stacklevel=6,
        )


def _with_order(source: Source, ordered_by: str | None, *, managed: bool) -> Source:
    if ordered_by is None:
        return source
    if managed:
        raise InvalidInputError(
            "ordered_by (--ordered-by) is for external vaults; a managed vault knows its rows: leave it out"
        )
    return source.ordered_by(ordered_by)


def _count_at_source(found: SourceIngest, result: Ingested, batch_rows: int | None) -> Ingested:
    """Count what is new at a source, and store it unless it is a dry run."""
    if batch_rows is not None:
        raise InvalidInputError(
            "an external vault counts a source in one statement, without batches: leave batch_rows"
            " (--batch-rows) out"
        )
    if result.dry_run:
        counted = found.prepare()
        added, more = found.check(counted)
        decisions = None if result.decisions is None else result.decisions + more
    else:
        counted, added, state = found.run()
        result = replace(result, served=state.served_action, head=state.head)
        decisions = state.n_decisions if state.configuration.by else None
    return replace(
        result,
        rows=counted.rows,
        added=added,
        suppressed=counted.left_out,
        decisions=decisions,
        recounted_because=counted.recount,
    )


class _Stated(NamedTuple):
    """What the caller states of a source; see `ingest`."""

    users: UserColumn
    other_columns: bool
    other_ids: bool

    def check(self, session: Session, source: Source, records: Records) -> None:
        """Refuse a source that does not go with what the vault has, unless it is stated that it does."""
        _refuse_unknown_users(session, source, self.users)
        _refuse_no_users(source, self.users)
        if not self.other_columns:
            refuse_other_columns(session, source)
        # An external vault knows the rows of a source by where they are.
        if not self.other_ids and records.layout.holds_rows:
            refuse_other_ids(session, source)


class _Batches:
    """Loads batches of a source, each in a transaction of its own."""

    def __init__(
        self,
        connection: VaultConnection,
        records: ManagedRecords,
        source: Source,
        actions: tuple[Any, ...],
        user_type: UserType | None,
        stated: "_Stated",
        replaces: bool,
    ) -> None:
        self._connection, self._records, self._source = connection, records, source
        self._actions, self._user_type = actions, user_type
        self._stated, self._replaces = stated, replaces
        self._suppression: SuppressionList | None = None

    def load(
        self, batch: Iterable[Rows], remarks: SourceRemarks, rows_before: int, progress: Progress | None
    ) -> tuple[RecordComparison, State]:
        """Add the rows of a batch; return what became of them, and the new state."""
        connection = self._connection
        with connection.database.bulk_loading(), connection.writing() as transaction:
            self._stated.check(transaction.session, self._source, self._records)  # others may have written
            self._suppression = SuppressionList.read(transaction, self._suppression)
            loader = RecordLoader(
                transaction,
                self._records,
                self._source,
                self._actions,
                self._user_type,
                IdIndexCheck.of(transaction, connection.database.integrity_problems),
                self._suppression,
                replaces=self._replaces,
            )
            for rows in batch:
                remarks.read(transaction, rows)
                loader.check_spelling_of_ids(rows)
                loader.add(rows)
                if progress is not None:
                    progress(rows_before + loader.comparison.n_rows)
            _refuse_no_rows(self._source, loader.comparison.n_rows)
            return loader.comparison, loader.store()


def _with_remedy(chunks: Iterable[Rows]) -> Iterator[Rows]:
    """The rows of a source; say how an action that the vault does not have comes in."""
    with _saying_remedy():
        yield from chunks


@contextmanager
def _saying_remedy() -> Iterator[None]:
    try:
        yield
    except UndeclaredActionError as error:
        raise UndeclaredActionError(
            f"{error}; nothing was ingested: if it is a new arm, offer it first with armnesia arms add"
        ).at(*error.faults) from None


def _compare(
    connection: VaultConnection,
    records: ManagedRecords,
    source: Source,
    chunks: Iterable[Rows],
    remarks: SourceRemarks,
    result: Ingested,
    progress: Progress | None,
    *,
    replaces: bool,
) -> Ingested:
    """Count what an ingest would add, without writing."""
    suppression: SuppressionList | None = None
    new_keys: set[tuple[str, ...]] = set()
    for rows in chunks:
        with connection.reading() as transaction:  # one per chunk: a long one would delay erasure
            remarks.read(transaction, rows)
            suppression = SuppressionList.read(transaction, suppression)
            compared = RecordComparison(transaction, records, source, suppression, replaces=replaces)
            compared.check_spelling_of_ids(rows)
            compared.new_rows(rows)
            state = transaction.state
            new_keys |= compared.new_keys
        result = _with_counts(result, compared)
        if state.configuration.by:
            check_number(state.configuration, state.n_decisions + len(new_keys))
            result = replace(result, decisions=state.n_decisions + len(new_keys))
        if progress is not None:
            progress(result.rows)
    _refuse_no_rows(source, result.rows)
    return result


def _refuse_no_rows(source: Source, n_rows: int) -> None:
    """Refuse conditions that no row satisfies, as the commands on a log do."""
    if source.where and not n_rows:
        raise empty_log(source.where)


def _with_counts(result: Ingested, compared: RecordComparison) -> Ingested:
    return replace(
        result,
        rows=result.rows + compared.n_rows,
        added=result.added + compared.added,
        already_there=result.already_there + compared.already_there,
        suppressed=result.suppressed + compared.suppressed,
        replaced=result.replaced + compared.replaced,
    )


def _check_before_reading(
    connection: VaultConnection, source: Source, stated: _Stated, replaces: bool
) -> State:
    """Refuse a source that cannot be ingested, before its rows are read."""
    if replaces:
        connection.records.check_corrections(source)
    with connection.reading() as transaction:
        stated.check(transaction.session, source, connection.records)
        unrecognised = source.columns.id is None and tables.suppresses_any(transaction.session, "record")
        connection.records.check_source(transaction.session, source)
    if unrecognised:
        warnings.warn(
            "single records were forgotten here: without the id column they are not recognised, and come in"
            " again if this source has them",
            stacklevel=4,
        )
    return transaction.state


def _refuse_unknown_users(session: Session, source: Source, users: UserColumn) -> None:
    """Refuse rows whose user column was not named once people were forgotten: some may be theirs.

    A column `user` is taken where the vault has all its people from a column of that name.
    """
    if users != "unstated" or [source.columns.named().get("user")] == known_columns(session, "user"):
        return
    if tables.suppresses_any(session, "user"):
        raise VaultError(
            "people were forgotten here: name the user column (--user-column), so that their rows stay out;"
            " or, if the rows belong to no user, say so with no_user=True (--no-user)"
        )


def _refuse_no_users(source: Source, users: UserColumn) -> None:
    """Refuse rows without users unless that is stated: they could not get any later."""
    if users == "none" or source.columns.user is not None:
        return
    likely = source.likely_user_columns
    hint = f" ({listed(likely, 5)} may be it)" if likely else ""
    raise VaultError(
        "no person's rows could be found later, because no user column was named and the source has no column"
        f" 'user': name it with user (--user-column){hint}, or, if the rows belong to no user, say so with"
        " no_user=True (--no-user); nothing was ingested"
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
