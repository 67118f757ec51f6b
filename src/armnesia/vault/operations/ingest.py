"""Ingesting: every row comes in once, and a source comes in whole or not at all."""

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeAlias

from armnesia.core.errors import (
    Fault,
    InvalidInputError,
    InvalidLogError,
    UndeclaredActionError,
    UnsupportedError,
    VaultError,
)
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.core.progress import Progress
from armnesia.logs import IF_PRESENT, Source, open_source, warn_of_propensities
from armnesia.logs.columns import IfPresent, likely_user_columns
from armnesia.logs.conditions import Where
from armnesia.logs.log import actions_of
from armnesia.logs.refusals import empty_log, refused
from armnesia.logs.statements import Reading, Tally
from armnesia.vault.configuration import Configuration
from armnesia.vault.results import Ingested
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import served_action
from armnesia.vault.state.decisions import VaultDecision, refused_arm
from armnesia.vault.state.incoming_rows import read_rows
from armnesia.vault.state.record_loader import RecordLoader
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import (
    append_fixed,
    known_columns,
    refuse_other_columns,
    refuse_other_ids,
    saved_columns,
    user_type_for,
    with_actions,
    with_user_type,
)
from armnesia.vault.state.source_remarks import SourceRemarks
from armnesia.vault.state.suppression import any_suppressed
from armnesia.vault.storage.database import Session

UserColumn: TypeAlias = Literal["named", "none", "unstated"]
"""What the caller says of the users of a source: which column names them, that there are none, or nothing.

It is unstated also where the column was found because it is called `user`.
"""

_MOST_UNDECLARED = 100
"""Actions that a first ingest may fix; a column with more values rather holds people, times or prices."""


