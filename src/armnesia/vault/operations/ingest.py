"""Ingesting: every row comes in once, and a source comes in whole or not at all."""

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

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
from armnesia.logs import IF_PRESENT, Source, open_source, refusals, warn_of_experiments, warn_of_propensities
from armnesia.logs.columns import likely_user_columns
from armnesia.logs.conditions import Where
from armnesia.logs.counting import actions_of, check_tallies
from armnesia.logs.statements import Reading, Tally, Wrong
from armnesia.vault.configuration import Configuration
from armnesia.vault.results.ingested import Ingested
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import check_number
from armnesia.vault.state.first_source import user_type_for
from armnesia.vault.state.incoming_rows import Rows, read_rows
from armnesia.vault.state.inheritance import warn_of_successors
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.owner_tallies import IdIndexCheck
from armnesia.vault.state.record_comparison import RecordComparison
from armnesia.vault.state.record_loader import RecordLoader
from armnesia.vault.state.records import Records
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import (
    known_columns,
    refuse_other_columns,
    refuse_other_ids,
    saved_columns,
)
from armnesia.vault.state.source_remarks import SourceRemarks
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session

UserColumn: TypeAlias = Literal["named", "none", "unstated"]
"""What the caller says of the users of a source: which column names them, that there are none, or nothing.

It is unstated also where the column was found because it is called `user`.
"""

_MOST_UNDECLARED = 100
"""Actions that a first ingest may fix; a column with more values rather holds people, times or prices."""


def open_named(
    connection: VaultConnection,
    source: Any,
    named: Mapping[str, Any],
    *,
    table: str | None,
    where: Where | None,
    other_ids: bool,
    no_user: bool,
) -> Source:
    """Open a source; columns that were not named are those that all earlier sources had.

    With `other_ids`, a source has ids only if they are named; with `no_user`, it has no user column.
    """
    address = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    _refuse_own_file(connection, address)
    with connection.reading() as transaction:
        saved = saved_columns(transaction.session)
    if other_ids:
        saved.pop("id", None)
    if no_user:
        saved.pop("user", None)
    if not re.search(r"[.](csv|tsv|txt)\b", address[-20:]):  # the delimiter of CSV files
        saved.pop("delimiter", None)
    given = {role: name for role, name in named.items() if name not in (None, IF_PRESENT)}
    if named["user"] is None:
        given["user"] = None
    whole_rows = connection.records.layout.holds_rows
    return open_source(source, **{**saved, **given}, table=table, where=where, whole_rows=whole_rows)


def _refuse_own_file(connection: VaultConnection, source: str) -> None:
    """Refuse the vault's own file as a log: its rows are no decisions, and reading it would end its locks."""
    own, path = (each.removeprefix("sqlite:///") for each in (connection.database.location, source))
    if path != source and os.path.realpath(path) == os.path.realpath(own):
        raise InvalidInputError(f"source {source!r} is the vault itself; name the log that it should take in")


