"""A connection to a vault: its database, its keys, its pinned head, and transactions on its state."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head, leads_to
from armnesia.vault.ledger.pinned_head import PinnedHead
from armnesia.vault.ledger.public_keys import SigningKey
from armnesia.vault.results import Served
from armnesia.vault.state.owner_tallies import rebuild_tallies
from armnesia.vault.state.record_modes import RECORDS
from armnesia.vault.state.records import Records
from armnesia.vault.state.replay import ReplayedState
from armnesia.vault.state.sealed_state import State, StoredState, changed_outside, check_identity
from armnesia.vault.state.transaction import Transaction, ring_of
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Database, Session, database_module, open_database
from armnesia.vault.storage.schema import OLDEST_READABLE, TABLES, VERSION, WITH_TALLIES


@dataclass
class VaultConnection:
    """A connection to a vault, for one thread of one process."""

    database: Database
    keyring: Keyring
    keys_path: Path
    pinned_head: PinnedHead
    records: Records
    allow_older: bool = False
    """True for operations that also work on an old copy: `verify`, `upgrade`, `restore`."""
    erased_through: int = 0
    """The last ledger entry whose deleted bytes this process knows to have left the files."""
    signing_keys: tuple[SigningKey, ...] = ()
    """The history of the signing keys, if it was read: a cache, valid for as many keys as are in use."""
    known: tuple[StoredState, State] | None = None
    """The rows that this process last stored or unsealed, and their state: a cache."""
    pinned: Head | None = None
    """The head that was pinned when the transaction began: the state it sees must not be older."""

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a transaction that sees one snapshot of the vault, not older than the pinned head."""
        with self._beginning(self.database.reading) as session:
            state = self.load(session)
            yield Transaction(session, self.keyring, ring_of(self.keyring, state), state)

    @contextmanager
    def writing(self, load: Callable[[Session], tuple[State, bool]] | None = None) -> Iterator[Transaction]:
        """Begin the one write transaction at a time; pin the new head of the ledger after the commit.

        `load` replaces the reading of the state where that may be broken; it also says whether it is intact.
        The first change of a vault of an older version brings its tables to this one.
        """
        with self._beginning(self.database.writing) as session:
            before, intact = (self.load(session), True) if load is None else load(session)
            ring = ring_of(self.keyring, before)
            if before.version < WITH_TALLIES:
                rebuild_tallies(session, ring, self.records.layout)
            transaction = Transaction(session, self.keyring, ring, before, intact)
            yield transaction
            if before.version < VERSION and transaction.stored is None:
                transaction.store(before)  # with the version of the tables
        if transaction.stored is not None:
            self.known = (transaction.stored, transaction.state)
        if transaction.state.head != before.head:
            self.pinned_head.write(transaction.state.head)

    @contextmanager
    def _beginning(self, begin: Callable[[], AbstractContextManager[Session]]) -> Iterator[Session]:
        """Read the pinned head first: other processes append to the ledger before they pin its head."""
        self.pinned = None if self.allow_older else self.pinned_head.read()
        with begin() as session:
            yield session

    def load(self, session: Session) -> State:
        """Read the state, with what this process knows of erasure."""
        stored, ring = self.read(session)
        if self.known is None or self.known[0] != stored:
            self.known = (stored, stored.state(ring))
        state = self.known[1]
        return replace(state, erased_through=max(state.erased_through, self.erased_through))

    def read(self, session: Session) -> tuple[StoredState, Keyring]:
        """Read the rows of the state and check them; the keys in use.

        Refused are a state older than the pinned head (a backup may have been put in the database's place
        while this process had it open), one that does not match its seal, and tables that are not as armnesia
        created them. If a later head is found, it is pinned before anything is made of the state: a process
        may have been killed between its commit and the writing of the pin.
        """
        stored = StoredState.read(session)
        self._check_age(session, stored)
        ring = self.check_seal(stored)
        for problem in self.schema_problems(session, stored.version):
            raise VaultError(f"{problem}; nothing is read from such a vault: run armnesia verify")
        if self.pinned is not None and self.pinned.sequence < stored.head.sequence:
            self.pinned_head.write(stored.head)
        return stored, ring

    def check_at_opening(self, session: Session) -> None:
        """Refuse a damaged vault; if its seal does not match because of a key, say which."""
        try:
            self.read(session)
        except VaultError:
            with suppress(AssertionError, ValueError, TypeError, KeyError):
                replayed = ReplayedState.of(tables.stream_ledger(session))
                for problem in replayed.key_problems(self.keyring):
                    raise VaultError(problem) from None
            raise

    def _check_age(self, session: Session, stored: StoredState) -> None:
        """Refuse a state that the pinned head does not lead to."""
        if self.pinned is None:
            return
        try:
            head = stored.head
        except (InvalidInputError, TypeError):
            raise changed_outside() from None
        if head.sequence < self.pinned.sequence:
            raise older_than(self.pinned)
        if head != self.pinned and not leads_to(
            tables.read_ledger_from(session, self.pinned.sequence), self.pinned, head
        ):
            raise rewritten_since(self.pinned)

    def check_seal(self, stored: StoredState) -> Keyring:
        """Check the seal; if it does not match, with keys that another process may have added meanwhile."""
        try:
            return stored.check_seal(self.keyring)
        except VaultError:
            newer = Keyring.load(self.keys_path)
            if newer == self.keyring or not newer.extends(self.keyring):
                raise
            self.keyring = newer
            return stored.check_seal(newer)

    def schema_problems(self, session: Session, version: int = VERSION) -> list[str]:
        """Where the tables are not as armnesia creates them; an unknown version is taken for this one."""
        layout = self.records.layout
        expected = TABLES.get((layout, version), TABLES[layout, VERSION])
        return self.database.schema_problems(session, expected)

    def refuse_foreign_schema(self, session: Session) -> None:
        """Refuse tables that no readable version of armnesia creates: a trigger, say, could copy rows."""
        problems = [self.schema_problems(session, version) for version in (VERSION, OLDEST_READABLE)]
        if all(problems):
            raise VaultError(
                f"{problems[0][0]}; repair it by the database's own tools, then run the command again"
            )

    def served(self) -> Served:
        """The served arm, read in a transaction of its own, without the statistics."""
        with self._beginning(self.database.reading) as session:
            stored, _ = self.read(session)
        return stored.served()

    def erase(self, sequence: int, *, wait: bool = False) -> bool:
        """Make bytes deleted up to a ledger entry leave the files if possible; return whether they left."""
        if sequence > self.erased_through and self.database.erase(wait=wait):
            self.erased_through = sequence
        return self.erased_through >= sequence


