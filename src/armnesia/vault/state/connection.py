"""An opened vault: its database, its keys, and what every operation on it needs."""

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.ledger.pinned_head import Pin
from armnesia.vault.state.sealed_state import (
    State,
    StoredState,
    changed_outside,
    check_keys,
    head_columns,
    read_state,
    state_of,
    store_statements,
)
from armnesia.vault.storage.database import Database, Session, open_database
from armnesia.vault.storage.schema import RECORD_COLUMNS, VERSION, check_version

CODE = f"armnesia {metadata.version('armnesia')}"
"""Which code wrote an entry of the ledger."""

Statement = tuple[str, tuple[Any, ...]]


@dataclass
class Opened:
    """A connection to a vault. `erased_through` is what this process knows to be gone from the files."""

    database: Database
    keyring: Keyring
    keys_path: Path
    pin: Pin
    mode: str
    check_pin: bool = True
    """False for whatever is to work on an old copy, too: `verify`, `upgrade`, `restore`."""
    pinned: Head | None = None
    """The head that was pinned when the transaction began: what is read in it is not older."""
    erased_through: int = 0
    known: tuple[StoredState, State] | None = None
    """The rows this process last stored or found sealed, and what they mean: not to be worked out again."""

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that sees one state of the vault, which is not older than the pinned head."""
        self.pinned = self.pin.read() if self.check_pin else None
        with self.database.reading() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """The one writing transaction at a time, on a state that is not older than the pinned head."""
        self.pinned = self.pin.read() if self.check_pin else None
        with self.database.writing() as session:
            yield session

    def load(self, session: Session, *, check_seal: bool = True, check_pin: bool = True) -> State:
        """The state, with what this process knows of erasure; keys that others made meanwhile are read."""
        stored = read_state(session)
        if check_pin:
            self._refuse_older(stored)
        if self.known is not None and self.known[0] == stored:
            state = self.known[1]
        else:
            state = self._state_of(stored, check_seal)
            if check_seal:
                self.known = (stored, state)
        return replace(state, erased_through=max(state.erased_through, self.erased_through))

    def _refuse_older(self, stored: StoredState) -> None:
        """The database may have been put back from a backup while this process has it open."""
        length, head = head_columns(stored)
        if self.pinned is not None and (length, head) != (self.pinned.sequence, self.pinned.hash):
            if not isinstance(length, int) or length < self.pinned.sequence:
                raise older(self.pinned)
            if length == self.pinned.sequence:
                raise rewritten(self.pinned)

    def _state_of(self, stored: StoredState, check_seal: bool) -> State:
        try:
            return state_of(stored, self.keyring, check_seal=check_seal)
        except VaultError:
            newer = Keyring.load(self.keys_path)
            if newer == self.keyring or not newer.extends(self.keyring):
                raise
            self.keyring = newer
            return state_of(stored, newer, check_seal=check_seal)

    def ring(self, state: State) -> Keyring:
        """The keys that the state uses."""
        return self.keyring.at(digest_version=state.digest_key, signing_version=state.signing_key)

    def store(self, session: Session, before: State | None, state: State, *others: Statement) -> None:
        """Store a new state, together with other statements."""
        statements, stored = store_statements(before, state, self.keyring)
        session.execute_together([*others, *statements])
        self.known = (stored, state)

    def retry_erasure(self) -> bool:
        """Make the bytes of what was forgotten leave the files, if they have not; whether they have."""
        with self.reading() as session:
            state = self.load(session)
        if state.erased_through >= state.head.sequence:
            return True
        if not self.database.erase():
            return False
        self.erased_through = state.head.sequence
        return True


def appended(state: State, kind: str, **facts: Any) -> tuple[Entry, State, Statement]:
    """The next entry of the ledger, the state that has it, and the statement that stores it."""
    entry = Entry.next_after(
        state.head.sequence, state.head.hash, vault=state.vault, kind=kind, time=utc_now(), code=CODE, **facts
    )
    statement = (
        "INSERT INTO ledger (sequence, entry, hash) VALUES (?, ?, ?)",
        (entry.sequence, entry.text, entry.hash),
    )
    return entry, replace(state, head=entry.head), statement


def keys_path_of(url: str, keys: str | Path | None) -> Path:
    """Where the keys are: as said, beside an SQLite vault, or in the working folder."""
    if keys is not None:
        if not Path(keys).name or os.path.isdir(keys):
            raise InvalidInputError(f"keys must be a file; got the folder {str(keys)!r}")
        return Path(keys)
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        return Path(f"{rest[1:]}.keys")
    database = rest.partition("?")[0].partition("/")[2]  # never what may stand before an "@"
    return Path(f"armnesia-{database or 'postgres'}.keys")


def pin_of(keys_path: Path) -> Pin:
    """The pinned head lies beside the keys."""
    return Pin(keys_path.with_name(keys_path.name + ".head"))


def open_vault(
    url: str,
    keys: str | Path | None = None,
    *,
    timeout: float = 30.0,
    check_pin: bool = True,
    check_schema: bool = True,
) -> Opened:
    """Connect to a vault and check that it is one, of this version, with these keys, and not an old copy."""
    path = keys_path_of(url, keys)
    database = open_database(url, timeout=timeout)
    with closing_on_error(database):
        if not database.has_tables():
            raise VaultError(f"there is no vault at {database.location!r}; make one with: armnesia init")
        keyring = Keyring.load(path)
        vault, version, mode = _told_by_tables(database)
        check_keys(vault, keyring)
        if check_schema:
            check_version(version)
        path = path.absolute()  # the process may go to another folder
        opened = Opened(database, keyring, path, pin_of(path), mode, check_pin)
        if check_pin:
            check_not_older(opened)
        return opened


def _told_by_tables(database: Database) -> tuple[str, int, str]:
    """Which vault it is, of which version, and whether its rows are in it or at their sources."""
    with database.reading() as session:
        found = session.query("SELECT id, schema_version, configuration FROM vault")
        first = session.query("SELECT entry FROM ledger WHERE sequence = 1")
    told: dict[str, Any] = {}
    with suppress(IndexError, ValueError, TypeError, KeyError):
        vault, version, text = found[0]
        told = {"vault": vault, "version": version, "mode": json.loads(text)["mode"]}
    with suppress(IndexError, ValueError, TypeError, KeyError):
        # A state that was changed can be verified and mended by how the ledger says that it began.
        entry = json.loads(first[0][0])
        told = {"vault": entry["vault"], "version": VERSION} | told | {"mode": entry["configuration"]["mode"]}
    if told.get("mode") not in RECORD_COLUMNS:
        raise changed_outside()
    return told["vault"], told["version"], told["mode"]


class closing_on_error:  # noqa: N801 (reads as a function, as in contextlib)
    """Close what was opened, if what follows fails."""

    def __init__(self, database: Database) -> None:
        self._closing = closing(database)

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: Any, *rest: Any) -> None:
        """Close after an error only."""
        if kind is not None:
            self._closing.__exit__(kind, *rest)


def check_not_older(opened: Opened) -> None:
    """Refuse a database that is older than the pinned head, or whose past is another one."""
    pinned = opened.pin.read()
    if pinned is None:
        return
    with opened.database.reading() as session:
        found = session.query("SELECT hash FROM ledger WHERE sequence = ?", pinned.sequence)
    if not found:
        raise older(pinned)
    if found[0][0] != pinned.hash:
        raise rewritten(pinned)


def older(pinned: Head) -> VaultError:
    """The pinned entry is not in the ledger."""
    return VaultError(
        f"the vault is older than its pinned head (entry {pinned.sequence} is not there): people"
        " forgotten since may be in it; run armnesia restore"
    )


def rewritten(pinned: Head) -> VaultError:
    """The ledger has another entry than the pinned one."""
    return VaultError(
        f"the vault's ledger is not the one that was pinned (entry {pinned.sequence} differs):"
        " it was rewritten, or the keys' folder belongs to another vault; run armnesia verify"
    )