def ingest(
    connection: VaultConnection,
    source: Source,
    *,
    users: UserColumn = "named",
    other_columns: bool = False,
    other_ids: bool = False,
    replaces: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Add the rows of a source, all in one transaction; an ingest that fails leaves nothing.

    A source without a user column is refused, unless `users` states that its rows belong to none. Once people
    were forgotten, so is one whose user column was not named, because it could bring their rows back
    unnoticed, unless the vault has its people from a column of the same name. So is a source with another
    action or reward column, unless `other_columns` states that it means the same, and a source with ids if
    earlier ones had none, or the reverse, unless `other_ids` states that its rows are new.
    With `replaces`, rows come in the place of records that have their id and another action, reward or key.
    With `dry_run` the rows are read and compared, and nothing is written. An external vault counts the rows
    that are new at the source.
    """
    if users == "none" and source.columns.user is not None:
        raise InvalidInputError("rows that belong to no user have no user column; leave out one of the two")
    records = connection.records
    stated = _Stated(users, other_columns, other_ids)
    state = _check_before_reading(connection, source, stated, replaces)
    configuration = state.configuration
    user_type = user_type_for(state, source)
    source = source.keyed_by(configuration.key_columns).named_by(user_type or UserType.TEXT)
    warn_of_propensities(source.varying_propensity(), stacklevel=4, by_decision=bool(configuration.by))
    warn_of_experiments(source.mixes_experiments(), stacklevel=4)
    if configuration.successors:
        warn_of_successors(configuration, "rows that come in here do not come in there")
    before = Ingested(
        rows=0,
        added=0,
        already_there=0,
        suppressed=0,
        served=state.served_action,
        head=state.head,
        user_column=source.columns.named().get("user"),
        id_column=source.columns.id,
        user_type_fixed=user_type if configuration.user_type is None else None,
        dry_run=dry_run,
        decisions=state.n_decisions if configuration.by else None,
    )
    with _saying_remedy():
        if not isinstance(records, ManagedRecords):
            from armnesia.vault.state.source_ingest import SourceIngest  # noqa: PLC0415 (few vaults need it)

            known, reward_range = configuration.actions, configuration.reward_range
            actions = known or _new_actions(source, source.tallies(reward_range))
            before = replace(before, actions_fixed=None if known else actions)
            if configuration.may_erase_at_source:
                _warn_of_unerasable(source)
            odd_names: tuple[int | None, int | None] = None, None
            if before.user_type_fixed is not None:
                with source.reading() as reading:
                    odd_names = reading.odd_names()
            result = _count_at_source(SourceIngest(connection, source, actions, user_type), before)
            SourceRemarks(state, source, odd_names).warn(result)
            if progress is not None:
                progress(result.rows)
            return result
        with source.reading() as reading:
            actions = _checked(source, reading, configuration)
            before = replace(before, actions_fixed=None if configuration.actions else actions)
            chunks = read_rows(reading, source.columns, actions, configuration.reward_range)
            remarks = SourceRemarks(state, source, reading.odd_names())
            task = _Task(connection, records, source, actions, user_type, stated, remarks, progress, replaces)
            result = task.compare(chunks, before) if dry_run else task.load(chunks, before)
    if result.replaced and not dry_run:
        erased = connection.erase(result.head)
        result = replace(result, erasure="complete" if erased else "pending")
    remarks.warn(result)
    return result


def _checked(source: Source, reading: Reading, configuration: Configuration) -> tuple[Any, ...]:
    """Count the rows once, and refuse wrong ones, before anything is written; the actions."""
    found = reading.tallies(configuration.reward_range)
    actions = configuration.actions or _new_actions(source, found)
    check_tallies(source, found, actions, configuration.reward_range)
    if source.columns.id is not None:
        what = source.described("id")
        missing = reading.first_wrong("id", Wrong.MISSING, configuration.reward_range)
        if missing:
            raise refusals.missing_ids(what, missing)
        contradicting = reading.contradicting_ids(configuration.reward_range)
        if contradicting is not None:
            raise refusals.contradicting_ids(what, contradicting)
    return actions


def _warn_of_unerasable(source: Source) -> None:
    """Warn of a source that no erasure can delete rows at."""
    try:
        source.eraser().check()
    except (UnsupportedError, InvalidLogError) as error:
        warnings.warn(
            f"this vault may erase rows at its sources, but cannot at this one: {error}", stacklevel=4
        )


def _count_at_source(found: Any, result: Ingested) -> Ingested:
    """Count what is new at a source, and store it unless it is a dry run."""
    if result.dry_run:
        _, counted = found.prepare()
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
        recounted_because=counted.because,
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


class _Task(NamedTuple):
    """The rows of one source on their way into a managed vault."""

    connection: VaultConnection
    records: ManagedRecords
    source: Source
    actions: tuple[Any, ...]
    user_type: UserType | None
    stated: "_Stated"
    remarks: SourceRemarks
    progress: Progress | None
    replaces: bool

    def load(self, chunks: Iterable[Rows], result: Ingested) -> Ingested:
        """Add the rows, in one transaction."""
        connection = self.connection
        with connection.database.bulk_loading(), connection.writing() as transaction:
            self.stated.check(transaction.session, self.source, self.records)  # others may have written
            loader = RecordLoader(
                transaction,
                self.records,
                self.source,
                self.actions,
                self.user_type,
                IdIndexCheck.of(transaction, connection.database.integrity_problems),
                replaces=self.replaces,
            )
            for rows in chunks:
                self.remarks.read(transaction, rows)
                loader.check_spelling_of_ids(rows)
                loader.add(rows)
                self._report(loader.comparison)
            state = loader.store()
        result = replace(_with_counts(result, loader.comparison), served=state.served_action, head=state.head)
        return replace(result, decisions=state.n_decisions if state.configuration.by else None)

    def compare(self, chunks: Iterable[Rows], result: Ingested) -> Ingested:
        """Count what an ingest would add, without writing."""
        with self.connection.reading() as transaction:
            compared = RecordComparison(transaction, self.records, self.source, replaces=self.replaces)
            for rows in chunks:
                self.remarks.read(transaction, rows)
                compared.check_spelling_of_ids(rows)
                compared.new_rows(rows)
                self._report(compared)
            state = transaction.state
        if state.configuration.by:
            number = state.n_decisions + len(compared.new_keys)
            check_number(state.configuration, number)
            result = replace(result, decisions=number)
        return _with_counts(result, compared)

    def _report(self, compared: RecordComparison) -> None:
        if self.progress is not None:
            self.progress(compared.n_rows)


@contextmanager
def _saying_remedy() -> Iterator[None]:
    """Say how an action that the vault does not have comes in."""
    try:
        yield
    except UndeclaredActionError as error:
        raise UndeclaredActionError(
            f"{error}; nothing was ingested: if it is a new arm, offer it first with armnesia arms add"
        ).at(*error.faults) from None


def _with_counts(result: Ingested, compared: RecordComparison) -> Ingested:
    return replace(
        result,
        rows=compared.n_rows,
        added=compared.added,
        already_there=compared.already_there,
        suppressed=compared.suppressed,
        replaced=compared.replaced,
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
    with source.connection() as connection:
        likely = likely_user_columns(source.scan(connection).columns)
    hint = f" ({listed(likely, 5)} may be it)" if likely else ""
    raise VaultError(
        "no person's rows could be found later, because no user column was named and the source has no column"
        f" 'user': name it with user (--user-column){hint}, or, if the rows belong to no user, say so with"
        " no_user=True (--no-user); nothing was ingested"
    )


def _new_actions(source: Source, found: Sequence[Tally]) -> tuple[Any, ...]:
    """The actions of the vault's first source, which become the vault's."""
    if not found:
        raise refusals.empty_log(source.where)
    labels = actions_of(source, found)
    if "" in labels:
        raise InvalidLogError(f"{source.described('action')} must have no empty labels; got one")
    if len(labels) > _MOST_UNDECLARED:
        raise InvalidLogError(
            f"{source.described('action')} has {len(labels)} different values, which would become the"
            " vault's public actions permanently; is it the right column? Declare more than"
            f" {_MOST_UNDECLARED} actions at armnesia init"
        )
    return labels