def _opened(
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
    whole_rows = connection.records.holds_rows
    return open_source(source, **{**saved, **given}, table=table, where=where, whole_rows=whole_rows)


def _refuse_own_file(connection: VaultConnection, source: str) -> None:
    """Refuse the vault's own file as a log: its rows are no decisions, and reading it would end its locks."""
    own, path = (each.removeprefix("sqlite:///") for each in (connection.database.location, source))
    if path != source and os.path.realpath(path) == os.path.realpath(own):
        raise InvalidInputError(f"source {source!r} is the vault itself; name the log that it should take in")


def ingest(
    connection: VaultConnection,
    source: Any,
    *,
    action: str | None = None,
    reward: str | None = None,
    user: str | IfPresent | None = IF_PRESENT,
    id: str | None = None,  # noqa: A002 (the usual name)
    table: str | None = None,
    where: Where | None = None,
    delimiter: str | None = None,
    no_user: bool = False,
    other_columns: bool = False,
    other_ids: bool = False,
    replace: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Add the rows of a file, a dataframe or a table, each once; see `armnesia.logs.open_source`.

    All come in, in one transaction, or none. Columns that are not named are those that all earlier sources
    had; of the first one these are `action`, `reward` and, if there is one, `user`. For `user`, None stands
    for no user column. A source without one is refused, unless `no_user` states that the rows belong to no
    user; once people were forgotten, the column must be named, unless the vault has its people from a column
    `user`. Actions and rewards come from the same columns as before, unless `other_columns` states that
    others mean the same. Rows come with ids if earlier ones did, and without if they did not, unless
    `other_ids` states that none of them is there. With `replace`, rows whose action, reward or key was
    corrected at the source come in the place of the records with their ids; the ledger says how many. With
    `dry_run` the same is done without writing. `where` are conditions that rows must satisfy to come in, such
    as "country = DE".

    An external vault counts the rows that are new at the source, and all sources again if rows that were
    counted have changed. A copy of a counted file elsewhere counts twice.
    """
    named = {"action": action, "reward": reward, "user": user, "id": id, "delimiter": delimiter}
    rows = _opened(connection, source, named, table=table, where=where, other_ids=other_ids, no_user=no_user)
    return _ingest(
        connection,
        rows,
        users="none" if no_user else "unstated" if user in (None, IF_PRESENT) else "named",
        other_columns=other_columns,
        other_ids=other_ids,
        replaces=replace,
        dry_run=dry_run,
        progress=progress,
    )


def _ingest(
    connection: VaultConnection,
    source: Source,
    *,
    users: UserColumn,
    other_columns: bool,
    other_ids: bool,
    replaces: bool,
    dry_run: bool,
    progress: Progress | None,
) -> Ingested:
    """Add the rows of a source that is open."""
    if users == "none" and source.columns.user is not None:
        raise InvalidInputError("rows that belong to no user have no user column; leave out one of the two")
    if replaces:
        connection.records.check_corrections(source)

    def check(session: Session) -> None:
        _refuse_unknown_users(session, source, users)
        if not other_columns:
            refuse_other_columns(session, source)
        # An external vault knows the rows of a source by where they are.
        if not other_ids and connection.records.holds_rows:
            refuse_other_ids(session, source)

    with connection.reading() as transaction:
        check(transaction.session)
        connection.records.check_source(transaction.session, source)
        _warn_of_forgotten_records(transaction.session, source)
    state, configuration = transaction.state, transaction.state.configuration
    user_type = user_type_for(state, source)
    source = source.keyed_by(configuration.key_columns).named_by(user_type or UserType.TEXT)
    warn_of_propensities(source.varying_propensity(), stacklevel=4, by_decision=bool(configuration.by))
    remarks = SourceRemarks(state, source)
    with ExitStack() as stack:
        stack.enter_context(_saying_remedy())
        if connection.records.holds_rows:
            reading = stack.enter_context(source.reading())
            actions = _checked(source, reading, configuration)
            transaction = stack.enter_context(connection.reading() if dry_run else connection.writing())
            check(transaction.session)  # others may have written
            loader = RecordLoader(
                transaction,
                source,
                actions,
                user_type,
                replaces=replaces,
                dry_run=dry_run,
            )
            for rows in read_rows(reading, source.columns, actions, configuration.reward_range):
                remarks.read(transaction, rows)
                loader.add(rows)
                if progress is not None:
                    progress(loader.counts["rows"])
            state, counts, number = loader.store(), loader.counts, loader.n_decisions
            served = served_action(transaction)
        else:
            actions = configuration.actions or _new_actions(
                source, source.tallies(configuration.reward_range)
            )
            state, served, counts, number = _count_at_source(
                connection, source, actions, user_type, dry_run=dry_run
            )
            if progress is not None:
                progress(counts["rows"])
    result = Ingested(
        **counts,
        served=served,
        head=state.head,
        user_column=source.columns.named().get("user"),
        id_column=source.columns.id,
        actions_fixed=None if configuration.actions else actions,
        user_type_fixed=user_type if configuration.user_type is None else None,
        dry_run=dry_run,
        decisions=number if configuration.by else None,
    )
    remarks.warn(result)
    return result


def _count_at_source(
    connection: VaultConnection,
    source: Source,
    actions: tuple[Any, ...],
    user_type: UserType | None,
    *,
    dry_run: bool,
) -> tuple[State, Any, dict[str, Any], int]:
    """Count what is new at the source of an external vault: state, served arm, counts, how many decisions."""
    from armnesia.vault.state import external_records as external  # noqa: PLC0415 (few vaults need it)

    assert isinstance(connection.records, external.ExternalRecords)
    with connection.reading() if dry_run else connection.writing() as transaction:
        before = transaction.state
        if before.configuration.may_erase_at_source:
            _warn_of_unerasable(source)
        state = with_user_type(with_actions(before, actions), user_type)
        found = connection.records.new_rows(transaction, state, source)
        changes = external.changes_of(transaction, state, found)
        _refuse_retired_arms(state, changes)
        n_before = connection.records.count(transaction.session) if found.because else 0
        if not dry_run:
            append_fixed(transaction, state.configuration)
            external.put_findings(transaction, found, warns=True)
        served = served_action(transaction)
    counts = {
        "rows": sum(own.n_rows for own in found.counted.values()),
        "added": found.n_counted - n_before,
        "already_there": 0,
        "suppressed": sum(own.n_left_out for own in found.counted.values()),
        "recounted_because": found.because,
    }
    n_decisions = max([before.n_decisions, *(after.number for _, after in changes)])
    return transaction.state, served, counts, n_decisions


def _refuse_retired_arms(state: State, changes: Sequence[tuple[VaultDecision, VaultDecision]]) -> None:
    """Refuse rows of arms that their decision refuses, where there are more of them than before."""
    configuration = state.configuration
    if not any(rule.new_rows == "refuse" for rule in configuration.arms):
        return
    for old, new in changes:
        for arm in sorted(configuration.refuses(new.key)):
            if new.statistics.counts[arm] > old.statistics.counts[arm]:
                raise refused_arm(configuration, new.key, state.actions[arm], None)


def _warn_of_unerasable(source: Source) -> None:
    """Warn of a source that no erasure can delete rows at."""
    try:
        source.eraser().check()
    except (UnsupportedError, InvalidLogError) as error:
        warnings.warn(
            f"this vault may erase rows at its sources, but cannot at this one: {error}", stacklevel=5
        )


def _checked(source: Source, reading: Reading, configuration: Configuration) -> tuple[Any, ...]:
    """Count the rows once, and refuse wrong ones, before anything is written; the actions."""
    reward_range = configuration.reward_range
    found = reading.tallies(reward_range)
    actions = configuration.actions or _new_actions(source, found)
    source.check_tallies(found, actions, reward_range)
    if source.columns.id is not None:
        what, rule = source.described("id"), "must name every row"
        missing = reading.first_wrong("id")
        if missing:
            raise refused(what, rule, missing)
        row = reading.contradicting_id(reward_range)
        if row is not None:
            rule = "must give each decision an id of its own"
            got = f"another row has the id of row {row}, with another action, reward, user or key"
            raise InvalidLogError(f"{what} {rule}; {got}").at(Fault("id", row, rule))
    return actions


def _new_actions(source: Source, found: Sequence[Tally]) -> tuple[Any, ...]:
    """The actions of the vault's first source, which become the vault's."""
    if not found:
        raise empty_log(source.where)
    labels = actions_of(found)
    if "" in labels:
        raise InvalidLogError(f"{source.described('action')} must have no empty labels; got one")
    if len(labels) > _MOST_UNDECLARED:
        raise InvalidLogError(
            f"{source.described('action')} has {len(labels)} different values, which would become the"
            " vault's public actions permanently; is it the right column? Declare more than"
            f" {_MOST_UNDECLARED} actions at armnesia init"
        )
    return labels


@contextmanager
def _saying_remedy() -> Iterator[None]:
    """Say how an action that the vault does not have comes in."""
    try:
        yield
    except UndeclaredActionError as error:
        raise UndeclaredActionError(
            f"{error}; nothing was ingested: if it is a new arm, offer it first with armnesia arms add"
        ).at(*error.faults) from None


def _warn_of_forgotten_records(session: Session, source: Source) -> None:
    if source.columns.id is None and any_suppressed(session, "record"):
        warnings.warn(
            "single records were forgotten here: without the id column they are not recognised, and come in"
            " again if this source has them",
            stacklevel=4,
        )


def _refuse_unknown_users(session: Session, source: Source, users: UserColumn) -> None:
    """Refuse rows without users unless that is stated: they could not get any later.

    Once people were forgotten, some rows of a source whose user column was not named may be theirs. A column
    `user` is taken where the vault has all its people from a column of that name.
    """
    column = source.columns.named().get("user")
    if users == "none" or (users == "named" and column is not None):
        return
    if column is not None and (
        [column] == known_columns(session, "user") or not any_suppressed(session, "user")
    ):
        return
    with source.connection() as connection:
        likely = likely_user_columns(source.scan(connection).columns)
    hint = f" ({listed(likely, 5)} may be it)" if likely else ""
    raise VaultError(
        f"no person's rows could be found later, because no user column was named{hint}: name it with user"
        " (--user-column), so that those of forgotten people stay out; or, if the rows belong to no user, say"
        " so with no_user=True (--no-user); nothing was ingested"
    )
