"""Ingesting: every row comes in once, and a source comes in whole or not at all."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

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
from armnesia.vault.configuration import EXTERNAL, MANAGED, Configuration
from armnesia.vault.db.database import Session
from armnesia.vault.results import Ingested
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import served_action
from armnesia.vault.state.incoming_rows import read_rows
from armnesia.vault.state.record_loader import RecordLoader
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import columns_with, user_type_for
from armnesia.vault.state.suppression import any_suppressed
from armnesia.vault.state.transaction import Transaction

_MOST_UNDECLARED = 100
"""Actions that a first ingest may fix; a column with more values rather holds people, times or prices."""


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
    replace: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Add the rows of a file, a dataframe or a table, each once; see `armnesia.logs.open_source`.

    All come in, in one transaction, or none. The first ingest fixes the columns of the vault, by default
    `action`, `reward` and, if there is one, `user`; later ones have the same, and need not name them. For
    `user`, None stands for no user column. A source without one is refused, unless `no_user` states that the
    rows belong to no user; once people were forgotten, the first user column must be named. With `replace`,
    rows whose action, reward or key was corrected at the source come in the place of the records with their
    ids; the ledger says how many. With `dry_run` the same is done without writing. `where` are conditions
    that rows must satisfy to come in, such as "country = DE".

    An external vault counts the rows that are new at the source, and all sources again if rows that were
    counted have changed. A copy of a counted file elsewhere counts twice.
    """
    named = {"action": action, "reward": reward, "user": user, "id": id, "delimiter": delimiter}
    with connection.reading() as transaction:
        before, known = transaction.state, transaction.state.configuration
        log = _opened(connection, known, source, named, table=table, where=where, no_user=no_user)
        is_stated = no_user or user not in (None, IF_PRESENT) or "user" in known.columns
        columns = columns_with(known, log)
        run = _Ingest(connection, before, log, columns, is_stated, no_user, replace, dry_run, progress)
        run.check(transaction.session)
        _warn_of_forgotten_records(transaction.session, log)
    user_type = user_type_for(known, log)
    log = log.keyed_by(known.key_columns).named_by(user_type or UserType.TEXT)
    warn_of_propensities(log.varying_propensity(), stacklevel=3, by_decision=bool(known.by))
    with _saying_remedy():
        return run.load(log, user_type) if known.mode == MANAGED else run.count(log, user_type)


def _opened(
    connection: VaultConnection,
    known: Configuration,
    source: Any,
    named: Mapping[str, Any],
    *,
    table: str | None,
    where: Where | None,
    no_user: bool,
) -> Source:
    """Open a source; columns that were not named are those of the vault."""
    address = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    _refuse_own_file(connection, address)
    saved = dict(known.columns)
    if no_user:
        saved.pop("user", None)
    given = {role: name for role, name in named.items() if name not in (None, IF_PRESENT)}
    if named["user"] is None:
        given["user"] = None
    whole_rows = known.mode == MANAGED
    return open_source(source, **{**saved, **given}, table=table, where=where, whole_rows=whole_rows)


def _refuse_own_file(connection: VaultConnection, source: str) -> None:
    """Refuse the vault's own file as a log: its rows are no decisions, and reading it would end its locks."""
    own, path = (each.removeprefix("sqlite:///") for each in (connection.database.location, source))
    if path != source and os.path.realpath(path) == os.path.realpath(own):
        raise InvalidInputError(f"source {source!r} is the vault itself; name the log that it should take in")


