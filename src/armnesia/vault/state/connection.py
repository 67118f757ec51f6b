"""A connection to a vault: its database, its keys, its journal, and transactions on its state.

Every transaction compares the state with the last line of the journal that was there before it began. A
database that has less is an older copy. One that has more is ahead only because somebody was killed, or is
another host: then the journal catches up before anything is made of the state.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from armnesia.core.errors import (
    ArmnesiaError,
    DamagedDatabaseError,
    DatabaseError,
    InvalidInputError,
    UnfinishedError,
    VaultError,
)
from armnesia.core.files import refuse_null_characters
from armnesia.vault.configuration import EXTERNAL, MANAGED, Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Database, Session
from armnesia.vault.db.opening import database_class, open_database
from armnesia.vault.db.schema import EntryRow, PeopleRow
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.checkpoint import Note
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.journal import Journal, Line
from armnesia.vault.ledger.merkle import Tree
from armnesia.vault.ledger.witness import Witness
from armnesia.vault.state.records import Records
from armnesia.vault.state.sealed_state import (
    State,
    changed_outside,
    changed_values,
    check_identity,
    read_state,
)
from armnesia.vault.state.transaction import Transaction


@dataclass
class VaultConnection:
    """A connection to a vault, for one thread of one process."""

    database: Database
    all_keys: Keyring
    """Those of the keys' file: the state says which of them it uses."""
    keys_path: Path
    records: Records
    checked: bool = True
    """Whether a transaction refuses a state that is older than the journal, or was changed."""

    def __post_init__(self) -> None:
        self.journal, self.witness = Journal.beside(self.keys_path), Witness.beside(self.keys_path)

    @classmethod
    def connect(
        cls, url: str, keys: str | Path | None = None, *, timeout: float = 30.0, checked: bool = True
    ) -> Self:
        """Connect to a vault; refuse what is none, or has other keys or another schema.

        Unless `checked` is False, also refuse what is damaged, or older than its journal.
        """
        path = keys_path_of(url, keys)
        try:
            database = open_database(url, timeout=timeout)
        except DamagedDatabaseError as error:
            if path.is_file():
                raise
            raise DatabaseError(str(error)) from None  # without keys it may be anything
        with ExitStack() as undo:
            undo.callback(database.close)
            if not database.has_vault():
                raise database.no_vault()
            if not path.exists():
                raise VaultError(
                    f"{path} does not exist: it has the vault's keys; give the file with --keys, or copy it"
                    " from your backup of the keys"
                )
            keyring = Keyring.read(path)
            with database.reading() as session:
                records = _records_in(session, keyring)
            connection = cls(database, keyring, path, records, checked)
            if checked:
                with connection.reading():
                    pass
            undo.pop_all()
        return connection

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a transaction that sees one snapshot of the vault, not older than the journal."""
        last = self.journal.last()
        with self.database.reading() as session:
            state = self._load(session, last)  # which may read newer keys
            yield Transaction(session, self.all_keys, state)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Begin the one write transaction at a time; the journal has its line before this returns."""
        last = self.journal.last()
        with self.database.writing() as session:
            before = self._load(session, last)
            transaction = Transaction(session, self.all_keys, before)
            yield transaction
            if transaction.state is before:
                return
            transaction.finish()
        self.all_keys, own = transaction.all_keys, transaction.line
        try:
            self.journal.catch_up(own.commit, partial(self._own_line, before, own))
        except VaultError as error:
            raise UnfinishedError(
                f"{error}; the change itself is committed, and the next command adds it to the journal"
            ) from None
        self.witness.tell(own.size, lambda: str(signed_checkpoint(transaction)))

    def _own_line(self, before: State, own: Line, last: Line) -> Line:
        """What the journal lacks: the line of a transaction, or that of all others since `last`, too."""
        if (last.commit, last.root) == (before.commits, before.head.root):
            return own
        with self.database.reading() as session:
            return line_after(session, self.read_state(session), last)

    def _load(self, session: Session, last: Line) -> State:
        """Read and check the state; refuse one that is older than a line, or does not match its seal."""
        state = self.read_state(session)
        if self.checked and last.commit != state.commits:
            if state.commits < last.commit:
                raise older_than(last.commit)
            self.journal.catch_up(state.commits, partial(line_after, session, state))
        elif self.checked and state.head.root != last.root:
            raise forked_from(last.size)
        return state

    def read_state(self, session: Session) -> State:
        """The state, under the seal of these keys, or of some that another process has added meanwhile."""
        try:
            return read_state(session, self.all_keys)
        except VaultError:
            newer = Keyring.read(self.keys_path)
            if newer == self.all_keys or not newer.extends(self.all_keys):
                raise
            self.all_keys = newer
            return read_state(session, newer)

    def check_keys(self) -> None:
        """Refuse a key file that is gone, or has lost keys since this process read it."""
        if not Keyring.read(self.keys_path).extends(self.all_keys):
            raise VaultError(
                f"{self.keys_path} lacks keys that were in it: copy it from your backup of the keys"
            )