def keys_path_of(url: str, keys: str | Path | None) -> Path:
    """Where the keys are: as given, or where the database has them by default."""
    if keys is not None:
        if not Path(keys).name or os.path.isdir(keys):
            raise InvalidInputError(f"keys must be a file; got the folder {str(keys)!r}")
        return Path(keys)
    path: Path = database_module(url).default_keys_path(url)
    return path


def pinned_head_of(keys_path: Path) -> PinnedHead:
    """The pinned head is kept beside the keys."""
    return PinnedHead(keys_path.with_name(keys_path.name + ".head"))


def open_vault(
    url: str,
    keys: str | Path | None = None,
    *,
    timeout: float = 30.0,
    allow_older: bool = False,
    allow_damaged: bool = False,
    any_version: bool = False,
) -> VaultConnection:
    """Connect to a vault; refuse what is none, is damaged or an old copy, or has other keys or versions."""
    path = keys_path_of(url, keys)
    database = open_database(url, timeout=timeout)
    with ExitStack() as undo:
        undo.callback(database.close)
        if not database.has_vault():
            raise VaultError(f"there is no vault at {database.location!r}; make one with: armnesia init")
        keyring = Keyring.load(path)
        path = path.absolute()  # the process may change its working folder
        pinned_head = pinned_head_of(path)
        pinned = None if allow_older else pinned_head.read()
        with database.reading() as session:
            vault, version, records = _identify(session)
            check_identity(vault, VERSION if any_version else version, keyring)
            connection = VaultConnection(database, keyring, path, pinned_head, records, allow_older)
            if not (allow_older or allow_damaged):
                connection.pinned = pinned
                connection.check_at_opening(session)
        undo.pop_all()
    return connection


def _identify(session: Session) -> tuple[str, int, Records]:
    """The id and the version of a vault, and how it keeps its records.

    A state that was changed can still be verified and rebuilt by what the first ledger entry says.
    """
    known: dict[str, Any] = {}
    with suppress(IndexError, ValueError, TypeError, KeyError):
        vault, version, text = tables.read_identity(session)[0]
        known = {"vault": vault, "version": version, "mode": json.loads(text)["mode"]}
    with suppress(ValueError, TypeError, KeyError):
        text, _ = tables.read_entry(session, 1) or ("", "")
        entry = json.loads(text)
        known = {"vault": entry["vault"], "version": VERSION} | known
        known["mode"] = entry["configuration"]["mode"]
    try:
        return known["vault"], known["version"], RECORDS[known["mode"]]
    except (KeyError, TypeError):
        raise changed_outside() from None


def older_than(pinned: Head) -> VaultError:
    """The pinned entry is not in the ledger."""
    return VaultError(
        f"the vault is older than its pinned head (entry {pinned.sequence} is not there): people"
        " forgotten since may be in it; run armnesia restore"
    )


def rewritten_since(pinned: Head) -> VaultError:
    """The ledger has another entry than the pinned one."""
    return VaultError(
        f"the vault's ledger is not the one that was pinned (entry {pinned.sequence} differs):"
        " it was rewritten, or the keys' folder belongs to another vault; run armnesia verify"
    )