@dataclass(frozen=True)
class _Ingest:
    """A source that was opened, and what is to be done with its rows."""

    connection: VaultConnection
    before: State
    """The state by which the source was opened."""
    source: Source
    columns: Mapping[str, str]
    """The columns of the vault from now on."""
    user_is_stated: bool
    """Whether the caller, or an earlier ingest, says which column names people, or that there is none."""
    no_user: bool
    replaces: bool
    dry_run: bool
    progress: Progress | None

    def check(self, session: Session) -> None:
        """Refuse a source that rows of this vault cannot come from."""
        if self.no_user and self.source.columns.user is not None:
            raise InvalidInputError(
                "rows that belong to no user have no user column; leave out one of the two"
            )
        user = self.before.configuration.columns.get("user")
        if self.no_user and any_suppressed(session, "user") and user in self.source.column_names():
            raise InvalidInputError(
                f"column {user!r} has the users of this vault, and this source has it, too: rows of forgotten"
                " people could come in; leave no_user (--no-user) out; nothing was ingested"
            )
        external = self.before.configuration.mode == EXTERNAL
        if self.replaces:
            _check_corrections(self.source, external=external)
        self.refuse_unknown_users(session)
        if external:
            from armnesia.vault.state.external_records import refuse_source  # noqa: PLC0415 (few vaults need it)

            refuse_source(self.before.configuration, self.source)

    def refuse_unknown_users(self, session: Session) -> None:
        """Refuse rows without users unless that is stated: they could not get any later.

        Once people were forgotten, some rows of a source whose user column was not named may be theirs.
        """
        column = self.source.columns.named().get("user")
        if self.no_user or (
            column is not None and (self.user_is_stated or not any_suppressed(session, "user"))
        ):
            return
        with self.source.connection() as connection:
            likely = likely_user_columns(self.source.scan(connection).columns)
        hint = f" ({listed(likely, 5)} may be it)" if likely else ""
        raise VaultError(
            f"no person's rows could be found later, because no user column was named{hint}: name it with"
            " user (--user-column), so that those of forgotten people stay out; or, if the rows belong to no"
            " user, say so with no_user=True (--no-user); nothing was ingested"
        )

    @contextmanager
    def beginning(self, actions: tuple[Any, ...], user_type: UserType | None) -> Iterator[Transaction]:
        """Begin a transaction whose configuration is complete; a dry run stores nothing of it."""
        connection, known = self.connection, self.before.configuration
        with connection.reading() if self.dry_run else connection.writing() as transaction:
            if transaction.state.configuration != known:
                raise VaultError("the configuration of the vault was changed meanwhile; ingest again")
            self.refuse_unknown_users(transaction.session)  # others may have forgotten somebody
            completed = known
            if (actions, user_type, self.columns) != (known.actions, known.user_type, known.columns):
                completed = replace(known, actions=actions, user_type=user_type, columns=self.columns)
            if completed is not known and self.dry_run:
                transaction.state = transaction.state.changed(configuration=completed)
            elif completed is not known:
                transaction.append("configured", configuration=completed)
            yield transaction

    def load(self, source: Source, user_type: UserType | None) -> Ingested:
        """Load the rows of a source into a managed vault, chunk by chunk."""
        known = self.before.configuration
        with source.reading() as reading:
            actions = _checked(source, reading, known)
            with self.beginning(actions, user_type) as transaction:
                loader = RecordLoader(transaction, source, replaces=self.replaces, dry_run=self.dry_run)
                for rows in read_rows(reading, source.columns, actions, known.reward_range):
                    loader.add(rows)
                    if self.progress is not None:
                        self.progress(loader.counts["rows"])
                loader.store()
                return self._result(transaction, loader.counts, loader.n_decisions)

    def count(self, source: Source, user_type: UserType | None) -> Ingested:
        """Count what is new at the source of an external vault."""
        from armnesia.vault.state.external_records import count_new_rows  # noqa: PLC0415

        known = self.before.configuration
        if known.may_erase_at_source:
            _warn_of_unerasable(source)
        actions = known.actions or _new_actions(source, source.tallies(known.reward_range))
        with self.beginning(actions, user_type) as transaction:
            counts, n_decisions = count_new_rows(transaction, source, dry_run=self.dry_run)
            result = self._result(transaction, counts, n_decisions)
        if self.progress is not None:
            self.progress(counts["rows"])
        return result

    def _result(self, transaction: Transaction, counts: Mapping[str, Any], n_decisions: int) -> Ingested:
        known, made = self.before.configuration, transaction.state.configuration
        return Ingested(
            **counts,
            served=served_action(transaction),
            head=transaction.state.head,
            user_column=self.source.columns.named().get("user"),
            id_column=self.source.columns.id,
            actions_fixed=made.actions if known.actions is None else None,
            user_type_fixed=made.user_type if known.user_type is None else None,
            dry_run=self.dry_run,
            decisions=n_decisions if known.by else None,
        )


def _check_corrections(source: Source, *, external: bool) -> None:
    """Refuse corrections where the old rows are not here, or nothing says which they are."""
    if external:
        raise VaultError(
            "an external vault holds no rows that others could replace: rows that were corrected at their"
            " source count after armnesia ingest, which counts a source that has changed again"
        )
    if source.columns.id is None:
        raise InvalidInputError(
            "corrections need the id column, which says which record a row replaces: name it with id"
            " (--id-column); records that came in without ids cannot be corrected"
        )


def _warn_of_unerasable(source: Source) -> None:
    """Warn of a source that no erasure can delete rows at."""
    try:
        source.eraser().check()
    except (UnsupportedError, InvalidLogError) as error:
        warnings.warn(
            f"this vault may erase rows at its sources, but cannot at this one: {error}", stacklevel=4
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
            stacklevel=3,
        )