def line_after(session: Session, state: State, last: Line) -> Line:
    """All that the database has beyond a line, by its tables."""
    if Tree(statements.read_leaves(session, last.size)).root != last.root:
        raise forked_from(last.size)
    entries = tuple(
        envelope_of(row.envelope) for row in statements.stream(session, EntryRow, after=last.size)
    )
    suppressed = tuple(statements.suppressed_since(session, last.size))
    people = tuple(statements.read(session, PeopleRow, after=last.size))
    head = state.head
    return Line(state.vault, state.commits, head.size, head.root, entries, suppressed, people)


def envelope_of(text: str) -> Envelope:
    """An entry as the database holds it."""
    try:
        return Envelope.from_dict(json.loads(text))
    except (ValueError, TypeError):
        raise changed_values() from None


def signed_checkpoint(transaction: Transaction) -> Note:
    """The head of the ledger under the signing key."""
    return transaction.state.head.signed(transaction.keyring.signing_keys[-1])


def keys_path_of(url: str, keys: str | Path | None) -> Path:
    """Where the keys are: as given, or where the database has them by default.

    Where a link leads, if it is one: the journal is beside the keys, and must be the same one by every name;
    and new keys are written into the file itself, not in the place of a link to it.
    """
    if keys is not None:
        refuse_null_characters(keys)
        if not Path(keys).name or os.path.isdir(keys):
            raise InvalidInputError(f"keys must be a file; got the folder {str(keys)!r}")
        path = Path(keys)
    else:
        path = database_class(url).default_keys_path(url)
    path = Path(os.path.realpath(path)) if os.path.islink(path) else path
    return path.absolute()  # the process may change its working folder


def _records_in(session: Session, keyring: Keyring) -> Records:
    """How the vault keeps its records, by its configuration; refuse what is none, or has other keys."""
    found = statements.read_identity(session)
    if len(found) != 1:
        raise changed_outside()
    vault, version, configuration = found[0]
    check_identity(vault, version, keyring)
    try:
        known = Configuration.from_text(configuration)
        return records_of(known.mode)
    except (ArmnesiaError, ValueError, KeyError, TypeError, AttributeError):
        raise changed_outside() from None


def records_of(mode: str) -> Records:
    """How a vault of a mode keeps its records."""
    if mode == MANAGED:
        return Records()
    if mode != EXTERNAL:
        raise KeyError(mode)
    from armnesia.vault.state.external_records import ExternalRecords  # noqa: PLC0415 (few vaults need it)

    return ExternalRecords()


def older_than(commit: int) -> VaultError:
    """The database has not what the journal has."""
    return VaultError(
        f"the vault is older than its journal, which has commit {commit}: an older copy was put back,"
        " and people forgotten since may be in it; run armnesia restore"
    )


def forked_from(size: int) -> VaultError:
    """The database has other entries than the journal."""
    return VaultError(
        f"the ledger of the vault is not that of its journal (up to entry {size}): one of them is of"
        " another copy of the vault: restore with its longest journal, or another backup"
    )
